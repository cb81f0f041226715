"""
How a schema says values are combined: what is owned whole, and what field by field.

A node is a schema seen by apply. It answers three questions about a value: is
a map merged key by key or replaced, is a list a plain list, a set or a list of
keyed elements, and which field does a name lead to.

Where a schema says nothing the value decides: maps are merged key by key, lists
and scalars are replaced. The one exception is RawExtension, which is replaced
whatever it holds.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Final

from lamina.merge.fieldset import json_text, scalar_text
from lamina.merge.schema import MISSING, Schema

ATOMIC: Final = "atomic"
SET: Final = "set"
KEYED: Final = "map"

_ANY_SCALAR: Final = frozenset({str, int, float, bool})
_SCALARS: Final = {
    "string": ("string", frozenset({str})),
    "integer": ("numeric", frozenset({int, float})),
    "number": ("numeric", frozenset({int, float})),
    "boolean": ("boolean", frozenset({bool})),
}
_SCALARS_BY_NAME: Final = {"io.k8s.apimachinery.pkg.api.resource.Quantity"}
_WHOLE_BY_NAME: Final = {"io.k8s.apimachinery.pkg.runtime.RawExtension"}
_EXACT_BY_NAME: Final = {*_SCALARS_BY_NAME, "io.k8s.apimachinery.pkg.apis.meta.v1.FieldsV1"}


class UntypableError(ValueError):
    """A value does not have the form its schema gives it."""


class Node:
    """
    One schema, as apply sees it.

    `scalars` are the classes a scalar may have, `maps` and `lists` whether such
    values may stand here. `whole` means a map is replaced, never merged.
    `fields` leads to declared fields; `values` to all others, and is None where
    there are no others. `listing` is what kind of list this is, `items` its
    elements. `exact` promises that values which Python calls equal are equal:
    it calls 1 and True equal, so where anything may stand it cannot be taken
    at its word.
    """

    __slots__ = (
        "_keys", "_ways", "_zeros", "declared", "exact", "fields", "items", "listing", "lists", "maps", "named", "scalar",
        "scalars", "values", "whole",
    )  # fmt: skip

    fields: _Fields
    values: Node | None
    items: Node

    def __init__(self) -> None:
        self.scalar = ""
        self.scalars: frozenset[type] = frozenset()
        self.maps = self.lists = self.whole = self.declared = False
        self.listing = ATOMIC
        self.values = None
        self.exact = True
        self.named = ""
        self._keys: tuple[tuple[str, str, Any], ...] = ()
        self._zeros: dict[str, Any] = {}
        self._ways: dict[str, tuple[str, Node, Any]] = {}

    def way(self, name: str) -> tuple[str, Node | None, Any]:
        """Return the path element of a field, its node and its zero; remembered for those that are declared."""
        way: tuple[str, Node | None, Any] | None = self._ways.get(name)
        if way is None:
            below = self.child(name)
            way = f"f:{name}", below, self.zero(name)
            if below is not None and self.declared and name in self.fields:
                self._ways[name] = way[0], below, way[2]
        return way

    def child(self, name: str) -> Node | None:
        """Return the node of a field, declared or not; None where there is no such field."""
        if self.declared:
            try:
                return self.fields[name]
            except KeyError:
                return self.values
        return self.values

    @property
    def is_whole(self) -> bool:
        """Say whether there is nothing to own inside: a map that is replaced, or a plain list."""
        return self.whole if self.maps else self.lists and self.listing == ATOMIC

    def declares(self, name: str) -> bool:
        """Say whether the schema names this field."""
        return name in self.fields.properties

    def zero(self, name: str) -> Any:
        """
        Return what a field holds when nobody set it; MISSING where it holds nothing.

        In a built-in kind a struct inside a struct is always there, and so is
        a field that is never left out: who first fills it has not added it.
        """
        return self._zeros.get(name, MISSING)

    def key_names(self) -> list[str]:
        """Return the names of the fields that tell the elements of this list apart."""
        return [name for name, _, _ in self._keys]

    def are_aligned(self, one: list[Any], two: list[Any]) -> bool:
        """Say whether two lists surely have the same elements in the same order; a quick look, not a proof of no."""
        if len(one) != len(two) or self.listing == SET:
            return False
        names = self._keys
        for first, second in zip(one, two, strict=True):
            if first.__class__ is not dict or second.__class__ is not dict:
                return False
            for name, _, _ in names:
                value, other = first.get(name), second.get(name)
                if value != other or value.__class__ is not other.__class__:
                    return False
        return True

    def element(self, item: Any) -> str:
        """Return the path element of an item of this list, a set or a list of keyed elements."""
        if self.listing == SET:
            if item.__class__ not in _ANY_SCALAR:
                raise UntypableError(_no_set_element(item))
            return f"v:{scalar_text(item)}"
        if item.__class__ is not dict:
            held = "a null element" if item is None else "non-map elements"
            raise UntypableError(f"associative list with keys may not have {held}")
        if len(self._keys) == 1:
            name, opening, default = self._keys[0]
            value = item.get(name, default)
            if value.__class__ in _ANY_SCALAR:
                return _one_key(opening, value)
        parts = []
        for name, opening, default in self._keys:
            value = item.get(name, default)
            if value is not MISSING:
                text = scalar_text(value) if value.__class__ in _ANY_SCALAR else json_text(value)
                parts.append(f"{opening}{text}")
        if not parts:
            names = " ".join(f'"{name}"' for name, _, _ in self._keys)
            raise UntypableError(
                f"associative list with keys has an element that omits all key fields [{names}]"
                " (and doesn't have default values for any key fields)"
            )
        return f"k:{{{','.join(parts)}}}"


@lru_cache(maxsize=8192, typed=True)
def _one_key(opening: str, value: Any) -> str:
    return f"k:{{{opening}{json_text(value)}}}"


def _no_set_element(item: Any) -> str:
    if item is None:
        return "associative list without keys has an element that's an explicit null"
    if isinstance(item, dict):
        return "associative list without keys has an element that's a map type"
    return "not supported: associative list with lists as elements"


class _Fields(dict[str, Node]):
    """The nodes of declared fields, made when first met: most objects use few of the fields their kind has."""

    __slots__ = ("_open", "properties")

    def __init__(self, properties: dict[str, Schema], opened: bool) -> None:
        super().__init__()
        self.properties = properties
        self._open = opened

    def __missing__(self, name: str) -> Node:
        node = self[name] = node_of(self.properties[name], self._open)
        return node


def _make_loose(whole: bool) -> Node:
    node = Node()
    node.scalar, node.scalars = "untyped", _ANY_SCALAR
    node.maps = node.lists = True
    node.whole = whole
    node.exact = False
    node.fields = _Fields({}, False)
    node.values = node
    node.items = node
    return node


WHOLE: Final = _make_loose(whole=True)
"""Anything, replaced and never merged."""

LOOSE: Final = _make_loose(whole=False)
"""Anything: maps are merged key by key, everything else is replaced."""
LOOSE.items = WHOLE


def node_of(schema: Schema, opened: bool = False) -> Node:
    """
    Return a schema as apply sees it; the same node each time.

    `opened` says that a schema around this one keeps unknown fields, which
    lets everything written inside it do so too. What has a name of its own
    does not look at where it is used.
    """
    opened = (opened or schema.open) and (schema.open or not schema.name)
    memo: dict[Any, Any] | None = schema.memo
    if memo is None:
        memo = schema.memo = {}
    node: Node | None = memo.get(opened)
    if node is None:
        if schema.name in _WHOLE_BY_NAME:
            node = memo[opened] = WHOLE
        else:
            node = memo[opened] = Node()
            _fill(node, schema, opened)
    return node


def _fill(node: Node, schema: Schema, opened: bool) -> None:
    kind = schema.type
    node.exact = _is_exact(schema)
    node.named = schema.name
    node.fields = _Fields(schema.properties, opened)
    if schema.name in _SCALARS_BY_NAME:
        node.scalar, node.scalars = "untyped", _ANY_SCALAR
        return
    if kind in _SCALARS and schema.format in ("", "byte", "int32", "int64", "float", "double"):
        node.scalar, node.scalars = _SCALARS[kind]
    elif kind not in ("object", "array"):
        node.scalar, node.scalars = "untyped", _ANY_SCALAR
    node.maps = kind in ("object", "")
    node.lists = kind in ("array", "")
    if node.maps:
        node.whole = schema.map_atomic
        node.declared = bool(schema.properties)
        if schema.values is not None:
            node.values = node_of(schema.values, opened)
        elif opened or not node.declared:
            node.values = LOOSE
        node._zeros = _zeros(schema)
    if node.lists:
        node.items = WHOLE if schema.items is None else node_of(schema.items, opened)
        node.listing = schema.list_type
        if node.listing == KEYED:
            # Elements are spelled with sorted keys.
            node._keys = tuple(
                (name, f'"{name}":', _default(schema.items, name)) for name in sorted(schema.list_keys)
            )


def _default(items: Schema | None, name: str) -> Any:
    field = items.properties.get(name) if items else None
    return MISSING if field is None or field.default is None else field.default


def _zeros(schema: Schema) -> dict[str, Any]:
    if not schema.name:
        # A custom resource is what its JSON says; nothing in it is there without being written.
        return {}
    zeros: dict[str, Any] = {}
    for name, field in schema.properties.items():
        if field.default is not MISSING:
            if not field.default:
                zeros[name] = field.default
        elif name in schema.required:
            zeros[name] = None
    return zeros


def _is_exact(schema: Schema) -> bool:
    """Say whether no number can stand where a boolean could, here or below."""
    memo: dict[Any, Any] | None = schema.memo
    if memo is None:
        memo = schema.memo = {}
    known: bool | None = memo.get("exact")
    if known is None:
        # What a schema that holds itself says meanwhile.
        memo["exact"] = False
        known = memo["exact"] = _looks_exact(schema)
    return known


def _looks_exact(schema: Schema) -> bool:
    if schema.name in _EXACT_BY_NAME:
        return True
    if schema.open or not (schema.type or schema.int_or_string):
        return False
    below = [*schema.properties.values()]
    if schema.values is not None:
        below.append(schema.values)
    if schema.items is not None:
        below.append(schema.items)
    if not below and schema.type in ("object", "array"):
        return False
    return all(map(_is_exact, below))
