"""
What markers add to the schema of their field.

Values become JSON here, so that no default is stated that an API server cannot read:
numbers and booleans are written in one way, and text is encoded.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from typing import Any, Final

import msgspec

from lamina.cel.errors import EvaluationError
from lamina.cel.library.patterns import compiled
from lamina.graph.language.markers import FieldError, Marker
from lamina.graph.schemas.structure import LIST_TYPE, MAP_KEYS, RULES
from lamina.objects.types import Made, Obj

_INTEGER: Final = re.compile(r"[+-]?[0-9]{1,64}")
_NUMBER: Final = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
_BOOLEANS: Final = {
    **dict.fromkeys(("1", "t", "T", "TRUE", "true", "True"), True),
    **dict.fromkeys(("0", "f", "F", "FALSE", "false", "False"), False),
}
_ONLY_FOR: Final = {
    **dict.fromkeys(("minLength", "maxLength", "pattern"), "string"),
    **dict.fromkeys(("minItems", "maxItems", "uniqueItems", "listType", "listMapKey"), "array"),
}


def apply_markers(schema: Obj, markers: Iterable[Marker]) -> tuple[Made, bool]:
    """Return the schema of a field with its markers, and whether these require it; raises FieldError."""
    made, is_required = dict(schema), False
    for marker in markers:
        wanted, kind = _ONLY_FOR.get(marker.key), made.get("type")
        if wanted not in (None, kind):
            raise FieldError(
                f"{marker.key} marker is only valid for {wanted} types, got type: {kind}: remove it"
            )
        if marker.key == "required":
            is_required |= _boolean(marker)
        else:
            _apply(made, marker)
    if MAP_KEYS in made and made.get(LIST_TYPE) != "map":
        stated = f"set to {made[LIST_TYPE]}" if LIST_TYPE in made else "unset"
        raise FieldError(f"listMapKey set while listType is {stated}: listType must be map")
    return made, is_required


def _apply(schema: Made, marker: Marker) -> None:
    key, value = marker
    match key:
        case "default":
            if (default := _default(schema.get("type"), value)) is not None:
                schema["default"] = default
        case "description":
            schema["description"] = value
        case "minimum" | "maximum":
            schema[key] = _parsed(_number(value), marker, "a number")
        case "minLength" | "maxLength" | "minItems" | "maxItems":
            schema[key] = _parsed(_integer(value), marker, "an integer")
        case "enum":
            schema["enum"] = [_enum_value(schema.get("type"), part.strip()) for part in value.split(",")]
        case "pattern":
            schema["pattern"] = _pattern(value)
        case "uniqueItems":
            if _boolean(marker):
                _set_list_type(schema, "set", "uniqueItems=true")
        case "listType":
            if value not in ("atomic", "set", "map"):
                raise FieldError(f"unsupported value for listType {value!r}: it must be atomic, set or map")
            _set_list_type(schema, value, f"listType={value}")
        case "listMapKey":
            if value in schema.get(MAP_KEYS, ()):
                raise FieldError(f"duplicate listMapKey marker, value {value}: state each key once")
            schema[MAP_KEYS] = [*schema.get(MAP_KEYS, ()), value]
        case "validation":
            if not value.strip():
                raise FieldError("validation failed: a validation marker needs an expression")
            _add_rule(schema, value, "validation failed")
        case "immutable":
            if _boolean(marker):
                _add_rule(schema, "self == oldSelf", "field is immutable")


def _add_rule(schema: Made, rule: str, message: str) -> None:
    # A new list, because the schema of a custom type is shared by its fields.
    schema[RULES] = [*schema.get(RULES, ()), {"rule": rule, "message": message}]


def _set_list_type(schema: Made, kind: str, marker: str) -> None:
    if schema.get(LIST_TYPE, kind) != kind:
        raise FieldError(f"{marker} contradicts the listType {schema[LIST_TYPE]}: state one of them")
    schema[LIST_TYPE] = kind


def _boolean(marker: Marker) -> bool:
    if marker.value in _BOOLEANS:
        return _BOOLEANS[marker.value]
    raise FieldError(f"failed to parse {marker.key} marker value {marker.value!r}: it must be true or false")


def _parsed(value: float | None, marker: Marker, wanted: str) -> float:
    if value is None:
        raise FieldError(f"failed to parse {marker.key} value {marker.value!r}: it must be {wanted}")
    return value


def _number(text: str) -> float | None:
    """Return a number, whole ones as integers; None for what JSON cannot state."""
    if (whole := _integer(text)) is not None:
        return whole
    found = float(text) if _NUMBER.fullmatch(text) else math.inf
    if math.isinf(found):
        return None
    return int(found) if found.is_integer() and abs(found) < 2**53 else found


def _integer(text: str) -> int | None:
    """Return an integer of 64 bits."""
    found = int(text) if _INTEGER.fullmatch(text) else 2**63
    return found if -(2**63) <= found < 2**63 else None


def _default(kind: Any, text: str) -> Any:
    found: Any
    match kind:
        case "string":
            # A backslash before a letter is an escape of JSON, as upstream reads it.
            found = _decoded(f'"{text}"')
            return text if found is None else found
        case "integer":
            found = _integer(text)
        case "number":
            found = _number(text)
        case "boolean":
            found = _BOOLEANS.get(text)
        case _:
            if (found := _decoded(text)) is None and text != "null":
                raise FieldError(f"default value must be valid JSON, got: {text}")
            return found
    if found is None:
        raise FieldError(
            f"default value must be a valid {kind}, got: {text}: write it without blanks and units"
        )
    return found


def _decoded(text: str) -> Any:
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return None


def _enum_value(kind: Any, text: str) -> str | int:
    if not text:
        raise FieldError('empty enum values are not allowed: enum="a,b" allows a and b')
    if kind == "string":
        return text
    if kind != "integer":
        raise FieldError(
            f"enum values only supported for string and integer types, got type: {kind}: remove it"
        )
    found = _integer(text)
    if found is None:
        raise FieldError(f"failed to parse integer enum value {text!r}: the field is an integer")
    return found


def _pattern(text: str) -> str:
    if not text:
        raise FieldError("pattern marker value cannot be empty: remove it to allow any text")
    try:
        compiled(text)
    except EvaluationError as refused:
        raise FieldError(f"invalid pattern regex: {refused.message}: patterns have RE2's syntax") from None
    return text
