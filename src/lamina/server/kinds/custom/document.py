"""
The schemas of CRDs: their fields, and how to walk them.

A document is normalized if it holds what kube-apiserver would store: no unknown fields, no
nulls, and no field that is the same as an absent one. The other modules expect
normalized documents.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, TypeAlias

from lamina.server.kinds.custom.go_values import is_integer, ordered

Document: TypeAlias = Mapping[str, Any]

_FIELDS: Final = {
    "id": ("ID", "string"),
    "$schema": ("Schema", "string"),
    "$ref": ("Ref", "*string"),
    "description": ("Description", "string"),
    "type": ("Type", "string"),
    "nullable": ("Nullable", "bool"),
    "format": ("Format", "string"),
    "title": ("Title", "string"),
    "default": ("Default", "*json"),
    "maximum": ("Maximum", "*float64"),
    "exclusiveMaximum": ("ExclusiveMaximum", "bool"),
    "minimum": ("Minimum", "*float64"),
    "exclusiveMinimum": ("ExclusiveMinimum", "bool"),
    "maxLength": ("MaxLength", "*int64"),
    "minLength": ("MinLength", "*int64"),
    "pattern": ("Pattern", "string"),
    "maxItems": ("MaxItems", "*int64"),
    "minItems": ("MinItems", "*int64"),
    "uniqueItems": ("UniqueItems", "bool"),
    "multipleOf": ("MultipleOf", "*float64"),
    "enum": ("Enum", "[]json"),
    "maxProperties": ("MaxProperties", "*int64"),
    "minProperties": ("MinProperties", "*int64"),
    "required": ("Required", "[]string"),
    "items": ("Items", "schema or array"),
    "allOf": ("AllOf", "[]schema"),
    "oneOf": ("OneOf", "[]schema"),
    "anyOf": ("AnyOf", "[]schema"),
    "not": ("Not", "*schema"),
    "properties": ("Properties", "map"),
    "additionalProperties": ("AdditionalProperties", "schema or bool"),
    "patternProperties": ("PatternProperties", "map"),
    "dependencies": ("Dependencies", "dependencies"),
    "additionalItems": ("AdditionalItems", "schema or bool"),
    "definitions": ("Definitions", "map"),
    "externalDocs": ("ExternalDocs", "documentation"),
    "example": ("Example", "*json"),
    "x-kubernetes-preserve-unknown-fields": ("XPreserveUnknownFields", "*bool"),
    "x-kubernetes-embedded-resource": ("XEmbeddedResource", "bool"),
    "x-kubernetes-int-or-string": ("XIntOrString", "bool"),
    "x-kubernetes-list-map-keys": ("XListMapKeys", "[]string"),
    "x-kubernetes-list-type": ("XListType", "*string"),
    "x-kubernetes-map-type": ("XMapType", "*string"),
    "x-kubernetes-validations": ("XValidations", "rules"),
}
"""The fields of a schema: their internal name and type. A star marks one that may be empty."""

_RULE: Final = {
    "rule": ("Rule", "string"),
    "message": ("Message", "string"),
    "messageExpression": ("MessageExpression", "string"),
    "reason": ("Reason", "*string"),
    "fieldPath": ("FieldPath", "string"),
    "optionalOldSelf": ("OptionalOldSelf", "*bool"),
}
_DOCUMENTATION: Final = {"description": ("Description", "string"), "url": ("URL", "string")}
_ZERO: Final = {"string": "", "bool": False}


def normalised(document: Any) -> dict[str, Any]:
    """Return a normalized document; what the decoder would refuse is dropped."""
    return _struct(document, _FIELDS)


def _struct(value: Any, fields: Mapping[str, tuple[str, str]]) -> dict[str, Any]:
    kept: dict[str, Any] = {}
    if isinstance(value, Mapping):
        for field, given in value.items():
            if field in fields and given is not None:
                read = _READERS[fields[field][1]](given)
                if read is not None:
                    kept[field] = read
    return kept


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def _flag(value: Any) -> bool | None:
    return value if isinstance(value, bool) else None


def _number(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    # Whole numbers have no decimal point.
    return int(value) if isinstance(value, float) and value.is_integer() and abs(value) < 1e21 else value


def _count(value: Any) -> int | None:
    return value if is_integer(value) else None


def _list(value: Any, one: Callable[[Any], Any]) -> list[Any] | None:
    return ([one(item) for item in value] or None) if isinstance(value, list) else None


def _schema_map(value: Any) -> dict[str, Any] | None:
    if not isinstance(value, Mapping):
        return None
    return {name: normalised(schema) for name, schema in value.items()} or None


def _schema_or_array(value: Any) -> Any:
    if isinstance(value, Mapping):
        return normalised(value)
    # An array without schemas, or any other value, is an empty field.
    return [normalised(item) for item in value] if isinstance(value, list) else []


def _schema_or_bool(value: Any) -> Any:
    return value if isinstance(value, bool) else normalised(value)


def _dependencies(value: Any) -> dict[str, Any] | None:
    if not isinstance(value, Mapping):
        return None
    read: dict[str, Any] = {}
    for name, given in value.items():
        read[name] = given if isinstance(given, list) else normalised(given)
    return read or None


def _rules(value: Any) -> list[Any] | None:
    # The rule itself is kept even if it is empty.
    return _list(value, lambda rule: {"rule": ""} | _struct(rule, _RULE))


_READERS: Final[Mapping[str, Callable[[Any], Any]]] = {
    "string": lambda value: _text(value) or None,
    "*string": _text,
    "bool": lambda value: _flag(value) or None,
    "*bool": _flag,
    "*float64": _number,
    "*int64": _count,
    "*json": lambda value: value,
    "[]json": lambda value: _list(value, lambda item: item),
    "[]string": lambda value: _list(value, str),
    "[]schema": lambda value: _list(value, normalised),
    "*schema": normalised,
    "map": _schema_map,
    "schema or array": _schema_or_array,
    "schema or bool": _schema_or_bool,
    "dependencies": _dependencies,
    "documentation": lambda value: _struct(value, _DOCUMENTATION),
    "rules": _rules,
}


def internal_names(document: Document) -> list[str]:
    """Return the internal names of the fields that a document uses, in kube-apiserver's order."""
    return [name for field, (name, _) in _FIELDS.items() if field in document]


