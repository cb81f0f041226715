"""
Published schemas: of custom kinds in v3 and v2, of built-in kinds in v2.

v2 has neither null nor alternatives, and kubectl reads it strictly: a list without items or
an object with preserved unknown fields is published without a type, so that it accepts
any value.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, Final

from lamina.objects.types import Made, Obj
from lamina.server.kinds.builtin.definitions import definition
from lamina.server.kinds.custom.structural import allows_integer_or_string
from lamina.server.kinds.kind import Kind

META: Final = "io.k8s.apimachinery.pkg.apis.meta.v1"
V2: Final = "#/definitions/"
V3: Final = "#/components/schemas/"

_JUNCTORS: Final = ("allOf", "anyOf", "oneOf", "not")
_UNKNOWN: Final = "x-kubernetes-preserve-unknown-fields"
_EMBEDDED: Final = "x-kubernetes-embedded-resource"
_INT_OR_STRING: Final = "x-kubernetes-int-or-string"
_EITHER: Final = [{"type": "integer"}, {"type": "string"}]
_CONVENTIONS: Final = "https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md"

_PUBLISHED: Final = frozenset((
    "default", "description", "enum", "exclusiveMaximum", "exclusiveMinimum", "format", "maxItems", "maxLength",
    "maxProperties", "maximum", "minItems", "minLength", "minProperties", "minimum", "multipleOf", "nullable",
    "pattern", "required", "title", "type", "uniqueItems", "x-kubernetes-list-map-keys", "x-kubernetes-list-type",
    "x-kubernetes-map-type", "x-kubernetes-validations", _UNKNOWN, _EMBEDDED, _INT_OR_STRING,
))  # fmt: skip
"""The schema fields of a CRD that are published unchanged; examples and external documentation are not."""


def schema_name(kind: Kind) -> str:
    """Return the name of a kind's definition; for a custom kind its group is reversed."""
    return kind.definition or _model(kind, kind.kind)


def list_name(kind: Kind) -> str:
    """Return the name of the definition of a kind's list."""
    return f"{kind.definition}List" if kind.definition else _model(kind, kind.list_kind)


def _model(kind: Kind, name: str) -> str:
    return ".".join((*reversed(kind.group.split(".")), kind.version, name))


def custom_schemas(kind: Kind) -> dict[str, Obj]:
    """Return the v3 definitions of a custom kind: the kind and its list, by name."""
    return _with_list(kind, custom_schema(kind.document), V3)


def custom_schema(document: Obj | None) -> Made:
    """Return the v3 definition of a custom kind with the schema of a CRD, without the name of the kind."""
    schema = _published(document or {"type": "object"})
    schema.setdefault("properties", {}).update(_own_properties(V3))
    _embed(schema, V3)
    return schema


def custom_schemas_v2(kind: Kind) -> dict[str, Obj]:
    """Return the v2 definitions of a custom kind."""
    document = kind.document or {"type": "object"}
    if kind.document is None or document.get(_UNKNOWN):
        # Without any property: kubectl would refuse every other field.
        schema: Made = {"type": "object"}
    else:
        schema = _without_v3(_published(document))
        schema.setdefault("properties", {}).update(_own_properties(V2))
        _embed(schema, V2)
    return _with_list(kind, schema, V2)


