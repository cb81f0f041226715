"""What other objects say, as admission asks for it."""

from __future__ import annotations

from collections.abc import Sequence

import orjson

from lamina.objects.types import Obj
from lamina.server.store import Key, Store


class Records:
    """Reads objects for whoever admits others; what is asked for with every write is kept until it changes."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._every: dict[str, tuple[int, Sequence[Obj]]] = {}

    def get(self, bucket: str, namespace: str, name: str) -> Obj | None:
        """Return one object as it was last written."""
        row = self._store.newest(Key(bucket, namespace, name))
        return orjson.loads(row.value) if row is not None else None

    def every(self, bucket: str) -> Sequence[Obj]:
        """Return all objects of a kind. They are shared: nobody changes them."""
        if not self._store.count(bucket):
            return ()
        changed = self._store.changed(bucket)
        kept = self._every.get(bucket)
        if kept is None or kept[0] != changed:
            rows = self._store.list(bucket).rows
            kept = self._every[bucket] = changed, [orjson.loads(row.value) for row in rows]
        return kept[1]
