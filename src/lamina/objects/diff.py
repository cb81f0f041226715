"""Two objects in, a list of changes out."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from msgspec import Struct

from lamina.objects.paths import Path, shown


class _Absent:
    def __repr__(self) -> str:
        return "ABSENT"


ABSENT: Final = _Absent()
"""The side of a change that has no value; None is a value that an object may hold."""


class Change(Struct, frozen=True, kw_only=True):
    """One place where two objects differ; `before` or `after` is ABSENT where the field was added or removed."""

    path: Path
    before: Any
    after: Any

    def __str__(self) -> str:
        if self.before is ABSENT:
            return f"{shown(self.path)}: added {self.after!r}"
        if self.after is ABSENT:
            return f"{shown(self.path)}: removed {self.before!r}"
        return f"{shown(self.path)}: {self.before!r} became {self.after!r}"


def is_same(one: Any, two: Any) -> bool:
    """Say whether two JSON values are equal. Python finds 1 and True equal; JSON does not."""
    return one is two or (bool(one == two) and _have_same_types(one, two))


def _have_same_types(one: Any, two: Any) -> bool:
    """Say whether two values that Python finds equal also agree on what is a boolean and what is a number."""
    kind = one.__class__
    if one is two or kind is str:
        return True
    if kind is dict:
        return all(_have_same_types(value, two[key]) for key, value in one.items())
    if kind is list:
        return all(map(_have_same_types, one, two))
    return kind is two.__class__ or (kind is not bool and two.__class__ is not bool)


def diff(before: Any, after: Any) -> tuple[Change, ...]:
    """
    Return where two objects differ, in the order of the fields of the first, then of those only in the second.

    Lists are compared index by index. A subtree that is only on one side is
    one change.
    """
    return tuple(_changes((), before, after))


def _changes(path: Path, before: Any, after: Any) -> Iterator[Change]:
    if isinstance(before, dict) and isinstance(after, dict):
        for key in before | after:
            yield from _changes((*path, key), before.get(key, ABSENT), after.get(key, ABSENT))
    elif isinstance(before, list) and isinstance(after, list):
        for place in range(max(len(before), len(after))):
            one = before[place] if place < len(before) else ABSENT
            two = after[place] if place < len(after) else ABSENT
            yield from _changes((*path, place), one, two)
    elif not is_same(before, after):
        yield Change(path=path, before=before, after=after)
