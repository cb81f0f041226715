"""
Read views of a store for fault injection: one that is stale, and one whose history is compacted.

A verb that reads from one of them responds like a stale or compacted server.
"""

from __future__ import annotations

from typing import Any, NoReturn

from lamina.errors import Gone
from lamina.server.storage.store import Key, Listing, Row, Store


class _ReadView:
    """Delegates everything to a store that a subclass does not override."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)


class StaleStore(_ReadView):
    """A store as of an earlier version; as of now if that version is compacted."""

    def __init__(self, store: Store, version: int) -> None:
        super().__init__(store)
        self._at = version

    @property
    def version(self) -> int:
        return self._at

    def get(self, key: Key) -> Row | None:
        row = self._store.get(key)
        try:
            since = self._store.since(self._at, key.bucket, key.namespace)
        except Gone:
            return row
        for event in reversed(since):
            if event.row.key[1:] == key[1:]:
                row = event.previous
        return row

    def list(
        self,
        bucket: str,
        namespace: str | None = None,
        *,
        at: int | None = None,
        after: tuple[str, str] | None = None,
        limit: int = 0,
    ) -> Listing:
        try:
            return self._store.list(
                bucket, namespace, at=self._at if at is None else at, after=after, limit=limit
            )
        except Gone:
            if at is not None:
                raise
            return self._store.list(bucket, namespace, after=after, limit=limit)


class CompactedStore(_ReadView):
    """A store whose history is compacted: only current objects are readable."""

    @property
    def compacted(self) -> int:
        return self._store.version

    def list(
        self,
        bucket: str,
        namespace: str | None = None,
        *,
        at: int | None = None,
        after: tuple[str, str] | None = None,
        limit: int = 0,
    ) -> Listing:
        if at is not None:
            raise self._too_old(at)
        return self._store.list(bucket, namespace, after=after, limit=limit)

    def watch(self, version: int, bucket: str, namespace: str | None = None) -> NoReturn:
        raise self._too_old(version)

    def _too_old(self, version: int) -> Gone:
        return Gone(f"too old resource version: {version} ({self.compacted})")
