"""
Lists and maps that a body states as empty.

They are not stored, so a decoder leaves them out. A real server still holds
them while it validates, and quotes them as they were written: `Invalid value: []`
is what it says of an empty list, and `null` of one that nobody wrote.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, TypeAlias

from lamina.objects.types import Made

Empty: TypeAlias = tuple[tuple[str | int, ...], Any]
"""Where something empty stood, and what it was: a list or a map."""


class Restated(NamedTuple):
    """A field that holds something empty for a while, and whether it is printed as null otherwise."""

    holder: Any
    name: str | int
    printed: bool


def restate(obj: Made, empties: Sequence[Empty]) -> list[Restated]:
    """Put back into an object what its body stated as empty, except where there is something by now."""
    done: list[Restated] = []
    for path, value in empties:
        holder = _holder(obj, path[:-1])
        if isinstance(holder, dict) and holder.get(path[-1]) is None:
            done.append(Restated(holder, path[-1], path[-1] in holder))
            holder[path[-1]] = value
    return done


def retract(done: Sequence[Restated]) -> None:
    """Make the object what it was before."""
    for holder, name, printed in done:
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
