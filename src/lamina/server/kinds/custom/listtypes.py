"""Uniqueness of the items of sets and map lists."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from lamina.errors import Cause
from lamina.objects.go_quote import json_text
from lamina.server.field_errors import duplicate, invalid
from lamina.server.kinds.custom.document import Document, item_schema, value_schema
from lamina.server.kinds.custom.go_values import ordered
from lamina.server.kinds.custom.schema_errors import shown_value


class Distinct:
    """
    The positions of sets and map lists in a schema.

    Objects are walked only along these positions.
    """

    __slots__ = ("_fields", "_items", "_keys", "_kind", "_values")

    def __init__(self, document: Document) -> None:
        kind = document.get("x-kubernetes-list-type", "")
        self._kind: str = kind if kind in ("set", "map") else ""
        self._keys: Sequence[str] = document.get("x-kubernetes-list-map-keys", ())
        self._items = distinct(item_schema(document))
        self._values = distinct(value_schema(document))
        self._fields = {
            name: found
            for name, part in document.get("properties", {}).items()
            if (found := distinct(part)) is not None
        }

    @property
    def is_used(self) -> bool:
        return bool(self._kind or self._items or self._values or self._fields)

    def is_certainly_unique(self, value: Any) -> bool:
        """Return whether all items are certainly unique; a fast check that may also be false for valid values."""
        if type(value) is dict:
            if self._values is not None and not all(map(self._values.is_certainly_unique, value.values())):
                return False
            for name, below in self._fields.items():
                if name in value and not below.is_certainly_unique(value[name]):
                    return False
        elif type(value) is list:
            if value and self._kind and not self._are_distinct(value):
                return False
            return self._items is None or all(map(self._items.is_certainly_unique, value))
        return True

    def _are_distinct(self, value: list[Any]) -> bool:
        if self._kind == "map":
            if len(self._keys) != 1:
                return False
            key = self._keys[0]
            value = [item.get(key) if type(item) is dict else None for item in value]
        return all(type(item) is str for item in value) and len(set(value)) == len(value)

    def causes(self, value: Any, path: str = "") -> Iterator[Cause]:
        """Yield an error for each duplicate item."""
        if isinstance(value, dict):
            if self._values is not None:
                for name, part in value.items():
                    yield from self._values.causes(part, f"{path}[{name}]")
            for name, part in value.items():
                if (below := self._fields.get(name)) is not None:
                    yield from below.causes(part, f"{path}.{name}" if path else name)
        elif isinstance(value, list):
            if self._kind == "set":
                yield from _repeated(value, value, path)
            elif self._kind == "map":
                yield from self._map(value, path)
            if self._items is not None:
                for index, item in enumerate(value):
                    yield from self._items.causes(item, f"{path}[{index}]")

    def _map(self, value: list[Any], path: str) -> Iterator[Cause]:
        for index, item in enumerate(value):
            if item is not None and not isinstance(item, dict):
                detail = "must be an object for an array of list-type map"
                yield invalid(f"{path}[{index}]", shown_value(item), detail)
                return
        identities = [{key: item[key] for key in self._keys if key in item} if item else {} for item in value]
        if len(self._keys) == 1:
            # A single key is compared as a scalar.
            yield from _repeated([next(iter(one.values()), _UNNAMED) for one in identities], identities, path)
        else:
            yield from _repeated(identities, identities, path)


_UNNAMED: Final = object()
"""The key of an item that lacks it."""


def distinct(document: Document | None) -> Distinct | None:
    """Return the positions of sets and map lists in a schema, None if it has none."""
    if document is None:
        return None
    made = Distinct(document)
    return made if made.is_used else None


def _repeated(values: Sequence[Any], shown: Sequence[Any], path: str) -> Iterator[Cause]:
    if len(values) < 2:
        return
    seen: dict[Any, int] = {}
    for index, value in enumerate(values):
        known = _hashable(value)
        seen[known] = seen.get(known, 0) + 1
        # Later repetitions are reported only once.
        if seen[known] == 2:
            yield duplicate(f"{path}[{index}]", shown_value(shown[index]))


def _hashable(value: Any) -> Any:
    """Return a hashable that equal values share: scalars with their type, others as JSON."""
    return json_text(ordered(value)) if isinstance(value, dict | list) else (type(value), value)
