"""
CEL types of OpenAPI schemas, as Kubernetes derives them.

Property names are escaped to identifiers: `__dash__`, `__dot__` and `__slash__`
replace characters that identifiers cannot have, `__underscores__` replaces two
underscores, and a reserved word gets two on each side. Properties whose names cannot
be escaped, or whose schemas have no type, are left out.

Each type comes with the maximum size of its values, from maxLength, maxItems and
maxProperties, or else from the request size limit.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from lamina.cel.cost.limits import REQUEST_BYTES
from lamina.cel.cost.size import CostNode, Estimate
from lamina.cel.operands import RESERVED
from lamina.cel.types import (
    BOOL,
    BYTES,
    DOUBLE,
    DURATION,
    DYN,
    INT,
    STRING,
    TIMESTAMP,
    Field,
    ListType,
    ObjectType,
    Type,
    list_of,
    map_of,
)

_ESCAPED: Final = {"__": "__underscores__", ".": "__dot__", "-": "__dash__", "/": "__slash__"}
_UNESCAPED: Final = {escape: character for character, escape in _ESCAPED.items()}
_NAME: Final = re.compile(r"[A-Za-z_./-][A-Za-z0-9_./-]*")
_TO_ESCAPE: Final = re.compile(r"__|[-./]")
_TO_UNESCAPE: Final = re.compile(r"__[^_]+__")

_SMALLEST: Final = {"boolean": 4, "number": 1, "integer": 1}
_TIMES: Final = {"duration": (DURATION, 32, 3), "date": (TIMESTAMP, 12, 12), "date-time": (TIMESTAMP, 32, 21)}


@dataclass(frozen=True, slots=True)
class Declared:
    """
    A type, and the size of its values.

    `most` is the largest size of a string, list or map; `smallest` the fewest
    bytes of a value in JSON. `fields`, `key` and `element` are its parts.
    """

    type: Type
    most: int = 0
    smallest: int = 1
    fields: Mapping[str, Declared] = field(default_factory=dict)
    key: Declared | None = None
    element: Declared | None = None

    def sizes(self, node: CostNode) -> Estimate | None:
        """Return the size of the value at a path from a variable of this type."""
        if not node.path:
            return None
        found = self
        for step in node.path[1:]:
            if step in ("@items", "@values"):
                inner = found.element
            elif step == "@keys":
                inner = found.key
            else:
                inner = found.fields.get(step)
            if inner is None:
                return None
            found = inner
        return Estimate(0, found.most)


def escape(name: str) -> str | None:
    """Return the escaped identifier of a property; None where it cannot be escaped."""
    if name in RESERVED:
        return f"__{name}__"
    if not _NAME.fullmatch(name):
        return None
    return _TO_ESCAPE.sub(lambda found: _ESCAPED[found.group()], name)


def unescape(identifier: str) -> str | None:
    """Return the property of an escaped identifier; None for an invalid one."""
    if identifier.startswith("__") and identifier.endswith("__") and identifier[2:-2] in RESERVED:
        return identifier[2:-2]
    parts = _TO_UNESCAPE.findall(identifier)
    if any(part not in _UNESCAPED for part in parts):
        return None
    return _TO_UNESCAPE.sub(lambda found: _UNESCAPED[found.group()], identifier)


def declare(
    schema: Mapping[str, Any], *, name: str = "object", resource: bool = False, unknown_is_dyn: bool = False
) -> Declared | None:
    """
    Return the type of a schema; None where expressions cannot access it.

    `name` is the name of its object types. A `resource` always has a kind, an
    apiVersion and a name, whatever its schema says. In Kubernetes, preserved
    unknown fields are not accessible; with `unknown_is_dyn` they are dyn.
    """
    return _Parser(unknown_is_dyn).read(schema, name, resource=resource)


class _Parser:
    def __init__(self, unknown_is_dyn: bool) -> None:
        self._unknown_is_dyn = unknown_is_dyn

    def read(self, schema: Mapping[str, Any], name: str, *, resource: bool = False) -> Declared | None:
        if _is_int_or_string(schema):
            limit = schema.get("maxLength")
            return Declared(DYN, REQUEST_BYTES - 2 if limit is None else max(limit, 0) * 4, 1)
        if resource or schema.get("x-kubernetes-embedded-resource"):
            schema = _with_meta(schema)
        kind = schema.get("type")
        match kind:
            case "array":
                return self._array(schema, name)
            case "object":
                return self._object(schema, name)
            case "string":
                return _string(schema)
            case "boolean":
                return Declared(BOOL, 0, _SMALLEST[kind])
            case "number":
                return Declared(DOUBLE, 0, _SMALLEST[kind])
            case "integer":
                return Declared(INT, 0, _SMALLEST[kind])
        return Declared(DYN, REQUEST_BYTES, 1) if self._unknown_is_dyn else None

    def _array(self, schema: Mapping[str, Any], name: str) -> Declared | None:
        items = schema.get("items")
        element = None if items is None else self.read(items, f"{name}.@idx")
        if element is None:
            return Declared(list_of(DYN), REQUEST_BYTES, 2) if self._unknown_is_dyn else None
        most = schema.get("maxItems")
        if most is None:
            most = (REQUEST_BYTES - 2) // (element.smallest + 1)
        listing, keys = schema.get("x-kubernetes-list-type"), schema.get("x-kubernetes-list-map-keys") or ()
        type_ = list_of(element.type)
        if listing in ("set", "map"):
            type_ = ListType(element.type, listing, tuple(keys))
        return Declared(type_, max(most, 0), 2, element=element)

    def _object(self, schema: Mapping[str, Any], name: str) -> Declared | None:
        additional = schema.get("additionalProperties")
        if isinstance(additional, Mapping):
            element = self.read(additional, f"{name}.@elem")
            if element is None:
                return None
            most = schema.get("maxProperties")
            if most is None:
                most = (REQUEST_BYTES - 2) // (element.smallest + 6)
            key = Declared(STRING, 0, 2)
            return Declared(map_of(STRING, element.type), max(most, 0), 2, key=key, element=element)
        properties: Mapping[str, Any] = schema.get("properties") or {}
        unknown = self._unknown_is_dyn and bool(
            schema.get("x-kubernetes-preserve-unknown-fields") or additional is True
        )
        if unknown and not properties:
            return Declared(DYN, REQUEST_BYTES, 2)
        return self._fields(schema, properties, name, unknown=unknown)

    def _fields(
        self, schema: Mapping[str, Any], properties: Mapping[str, Any], name: str, *, unknown: bool
    ) -> Declared:
        required: Sequence[str] = schema.get("required") or ()
        declared: dict[str, Declared] = {}
        fields: dict[str, Field] = {}
        smallest = 2
        for original, inner in properties.items():
            identifier = escape(original)
            found = self.read(inner, f"{name}.{identifier}")
            if found is None:
                continue
            needed = original in required
            if needed and inner.get("default") is None:
                smallest += len(original.encode()) + found.smallest + 4
            if identifier is None:
                continue
            key = None if identifier == original else original
            declared[identifier] = found
            nullable = bool(inner.get("nullable"))
            fields[identifier] = Field(found.type, needed, inner.get("default"), key, nullable)
            if original in RESERVED:
                fields.setdefault(original, fields[identifier])
        return Declared(ObjectType(name, fields, unknown), 0, smallest, declared)


def _is_int_or_string(schema: Mapping[str, Any]) -> bool:
    return bool(schema.get("x-kubernetes-int-or-string")) or schema.get("format") == "int-or-string"


def _with_meta(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    properties = schema.get("properties") or {}
    metadata = properties.get("metadata") or {}
    if metadata.get("type") == "object" and all(
        (holder.get(name) or {}).get("type") == "string"
        for holder, name in (
            (properties, "kind"),
            (properties, "apiVersion"),
            (metadata.get("properties") or {}, "name"),
            (metadata.get("properties") or {}, "generateName"),
        )
    ):
        return schema
    text = {"type": "string"}
    named = {"type": "object", "properties": {"name": text, "generateName": text}}
    return {**schema, "properties": {**properties, "kind": text, "apiVersion": text, "metadata": named}}


def _string(schema: Mapping[str, Any]) -> Declared:
    limit, format_ = schema.get("maxLength"), schema.get("format")
    if format_ in _TIMES:
        type_, most, smallest = _TIMES[format_]
        return Declared(type_, most, smallest)
    if format_ == "byte":
        return Declared(BYTES, REQUEST_BYTES - 2 if limit is None else max(limit, 0), 2)
    if limit is not None:
        return Declared(STRING, max(limit, 0) * 4, 2)
    choices = schema.get("enum")
    if choices:
        lengths = [len(choice.encode()) for choice in choices if isinstance(choice, str)]
        return Declared(STRING, max(lengths, default=0), 2)
    return Declared(STRING, REQUEST_BYTES - 2, 2)
