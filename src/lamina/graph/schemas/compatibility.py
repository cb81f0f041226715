"""
Breaking changes between two schemas of a kind.

A change is breaking if a stored object that was valid may no longer be, may lose a field, or
if a reader may no longer find one. Removed properties and constraints that are new or tighter
are; new optional properties and constraints that are relaxed are not.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from lamina.graph.schemas.structure import (
    below,
    fields_of,
    is_open,
    list_type,
    rules_of,
    values_of,
)
from lamina.objects.go_quote import json_text
from lamina.objects.types import Obj

_BOUNDS: Final = {
    "minimum": "Minimum", "maximum": "Maximum", "minLength": "MinLength", "maxLength": "MaxLength",
    "minItems": "MinItems", "maxItems": "MaxItems",
}  # fmt: skip
_SHOWN: Final = 3


def refusal(name: str, changes: Sequence[str]) -> str:
    """Return why a CRD is not updated: its breaking changes, the first three of them in full."""
    more = len(changes) - _SHOWN
    shown = [*changes[:_SHOWN], *([f"and {more} more changes"] if more > 0 else [])]
    return f"cannot update CRD {name}: breaking changes detected: {'; '.join(shown)}"


def breaking_crd_changes(old: Obj, new: Obj) -> tuple[str, ...]:
    """Return the breaking changes between two CRDs of one version each, that of the version included."""
    before, after = old["spec"]["versions"][0], new["spec"]["versions"][0]
    if before["name"] != after["name"]:
        return (f"Type changed from {before['name']} to {after['name']} (version)",)
    found = list(breaking_changes(_schema(before), _schema(after)))
    if before.get("served") and not after.get("served"):
        found.append("Type changed from true to false (version.served)")
    if _has_status(before) and not _has_status(after):
        found.append("Property status was removed (version.subresources.status)")
    return tuple(found)


def _schema(version: Obj) -> Obj:
    schema: Obj = (version.get("schema") or {}).get("openAPIV3Schema") or {}
    return schema


def _has_status(version: Obj) -> bool:
    return (version.get("subresources") or {}).get("status") is not None


def breaking_changes(old: Obj, new: Obj, path: str = "") -> tuple[str, ...]:
    """Return the breaking changes from one schema to another, each with the path of its field."""
    return tuple(_changes(old, new, path))


def _changes(old: Obj, new: Obj, path: str) -> Iterator[str]:
    if old == new:
        return
    if old.get("type") != new.get("type"):
        yield f"Type changed from {old.get('type') or 'any'} to {new.get('type') or 'any'} ({path})"
        return
    yield from _constraints(old, new, path)
    yield from _properties(old, new, path)
    inner = [("items", f"{path}[]", old.get("items"), new.get("items"))]
    inner.append(("additionalProperties", f"{path}[*]", values_of(old), values_of(new)))
    for name, where, before, after in inner:
        if before is not None and after is not None:
            yield from _changes(before, after, where)
        elif before is not None and not is_open(new):
            yield f"Property {name} was removed ({where})"


def _constraints(old: Obj, new: Obj, path: str) -> Iterator[str]:
    where = f"({path})"
    if new.get("pattern") and new["pattern"] != old.get("pattern"):
        if old.get("pattern"):
            yield f"Validation pattern changed from {old['pattern']} to {new['pattern']} {where}"
        else:
            yield f"Validation pattern {new['pattern']} was added {where}"
    for key, name in _BOUNDS.items():
        if change := _tightened(old.get(key), new.get(key), is_lower=key.startswith("min")):
            yield f"{name} {change} {where}"
    yield from _enum(old.get("enum") or (), new.get("enum") or (), where)
    known = set(rules_of(old))
    for rule in rules_of(new):
        if rule not in known:
            yield f"Validation rule {rule} was added {where}"
    # A list without a type is atomic: its items may repeat, and it is replaced as a whole.
    if list_type(new) not in ("atomic", list_type(old)):
        yield f"List type changed from {list_type(old)} to {list_type(new)} {where}"
    if is_open(old) and not is_open(new):
        yield f"Unknown fields are no longer preserved {where}"


def _tightened(old: Any, new: Any, *, is_lower: bool) -> str:
    if new is None:
        return ""
    if old is None:
        return f"constraint {new} was added"
    if is_lower:
        return f"was increased from {old} to {new}" if new > old else ""
    return f"was decreased from {old} to {new}" if new < old else ""


def _enum(old: Sequence[Any], new: Sequence[Any], where: str) -> Iterator[str]:
    if not new:
        return
    if not old:
        yield f"Enum {', '.join(map(json_text, new))} was added {where}"
    for value in old:
        if value not in new:
            yield f"Enum value {json_text(value)} was removed {where}"


def _properties(old: Obj, new: Obj, path: str) -> Iterator[str]:
    before, after = fields_of(old), fields_of(new)
    was_required, is_required = set(old.get("required") or ()), set(new.get("required") or ())
    for name in sorted(before.keys() | after.keys()):
        where = below(path, name)
        if name not in after:
            yield f"Property {name} was removed ({where})"
        elif name not in before:
            if name in is_required and "default" not in after[name]:
                yield f"Required property {name} was added ({where})"
        else:
            yield from _changes(before[name], after[name], where)
            if name in is_required - was_required:
                yield f"Field {name} is newly required ({where})"
            elif name in is_required and "default" in before[name] and "default" not in after[name]:
                yield f"Default value removed from required field {name} ({where})"
