"""
The types of nodes and fields, and whether an expression's type fits a field.

An expression fits where CEL says so, or where the structures agree: dyn fits everything,
an optional fits as its value does, lists and maps fit by their elements. An object fits
another one that has all its fields, and a map as long as every field fits.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from lamina.cel.cost.size import CostNode, Estimate, SizeEstimator
from lamina.cel.schema import Declared, declare, escape
from lamina.cel.types import DYN, INT, STRING, Field, Kind, ObjectType, Type, list_of, map_of
from lamina.graph.graph import KindSchema, NodeKind
from lamina.graph.object_meta import REFERENCE_SCHEMA, with_object_meta
from lamina.objects.paths import Path
from lamina.objects.types import Obj

_MOST_ITEMS: Final = 1000
_UNKNOWN: Final = Declared(DYN)
REFERENCE: Final = (declare(REFERENCE_SCHEMA, name="externalRef") or _UNKNOWN).type
"""The type of an external reference."""
SELECTOR: Final = map_of(STRING, DYN)
"""The type of a whole label selector: what is in it is checked when it is evaluated."""


def type_of_kind(kind: KindSchema) -> Declared:
    """Return the type of the objects of a kind, computed once."""
    known: Declared | None = kind.__dict__.get("declared")
    if known is None:
        served = kind.kind
        version = served.api_version.rpartition("/")[2]
        name = ".".join(filter(None, (served.kind, version, served.group)))
        schema = with_object_meta(kind.schema)
        known = kind.__dict__["declared"] = declare(schema, name=name, unknown_is_dyn=True) or _UNKNOWN
    return known


def type_of_instance(spec_schema: Obj, *, namespaced: bool) -> Declared:
    """Return the type of the variable `schema`: an instance without its status."""
    schema = with_object_meta({"properties": {"spec": spec_schema}}, namespaced=namespaced)
    return declare(schema, name="schema", unknown_is_dyn=True) or _UNKNOWN


def type_of_node(kind: NodeKind, declared: Declared) -> Declared:
    """Return the type of a node's variable: an object, or the list of them."""
    if not kind.is_many:
        return declared
    return Declared(list_of(declared.type), _MOST_ITEMS, 2, element=declared)


def counted(population: Declared) -> tuple[Declared, Declared]:
    """Return the types of a list whose items know their index, and of one of them, for propagateWhen."""
    item = population.element.type if population.element is not None else DYN
    if isinstance(item, ObjectType):
        fields = {**item.fields, "index": Field(INT)}
        item = ObjectType(f"{item.name}.@item", fields, item.preserves_unknown)
    return Declared(list_of(item), _MOST_ITEMS), Declared(item)


def sizes_of(variables: Mapping[str, Declared]) -> SizeEstimator:
    """Return the estimator of the sizes of these variables."""

    def sizes(node: CostNode) -> Estimate | None:
        declared = variables.get(node.path[0]) if node.path else None
        return None if declared is None else declared.sizes(node)

    return sizes


def type_at(root: Type, path: Path) -> Type:
    """Return the type of the field at a path, dyn where it is not known."""
    found = root
    for step in path:
        if isinstance(found, ObjectType) and isinstance(step, str):
            field = found.fields.get(escape(step) or step)
            found = DYN if field is None else field.type
        elif found.kind is Kind.LIST and isinstance(step, int):
            found = found.params[0]
        elif found.kind is Kind.MAP and isinstance(step, str):
            found = found.params[1]
        else:
            return DYN
    return found


def mismatch(output: Type, expected: Type) -> str:
    """Return why values of a type do not fit a field, empty where they do."""
    if (
        expected.is_dyn
        or output.is_dyn
        or output == expected
        or getattr(expected, "preserves_unknown", False)
    ):
        return ""
    if output.is_optional:
        return mismatch(output.params[0], expected)
    if isinstance(expected, ObjectType):
        if isinstance(output, ObjectType):
            return _objects(output, expected)
        if output.kind is Kind.MAP:
            return _map_as_object(output, expected)
        # As in CEL, null is a value of every object type.
        return "" if output.kind is Kind.NULL else _different(output, expected)
    if isinstance(output, ObjectType) and expected.kind is Kind.MAP:
        return _object_as_map(output, expected)
    if output.kind is not expected.kind:
        return _different(output, expected)
    if expected.kind is Kind.LIST:
        return _prefixed("list element type incompatible", mismatch(output.params[0], expected.params[0]))
    if expected.kind is Kind.MAP:
        key, value = (mismatch(*pair) for pair in zip(output.params, expected.params, strict=True))
        return _prefixed("map key type incompatible", key) or _prefixed("map value type incompatible", value)
    return ""


def _different(output: Type, expected: Type) -> str:
    return f'type kind mismatch: got "{output}", expected "{expected}"'


def _prefixed(prefix: str, detail: str) -> str:
    return f"{prefix}: {detail}" if detail else ""


def _fields(declared: ObjectType) -> Iterator[tuple[str, Type]]:
    """Yield the fields of an object by their names in the data."""
    known = {field.key or name: field.type for name, field in declared.fields.items()}
    yield from known.items()


def _objects(output: ObjectType, expected: ObjectType) -> str:
    wanted = dict(_fields(expected))
    for name, type_ in _fields(output):
        if name not in wanted:
            return f'field "{name}" exists in output but not in expected type'
        if detail := mismatch(type_, wanted[name]):
            return f'field "{name}" has incompatible type: {detail}'
    return ""


def _map_as_object(output: Type, expected: ObjectType) -> str:
    key, value = output.params
    if key.kind is not Kind.STRING and not key.is_dyn:
        return "map keys must be strings to assign to struct"
    for name, type_ in _fields(expected):
        if (detail := mismatch(value, type_)) and not _is_other_field(value, type_):
            return f'map value incompatible with struct field "{name}": {detail}'
    return ""


def _is_other_field(value: Type, type_: Type) -> bool:
    """
    Say whether a map with such values cannot be meant to have a field, as for upstream.

    `{'name': x, 'value': y}` is an environment variable, although its values do not fit
    `valueFrom`, which is an object.
    """
    if isinstance(type_, ObjectType):
        return not isinstance(value, ObjectType) and value.kind is not Kind.MAP
    return type_.kind is Kind.LIST and value.kind is Kind.MAP


def _object_as_map(output: ObjectType, expected: Type) -> str:
    key, value = expected.params
    if key.kind is not Kind.STRING and not key.is_dyn:
        return "map key type must be string to assign from struct"
    for name, type_ in _fields(output):
        if detail := mismatch(type_, value):
            return f'struct field "{name}" incompatible with map value type: {detail}'
    return ""
