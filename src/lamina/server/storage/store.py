"""
The store: a log of object versions.

Every change is a row, and the row's number is its version. The current objects are the
latest rows; a watch is the rows after a version.

A row's `value` is the object's JSON without kind and apiVersion (the served version adds
them), always starting with `{"metadata":`. A deletion is a row too: its value is the last
object, with the version of the deletion.

A row is first accepted, then committed. Writers build on accepted rows; readers see
committed ones. When a commit fails, all rows accepted since the last successful one are
dropped and their writers get an error. Versions only grow, and are never reused, so there
may be gaps.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from enum import Enum
from pathlib import Path
from typing import Any, NamedTuple, Protocol, TypeAlias

from lamina.objects.types import Made


class Key(NamedTuple):
    """An object: the bucket holds one kind of one cluster; the namespace is empty for cluster scope."""

    bucket: str
    namespace: str
    name: str


class Row:
    """
    One version of one object. Immutable, except for `cache`.

    `cache` is for readers (decoded labels, converted bytes); the store does not use it.
    """

    __slots__ = ("cache", "deleted", "key", "value", "version")

    def __init__(self, key: Key, version: int, value: bytes, deleted: bool = False) -> None:
        self.key = key
        self.version = version
        self.value = value
        self.deleted = deleted
        self.cache: dict[Any, Any] | None = None


class Event(NamedTuple):
    """One change: the new row, and the row that it replaced, if there was one."""

    row: Row
    previous: Row | None


Deliver: TypeAlias = Callable[[Sequence[Event]], bool]
"""Called with a batch; returns whether it accepted the batch."""


class Expect(Enum):
    """A precondition on the newest accepted row; a version number is one too."""

    ABSENT = "absent"
    ANY = "any"


class Listing(NamedTuple):
    """
    A snapshot at one version; `remaining` counts the rows beyond a limit.

    Rows are sorted by `namespace/name` as one string, as in etcd: namespace `a-b` comes
    before namespace `a`.
    """

    rows: Sequence[Row]
    version: int
    remaining: int


class Cursor(Protocol):
    """
    The changes after a version as they are committed, in batches, without end.

    Raises Gone if the reader is further behind than the history; a reader that has read
    everything never is. Ends when the store closes. Waiting can be cancelled and repeated:
    no event is lost or repeated.
    """

    @property
    def version(self) -> int:
        """Return the version up to which all changes were returned: the version of a bookmark."""
        ...

    def __aiter__(self) -> AsyncIterator[Sequence[Event]]: ...

    async def __anext__(self) -> Sequence[Event]: ...

    async def next(
        self, timeout: float | None = None, deliver: Deliver | None = None
    ) -> Sequence[Event] | None:
        """
        Return the next batch; an empty one after the timeout, None when the store has closed.

        A batch that arrives during the wait is passed to `deliver`; if that accepts it, the
        wait continues with the same timeout.
        """
        ...

    def end(self) -> None:
        """End the cursor: the reader gets no more events, as if the store had closed."""
        ...


class Store(Protocol):
    """
    An append-only log of object versions.

    Reads and events have committed rows only. `append` checks `expect` against the newest
    accepted row, including the batch being committed, and returns when its own row is
    durable.
    """

    @property
    def version(self) -> int:
        """Return the newest committed version; at least 1, also for an empty store."""
        ...

    @property
    def compacted(self) -> int:
        """Return the version up to which only current rows are kept."""
        ...

    def get(self, key: Key) -> Row | None:
        """Return the committed row of an existing object."""
        ...

    def newest(self, key: Key) -> Row | None:
        """
        Return the newest accepted row of an existing object: what the next writer builds on.

        It may not be committed yet. A caller that returns it to a client without writing (a
        write that changes nothing) awaits `wait_committed` first.
        """
        ...

    async def wait_committed(self, row: Row) -> None:
        """Return when a row from `newest` is committed; raises StoreError if its commit fails."""
        ...

    async def flush(self) -> None:
        """Return when all earlier writes are committed or have failed."""
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

        With `at`, as of that version; raises Gone if it is compacted, and ValueError for a
        version in the future.
        """
        ...

    def count(self, bucket: str) -> int:
        """Return the number of objects in a bucket."""
        ...

    def changed(self, bucket: str) -> int:
        """Return a number that grows with every change in a bucket; it is valid only in this process."""
        ...

    def buckets(self) -> Sequence[str]:
        """Return the non-empty buckets, sorted."""
        ...

    async def append(
        self, key: Key, obj: Made, *, expect: Expect | int = Expect.ANY, deleted: bool = False
    ) -> Row:
        """
        Write a version of an object, or with `deleted` its deletion, and return the durable row.

        Sets metadata.resourceVersion in `obj`. The row is accepted before anything is awaited:
        a read of `newest` followed by `append` without an await between them is atomic. A
        writer that is cancelled while it waits has written all the same.

        Raises, without a message (the caller adds it): Conflict if `expect` is a version that
        is not the newest; NotFound if it is a version and there is no object, or if there is
        nothing to delete; AlreadyExists if it is ABSENT and there is one; TooLarge beyond the
        maximum row size. Raises StoreError if the commit fails: then the row is not in the log.
        """
        ...

    def since(self, version: int, bucket: str, namespace: str | None = None) -> Sequence[Event]:
        """Return the changes after a version, oldest first; raises Gone if they are compacted."""
        ...

    def watch(self, version: int, bucket: str, namespace: str | None = None) -> Cursor:
        """
        Return the changes after a version as they are committed, in batches, without end.

        Raises Gone if they are compacted. A version in the future is waited for.
        """
        ...

    async def wait_for(self, version: int, timeout: float) -> bool:
        """Wait until a version is committed; return false after the timeout."""
        ...

    def compact(self, before: int) -> None:
        """Drop versions up to and including `before` that were replaced by `before`."""
        ...

    async def backup(self, target: Path) -> None:
        """Write a consistent copy of the log to a file, while it is written to."""
        ...

    async def close(self) -> None:
        """Finish the accepted writes, end all cursors, release the file."""
        ...
