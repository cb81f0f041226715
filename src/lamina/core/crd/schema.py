"""
Structural schemas, made from the types that specs are parsed into.

A structural schema has no references and no unions, so references are replaced by what
they refer to, and a union by its one member that is not null.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from lamina.objects.types import Made, Obj

_KEPT = (
    "type", "format", "enum", "minimum", "maximum", "minLength", "maxLength", "minItems", "maxItems", "pattern",
    "required", "description", "x-kubernetes-int-or-string", "x-kubernetes-preserve-unknown-fields",
    "x-kubernetes-list-type", "x-kubernetes-list-map-keys",
)  # fmt: skip
_ANYTHING: Obj = {"x-kubernetes-preserve-unknown-fields": True}


def structural(kind: type[Any]) -> Made:
    """Return the structural schema of a type."""
    (schema,), components = msgspec.json.schema_components([kind], ref_template="{name}")
    return _flat(schema, components)


def _flat(schema: Obj, components: Mapping[str, Obj]) -> Made:
    if "$ref" in schema:
        return _flat(components[schema["$ref"]], components)
    if schema.get("x-kubernetes-int-or-string"):
        return {"x-kubernetes-int-or-string": True}
    if "anyOf" in schema:
        real = [one for one in schema["anyOf"] if one.get("type") != "null"]
        several = [one for one in real if "enum" in one]
        if len(several) == len(real) > 1:
            return {"type": "string", "enum": [value for one in several for value in one["enum"]]}
        return {**_flat(real[0], components), **_own(schema)}
    flat: Made = _own(schema)
    if flat.get("enum") and "type" not in flat:
        flat["type"] = "string"
    if "items" in schema:
        flat["items"] = _flat(schema["items"], components)
    if "properties" in schema:
        flat["properties"] = {name: _flat(below, components) for name, below in schema["properties"].items()}
    elif schema.get("type") == "object":
        values = schema.get("additionalProperties")
        if isinstance(values, Mapping) and values:
            flat["additionalProperties"] = _flat(values, components)
        else:
            flat |= _ANYTHING
    if not flat:
        return dict(_ANYTHING)
    return flat


def _own(schema: Obj) -> Made:
    return {key: schema[key] for key in _KEPT if schema.get(key) not in (None, [])}
