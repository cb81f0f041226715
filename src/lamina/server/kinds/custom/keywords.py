"""
The keywords that a schema may use: rules of OpenAPI v3 and of the `x-kubernetes-` extensions.

Of CEL rules (`x-kubernetes-validations`) only the other fields are checked here, and that
there is an expression.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from lamina.errors import Cause
from lamina.server.field_errors import forbidden, invalid, not_supported, required
from lamina.server.kinds.custom.document import Document, internal, item_schema
from lamina.server.kinds.custom.fieldpath import BadPath, resolve_path
from lamina.server.kinds.custom.structural import structural_error

TYPES: Final = ("array", "boolean", "integer", "number", "object", "string")
_LIST_TYPE: Final = "x-kubernetes-list-type"
_MAP_TYPE: Final = "x-kubernetes-map-type"
_KEYS: Final = "x-kubernetes-list-map-keys"
_RULES: Final = "x-kubernetes-validations"
_IDENTITY: Final = frozenset({"metadata", "kind", "apiVersion"})
_REASONS: Final = ("FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired")
_LINE_BREAK: Final = re.compile(r"[\n\r]")
_NOT_SUPPORTED: Final = (
    ("id", "id"),
    ("additionalItems", "additionalItems"),
    ("patternProperties", "patternProperties"),
    ("definitions", "definitions"),
    ("dependencies", "dependencies"),
    ("$ref", "$ref"),
)


class _Position(Struct, frozen=True, kw_only=True):
    """The position in a document: inside metadata, or where defaults are not allowed and why."""

    in_metadata: bool = False
    no_defaults: str | None = None


def validate_keywords(document: Document, path: str) -> list[Cause]:
    """Return the errors of a document's keywords."""
    return list(_node(document, path, _Position(), is_root=True))


def _node(node: Document, path: str, position: _Position, *, is_root: bool = False) -> Iterator[Cause]:
    yield from _plain(node, path, position)
    if node.get("uniqueItems"):
        detail = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic"
        yield forbidden(f"{path}.uniqueItems", detail)
    yield from _inside(node, path, position, is_root=is_root)
    if node.get("x-kubernetes-preserve-unknown-fields") is False:
        where = f"{path}.x-kubernetes-preserve-unknown-fields"
        yield invalid(where, False, "must be true or undefined")
    yield from _map_type(node, path)
    yield from _list_type(node, path)
    yield from _map_keys(node, path)
    for index, rule in enumerate(node.get(_RULES, ())):
        yield from _rule(rule, node, f"{path}.{_RULES}[{index}]")


def _plain(node: Document, path: str, position: _Position) -> Iterator[Cause]:
    kind = node.get("type", "")
    if kind and kind not in TYPES:
        yield not_supported(f"{path}.type", kind, TYPES)
    if "default" in node and position.no_defaults is not None:
        yield forbidden(f"{path}.default", f"must not be set {position.no_defaults}")
    for field, name in _NOT_SUPPORTED:
        if field in node:
            yield forbidden(f"{path}.{field}", f"{name} is not supported")
    if kind == "null":
        detail = "type cannot be set to null, use nullable as an alternative"
        yield forbidden(f"{path}.type", detail)
    if isinstance(node.get("items"), list) and node["items"]:
        yield forbidden(f"{path}.items", "items must be a schema object and not an array")
    if position.in_metadata and node.get("x-kubernetes-embedded-resource"):
        yield forbidden(f"{path}.x-kubernetes-embedded-resource", "must not be used inside of resource meta")


def _inside(node: Document, path: str, position: _Position, *, is_root: bool) -> Iterator[Cause]:
    properties = node.get("properties", {})
    if "additionalProperties" in node:
        values = node["additionalProperties"]
        if properties and values is not True:
            detail = "additionalProperties and properties are mutual exclusive"
            yield forbidden(f"{path}.additionalProperties", detail)
        if not isinstance(values, bool):
            below = position
            if position.in_metadata:
                # What would be pruned depends on the value, so a default cannot be validated.
                below = replace(
                    position, no_defaults="inside additionalProperties applying to object metadata"
                )
            yield from _node(values, f"{path}.additionalProperties", below)
    for name, part in properties.items():
        below = position
        if (is_root or node.get("x-kubernetes-embedded-resource")) and name in _IDENTITY:
            below = replace(position, in_metadata=True)
            if is_root:
                below = replace(below, no_defaults=f"in top-level {name}")
        yield from _node(part, f"{path}.properties[{name}]", below)
    if "not" in node:
        yield from _node(node["not"], f"{path}.not", position)
    for junctor in ("allOf", "oneOf", "anyOf"):
        for index, part in enumerate(node.get(junctor, ())):
            yield from _node(part, f"{path}.{junctor}[{index}]", position)
    for name, part in node.get("definitions", {}).items():
        yield from _node(part, f"{path}.definitions[{name}]", position)
    items = node.get("items")
    if isinstance(items, list):
        for index, part in enumerate(items):
            yield from _node(part, f"{path}.items[{index}]", position)
    elif items is not None:
        yield from _node(items, f"{path}.items", position)
    for name, part in node.get("dependencies", {}).items():
        if part is not None and not isinstance(part, list):
            yield from _node(part, f"{path}.dependencies[{name}]", position)


def _of_type(node: Document, path: str, wanted: str, extension: str) -> Iterator[Cause]:
    kind = node.get("type", "")
    detail = f"must be {wanted} if {extension} is specified"
    if kind != wanted:
        yield invalid(f"{path}.type", kind, detail) if kind else required(f"{path}.type", detail)


