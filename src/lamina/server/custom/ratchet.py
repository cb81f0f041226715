"""
What an update has not changed.

A value that was stored is let pass again although a rule of today forbids it,
as long as it can be found in the old object: by its name, or by its keys where
the list is a map. The elements of other lists have no name to be found by.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from lamina.server.custom.document import Document, item_schema, value_schema
from lamina.server.custom.golang import same

_UNASKED: Final = object()


class Link:
    """A new value and the old one it takes the place of, with the schema both are seen by."""

    __slots__ = ("_by_keys", "_equal", "new", "old", "schema")

    def __init__(self, schema: Document, new: Any, old: Any) -> None:
        self.schema = schema
        self.new = new
        self.old = old
        self._equal: Any = _UNASKED
        self._by_keys: dict[tuple[Any, ...], Any] | None = None

    def field(self, name: str) -> Link | None:
        """Return the link of a field that both values have and the schema knows."""
        new, old = self.new, self.old
        if not isinstance(new, dict) or not isinstance(old, dict) or name not in new or name not in old:
            return None
        schema = self.schema.get("properties", {}).get(name) or value_schema(self.schema)
        return None if schema is None else Link(schema, new[name], old[name])

    def element(self, index: int) -> Link | None:
        """Return the link of an element whose keys are found among the old ones."""
        schema = item_schema(self.schema)
        keys = self.schema.get("x-kubernetes-list-map-keys", ())
        if schema is None or not self._is_map_list() or not isinstance(self.new, list):
            return None
        if self._by_keys is None:
            self._by_keys = {}
            for candidate in self.old:
                if (key := key_of(candidate, keys)) is not None:
                    # Of several with the same keys, the first is the one to be found.
                    self._by_keys.setdefault(key, candidate)
        key = key_of(self.new[index], keys)
        old = None if key is None else self._by_keys.get(key)
        return None if old is None else Link(schema, self.new[index], old)

    def _is_map_list(self) -> bool:
        return self.schema.get("x-kubernetes-list-type") == "map" and isinstance(self.old, list)

    @property
    def equal(self) -> bool:
        """Say whether nothing has changed, as far as the schema can see; what it does not know has changed."""
        if self._equal is _UNASKED:
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
    """Return what an element is found by; None where a key is missing or is no scalar."""
    if not isinstance(element, dict) or not keys:
        return None
    values = [element.get(key) for key in keys]
    if any(value is None or isinstance(value, dict | list) for value in values):
        return None
    # The type stands beside the value: 1 and true are different keys.
    return tuple((type(value), value) for value in values)
