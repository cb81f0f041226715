"""
One cluster's part of a shared log.

The buckets of a cluster have the cluster's prefix, so clusters cannot read each other's
objects. Versions are those of the log: they grow with writes to any cluster, and are never
reused. The first cluster has no prefix; its store is the log itself.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

import orjson

from lamina.errors import StoreError
from lamina.objects.types import Made
from lamina.server.storage.log_store import LogStore
from lamina.server.storage.store import Event, Expect, Key, Listing, Row
from lamina.server.storage.watch_cursor import WatchCursor

_DELETE_BATCH = 200
"""Objects that are deleted in one step when a cluster is deleted, so that other requests are served in between."""


class ClusterStore:
    """
    The `Store` of one cluster in a log.

    Rows have the keys of the log, so comparisons with keys of the cluster must ignore the
    bucket.
    """

    def __init__(self, log: LogStore, cluster: str) -> None:
        """Create the view of a cluster; `cluster` is its prefix, unique over the life of the log."""
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

    async def wait_committed(self, row: Row) -> None:
        await self._log.wait_committed(row)

    async def flush(self) -> None:
        await self._log.flush()

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
            raise StoreError(f"the cluster {self._names.cluster} was deleted")
        inner = Key(self._names[key.bucket], key.namespace, key.name)
        return await self._log.append(inner, obj, expect=expect, deleted=deleted)

    def since(self, version: int, bucket: str, namespace: str | None = None) -> Sequence[Event]:
        return self._log.since(version, self._names[bucket], namespace)

    def watch(self, version: int, bucket: str, namespace: str | None = None) -> WatchCursor:
        return self._log.watch(version, self._names[bucket], namespace)

    async def wait_for(self, version: int, timeout: float) -> bool:
        return await self._log.wait_for(version, timeout)

    def compact(self, before: int) -> None:
        """Do nothing: the log is compacted as a whole."""

    async def backup(self, target: Path) -> None:
        """Raise: a copy would contain the objects of all clusters."""
        raise StoreError("a backup contains all clusters, so one cluster cannot be backed up")

    async def close(self) -> None:
        """Accept no more writes; the log stays open."""
        self._closed = True

    async def clear(self) -> None:
        """
        Delete all objects of the cluster permanently.

        The caller has closed the view and waited for a later write of its own, so earlier
        writes are committed by now.
        """
        log, cluster = self._log, self._names.cluster
        while buckets := log.buckets(cluster):
            for bucket in buckets:
                rows = log.list(self._names[bucket], limit=_DELETE_BATCH).rows
                await asyncio.gather(
                    *(log.append(row.key, orjson.loads(row.value), deleted=True) for row in rows)
                )
        log.retire(cluster)


class _Names(dict[str, str]):
    """The names of a cluster's buckets in the log, by their names in the cluster."""

    def __init__(self, cluster: str) -> None:
        self.cluster = cluster

    def __missing__(self, bucket: str) -> str:
        name = self[bucket] = f"{self.cluster}/{bucket}"
        return name
