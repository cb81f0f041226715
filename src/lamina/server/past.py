"""
Looking at a log as if it were earlier, or as if it had forgotten.

Both are a store to whoever reads: a verb that is given one of them answers as a
server would that lags behind, or that has compacted everything.
"""

from __future__ import annotations

from copy import copy
from typing import Any, NoReturn, cast

from lamina.errors import Gone
from lamina.server.plane import Plane
from lamina.server.store import Key, Listing, Row, Store


def past(plane: Plane, version: int) -> Plane:
    """Return a control plane as it was at a version, for those who read; what they follow goes on from there."""
    return _on(plane, _Past(plane.store, version))


def forgetful(plane: Plane) -> Plane:
    """Return a control plane that remembers the present and nothing else."""
    return _on(plane, _Forgetful(plane.store))


def _on(plane: Plane, store: _Seen) -> Plane:
    other = copy(plane)
    # All that it does not do itself is done by the store it stands before.
    other.store = cast(Store, store)
    return other


class _Seen:
    """A store in all but the little that is seen otherwise."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)


class _Past(_Seen):
    """A log as it was at a version; where that is compacted away, as it is."""

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


class _Forgetful(_Seen):
    """A log of which everything has been compacted but what exists now."""

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
            raise self._forgotten(at)
        return self._store.list(bucket, namespace, after=after, limit=limit)

    def follow(self, version: int, bucket: str, namespace: str | None = None) -> NoReturn:
        raise self._forgotten(version)

    def _forgotten(self, version: int) -> Gone:
        return Gone(f"too old resource version: {version} ({self.compacted})")
