"""
Fields that are not to be stated, by whichever of three ways their places are given.

What leads nowhere is no mistake: the field is not there, and so is not stated. What
cannot be understood is one, and says which expression it was.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from lamina.families.manifestwork.spoke.api import IgnoreFields
from lamina.families.manifestwork.spoke.jq import JqError, places
from lamina.objects.jsonpath import JsonPath, PathError
from lamina.objects.paths import Path, drop, get
from lamina.objects.types import Made, Obj

_NOTHING = object()


class IgnoreError(ValueError):
    """An expression that does not say which fields are meant."""


def without(obj: Obj, ignored: Sequence[IgnoreFields], condition: str) -> Obj:
    """Return a manifest without the fields to be ignored on this condition; IgnoreError where one makes no sense."""
    for fields in ignored:
        if fields.condition == condition:
            for path in fields.json_paths:
                obj = _without_json_path(obj, path)
            for pointer in fields.json_pointers:
                obj = drop(obj, _pointed(obj, pointer))
            for expression in fields.jq_path_expressions:
                obj = _without_jq(obj, expression)
    return obj


def _without_json_path(obj: Obj, path: str) -> Obj:
    """Return an object without the last name of a path, wherever the rest of it leads to something that has it."""
    parents, dot, last = path.rpartition(".")
    if not dot or not last:
        raise IgnoreError(f"JSON path error in '{path}': it has to end with the name of a field")
    made: Made = _copied(obj)
    try:
        found = JsonPath(parents).find(made) if parents else [made]
    except PathError as wrong:
        raise IgnoreError(f"JSON path error in '{path}': {wrong}") from None
    for parent in found:
        if isinstance(parent, dict):
            parent.pop(last, None)
    return made


def _copied(value: Any) -> Any:
    """Return a copy whose objects are nobody else's; what a path finds in it may be changed in place."""
    if isinstance(value, Mapping):
        return {key: _copied(held) for key, held in value.items()}
    if isinstance(value, list | tuple):
        return [_copied(held) for held in value]
    return value


def _pointed(obj: Obj, pointer: str) -> Path:
    """Return where a JSON pointer points to; nowhere is an empty path."""
    if not pointer.startswith("/"):
        raise IgnoreError(f"JSON Pointer error in '{pointer}': it has to start with a slash")
    path: list[str | int] = []
    here: Any = obj
    for part in pointer[1:].split("/"):
        name = part.replace("~1", "/").replace("~0", "~")
        step: str | int = name
        if isinstance(here, list):
            if not (name.isascii() and name.isdigit()):
                raise IgnoreError(f"JSON Pointer error in '{pointer}': {name!r} is no place in a list")
            step = int(name)
        here = get(here, (step,), default=_NOTHING)
        if here is _NOTHING:
            return ()
        path.append(step)
    return tuple(path)


def _without_jq(obj: Obj, expression: str) -> Obj:
    try:
        found = places(expression, _copied(obj))
    except JqError as wrong:
        raise IgnoreError(f"JQ expression error in '{expression}': {wrong}") from None
    # From the end, so that the places of what is still to go stay what they are.
    for path in sorted(set(found), key=_order, reverse=True):
        if not path:
            raise IgnoreError(f"JQ expression error in '{expression}': it means the whole manifest")
        obj = drop(obj, path)
    return obj


def _order(path: Path) -> tuple[tuple[int, str], ...]:
    return tuple((step, "") if isinstance(step, int) else (-1, step) for step in path)
