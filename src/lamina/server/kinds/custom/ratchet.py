"""
Ratcheting: which values an update has not changed.

An unchanged value is accepted although it violates a rule, if it can be correlated with
the old object: by its field name, or by its keys in a map list. Items of other lists are
not correlated.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from lamina.server.kinds.custom.document import Document, item_schema, value_schema
from lamina.server.kinds.custom.go_values import same

_UNSET: Final = object()


class Link:
    """A new value and its correlated old value, with their schema."""

    __slots__ = ("_by_keys", "_equal", "new", "old", "schema")

    def __init__(self, schema: Document, new: Any, old: Any) -> None:
        self.schema = schema
        self.new = new
        self.old = old
        self._equal: Any = _UNSET
        self._by_keys: dict[tuple[Any, ...], Any] | None = None

    def field(self, name: str) -> Link | None:
        """Return the link of a field that both values and the schema have."""
        new, old = self.new, self.old
        if not isinstance(new, dict) or not isinstance(old, dict) or name not in new or name not in old:
            return None
        schema = self.schema.get("properties", {}).get(name) or value_schema(self.schema)
        return None if schema is None else Link(schema, new[name], old[name])

    def element(self, index: int) -> Link | None:
        """Return the link of an item whose keys occur in the old list."""
        schema = item_schema(self.schema)
        keys = self.schema.get("x-kubernetes-list-map-keys", ())
        if schema is None or not self._is_map_list() or not isinstance(self.new, list):
            return None
        if self._by_keys is None:
            self._by_keys = {}
            for candidate in self.old:
                if (key := key_of(candidate, keys)) is not None:
                    # Of several with the same keys, the first counts.
                    self._by_keys.setdefault(key, candidate)
        key = key_of(self.new[index], keys)
        old = None if key is None else self._by_keys.get(key)
        return None if old is None else Link(schema, self.new[index], old)

    def _is_map_list(self) -> bool:
        return self.schema.get("x-kubernetes-list-type") == "map" and isinstance(self.old, list)

    @property
    def equal(self) -> bool:
        """Return whether the value is unchanged, as far as the schema specifies it; other values count as changed."""
        if self._equal is _UNSET:
            self._equal = self._compare()
        return bool(self._equal)

    def _compare(self) -> bool:
        new, old = self.new, self.old
        if isinstance(new, dict) and isinstance(old, dict):
            if len(new) != len(old):
                return False
            return all((link := self.field(name)) is not None and link.equal for name in new)
        if isinstance(new, list) and isinstance(old, list) and self._is_map_list():
            if len(new) != len(old):
                return False
            if item_schema(self.schema) is None:
                return same(new, old)
            return all((link := self.element(at)) is not None and link.equal for at in range(len(new)))
        return same(new, old)


def key_of(element: Any, keys: Sequence[str]) -> tuple[Any, ...] | None:
    """Return the key of an item; None if a key is missing or is no scalar."""
    if not isinstance(element, dict) or not keys:
        return None
    values = [element.get(key) for key in keys]
    if any(value is None or isinstance(value, dict | list) for value in values):
        return None
    # With the type: 1 and true are different keys.
    return tuple((type(value), value) for value in values)
