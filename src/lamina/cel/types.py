"""
The static types of expressions.

A type is a kind, a name and parameters, by which types are compared; an object type is
compared by its name only.

`str()` of a type is its text in cel-go's messages: `list(string)`, `map(string, dyn)`,
`wrapper(int)`, `optional_type(int)`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import Any, Final


class Kind(StrEnum):
    """The kinds of types."""

    ANY = "any"
    BOOL = "bool"
    BYTES = "bytes"
    DOUBLE = "double"
    DURATION = "duration"
    DYN = "dyn"
    ERROR = "error"
    INT = "int"
    LIST = "list"
    MAP = "map"
    NULL = "null"
    OPAQUE = "opaque"
    STRING = "string"
    OBJECT = "object"
    TIMESTAMP = "timestamp"
    TYPE = "type"
    PARAM = "param"
    UINT = "uint"


# Module globals, because an attribute lookup in an enum takes as long as a call.
_ANY, _DYN, _ERROR, _OBJECT, _OPAQUE, _PARAM = (
    *(Kind.ANY, Kind.DYN, Kind.ERROR, Kind.OBJECT, Kind.OPAQUE, Kind.PARAM),
)
_SPELLED: Final = {
    Kind.ANY: "any",
    Kind.DURATION: "duration",
    Kind.ERROR: "!error!",
    Kind.NULL: "null",
    Kind.TIMESTAMP: "timestamp",
}


_LONGEST_CODE: Final = 48
_UNCODED: Final = " " * _LONGEST_CODE


def _code(kind: Kind, name: str, nullable: bool) -> str:
    if kind is _OBJECT or kind is _ERROR:
        return ""
    # Names of libraries' types cannot equal those of the language.
    return f"{name}?" if nullable else f"@{name}" if kind is _OPAQUE else name


class Type:
    """
    An immutable type. `name` is its run-time name, as `type(x)` prints it.

    `nullable` is true for wrapper types: a primitive, or null. `code` identifies
    a type without type parameters and objects; it is empty for others and for
    long ones.
    """

    __slots__ = ("code", "is_dyn", "is_optional", "kind", "name", "nullable", "params")

    def __init__(self, kind: Kind, name: str, params: tuple[Type, ...] = (), nullable: bool = False) -> None:
        self.kind = kind
        self.name = name
        self.params = params
        self.nullable = nullable
        self.is_dyn = kind is _DYN or kind is _ANY
        self.is_optional = kind is _OPAQUE and name == "optional_type"
        if not params:
            self.code = "" if kind is _PARAM else _code(kind, name, nullable)
        elif not (inner := params[0].code):
            self.code = ""
        else:
            if len(params) > 1:
                inner = ",".join([param.code or _UNCODED for param in params])
            code = f"{name}({inner})"
            self.code = code if len(code) < _LONGEST_CODE else ""

    def __eq__(self, other: object) -> bool:
        return self is other or (
            isinstance(other, Type)
            and self.kind is other.kind
            and self.name == other.name
            and self.params == other.params
            and self.nullable is other.nullable
        )

    def __hash__(self) -> int:
        return hash((self.name, self.params))

    def __repr__(self) -> str:
        return f"Type({self})"

    def __str__(self) -> str:
        if self.kind in _SPELLED:
            return _SPELLED[self.kind]
        name = f"wrapper({self.name})" if self.nullable else self.name
        return f"{name}({', '.join(map(str, self.params))})" if self.params else name


class ListType(Type):
    """
    A list with `x-kubernetes-list-type` "set" or "map" (`listing`), with its `keys`.

    For the checker it is a list like any other. The data adapter converts it to
    a value with Kubernetes' equality and concatenation.
    """

    __slots__ = ("keys", "listing")

    keys: tuple[str, ...]
    listing: str

    def __init__(self, element: Type, listing: str, keys: tuple[str, ...] = ()) -> None:
        super().__init__(Kind.LIST, "list", (element,))
        self.code = ""
        self.listing = listing
        self.keys = keys


@dataclass(frozen=True, slots=True)
class Field:
    """
    One field of an object type.

    `default` is its default value, if it has one. `key` is its name in the data,
    where that differs from its escaped identifier. A `nullable` field that is null
    is absent for expressions.
    """

    type: Type
    required: bool = False
    default: Any = None
    key: str | None = None
    nullable: bool = False


_NO_FIELDS: Final[Mapping[str, Field]] = MappingProxyType({})


class ObjectType(Type):
    """
    A named type with declared fields.

    With `preserves_unknown`, an undeclared field is dyn; otherwise it is an
    error.
    """

    __slots__ = ("fields", "preserves_unknown")

    fields: Mapping[str, Field]
    preserves_unknown: bool

    def __init__(
        self, name: str, fields: Mapping[str, Field] = _NO_FIELDS, preserves_unknown: bool = False
    ) -> None:
        super().__init__(Kind.OBJECT, name)
        self.fields = fields
        self.preserves_unknown = preserves_unknown

    @property
    def is_closed(self) -> bool:
        """Say whether it has no declared fields, as the types of libraries."""
        return self.fields is _NO_FIELDS and not self.preserves_unknown

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ObjectType) and other.name == self.name

    def __hash__(self) -> int:
        return hash((Kind.OBJECT, self.name))

    def __repr__(self) -> str:
        return f"ObjectType({self.name!r})"


ANY: Final = Type(Kind.ANY, "google.protobuf.Any")
BOOL: Final = Type(Kind.BOOL, "bool")
BYTES: Final = Type(Kind.BYTES, "bytes")
DOUBLE: Final = Type(Kind.DOUBLE, "double")
DURATION: Final = Type(Kind.DURATION, "google.protobuf.Duration")
DYN: Final = Type(Kind.DYN, "dyn")
ERROR: Final = Type(Kind.ERROR, "error")
INT: Final = Type(Kind.INT, "int")
NULL: Final = Type(Kind.NULL, "null_type")
STRING: Final = Type(Kind.STRING, "string")
TIMESTAMP: Final = Type(Kind.TIMESTAMP, "google.protobuf.Timestamp")
TYPE: Final = Type(Kind.TYPE, "type")
UINT: Final = Type(Kind.UINT, "uint")


_LISTS: Final[Mapping[str, Type]] = {
    element.code: Type(Kind.LIST, "list", (element,))
    for element in (BOOL, BYTES, DOUBLE, DURATION, DYN, INT, NULL, STRING, TIMESTAMP, UINT)
}
"""Lists of primitive types by their code, because most loops need one of them."""


def list_of(element: Type) -> Type:
    return _LISTS.get(element.code) or Type(Kind.LIST, "list", (element,))


def map_of(key: Type, value: Type) -> Type:
    return Type(Kind.MAP, "map", (key, value))


def optional_of(value: Type) -> Type:
    return Type(Kind.OPAQUE, "optional_type", (value,))


def type_of(value: Type) -> Type:
    """Return the type of a type: `type(int)`."""
    return Type(Kind.TYPE, "type", (value,))


def param(name: str) -> Type:
    """Return a type parameter for signatures of functions."""
    return Type(Kind.PARAM, name)


def opaque(name: str, *params: Type) -> Type:
    """Return a named opaque type."""
    return Type(Kind.OPAQUE, name, params)


def wrapper(primitive: Type) -> Type:
    """Return a wrapper type: a primitive or null."""
    return Type(primitive.kind, primitive.name, primitive.params, nullable=True)


LIST: Final = list_of(DYN)
MAP: Final = map_of(DYN, DYN)