def _map_type(node: Document, path: str) -> Iterator[Cause]:
    if _MAP_TYPE in node:
        yield from _of_type(node, path, "object", _MAP_TYPE)
        if node[_MAP_TYPE] not in ("atomic", "granular"):
            yield not_supported(f"{path}.{_MAP_TYPE}", node[_MAP_TYPE], ("atomic", "granular"))


def _list_type(node: Document, path: str) -> Iterator[Cause]:
    keys = node.get(_KEYS, [])
    if _LIST_TYPE in node:
        if node.get("type") != "array":
            yield from _of_type(node, path, "array", _LIST_TYPE)
        else:
            yield from _set_items(node, path)
        if node[_LIST_TYPE] not in ("atomic", "set", "map"):
            yield not_supported(f"{path}.{_LIST_TYPE}", node[_LIST_TYPE], ("atomic", "set", "map"))
    if keys:
        detail = f"must be map if {_KEYS} is non-empty"
        if _LIST_TYPE not in node:
            yield required(f"{path}.{_LIST_TYPE}", detail)
        elif node[_LIST_TYPE] != "map":
            yield invalid(f"{path}.{_LIST_TYPE}", node[_LIST_TYPE], detail)
    if node.get(_LIST_TYPE) == "map":
        yield from _map_list(node, keys, path)


def _map_list(node: Document, keys: list[str], path: str) -> Iterator[Cause]:
    if not keys:
        yield required(f"{path}.{_KEYS}", f"must not be empty if {_LIST_TYPE} is map")
    if "items" not in node:
        yield required(f"{path}.items", f"must have a schema if {_LIST_TYPE} is map")
        return
    items = item_schema(node)
    if items is None:
        shown = internal({"items": node["items"]})["Items"]
        yield invalid(f"{path}.items", shown, f"must only have a single schema if {_LIST_TYPE} is map")
        return
    if items.get("type") != "object":
        detail = f"must be object if parent array's {_LIST_TYPE} is map"
        yield invalid(f"{path}.items.type", items.get("type", ""), detail)
        return
    seen: set[str] = set()
    for key in keys:
        part = items.get("properties", {}).get(key)
        if part is None:
            yield invalid(f"{path}.{_KEYS}", keys, "entries must all be names of item properties")
        elif part.get("type") in ("array", "object"):
            # kube-apiserver prints the type of the items here, not of the key.
            detail = f"must be a scalar type if parent array's {_LIST_TYPE} is map"
            yield invalid(f"{path}.items.properties[{key}].type", "object", detail)
        if key in seen:
            yield invalid(f"{path}.{_KEYS}", keys, "must not contain duplicate entries")
        seen.add(key)


def _set_items(node: Document, path: str) -> Iterator[Cause]:
    """Yield errors of a set whose items cannot be compared as a whole."""
    items = item_schema(node)
    if node.get(_LIST_TYPE) != "set" or items is None:
        return
    detail = f"must be atomic as item of a list with {_LIST_TYPE}=set"
    if items.get("type") == "array" and items.get(_LIST_TYPE, "atomic") != "atomic":
        yield invalid(f"{path}.items.{_LIST_TYPE}", items[_LIST_TYPE], detail)
    if items.get("type") == "object" and items.get(_MAP_TYPE) != "atomic":
        yield invalid(f"{path}.items.{_MAP_TYPE}", items.get(_LIST_TYPE), detail)


def _map_keys(node: Document, path: str) -> Iterator[Cause]:
    """Yield errors of a map list whose keys may be missing."""
    items = item_schema(node)
    kind = node.get(_LIST_TYPE)
    if kind not in ("set", "map") or items is None:
        return
    if items.get("nullable"):
        yield forbidden(f"{path}.items.nullable", f"cannot be nullable when {_LIST_TYPE} is {kind}")
    if kind == "set":
        return
    for key in node.get(_KEYS, ()):
        part = items.get("properties", {}).get(key)
        if part is None:
            continue
        where = f"{path}.items.properties[{key}]"
        if key not in items.get("required", ()) and "default" not in part:
            yield required(
                f"{where}.default",
                f"this property is in {_KEYS}, so it must have a default or be a required property",
            )
        if part.get("nullable"):
            yield forbidden(f"{where}.nullable", f"this property is in {_KEYS}, so it cannot be nullable")


def _rule(rule: dict[str, Any], node: Document, path: str) -> Iterator[Cause]:
    message, expression = rule.get("message", ""), rule.get("messageExpression", "")
    if not rule["rule"].strip():
        yield required(f"{path}.rule", "rule is not specified")
    elif message and not message.strip():
        yield invalid(f"{path}.message", message, "must be non-empty if specified")
    elif _LINE_BREAK.search(message.strip()):
        yield invalid(f"{path}.message", message, "must not contain line breaks")
    elif _LINE_BREAK.search(rule["rule"].strip()) and not message.strip():
        yield required(f"{path}.message", "message must be specified if rule contains line breaks")
    if expression and not expression.strip():
        yield required(f"{path}.messageExpression", "messageExpression must be non-empty if specified")
    if "reason" in rule and rule["reason"] not in _REASONS:
        yield not_supported(f"{path}.reason", rule["reason"], _REASONS)
    if field_path := rule.get("fieldPath", ""):
        if not field_path.strip():
            yield invalid(f"{path}.fieldPath", field_path, "must be non-empty if specified")
        if _LINE_BREAK.search(field_path):
            yield invalid(f"{path}.fieldPath", field_path, "must not contain line breaks")
        if not _is_valid_path(field_path, node):
            yield invalid(f"{path}.fieldPath", field_path, "must be a valid path")


def _is_valid_path(path: str, node: Document) -> bool:
    if structural_error(node):
        return True
    try:
        resolve_path(path, node)
    except BadPath:
        return False
    return True
