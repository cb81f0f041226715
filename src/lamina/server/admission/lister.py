"""Reads of other objects for admission."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import orjson

from lamina.objects.types import Obj
from lamina.server.storage.store import Key, Store


class AdmissionLister:
    """Reads objects for admission plugins; lists are cached until the kind changes."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._lists: dict[str, tuple[int, Sequence[Obj]]] = {}

    def get(self, bucket: str, namespace: str, name: str) -> Obj | None:
        """Return the current version of an object."""
        row = self._store.newest(Key(bucket, namespace, name))
        return orjson.loads(row.value) if row is not None else None

    def namespace_labels(self, name: str) -> Any:
        """Return the labels of a namespace, None where it does not exist."""
        found = self.get("namespaces", "", name)
        return None if found is None else found["metadata"].get("labels")

    def list(self, bucket: str) -> Sequence[Obj]:
        """Return all objects of a kind. They are shared and must not be modified."""
        if not self._store.count(bucket):
            return ()
        changed = self._store.changed(bucket)
        cached = self._lists.get(bucket)
        if cached is None or cached[0] != changed:
            rows = self._store.list(bucket).rows
            cached = self._lists[bucket] = changed, [orjson.loads(row.value) for row in rows]
        return cached[1]
