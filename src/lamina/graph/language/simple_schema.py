"""
SimpleSchema: structural schemas in short form.

A field is a type with markers, or a structure of further fields. Custom types are
inlined; the schemas of a type's uses share their parts, so they are never modified.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from lamina.errors import SpecError
from lamina.graph.language.custom_types import (
    BASIC,
    build_order,
    parse_type,
    unexpected,
    unknown_type,
)
from lamina.graph.language.field_markers import apply_markers
from lamina.graph.language.markers import FieldError, read_markers
from lamina.objects.types import Made, Obj

SPEC: Final = "spec.schema.spec"
TYPES: Final = "spec.schema.types"

_MOST_FIELDS: Final = 20_000
_MOST_LEVELS: Final = 64


class _Built(NamedTuple):
    """A schema, whether its markers require it, and its size once types are inlined."""

    schema: Made
    is_required: bool = False
    fields: int = 1
    levels: int = 1


def build_schema(schema: Obj) -> Made:
    """
    Return the OpenAPI schema of an instance's spec, from `spec` and `types` of a definition's schema.

    Raises SpecError, which names the field. Parts of the result are shared: do not modify it.
    """
    stated = schema.get("types") or {}
    if not isinstance(stated, Mapping):
        raise SpecError(f"{TYPES}: {unexpected(stated)}")
    try:
        types: dict[str, _Built] = {}
        for name in build_order(stated, TYPES):
            types[name] = _field(stated[name], f"{TYPES}.{name}", types)
        fields = schema.get("spec")
        return _structure({} if fields is None else fields, SPEC, types).schema
    except RecursionError:
        raise SpecError(
            f"{SPEC}: structures are nested too deeply: {_MOST_LEVELS} levels are allowed"
        ) from None


def _field(stated: Any, path: str, types: Mapping[str, _Built]) -> _Built:
    if not isinstance(stated, str):
        return _structure(stated, path, types)
    try:
        name = parse_type(stated)
        if name.is_custom and name.name not in types:
            raise FieldError(unknown_type(name.name))
        inner = types[name.name] if name.is_custom else _Built(dict(BASIC[name.name]))
        _, has_markers, markers = stated.partition("|")
        schema: Obj = inner.schema
        for around in reversed(name.around):
            schema = (
                {"type": "array", "items": schema}
                if around == "array"
                else {"type": "object", "additionalProperties": schema}
            )
        made, is_required = apply_markers(schema, read_markers(markers) if has_markers else ())
    except FieldError as wrong:
        raise SpecError(f"{path}: {wrong}") from None
    # A required alias requires the fields of its type, but not the items of a list of it.
    is_required |= inner.is_required and not name.around
    count = len(name.around)
    return _within(_Built(made, is_required, inner.fields + count, inner.levels + count), path)


def _structure(stated: Any, path: str, types: Mapping[str, _Built]) -> _Built:
    if not isinstance(stated, Mapping):
        raise SpecError(f"{path}: {unexpected(stated)}")
    made: Made = {"type": "object"}
    fields = {name: _field(inner, f"{path}.{name}", types) for name, inner in stated.items()}
    if fields:
        made["properties"] = {name: field.schema for name, field in fields.items()}
    if required := sorted(name for name, field in fields.items() if field.is_required):
        made["required"] = required
    elif any("default" in field.schema for field in fields.values()):
        # Only in an object that exists are defaults set.
        made["default"] = {}
    size = 1 + sum(field.fields for field in fields.values())
    levels = 1 + max((field.levels for field in fields.values()), default=0)
    return _within(_Built(made, False, size, levels), path)


def _within(built: _Built, path: str) -> _Built:
    """Return a schema that is within the limits: custom types that use each other grow exponentially."""
    if built.fields > _MOST_FIELDS:
        raise SpecError(
            f"{path}: the schema is too large: it has more than {_MOST_FIELDS} fields, "
            "those of a custom type counted at each use"
        )
    if built.levels > _MOST_LEVELS:
        raise SpecError(f"{path}: structures are nested too deeply: {_MOST_LEVELS} levels are allowed")
    return built
