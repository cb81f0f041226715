"""
The log of everything that ever happened.

Every change is a row, and the number of the row is its version. What exists
now is a reading of the log; a watch is the rest of it.

A row's `value` is the object's JSON without kind and apiVersion (the version
it is served in adds them), always starting `{"metadata":`. A deletion is a row
too: its value is the object as it was, with the deletion's own version.

A row is first accepted, then committed. Accepted is what the next writer
builds on; committed is what everybody else sees. When a commit fails, every
row accepted since the last good one is forgotten and its writers are told so.
Versions only ever grow, and one that was given out is never given out again,
so there may be gaps.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from enum import Enum
from pathlib import Path
from typing import Any, NamedTuple, Protocol, TypeAlias

from lamina.objects.types import Made


class Key(NamedTuple):
    """Which object: the bucket holds one kind of one cluster; the namespace is empty for cluster scope."""

    bucket: str
    namespace: str
    name: str


class Row:
    """
    One version of one object. Never changed, except for what `cache` remembers about it.

    `cache` is for whoever serves rows (decoded labels, converted bytes); the
    store does not look at it.
    """

    __slots__ = ("cache", "deleted", "key", "value", "version")

    def __init__(self, key: Key, version: int, value: bytes, deleted: bool = False) -> None:
        self.key = key
        self.version = version
        self.value = value
        self.deleted = deleted
        self.cache: dict[Any, Any] | None = None


class Event(NamedTuple):
    """One change: the row it made, and the row it took the place of, if there was one."""

    row: Row
    previous: Row | None


Offer: TypeAlias = Callable[[Sequence[Event]], bool]
"""What a batch is offered to; it says whether it took the batch."""


class Expect(Enum):
    """What the writer believes about the newest accepted row; a version number may stand in its place."""

    ABSENT = "absent"
    ANY = "any"


class Listing(NamedTuple):
    """
    A still picture at one version; `remaining` counts what a limit cut off.

    Rows are in the order of `namespace/name` as one string, as etcd sorts them:
    namespace `a-b` comes before namespace `a`.
    """

    rows: Sequence[Row]
    version: int
    remaining: int


class Follower(Protocol):
    """
    The changes after a version as they are committed, in batches, for ever.

    Raises Gone when the reader is further behind than what is kept; a reader
    that has read everything never is. Ends when the store closes. Waiting may be
    cancelled at any moment and taken up again: nothing is lost or given twice.
    """

    @property
    def version(self) -> int:
        """Return the version up to which every change was handed out: what a bookmark may say."""
        ...

    def __aiter__(self) -> AsyncIterator[Sequence[Event]]: ...

    async def __anext__(self) -> Sequence[Event]: ...

    async def next(self, timeout: float | None = None, offer: Offer | None = None) -> Sequence[Event] | None:
        """
        Return the next batch; an empty one if none came within the timeout, None once the store closed.

        A batch that comes while this waits is handed out by `offer` if that
        takes it, and then the wait goes on, up to the same moment.
        """
        ...

    def end(self) -> None:
        """Let this be all: whoever reads is told that nothing follows, as if the store had closed."""
        ...


class Store(Protocol):
    """
    An append-only log of object versions.

    Reads and events show committed rows only. `append` judges `expect` against
    the newest accepted row, the batch on its way to the disk included, and
    returns when its own row is durable.
    """

    @property
    def version(self) -> int:
        """Return the newest committed version; at least 1, also of an empty store."""
        ...

    @property
    def compacted(self) -> int:
        """Return the version up to which only what still exists is kept."""
        ...

    def get(self, key: Key) -> Row | None:
        """Return the committed row of an object that exists."""
        ...

    def newest(self, key: Key) -> Row | None:
        """
        Return the newest accepted row of an object that exists: what the next writer builds on.

        It may not be committed yet. Whoever shows it to a client instead of
        writing (a write that changes nothing) awaits `settled` first.
        """
        ...

    async def settled(self, row: Row) -> None:
        """Return once a row from `newest` is committed; raises StoreError when it turns out not to be."""
        ...

    async def caught_up(self) -> None:
        """Return once all that was written so far is committed, or has turned out not to be."""
        ...

    def list(
        self,
        bucket: str,
        namespace: str | None = None,
        *,
        at: int | None = None,
        after: tuple[str, str] | None = None,
        limit: int = 0,
    ) -> Listing:
        """
        Return the rows of a bucket, or of one namespace in it, that sort after (namespace, name) `after`.

        With `at`, as they were at that version; raises Gone where that is
        compacted away, and ValueError for a version that is yet to come.
        """
        ...

    def count(self, bucket: str) -> int:
        """Return how many objects a bucket holds."""
        ...

    def changed(self, bucket: str) -> int:
        """Return a number that grows with every change in a bucket; it means nothing to another process."""
        ...

    def buckets(self) -> Sequence[str]:
        """Return the buckets that hold objects, in order."""
        ...

    async def append(
        self, key: Key, obj: Made, *, expect: Expect | int = Expect.ANY, deleted: bool = False
    ) -> Row:
        """
        Write a version of an object, or with `deleted` its end, and return the row once it is durable.

        Stamps metadata.resourceVersion into `obj`. The row is accepted before
        anything is awaited: nobody comes between a look at `newest` and an append
        that follows without an await. A writer that is cancelled
        while it waits has written all the same.

        Raises, bare (the caller words them): Conflict when `expect` is a version
        that is not the newest; NotFound when it is a version and there is no object, or
        when there is nothing to delete; AlreadyExists when it is ABSENT and
        there is one; TooLarge beyond the size of a row. Raises StoreError
        when the disk refuses: the row is not in the log then.
        """
        ...

    def since(self, version: int, bucket: str, namespace: str | None = None) -> Sequence[Event]:
        """Return the changes after a version, oldest first; raises Gone where that part is compacted away."""
        ...

    def follow(self, version: int, bucket: str, namespace: str | None = None) -> Follower:
        """
        Return the changes after a version as they are committed, in batches, for ever.

        Raises Gone at once where that part is compacted away. A version that is
        yet to come is waited for.
        """
        ...

    async def wait_for(self, version: int, timeout: float) -> bool:
        """Wait until that version is committed; false if it is not by then."""
        ...

    def compact(self, before: int) -> None:
        """Forget versions up to and including `before` that were no longer current at `before`."""
        ...

    async def backup(self, target: Path) -> None:
        """Write a consistent copy of the log to a file, while others go on writing."""
        ...

    async def close(self) -> None:
        """Finish the writes that were accepted, end all followers, release the file."""
        ...