def internal(document: Document) -> dict[str, Any]:
    """Return a normalized document as messages print it: every field, by its internal name."""
    return {
        name: _WRITERS.get(kind, _unchanged)(document[field]) if field in document else _ZERO.get(kind)
        for field, (name, kind) in _FIELDS.items()
    }


def _unchanged(value: Any) -> Any:
    return value


def _internal_map(value: Mapping[str, Any]) -> dict[str, Any]:
    return {name: internal(value[name]) for name in sorted(value)}


def _internal_dependencies(value: Mapping[str, Any]) -> dict[str, Any]:
    shown: dict[str, Any] = {}
    for name in sorted(value):
        given = value[name]
        schema = internal(given) if isinstance(given, Mapping) else None
        shown[name] = {"Schema": schema, "Property": given if isinstance(given, list) else None}
    return shown


def _internal_struct(value: Mapping[str, Any], fields: Mapping[str, tuple[str, str]]) -> dict[str, Any]:
    return {name: value.get(field, _ZERO.get(kind)) for field, (name, kind) in fields.items()}


def internal_rule(rule: Mapping[str, Any]) -> dict[str, Any]:
    """Return a validation rule as messages print it."""
    return _internal_struct(rule, _RULE)


_WRITERS: Final[Mapping[str, Callable[[Any], Any]]] = {
    "*json": ordered,
    "[]json": ordered,
    "[]schema": lambda value: [internal(item) for item in value],
    "*schema": internal,
    "map": _internal_map,
    "schema or array": lambda value: {
        "Schema": internal(value) if isinstance(value, Mapping) else None,
        "JSONSchemas": [internal(item) for item in value] if isinstance(value, list) and value else None,
    },
    "schema or bool": lambda value: {
        "Allows": value is not False,
        "Schema": internal(value) if isinstance(value, Mapping) else None,
    },
    "dependencies": _internal_dependencies,
    "documentation": lambda value: _internal_struct(value, _DOCUMENTATION),
    "rules": lambda value: [internal_rule(rule) for rule in value],
}


def walk(document: Document) -> Iterator[Document]:
    """Yield a document and all nested documents."""
    yield document
    items = document.get("items")
    if isinstance(items, Mapping):
        yield from walk(items)
    elif items:
        for item in items:
            yield from walk(item)
    for junctor in ("allOf", "anyOf", "oneOf"):
        for part in document.get(junctor, ()):
            yield from walk(part)
    if "not" in document:
        yield from walk(document["not"])
    for container in ("properties", "patternProperties", "definitions", "dependencies"):
        for part in document.get(container, {}).values():
            if isinstance(part, Mapping):
                yield from walk(part)
    for either in ("additionalProperties", "additionalItems"):
        if isinstance(document.get(either), Mapping):
            yield from walk(document[either])


def has_rules(document: Document) -> bool:
    """Return whether a document has CEL rules."""
    return any(node.get("x-kubernetes-validations") for node in walk(document))


def item_schema(document: Document) -> Document | None:
    """Return the schema of a list's items, None if there is not exactly one."""
    items = document.get("items")
    return items if isinstance(items, Mapping) else None


def value_schema(document: Document) -> Document | None:
    """Return the schema of a map's values, if there is one."""
    values = document.get("additionalProperties")
    return values if isinstance(values, Mapping) else None
