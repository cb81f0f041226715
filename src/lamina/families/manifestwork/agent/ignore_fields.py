"""
Fields that are not applied, given as JSONPaths, JSON pointers or jq expressions.

A path that matches nothing is no error. One that cannot be parsed is, and the error
names the expression.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from typing import Any

from lamina.families.manifestwork.agent.api import IgnoreFields
from lamina.objects.jq import JqError, select_paths
from lamina.objects.jsonpath import JsonPath, PathError
from lamina.objects.paths import Path, drop, get
from lamina.objects.types import Made, Obj

_NOTHING = object()


class IgnoreError(ValueError):
    """An expression that does not select fields."""


def without(obj: Obj, ignored: Sequence[IgnoreFields], condition: str) -> Obj:
    """Return a manifest without the fields ignored on this condition; raises IgnoreError."""
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
    """Return an object without the last field of a path, in each object that the rest of the path matches."""
    parents, dot, last = path.rpartition(".")
    if not dot or not last:
        raise IgnoreError(f"JSON path error in '{path}': it has to end with the name of a field")
    made: Made = deepcopy(dict(obj))
    try:
        found = JsonPath(parents).find(made) if parents else [made]
    except PathError as wrong:
        raise IgnoreError(f"JSON path error in '{path}': {wrong}") from None
    for parent in found:
        if isinstance(parent, dict):
            parent.pop(last, None)
    return made


def _pointed(obj: Obj, pointer: str) -> Path:
    """Return the path of a JSON pointer; empty where it matches nothing."""
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
        found = select_paths(expression, deepcopy(obj))
    except JqError as wrong:
        raise IgnoreError(f"JQ expression error in '{expression}': {wrong}") from None
    # From the end, so that the positions of earlier list items stay valid.
    for path in sorted(set(found), key=_order, reverse=True):
        if not path:
            raise IgnoreError(f"JQ expression error in '{expression}': it means the whole manifest")
        obj = drop(obj, path)
    return obj


def _order(path: Path) -> tuple[tuple[int, str], ...]:
    return tuple((step, "") if isinstance(step, int) else (-1, step) for step in path)
