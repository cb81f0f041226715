"""
The union of the schemas of all revisions that are in use.

It is what the API server serves while instances are on several revisions: it accepts what
any of these accepts, and keeps the fields of all. Which fields and constraints apply to an
instance is decided by the revision it is on, which the controller checks by itself.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

from lamina.errors import SpecError
from lamina.graph.schemas.structure import (
    LIST_TYPE,
    MAP_KEYS,
    PRESERVE,
    RULES,
    below,
    fields_of,
    is_open,
    list_type,
    rules_of,
    values_of,
)
from lamina.objects.types import Made, Obj

_LOWER: Final = ("minimum", "minLength", "minItems")
_UPPER: Final = ("maximum", "maxLength", "maxItems")
_IF_EQUAL: Final = ("pattern", "format", "x-kubernetes-int-or-string")
_OLD_SELF: Final = re.compile(r"\boldSelf\b")


def union(current: Obj, others: Iterable[Obj], path: str = "spec", *, resolves: bool = False) -> Made:
    """
    Return the schema that accepts what the current one or any other accepts.

    Descriptions are those of the current schema. A default is kept where all schemas that have
    the field state it: the server stores it in all instances, and it would change the children of
    one whose revision has another or none. Where two schemas have different types, it raises
    SpecError, which names the field; if it `resolves` conflicts, that field has the current type.
    """
    made = current
    for other in others:
        made = _united(made, other, path, resolves)
    return dict(made)


def _united(current: Obj, other: Obj, path: str, resolves: bool) -> Obj:
    if current == other:
        return current
    try:
        return _both(current, other, path, resolves)
    except SpecError:
        if not resolves:
            raise
        return _foreign(current)


def _both(current: Obj, other: Obj, path: str, resolves: bool) -> Obj:
    """Unite two schemas; raises SpecError where they conflict themselves, rather than fields within them."""
    made: Made = {"description": current["description"]} if "description" in current else {}
    if "default" in current and "default" in other and current["default"] == other["default"]:
        made["default"] = current["default"]
    if _is_any(current) or _is_any(other):
        return {**made, PRESERVE: True}
    if current.get("type") != other.get("type"):
        raise _conflict(path, str(current.get("type")), str(other.get("type")))
    if "type" in current:
        made["type"] = current["type"]
    if is_open(current) or is_open(other):
        made[PRESERVE] = True
    _unite_constraints(made, current, other)
    _unite_values(made, current, other, path, resolves)
    _unite_fields(made, current, other, path, resolves)
    if "items" in current and "items" in other:
        made["items"] = _united(current["items"], other["items"], f"{path}[]", resolves)
    if list_type(current) == list_type(other) != "atomic" and _has_keys(made.get("items") or {}, current):
        made |= {key: current[key] for key in (LIST_TYPE, MAP_KEYS) if key in current}
    return made


def _is_any(schema: Obj) -> bool:
    return is_open(schema) and "type" not in schema


def _conflict(path: str, current: str, other: str) -> SpecError:
    return SpecError(
        f"{path}: type conflict: {current} in one revision and {other} in another one that is in use: "
        "give the field another name, or move the instances that are on the other revision first"
    )


def _unite_constraints(made: Made, current: Obj, other: Obj) -> None:
    for keys, widest in ((_LOWER, min), (_UPPER, max)):
        for key in keys:
            if key in current and key in other:
                made[key] = widest(current[key], other[key])
    for key in _IF_EQUAL:
        if key in current and current[key] == other.get(key):
            made[key] = current[key]
    allowed: list[Any] = list(current.get("enum") or ())
    added: list[Any] = list(other.get("enum") or ())
    if allowed and added:
        made["enum"] = allowed + [value for value in added if value not in allowed]
    shared = set(rules_of(other))
    rules = [
        rule for rule in current.get(RULES) or () if rule["rule"] in shared or _OLD_SELF.search(rule["rule"])
    ]
    if rules:
        made[RULES] = rules


def _unite_values(made: Made, current: Obj, other: Obj, path: str, resolves: bool) -> None:
    """Unite the schemas of a map's values; a map and a structure cannot be united."""
    ours, theirs = values_of(current), values_of(other)
    if (ours is None and theirs is None) or (is_open(made) and (ours is None or theirs is None)):
        return
    if ours is None or theirs is None:
        if fields_of(current if ours is None else other):
            kinds = ("structure", "map") if ours is None else ("map", "structure")
            raise _conflict(path, *kinds)
        # The one without fields accepts the empty map only.
        made["additionalProperties"] = _foreign(theirs) if ours is None and theirs is not None else ours
        return
    made["additionalProperties"] = _united(ours, theirs, f"{path}[*]", resolves)


def _unite_fields(made: Made, current: Obj, other: Obj, path: str, resolves: bool) -> None:
    ours, theirs = fields_of(current), fields_of(other)
    fields: dict[str, Obj] = {}
    for name in [*ours, *(name for name in theirs if name not in ours)]:
        if name in ours and name in theirs:
            fields[name] = _united(ours[name], theirs[name], below(path, name), resolves)
        elif not is_open(other if name in ours else current):
            fields[name] = ours[name] if name in ours else _foreign(theirs[name])
        # A schema that preserves unknown fields accepts any value in those it does not know.
    if fields:
        made["properties"] = fields
    required = [
        name
        for name in current.get("required") or ()
        if name in (other.get("required") or ())
        # What a revision fills in is missing until that revision is read.
        and ("default" in fields.get(name, {}) or not _has_default(name, ours, theirs))
    ]
    if required:
        made["required"] = required


def _has_default(name: str, *fields: Mapping[str, Obj]) -> bool:
    return any("default" in one.get(name, {}) for one in fields)


def _foreign(schema: Obj) -> Obj:
    """Return the schema of a field that another revision does not have, or has otherwise: without its defaults."""
    made: Made = {key: value for key, value in schema.items() if key != "default"}
    if fields := fields_of(schema):
        made["properties"] = {name: _foreign(inner) for name, inner in fields.items()}
    if (values := values_of(schema)) is not None:
        made["additionalProperties"] = _foreign(values)
    if "items" in schema:
        made["items"] = _foreign(schema["items"])
    required = [name for name in schema.get("required") or () if "default" not in fields.get(name, {})]
    if "required" in schema:
        del made["required"]
    if required:
        made["required"] = required
    if MAP_KEYS in made and not _has_keys(made.get("items") or {}, schema):
        del made[LIST_TYPE], made[MAP_KEYS]
    return made


def _has_keys(items: Obj, schema: Obj) -> bool:
    """Say whether every item certainly has the keys of its list; otherwise the list is atomic."""
    required, fields = items.get("required") or (), fields_of(items)
    return all(key in required or "default" in fields.get(key, {}) for key in schema.get(MAP_KEYS) or ())
