"""
The spec of an instance as one revision reads it.

A stored spec has the fields of all revisions in use. Projected onto the schema of one of
them, it has the known fields only and that revision's defaults, as if the API server
served that schema alone; and it is validated as the API server would validate it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgspec

from lamina.graph.schemas.structure import (
    LIST_TYPE,
    MAP_KEYS,
    PRESERVE,
    below,
    fields_of,
    is_open,
    values_of,
)
from lamina.objects.go_quote import json_text
from lamina.objects.types import Made, Obj

_OPEN: Final[Obj] = {PRESERVE: True}
_CLOSED: Final[Obj] = {"type": "object"}
_LARGEST_EXACT: Final = 2**53 - 1


def project(spec: Obj, schema: Obj) -> Made:
    """Return a spec without the fields that a schema does not know, and with the defaults of that schema."""
    made: Made = _projected(spec, schema)
    return made


def _projected(value: Any, schema: Obj) -> Any:
    if isinstance(value, Mapping):
        return _fields(value, schema)
    if isinstance(value, list):
        inner = schema.get("items") or (_OPEN if is_open(schema) else _CLOSED)
        return [_projected(_without_null(item, inner), inner) for item in value]
    return value


def _without_null(value: Any, schema: Obj) -> Any:
    """Return the default in place of a null: a null that is not allowed counts as absent."""
    return schema.get("default") if value is None and not schema.get("nullable") else value


def _fields(value: Mapping[str, Any], schema: Obj) -> Made:
    fields, values = fields_of(schema), values_of(schema)
    if values is None and is_open(schema):
        values = _OPEN
    made: Made = {}
    for name, stated in value.items():
        known = fields.get(name, values)
        if known is None:
            continue
        inner = stated if known is _OPEN else _without_null(stated, known)
        if inner is not None or known is _OPEN or known.get("nullable"):
            made[name] = inner if known is _OPEN else _projected(inner, known)
    for name, known in fields.items():
        if name not in made and "default" in known:
            made[name] = _projected(known["default"], known)
    return made


def validate(spec: Obj, schema: Obj, path: str = "spec") -> tuple[str, ...]:
    """
    Return what is wrong with a projected spec, each error with the path of its field.

    Rules that compare with the old value are left to the API server. All others are
    evaluated once the spec is valid otherwise, because they rely on that.
    """
    # Imported on demand: CEL takes long to import.
    from lamina.graph.schemas.rules import broken_rules

    return tuple(_errors(spec, schema, path)) or tuple(broken_rules(spec, schema, path))


def _errors(value: Any, schema: Obj, path: str) -> Iterator[str]:
    kind = schema.get("type")
    if value is None and schema.get("nullable"):
        return
    if kind and not _is(value, kind):
        yield f"{path}: must be of type {kind}, not {_type_of(value)}"
        return
    if (allowed := schema.get("enum")) and value not in allowed:
        yield f"{path}: {json_text(value)} is not one of {', '.join(map(json_text, allowed))}"
    if isinstance(value, str):
        yield from _text(value, schema, path)
    elif isinstance(value, list):
        yield from _list(value, schema, path)
    elif isinstance(value, Mapping):
        yield from _object(value, schema, path)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield from _number(value, schema, path)


def _is(value: Any, kind: str) -> bool:
    found = _type_of(value)
    if found == "number" and kind == "integer":
        # A whole number counts as an integer as long as it is exact.
        return isinstance(value, float) and value.is_integer() and abs(value) <= _LARGEST_EXACT
    return found == kind or (found == "integer" and kind == "number")


def _type_of(value: Any) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "boolean"
        case str():
            return "string"
        case int():
            return "integer" if -(2**63) <= value < 2**63 else "number"
        case float():
            return "number"
        case list():
            return "array"
    return "object"


def _text(value: str, schema: Obj, path: str) -> Iterator[str]:
    if len(value) > schema.get("maxLength", len(value)):
        yield f"{path}: must have at most {schema['maxLength']} characters, not {len(value)}"
    elif len(value) < schema.get("minLength", 0):
        yield f"{path}: must have at least {schema['minLength']} characters, not {len(value)}"
    elif (pattern := schema.get("pattern")) and not _matches(pattern, value):
        yield f"{path}: {json_text(value)} does not match {pattern}"


def _number(value: float, schema: Obj, path: str) -> Iterator[str]:
    # The API server cuts the fraction of a bound where the value is an integer.
    cut = int if isinstance(value, int) else float
    if "minimum" in schema and value < cut(schema["minimum"]):
        yield f"{path}: {value} is less than the minimum {schema['minimum']}"
    if "maximum" in schema and value > cut(schema["maximum"]):
        yield f"{path}: {value} is more than the maximum {schema['maximum']}"


def _list(value: list[Any], schema: Obj, path: str) -> Iterator[str]:
    if len(value) > schema.get("maxItems", len(value)):
        yield f"{path}: must have at most {schema['maxItems']} items, not {len(value)}"
    if len(value) < schema.get("minItems", 0):
        yield f"{path}: must have at least {schema['minItems']} items, not {len(value)}"
    if (items := schema.get("items")) is not None:
        for index, item in enumerate(value):
            yield from _errors(item, items, f"{path}[{index}]")
    yield from _duplicates(value, schema, path)


def _duplicates(value: list[Any], schema: Obj, path: str) -> Iterator[str]:
    kind, keys = schema.get(LIST_TYPE), schema.get(MAP_KEYS) or ()
    if kind not in ("set", "map"):
        return
    seen: dict[bytes, int] = {}
    for index, item in enumerate(value):
        if kind == "map":
            identity = {key: item[key] for key in keys if key in item} if isinstance(item, Mapping) else item
        else:
            identity = item
        first = seen.setdefault(msgspec.json.encode(identity, order="sorted"), index)
        if first != index:
            yield f"{path}[{index}]: {json_text(identity)} is in the list already, at {path}[{first}]"


def _object(value: Mapping[str, Any], schema: Obj, path: str) -> Iterator[str]:
    fields, values = fields_of(schema), values_of(schema)
    for name in schema.get("required") or ():
        if name not in value:
            yield f"{below(path, name)}: is required"
    for name, stated in value.items():
        known = fields.get(name, values)
        if known is not None:
            yield from _errors(stated, known, below(path, name))


def _matches(pattern: str, value: str) -> bool:
    from lamina.cel.library.patterns import tester

    return tester(pattern)(value)
