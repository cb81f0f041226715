"""
Get, put, pick and drop fields by path.

A path is the field names and indexes that lead to a value: `("spec",
"containers", 0, "image")`. Writers return a new object that shares everything
off the path with the old one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias

from lamina.objects.types import Made, Obj

Path: TypeAlias = tuple[str | int, ...]


def shown(path: Path) -> str:
    """Return a path as text: `spec.containers[0].image`."""
    text = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path)
    return text.removeprefix(".")


def get(obj: Any, path: Path, default: Any = None) -> Any:
    """Return the value at a path, or the default where there is none."""
    here = obj
    for step in path:
        if isinstance(here, Mapping):
            if step not in here:
                return default
        elif not (isinstance(here, list) and isinstance(step, int) and 0 <= step < len(here)):
            return default
        here = here[step]
    return here


def put(obj: Obj, path: Path, value: Any) -> Made:
    """
    Return an object with a value at a path; missing objects on the way are created.

    Raises LookupError where the path leads through a list that is too short,
    or through a value that has no fields.
    """
    if not path:
        raise LookupError("the path is empty")
    made: Made = _put(obj, path, value)
    return made


def _put(here: Any, path: Path, value: Any) -> Any:
    if not path:
        return value
    step, rest = path[0], path[1:]
    if isinstance(step, int):
        if not isinstance(here, list) or not 0 <= step < len(here):
            raise LookupError(f"index {step} is out of range")
        return [*here[:step], _put(here[step], rest, value), *here[step + 1 :]]
    if here is None:
        here = {}
    if not isinstance(here, Mapping):
        raise LookupError(f"there is no field {step} in {here!r}")
    return {**here, step: _put(here.get(step), rest, value)}


def pick(obj: Obj, paths: Iterable[Path]) -> Made:
    """Return an object with only the values at these paths, which may not lead through lists."""
    picked: Made = {}
    for path in paths:
        value = get(obj, path, default=_NOTHING)
        if path and value is not _NOTHING:
            picked = put(picked, path, value)
    return picked


_NOTHING = object()


def drop(obj: Obj, path: Path) -> Obj:
    """Return an object without the value at a path; the same object where there is none."""
    if not path or get(obj, path, default=_NOTHING) is _NOTHING:
        return obj
    dropped: Obj = _drop(obj, path)
    return dropped


def _drop(here: Any, path: Path) -> Any:
    step, rest = path[0], path[1:]
    if isinstance(here, list):
        place = int(step)
        kept = [_drop(here[place], rest)] if rest else []
        return [*here[:place], *kept, *here[place + 1 :]]
    if rest:
        return {**here, step: _drop(here[step], rest)}
    return {key: value for key, value in here.items() if key != step}
