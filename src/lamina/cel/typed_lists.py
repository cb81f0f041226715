"""
Lists with `x-kubernetes-list-type` set or map.

Their equality ignores the order, and the concatenation of two maps replaces items
with the same key.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from lamina.cel.types import ListType
from lamina.cel.values import ListWithEquality, Value, contains, equal


class SetList(ListWithEquality):
    """A list of type set."""

    __slots__ = ()

    __hash__ = None  # type: ignore[assignment]  # a list has none

    def __eq__(self, other: object) -> bool:
        return self.same(other)

    def same(self, other: Value) -> bool:
        return (
            isinstance(other, list)
            and len(self) == len(other)
            and all(contains(other, item) for item in self)
        )

    def joined(self, other: list[Any]) -> list[Any]:
        return SetList([*self, *(item for item in other if not contains(self, item))])


class KeyedList(ListWithEquality):
    """An associative list, whose items are identified by key fields."""

    __slots__ = ("_keys",)

    __hash__ = None  # type: ignore[assignment]  # a list has none

    def __init__(self, items: Iterable[Any], keys: tuple[str, ...]) -> None:
        super().__init__(items)
        self._keys = keys

    def __eq__(self, other: object) -> bool:
        return self.same(other)

    def same(self, other: Value) -> bool:
        if not isinstance(other, list) or len(self) != len(other):
            return False
        mine = {self._key(item): item for item in self}
        return all((key := self._key(item)) in mine and equal(mine[key], item) for item in other)

    def joined(self, other: list[Any]) -> list[Any]:
        """Return these items, replaced by those of `other` with the same key, and then the rest of `other`."""
        items = {self._key(item): item for item in self}
        for item in other:
            items[self._key(item)] = item
        return KeyedList(items.values(), self._keys)

    def _key(self, item: Value) -> tuple[Any, ...]:
        """Return the key of an item; with its types, because 1, 1.0 and True are equal in Python."""
        if not isinstance(item, dict):
            return (repr(item),)
        return tuple((type(value).__name__, str(value)) for value in map(item.get, self._keys))


def listed(value: list[Any], declared: ListType) -> list[Any]:
    """Return a list as a value of its declared type."""
    return SetList(value) if declared.listing == "set" else KeyedList(value, declared.keys)
