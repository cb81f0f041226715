"""
The log of everything that ever happened.

Every change is a row, and the number of the row is its version. What exists
now is a reading of the log; a watch is the rest of it.

A row's `value` is the object's JSON without kind and apiVersion (the version
it is served in adds them), always starting `{"metadata":`. A deletion is a row
too: its value is the object as it was, with the deletion's own version.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from enum import Enum
from pathlib import Path
from typing import Any, NamedTuple, Protocol

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


class Expect(Enum):
    """What the writer believes about the newest accepted row; a version number may stand in its place."""

    ABSENT = "absent"
    ANY = "any"


class Listing(NamedTuple):
    """A still picture: rows in order of namespace and name, at one version. `remaining` counts what a limit cut off."""

    rows: Sequence[Row]
    version: int
    remaining: int


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
        """Return the newest accepted row of an object that exists: what the next writer builds on."""
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

        With `at`, as they were at that version; raises Gone where that is compacted away.
        """
        ...

    def count(self, bucket: str) -> int: ...

    def buckets(self) -> Sequence[str]: ...

    async def append(
        self, key: Key, obj: Made, *, expect: Expect | int = Expect.ANY, deleted: bool = False
    ) -> Row:
        """
        Write a version of an object, or with `deleted` its end, and return the row once it is durable.

        Stamps metadata.resourceVersion into `obj`. Raises Conflict when `expect`
        is a version that is not the newest, NotFound when it is a version and there is no
        object, AlreadyExists when it is ABSENT and there is one (bare: the caller words them), TooLarge beyond the size of a row.
        """
        ...

    def since(self, version: int, bucket: str, namespace: str | None = None) -> Sequence[Event]:
        """Return the changes after a version, oldest first; raises Gone where that part is compacted away."""
        ...

    def follow(
        self, version: int, bucket: str, namespace: str | None = None
    ) -> AsyncIterator[Sequence[Event]]:
        """
        Return the changes after a version as they are committed, in batches, for ever.

        Raises Gone at once or later, when the reader is further behind than what is kept. Ends when the store closes.
        """
        ...

    async def wait_for(self, version: int, timeout: float) -> bool:
        """Wait until that version is committed; false if it is not by then."""
        ...

    def compact(self, before: int) -> None:
        """Forget versions up to and including `before` that are no longer current."""
        ...

    async def backup(self, target: Path) -> None:
        """Write a consistent copy of the log to a file, while others go on writing."""
        ...

    async def close(self) -> None:
        """Finish the writes that were accepted, end all followers, release the file."""
        ...
