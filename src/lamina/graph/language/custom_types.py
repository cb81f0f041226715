"""The types of fields as text, and the order in which custom types are built."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from graphlib import CycleError, TopologicalSorter
from typing import Any, Final, NamedTuple

from lamina.errors import SpecError
from lamina.graph.language.markers import SPACES, FieldError
from lamina.graph.schemas.structure import PRESERVE

BASIC: Final[Mapping[str, Mapping[str, Any]]] = {
    "string": {"type": "string"},
    "integer": {"type": "integer"},
    "boolean": {"type": "boolean"},
    "float": {"type": "number"},
    "object": {"type": "object", PRESERVE: True},
}
_MEANT: Final = {
    "int": "integer", "int32": "integer", "int64": "integer", "bool": "boolean", "number": "float",
    "double": "float", "str": "string", "map": "map[string]string", "array": "[]string", "list": "[]string",
}  # fmt: skip
_NESTING: Final = 16


class TypeName(NamedTuple):
    """A type as it is written: the lists and maps around it, outermost first, and its name."""

    around: tuple[str, ...]
    name: str

    @property
    def is_custom(self) -> bool:
        return self.name not in BASIC


def parse_type(text: str) -> TypeName:
    """Return the type at the start of a field, before its markers; raises FieldError."""
    rest = text.partition("|")[0].strip(SPACES)
    if not rest:
        raise FieldError("empty type: a field starts with its type, such as string")
    around: list[str] = []
    while True:
        if len(around) > _NESTING:
            raise FieldError(
                f"type nesting too deep: at most {_NESTING} of [] and map[string] may enclose a type"
            )
        if rest.startswith("[]"):
            around.append("array")
            rest = rest[2:].strip(SPACES)
            if not rest:
                raise FieldError("empty slice element type: write the type of the items, such as []string")
        elif rest.startswith("map["):
            if not rest.startswith("map[string]"):
                raise FieldError("map key must be string: write map[string] before the type of the values")
            around.append("map")
            rest = rest[11:].strip(SPACES)
            if not rest:
                raise FieldError("map value type is required: write it behind map[string]")
        else:
            return TypeName(tuple(around), rest)


def unknown_type(name: str) -> str:
    """Return the error of a name that is no type."""
    if name in _MEANT:
        return f"unknown type: {name}: did you mean {_MEANT[name]}?"
    basic = ", ".join(BASIC)
    return f"unknown type: {name}: define it in spec.schema.types, or use {basic}, []T or map[string]T"


def unexpected(value: Any) -> str:
    """Return the error of a field that is neither text nor a structure."""
    kinds = {bool: "boolean", int: "integer", float: "float", list: "list", type(None): "null"}
    shown = kinds.get(type(value), type(value).__name__)
    return f"unexpected type: {shown}: a field is a type, in quotes if need be, or a map of fields"


def build_order(types: Mapping[str, Any], root: str) -> tuple[str, ...]:
    """Return the names of custom types so that each comes after those it uses; raises SpecError."""
    sorter: TopologicalSorter[str] = TopologicalSorter()
    for name, stated in types.items():
        used = []
        for path, text in _fields(stated, f"{root}.{name}"):
            try:
                found = parse_type(text)
                if found.is_custom and found.name not in types:
                    raise FieldError(unknown_type(found.name))
            except FieldError as wrong:
                raise SpecError(f"{path}: {wrong}") from None
            if found.is_custom:
                used.append(found.name)
        sorter.add(name, *used)
    try:
        return tuple(sorter.static_order())
    except CycleError as cycle:
        names: list[str] = cycle.args[1][::-1]
        raise SpecError(
            f"{root}.{names[0]}: cyclic dependency in type {names[0]}: {' -> '.join(names)}: "
            "a type cannot contain itself; use object where the depth is not known"
        ) from None


def _fields(stated: Any, path: str) -> Iterator[tuple[str, str]]:
    if isinstance(stated, str):
        yield path, stated
    elif isinstance(stated, Mapping):
        for name, inner in stated.items():
            yield from _fields(inner, f"{path}.{name}")
    else:
        raise SpecError(f"{path}: {unexpected(stated)}")
