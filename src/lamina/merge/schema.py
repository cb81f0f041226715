"""
Compiled structural schemas of CRDs and built-in kinds.

One compiled form serves everything that walks an object by its schema: pruning,
defaulting, strict decoding, strategic merge and apply. It has the structure and
the extensions, not the value validations: minimum, pattern and the like stay in
the OpenAPI document.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

MISSING: Final = object()
"""The default of a field without one; null is a possible default."""


class Schema:
    """
    The schema of one value.

    `type` is object, array, string, integer, number, boolean, or "" where any
    type is allowed. `values` is the schema of a map's values, `items` of a
    list's elements. `open` means unknown fields are preserved. A schema may be
    reached by many paths, and from itself: JSONSchemaProps is recursive.

    `memo` caches what other modules derive from the schema. This module does
    not read it.
    """

    __slots__ = (
        "default", "embedded", "format", "int_or_string", "items", "list_keys", "list_type", "map_atomic", "memo",
        "name", "nullable", "open", "patch_key", "patch_strategies", "properties", "required", "type", "values",
    )  # fmt: skip

    type: str
    format: str
    name: str
    properties: dict[str, Schema]
    values: Schema | None
    items: Schema | None
    required: frozenset[str]
    open: bool
    embedded: bool
    int_or_string: bool
    nullable: bool
    default: Any
    list_type: str
    list_keys: tuple[str, ...]
    map_atomic: bool
    patch_strategies: frozenset[str]
    patch_key: str
    memo: Any

    def __init__(self) -> None:
        self.type = self.format = self.name = ""
        self.properties = {}
        self.values = self.items = None
        self.required = frozenset()
        self.open = self.embedded = self.int_or_string = self.nullable = self.map_atomic = False
        self.default = MISSING
        self.list_type = "atomic"
        self.list_keys = ()
        self.patch_strategies = frozenset()
        self.patch_key = ""
        self.memo = None

    def child(self, field: str) -> Schema | None:
        """Return the schema of a field, declared or that of the map's values; None where it is unknown."""
        return self.properties.get(field) or self.values

    def __repr__(self) -> str:
        return f"<Schema {self.name or self.type or 'any'}>"


class Schemas:
    """
    Compiled schemas of named definitions, compiled on first use.

    `lookup` returns the OpenAPI definition of a name; references between
    definitions are `#/definitions/NAME` or `#/components/schemas/NAME`.
    """

    def __init__(self, lookup: Callable[[str], Mapping[str, Any]]) -> None:
        self._lookup = lookup
        self._named: dict[str, Schema] = {}
        self._unfilled: set[str] = set()
        self._waiting: list[tuple[Schema, Schema, Mapping[str, Any]]] = []

    def named(self, name: str) -> Schema:
        """Return the schema of one definition; the same value each time."""
        known = self._named.get(name)
        if known is None:
            # Registered before it is filled, so that a recursive definition finds itself.
            known = self._named[name] = Schema()
            known.name = name
            self._unfilled.add(name)
            self._fill(known, self._lookup(name))
            self._unfilled.remove(name)
            if not self._unfilled:
                for node, target, document in self._waiting:
                    _inherit(node, target, document)
                self._waiting.clear()
        return known

    def compile(self, document: Mapping[str, Any]) -> Schema:
        """Return the schema of a document."""
        node = Schema()
        self._fill(node, document)
        return node

    def _follow(self, document: Mapping[str, Any]) -> Schema:
        ref = document.get("$ref")
        parts = document.get("allOf")
        if ref is None and parts and len(parts) == 1 and "$ref" in parts[0]:
            ref = parts[0]["$ref"]
        if ref is None:
            return self.compile(document)
        target = self.named(ref.rpartition("/")[2])
        if not any(key in document for key in _BESIDE_REF):
            return target
        # Keywords beside a reference apply to this field only: the same
        # struct is merged by key in one list and replaced in another.
        node = Schema()
        if target.name in self._unfilled:
            self._waiting.append((node, target, document))
        else:
            _inherit(node, target, document)
        return node

    def _fill(self, node: Schema, document: Mapping[str, Any]) -> None:
        node.type = document.get("type") or ""
        node.format = document.get("format") or ""
        node.required = frozenset(document.get("required") or ())
        _take_extensions(node, document)
        for field, shape in (document.get("properties") or {}).items():
            node.properties[field] = self._follow(shape)
        values = document.get("additionalProperties")
        if isinstance(values, Mapping):
            node.values = self._follow(values)
        elif values is True:
            node.open = True
        items = document.get("items")
        if isinstance(items, Mapping):
            node.items = self._follow(items)


_BESIDE_REF = (
    "default", "nullable", "x-kubernetes-list-map-keys", "x-kubernetes-list-type", "x-kubernetes-map-type",
    "x-kubernetes-patch-merge-key", "x-kubernetes-patch-strategy",
)  # fmt: skip


def _inherit(node: Schema, target: Schema, document: Mapping[str, Any]) -> None:
    for slot in Schema.__slots__:
        setattr(node, slot, getattr(target, slot))
    node.memo = None
    _take_extensions(node, document)


def _take_extensions(node: Schema, document: Mapping[str, Any]) -> None:
    if "default" in document:
        node.default = document["default"]
    if "nullable" in document:
        node.nullable = bool(document["nullable"])
    if document.get("x-kubernetes-preserve-unknown-fields"):
        node.open = True
    if document.get("x-kubernetes-embedded-resource"):
        node.embedded = True
    if document.get("x-kubernetes-int-or-string") or document.get("format") == "int-or-string":
        node.int_or_string = True
    if "x-kubernetes-list-type" in document:
        node.list_type = document["x-kubernetes-list-type"]
    if "x-kubernetes-list-map-keys" in document:
        node.list_keys = tuple(document["x-kubernetes-list-map-keys"])
    if "x-kubernetes-map-type" in document:
        node.map_atomic = document["x-kubernetes-map-type"] == "atomic"
    if "x-kubernetes-patch-strategy" in document:
        node.patch_strategies = frozenset(document["x-kubernetes-patch-strategy"].split(","))
    if "x-kubernetes-patch-merge-key" in document:
        node.patch_key = document["x-kubernetes-patch-merge-key"]


def compile_schema(document: Mapping[str, Any]) -> Schema:
    """Return the schema of a document without references, as in a CRD."""
    return Schemas(_no_references).compile(document)


def _no_references(name: str) -> Mapping[str, Any]:
    raise LookupError(f"a structural schema has no references, yet names {name}")
