"""
Empty lists and maps of a body.

They are not stored, so decoders drop them. kube-apiserver still holds them during
validation and quotes them in messages: `Invalid value: []` for an empty list, `null`
for an absent one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from lamina.objects.types import Made
from lamina.server.kinds.kind import Empty


class RestoredEmpty(NamedTuple):
    """A field that temporarily holds an empty value, and whether it is printed as null otherwise."""

    holder: Any
    name: str | int
    printed: bool


def restore_empties(obj: Made, empties: Sequence[Empty]) -> list[RestoredEmpty]:
    """Restore the empty values of the body, except in fields that have a value by now."""
    restored: list[RestoredEmpty] = []
    for path, value in empties:
        holder = _holder(obj, path[:-1])
        if isinstance(holder, dict) and holder.get(path[-1]) is None:
            restored.append(RestoredEmpty(holder, path[-1], path[-1] in holder))
            holder[path[-1]] = value
    return restored


def remove_empties(restored: Sequence[RestoredEmpty]) -> None:
    """Undo `restore_empties`."""
    for holder, name, printed in restored:
        if printed:
            holder[name] = None
        else:
            del holder[name]


def _holder(obj: Any, path: Sequence[str | int]) -> Any:
    for step in path:
        if isinstance(obj, dict):
            obj = obj.get(step)
        elif isinstance(obj, list) and isinstance(step, int) and step < len(obj):
            obj = obj[step]
        else:
            return None
    return obj
