"""
One cluster's part of a log that several share.

Every bucket of a cluster has the cluster's mark before its name, so what one
cluster holds is out of sight for the others, while versions are those of the
log: they grow with whatever is written anywhere, and are never given out twice.
The first cluster has no prefix, and is the log itself.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

import orjson

from lamina.errors import StoreError
from lamina.objects.types import Made
from lamina.server.follower import Reader
from lamina.server.log import Log
from lamina.server.store import Event, Expect, Key, Listing, Row

_AT_ONCE = 200
"""How many objects of a cluster that ends are deleted in one go, between which others have their turn."""


class View:
    """
    A `Store` of one cluster in a log.

    Rows carry the keys of the log. Who compares one with a key of its own leaves
    the bucket out.
    """

    def __init__(self, log: Log, cluster: str) -> None:
        """See a cluster in a log; `cluster` is what tells it from all that are, or ever were, in it."""
        self._log = log
        self._names = _Names(cluster)
        self._closed = False

    @property
    def version(self) -> int:
        return self._log.version

    @property
    def compacted(self) -> int:
        return self._log.compacted

    def get(self, key: Key) -> Row | None:
        return self._log.get(Key(self._names[key.bucket], key.namespace, key.name))

    def newest(self, key: Key) -> Row | None:
        return self._log.newest(Key(self._names[key.bucket], key.namespace, key.name))

    async def settled(self, row: Row) -> None:
        await self._log.settled(row)

    async def caught_up(self) -> None:
        await self._log.caught_up()

    def list(
        self,
        bucket: str,
        namespace: str | None = None,
        *,
        at: int | None = None,
        after: tuple[str, str] | None = None,
        limit: int = 0,
    ) -> Listing:
        return self._log.list(self._names[bucket], namespace, at=at, after=after, limit=limit)

    def count(self, bucket: str) -> int:
        return self._log.count(self._names[bucket])

    def changed(self, bucket: str) -> int:
        return self._log.changed(self._names[bucket])

    def buckets(self) -> Sequence[str]:
        return self._log.buckets(self._names.cluster)

    async def append(
        self, key: Key, obj: Made, *, expect: Expect | int = Expect.ANY, deleted: bool = False
    ) -> Row:
        if self._closed:
            raise StoreError(f"the cluster {self._names.cluster} is no more")
        inner = Key(self._names[key.bucket], key.namespace, key.name)
        return await self._log.append(inner, obj, expect=expect, deleted=deleted)

    def since(self, version: int, bucket: str, namespace: str | None = None) -> Sequence[Event]:
        return self._log.since(version, self._names[bucket], namespace)

    def follow(self, version: int, bucket: str, namespace: str | None = None) -> Reader:
        return self._log.follow(version, self._names[bucket], namespace)

    async def wait_for(self, version: int, timeout: float) -> bool:
        return await self._log.wait_for(version, timeout)

    def compact(self, before: int) -> None:
        """Leave it to the log, which knows how far everybody is."""

    async def backup(self, target: Path) -> None:
        """Refuse: a copy is of the whole log, and so of everybody's objects."""
        raise StoreError("a copy is made of all clusters, and not of one")

    async def close(self) -> None:
        """Take no more writes; the log goes on."""
        self._closed = True

    async def clear(self) -> None:
        """
        Delete everything there is, for good.

        Whoever calls has closed the view, and waited for a write of their own
        since then: what was accepted before is committed by now.
        """
        log, cluster = self._log, self._names.cluster
        while buckets := log.buckets(cluster):
            for bucket in buckets:
                rows = log.list(self._names[bucket], limit=_AT_ONCE).rows
                await asyncio.gather(
                    *(log.append(row.key, orjson.loads(row.value), deleted=True) for row in rows)
                )
        log.retire(cluster)


class _Names(dict[str, str]):
    """What the buckets of a cluster are called in the log, by what they are called in the cluster."""

    def __init__(self, cluster: str) -> None:
        self.cluster = cluster

    def __missing__(self, bucket: str) -> str:
        name = self[bucket] = f"{self.cluster}/{bucket}"
        return name
