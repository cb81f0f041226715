"""A mapping computed from objects, one entry from each; only objects that changed since the last pass are recomputed."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterator, Mapping, Sequence
from itertools import compress, count
from operator import is_, is_not
from typing import Generic, TypeVar

from lamina.objects.types import Obj

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")


class ObjectMap(Generic[Key, Value]):
    """Objects, and the entries that were computed from them."""

    __slots__ = ("_keys", "_objects", "entries")

    def __init__(
        self,
        objects: Mapping[int, Obj],
        keys: dict[int, Key],
        entries: dict[Key, Value],
    ) -> None:
        # The objects are held, so each has its identity to itself.
        self._objects, self._keys, self.entries = objects, keys, entries

    def holds(self, objects: Collection[Obj]) -> bool:
        """Say whether these are the very objects, in the same order."""
        return len(objects) == len(self._objects) and all(map(is_, objects, self._objects.values()))

    @property
    def objects(self) -> Mapping[int, Obj]:
        """Return the objects by their identity."""
        return self._objects

    @property
    def keys(self) -> dict[int, Key]:
        """Return the keys of the entries, by the identity of their objects."""
        return self._keys


def object_map(
    last: ObjectMap[Key, Value] | None,
    objects: Collection[Obj],
    entry: Callable[[Obj], tuple[Key, Value] | None],
) -> ObjectMap[Key, Value]:
    """
    Return the entries of objects: `last` itself if it has the very objects, and else what differs computed anew.

    `entry` returns the key and the value of an object, or None for one that has no entry. No two objects
    have entries with one key.
    """
    if last is None:
        last = ObjectMap({}, {}, {})
    elif last.holds(objects):
        return last
    now = dict(zip(map(id, objects), objects, strict=True))
    known = last.objects
    keys, entries = last.keys.copy(), last.entries.copy()
    for mark in known.keys() - now.keys():
        if mark in keys:
            del entries[keys.pop(mark)]
    added = now.keys() - known.keys()
    # Several in the order of the objects, whatever the order of the set.
    for mark in filter(added.__contains__, now) if len(added) > 1 else added:
        found = entry(now[mark])
        if found is not None:
            keys[mark], entries[found[0]] = found
    return ObjectMap(now, keys, entries)


def differing(now: Sequence[object], before: Sequence[object]) -> Iterator[int]:
    """Yield the positions at which two sequences of one length do not hold the very same object."""
    return compress(count(), map(is_not, now, before))
