"""
The view that apply has of a schema: what is atomic, and what is granular.

A node says whether a map is granular or atomic, whether a list is atomic, a set
or an associative list, and which node a field has.

Where a schema says nothing, the value decides (deduced types): maps are
granular, lists and scalars are atomic. The one exception is RawExtension, which
is always atomic.
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
    """A value does not fit its schema."""


class Node:
    """
    One schema, as apply uses it.

    `scalars` are the classes a scalar may have; `maps` and `lists` say whether
    such values are allowed. `atomic` is that of a map. `fields` has the
    nodes of declared fields; `values` is that of all others, None where there
    are no others. `listing` is the type of the list, `items` the node of its
    elements. `exact` says that Python's == is exact for values of this schema:
    it finds 1 and True equal, so it is not where any scalar is allowed.
    """

    __slots__ = (
        "_keys",
        "_ways",
        "_zeros",
        "atomic",
        "declared",
        "exact",
        "fields",
        "items",
        "listing",
        "lists",
        "maps",
        "named",
        "scalar",
        "scalars",
        "values",
    )  # fmt: skip

    fields: _Fields
    values: Node | None
    items: Node

    def __init__(self) -> None:
        self.scalar = ""
        self.scalars: frozenset[type] = frozenset()
        self.maps = self.lists = self.atomic = self.declared = False
        self.listing = ATOMIC
        self.values = None
        self.exact = True
        self.named = ""
        self._keys: tuple[tuple[str, str, Any], ...] = ()
        self._zeros: dict[str, Any] = {}
        self._ways: dict[str, tuple[str, Node, Any]] = {}

    def way(self, name: str) -> tuple[str, Node | None, Any]:
        """Return the path element of a field, its node and its zero value; cached for declared fields."""
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
    def is_atomic(self) -> bool:
        """Say whether this is an atomic map or list, which has no fields to own inside."""
        return self.atomic if self.maps else self.lists and self.listing == ATOMIC

    def declares(self, name: str) -> bool:
        """Say whether the schema declares this field."""
        return name in self.fields.properties

    def zero(self, name: str) -> Any:
        """
        Return the zero value of a field that is not set; MISSING where it has none.

        In a built-in kind a struct inside a struct is always there, and so is
        a field without omitempty: setting it is a change, not an addition.
        """
        return self._zeros.get(name, MISSING)

    def are_aligned(self, one: list[Any], two: list[Any]) -> bool:
        """Say whether two lists have the same keys in the same order; false also where a cheap check cannot decide it."""
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
        """Return the path element of an item of this list, a set or an associative list."""
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
    """The nodes of declared fields, created on first use: most objects use few fields of their kind."""

    __slots__ = ("_open", "properties")

    def __init__(self, properties: dict[str, Schema], opened: bool) -> None:
        super().__init__()
        self.properties = properties
        self._open = opened

    def __missing__(self, name: str) -> Node:
        node = self[name] = node_of(self.properties[name], self._open)
        return node


def _deduced(atomic: bool) -> Node:
    node = Node()
    node.scalar, node.scalars = "untyped", _ANY_SCALAR
    node.maps = node.lists = True
    node.atomic = atomic
    node.exact = False
    node.fields = _Fields({}, False)
    node.values = node
    node.items = node
    return node


ANY_ATOMIC: Final = _deduced(atomic=True)
"""Any value, always atomic."""

DEDUCED: Final = _deduced(atomic=False)
"""Any value: maps are granular, everything else is atomic."""
DEDUCED.items = ANY_ATOMIC


def node_of(schema: Schema, opened: bool = False) -> Node:
    """
    Return the node of a schema; the same node each time.

    `opened` says that an enclosing schema preserves unknown fields, which
    inline schemas inherit. A named definition does not depend on where it is
    used.
    """
    opened = (opened or schema.open) and (schema.open or not schema.name)
    memo: dict[Any, Any] | None = schema.memo
    if memo is None:
        memo = schema.memo = {}
    node: Node | None = memo.get(opened)
    if node is None:
        if schema.name in _WHOLE_BY_NAME:
            node = memo[opened] = ANY_ATOMIC
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
        node.atomic = schema.map_atomic
        node.declared = bool(schema.properties)
        if schema.values is not None:
            node.values = node_of(schema.values, opened)
        elif opened or not node.declared:
            node.values = DEDUCED
        node._zeros = _zeros(schema)
    if node.lists:
        node.items = ANY_ATOMIC if schema.items is None else node_of(schema.items, opened)
        node.listing = schema.list_type
        if node.listing == KEYED:
            # Path elements have their keys sorted.
            node._keys = tuple(
                (name, f'"{name}":', _default(schema.items, name)) for name in sorted(schema.list_keys)
            )


def _default(items: Schema | None, name: str) -> Any:
    field = items.properties.get(name) if items else None
    return MISSING if field is None or field.default is None else field.default


def _zeros(schema: Schema) -> dict[str, Any]:
    if not schema.name:
        # A custom resource is unstructured: no field has a zero value.
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
    """Say whether no field, here or below, allows both a number and a boolean."""
    memo: dict[Any, Any] | None = schema.memo
    if memo is None:
        memo = schema.memo = {}
    known: bool | None = memo.get("exact")
    if known is None:
        # The answer for a recursive schema meanwhile.
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