def as_v2(schema: Any) -> Any:
    """Return a built-in definition for v2: no defaults, no alternatives, references beside other keys."""
    if isinstance(schema, list):
        return [as_v2(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    if "oneOf" in schema:
        kept = {key: schema[key] for key in ("description", "format") if key in schema}
        return {**kept, "type": "string"}
    made: Made = {}
    for key, part in schema.items():
        if key == "properties":
            made[key] = {name: as_v2(inner) for name, inner in part.items()}
        elif key == "allOf":
            made |= as_v2(part[0])
        elif key == "$ref":
            made[key] = V2 + part.removeprefix(V3)
        elif key != "default":
            made[key] = as_v2(part)
    return made


def _with_list(kind: Kind, schema: Made, prefix: str) -> dict[str, Obj]:
    name = schema_name(kind)
    listed: Made = {
        "description": f"{kind.list_kind} is a list of {kind.kind}",
        "type": "object",
        "required": ["items"],
        "properties": {
            "items": {
                "description": f"List of {kind.plural}. More info: {_CONVENTIONS}",
                "type": "array",
                "items": {"$ref": prefix + name},
            },
            **_type_properties(),
            "metadata": _reference("ListMeta", _field_description("Status", "metadata"), prefix),
        },
    }
    selectable = [{"fieldPath": path} for path in kind.shape.field_labels]
    for made, named in ((schema, kind.kind), (listed, kind.list_kind)):
        made["x-kubernetes-group-version-kind"] = [
            {"group": kind.group, "kind": named, "version": kind.version}
        ]
        if selectable:
            made["x-kubernetes-selectable-fields"] = selectable
    return {name: schema, list_name(kind): listed}


def _published(document: Obj) -> Made:
    """Return a structural schema as it is published; a deep copy."""
    made = _map_schemas(document, _published)
    for junctor in _JUNCTORS:
        if junctor in document:
            made[junctor] = _below_junctor(document[junctor])
    if document.get(_INT_OR_STRING) and not allows_integer_or_string(document):
        # The one alternative in structural schemas that is no validation rule.
        if "anyOf" not in made:
            made["anyOf"] = _EITHER
        else:
            made["allOf"] = [{"anyOf": _EITHER}, *made.get("allOf", [])]
    return made


def _below_junctor(value: Any) -> Any:
    """Return what is below a junctor: validation rules, whose parts may look like schemas."""
    if isinstance(value, list):
        return [_below_junctor(part) for part in value]
    made = _map_schemas(value, _below_junctor)
    return made | {key: _below_junctor(value[key]) for key in _JUNCTORS if key in value}


def _map_schemas(document: Obj, convert: Callable[[Any], Any]) -> Made:
    """Return the published part of a schema, with nested schemas converted."""
    made: Made = {
        key: value for key, value in document.items() if key in _PUBLISHED and _is_published(key, value)
    }
    if isinstance(items := document.get("items"), Mapping):
        made["items"] = convert(items)
    if properties := document.get("properties"):
        made["properties"] = {name: convert(inner) for name, inner in properties.items()}
    values = document.get("additionalProperties")
    if isinstance(values, Mapping):
        made["additionalProperties"] = convert(values)
    elif values is not None:
        made["additionalProperties"] = values
    return made


def _is_published(key: str, value: Any) -> bool:
    """Return whether a field is published. False and empty values are the same as absent; zero is not."""
    if value is None:
        return False
    return key == "default" or (value is not False and value != "" and value != [])


def _without_v3(schema: Made) -> Made:
    """Return a published schema without what v2 lacks."""
    made = {key: value for key, value in schema.items() if key not in (*_JUNCTORS, "default", "nullable")}
    if schema.get("nullable"):
        for key in ("type", "items", "properties"):
            made.pop(key, None)
    if schema.get(_UNKNOWN):
        for key in ("items", "properties"):
            made.pop(key, None)
    if (made.get("type") == "array" and "items" not in made) or (
        made.get("type") == "object" and schema.get(_UNKNOWN)
    ):
        del made["type"]
    _require_no_nulls(made)
    if isinstance(items := made.get("items"), Mapping):
        made["items"] = _without_v3(dict(items))
    if "properties" in made:
        made["properties"] = {name: _without_v3(inner) for name, inner in made["properties"].items()}
    if isinstance(values := made.get("additionalProperties"), Mapping):
        made["additionalProperties"] = _without_v3(dict(values))
    return made


def _require_no_nulls(schema: Made) -> None:
    """Remove nullable fields from `required`: v2 has no null."""
    required = schema.get("required", [])
    properties = schema.get("properties", {})
    required = [name for name in required if not properties.get(name, {}).get("nullable")]
    values = schema.get("additionalProperties")
    if isinstance(values, Mapping) and values.get("nullable"):
        required = []
    if required:
        schema["required"] = required
    else:
        schema.pop("required", None)


def _embed(schema: Made, prefix: str) -> None:
    """Add the fields of all resources to embedded resources."""
    for inner in schema.get("properties", {}).values():
        _embed(inner, prefix)
    for key in ("items", "additionalProperties"):
        if isinstance(inner := schema.get(key), dict):
            _embed(inner, prefix)
    if not schema.get(_EMBEDDED) or (schema.get(_UNKNOWN) and prefix == V2):
        return
    own = {
        "apiVersion": (
            "apiVersion defines the versioned schema of this representation of an object. "
            f"More info: {_CONVENTIONS}#resources"
        ),
        "kind": (
            "kind is a string value representing the type of this object. "
            f"In CamelCase. More info: {_CONVENTIONS}#types-kinds"
        ),
    }
    properties = schema.setdefault("properties", {})
    properties |= {name: {"description": text, "type": "string"} for name, text in own.items()}
    properties["metadata"] = _object_meta(prefix)
    required = schema.get("required", [])
    schema["required"] = [*required, *(name for name in ("kind", "apiVersion") if name not in required)]


def _own_properties(prefix: str) -> Made:
    return {**_type_properties(), "metadata": _object_meta(prefix)}


def _object_meta(prefix: str) -> Made:
    return _reference("ObjectMeta", _standard_metadata(), prefix)


def _type_properties() -> Made:
    return {
        name: {"description": _field_description("Status", name), "type": "string"}
        for name in ("apiVersion", "kind")
    }


def _reference(name: str, description: str, prefix: str) -> Made:
    reference = {"$ref": f"{prefix}{META}.{name}"}
    if prefix == V2:
        return {"description": description, **reference}
    return {"description": description, "allOf": [reference]}


def _field_description(name: str, field: str) -> str:
    """Return Kubernetes' description of a field of a built-in type."""
    text: str = definition(f"{META}.{name}")["properties"][field]["description"]
    return text


@cache
def _standard_metadata() -> str:
    text: str = definition("io.k8s.api.core.v1.ConfigMap")["properties"]["metadata"]["description"]
    return text
