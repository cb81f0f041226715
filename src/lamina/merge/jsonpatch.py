"""
JSON patch: a list of operations, done one after the other (RFC 6902).

As kube-apiserver, it is more lenient than the standard: a negative index counts
from the end of a list, an absent field may be replaced, and a test for null
passes where a field is absent.

Arguments are never changed. The path of an operation is copied; everything else
is shared with the target and with the operations.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, TypeAlias

from lamina.errors import BadRequest, Invalid, TooLarge
from lamina.merge.go_format import json_kind
from lamina.objects.diff import is_same

MOST_OPERATIONS: Final = 10_000
MOST_COPIED: Final = 3 * 1024 * 1024
"""The number of characters that all copies of one patch may add together."""

_ABSENT: Final = object()
_Change: TypeAlias = Callable[[Any, str], Any]


class _DoesNotApply(Exception):
    """An operation cannot be done on this document."""


def json_patch(target: Any, operations: Any) -> Any:
    """
    Return the target with all operations done.

    Raises BadRequest for a patch that is not a list of operations, TooLarge
    for too many of them, and Invalid where one does not apply; its hint says
    which and why.
    """
    steps = _checked(operations)
    if len(steps) > MOST_OPERATIONS:
        raise TooLarge(
            "Request entity too large: The allowed maximum operations in a JSON patch is "
            f"{MOST_OPERATIONS}, got {len(steps)}"
        )
    document = target
    copied = 0
    try:
        for step in steps:
            if step.get("op") == "copy":
                document, size = _copy(document, step)
                copied += size
                if copied > MOST_COPIED:
                    raise _DoesNotApply(
                        "Unable to complete the copy, the accumulated size increase of copy is "
                        f"{copied}, exceeding the limit {MOST_COPIED}"
                    )
            else:
                document = _done(document, step)
    except _DoesNotApply as error:
        refused = Invalid("the server rejected our request due to an error in our request")
        refused.hint = str(error)
        refused.shows_details = True
        raise refused from None
    return document


def _checked(operations: Any) -> Sequence[dict[str, Any]]:
    opening = "error decoding patch: json: cannot unmarshal"
    if operations is None:
        return ()
    if not isinstance(operations, list):
        raise BadRequest(f"{opening} {json_kind(operations)} into Go value of type []handlers.jsonPatchOp")
    for step in operations:
        if not isinstance(step, dict):
            raise BadRequest(f"{opening} {json_kind(step)} into Go value of type handlers.jsonPatchOp")
        for field in ("op", "path", "from"):
            if not isinstance(step.get(field, ""), str | None):
                raise BadRequest(
                    f"{opening} {json_kind(step[field])} into Go struct field jsonPatchOp.{field} of type string"
                )
    return operations


def _done(document: Any, step: dict[str, Any]) -> Any:
    kind = step.get("op")
    match kind:
        case "add":
            path = _pointer(step, "path", "add")
            return _at(document, path, _adding(step.get("value")), "add")
        case "remove":
            return _at(document, _pointer(step, "path", "remove"), _removing, "remove")
        case "replace":
            path = _pointer(step, "path", "replace")
            value = step.get("value")
            if path == "":
                if not isinstance(value, dict | list):
                    raise _DoesNotApply("replace operation value must be object or array")
                return value
            return _at(document, path, _replacing(value), "replace")
        case "move":
            source = _pointer(step, "from", "move")
            value = _found(document, source, "move")
            document = _at(document, source, _removing, "move")
            return _at(document, _pointer(step, "path", "move"), _adding(value), "move")
        case "test":
            path = _pointer(step, "path", "test")
            held = document if path == "" else _found(document, path, "test", missing=None)
            if not is_same(held, step.get("value")):
                raise _DoesNotApply(f"testing value {path} failed: test failed")
            return document
        case _:
            raise _DoesNotApply(f"Unexpected kind: {kind or 'unknown'}")


def _copy(document: Any, step: dict[str, Any]) -> tuple[Any, int]:
    value = _found(document, _pointer(step, "from", "copy"), "copy", missing=None)
    return _at(document, _pointer(step, "path", "copy"), _adding(value), "copy"), _size(value)


def _size(value: Any) -> int:
    """Return about how long a value is as JSON."""
    if isinstance(value, dict):
        return sum(len(key) + 4 + _size(held) for key, held in value.items()) + 2
    if isinstance(value, list):
        return sum(_size(held) + 1 for held in value) + 2
    return len(value) + 2 if isinstance(value, str) else len(str(value))


# Paths


def _pointer(step: dict[str, Any], field: str, kind: str) -> str:
    given = step.get(field)
    if given is None:
        raise _DoesNotApply(f"{kind} operation failed to decode {field}: missing value")
    return str(given)


def _keys(path: str, kind: str) -> list[str]:
    parts = path.split("/")
    if len(parts) < 2:
        raise _DoesNotApply(f'{kind} operation does not apply: doc is missing path: "{path}": missing value')
    return [part.replace("~1", "/").replace("~0", "~") for part in parts[1:]]


def _place(items: list[Any], key: str, *, end: int) -> int:
    """Return an index counted from the start of a list; `end` is the first that is out of range."""
    sign, digits = (key[0], key[1:]) if key[:1] in ("-", "+") else ("", key)
    if not (digits.isascii() and digits.isdigit()):
        raise _DoesNotApply(f'strconv.Atoi: parsing "{key}": invalid syntax')
    place = -int(digits) if sign == "-" else int(digits)
    if place >= end or place < -end:
        raise _DoesNotApply(f"Unable to access invalid index: {place}: invalid index referenced")
    return place + end if place < 0 else place


def _below(holder: Any, key: str) -> Any:
    if isinstance(holder, dict):
        return holder.get(key, _ABSENT)
    return holder[_place(holder, key, end=len(holder))]


def _found(document: Any, path: str, kind: str, missing: Any = _ABSENT) -> Any:
    *way, last = _keys(path, kind)
    here = document
    for key in way:
        here = _held(here, key, path, kind)
    held = _below(here, last)
    if held is _ABSENT:
        if missing is _ABSENT:
            raise _DoesNotApply(f"Unable to remove nonexistent key: {last}: missing value")
        return missing
    return held


def _held(here: Any, key: str, path: str, kind: str) -> Any:
    """Return the object or list that holds the next step of a path."""
    try:
        held = _below(here, key)
    except _DoesNotApply:
        held = _ABSENT
    if not isinstance(held, dict | list):
        raise _DoesNotApply(f'{kind} operation does not apply: doc is missing path: "{path}": missing value')
    return held


def _at(document: Any, path: str, change: _Change, kind: str) -> Any:
    """Return the document with a change made to the object or list that holds the last step of a path."""
    keys = _keys(path, kind)
    holders = [document]
    for key in keys[:-1]:
        holders.append(_held(holders[-1], key, path, kind))
    made = change(holders.pop(), keys.pop())
    while holders:
        holder, key = holders.pop(), keys.pop()
        if isinstance(holder, dict):
            made = {**holder, key: made}
        else:
            place = _place(holder, key, end=len(holder))
            made = [*holder[:place], made, *holder[place + 1 :]]
    return made


def _adding(value: Any) -> _Change:
    def add(holder: Any, key: str) -> Any:
        if isinstance(holder, dict):
            return {**holder, key: value}
        place = len(holder) if key == "-" else _place(holder, key, end=len(holder) + 1)
        return [*holder[:place], value, *holder[place:]]

    return add


def _replacing(value: Any) -> _Change:
    def replace(holder: Any, key: str) -> Any:
        if isinstance(holder, dict):
            return {**holder, key: value}
        place = _place(holder, key, end=len(holder))
        return [*holder[:place], value, *holder[place + 1 :]]

    return replace


def _removing(holder: Any, key: str) -> Any:
    if isinstance(holder, dict):
        if key not in holder:
            raise _DoesNotApply(f"Unable to remove nonexistent key: {key}: missing value")
        return {name: value for name, value in holder.items() if name != key}
    place = _place(holder, key, end=len(holder))
    return [*holder[:place], *holder[place + 1 :]]
