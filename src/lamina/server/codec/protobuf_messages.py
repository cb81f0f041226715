"""
The protobuf messages of built-in kinds, ready for decoding.

The table has a line per message, `1 name! string;2 ports []ContainerPort`: number, JSON
name and type of each field. The flag after a name says what happens to a zero: `?` and
`!` keep it, `!` also adds it if nothing was sent, `^` has no JSON name because its fields
are inlined into the parent. Without a flag a zero is dropped. A line is parsed when the
first message of its kind arrives.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import IntEnum
from functools import cache
from typing import Any, Final, NamedTuple

from lamina.server.codec.protobuf_forms import FORMS, RAW, Form
from lamina.server.kinds.builtin.tables import table

VARINT, FIXED64, SIZED, FIXED32 = 0, 1, 2, 5


class Op(IntEnum):
    """How a field is decoded. Repeated ones end in S."""

    TEXT, TEXTS, MESSAGE, MESSAGES, INLINED, VALUE, VALUES, MAP, NUMBER, NUMBERS = range(10)


class ValueType(IntEnum):
    """How bytes become a value that is not simply text."""

    TEXT, BASE64, SPAN, JSON, MESSAGE, FORM = range(6)


class Value(NamedTuple):
    """A length-delimited value: a nested message, possibly with its own JSON form."""

    sort: ValueType
    message: Message | None = None
    form: Form | None = None
    zero: Any = None


class Field(NamedTuple):
    """
    One field in one wire type.

    `what` is a Message, a Value, or the function that converts a varint, depending on
    `op`. `kept` means that a zero is kept.
    """

    op: Op
    name: str
    what: Any
    kept: bool = False
    zero: Any = None


class Message:
    """
    The fields of a message by their tag, and those that JSON always has.

    It is created empty and filled on first use, because a message may contain itself.
    """

    __slots__ = ("always", "fields", "filled", "name", "numbers")

    def __init__(self, name: str, fields: Mapping[int, Field] | None = None) -> None:
        self.name = name
        self.fields = {number << 3 | SIZED: field for number, field in (fields or {}).items()}
        self.numbers = set(fields or ())
        self.always: list[Field] = []
        self.filled = fields is not None

    def fill(self) -> None:
        """Parse the line of the table."""
        for entry in filter(None, table("messages")["messages"][self.name].split(";")):
            number, name, written = entry.split(" ")
            flag = name[-1] if name[-1] in "?!^" else ""
            self._add(int(number), name.removesuffix(flag), flag, written)
        self.filled = True

    def _add(self, number: int, name: str, flag: str, written: str) -> None:
        self.numbers.add(number)
        tag = number << 3
        if written in _NUMBERS:
            wire, make = _NUMBERS[written]
            field = Field(Op.NUMBER, name, make, flag != "", make(0))
            self.fields[tag | wire] = field
        elif written.removeprefix("[]") in _NUMBERS:
            wire, make = _NUMBERS[written.removeprefix("[]")]
            field = Field(Op.NUMBERS, name, make)
            self.fields[tag | wire] = self.fields[tag | SIZED] = field
        else:
            field = self._sized(name, flag, written)
            self.fields[tag | SIZED] = field
        if flag == "!":
            self.always.append(field)

    def _sized(self, name: str, flag: str, written: str) -> Field:
        if written.startswith("map<string,"):
            return Field(Op.MAP, name, self._value(written.removeprefix("map<string,").removesuffix(">")))
        if written == "string":
            return Field(Op.TEXT, name, None, flag != "", "")
        if written == "[]string":
            return Field(Op.TEXTS, name, None)
        many = written.startswith("[]")
        value = self._value(written.removeprefix("[]"))
        if value.sort is not ValueType.MESSAGE:
            return Field(
                Op.VALUES if many else Op.VALUE, name, value, flag != "", None if many else value.zero
            )
        op = Op.MESSAGES if many else Op.INLINED if flag == "^" else Op.MESSAGE
        return Field(op, name, value.message, flag != "")

    def _value(self, written: str) -> Value:
        if written == "string":
            return Value(ValueType.TEXT, zero="")
        if written == "bytes":
            return Value(ValueType.BASE64, zero="")
        short = written.rpartition(".")[2]
        if short in RAW:
            return Value(ValueType.JSON)
        # Within its own package a message is referred to by its short name.
        mentioned = message(written if "." in written else f"{self.name.rpartition('.')[0]}.{written}")
        if form := FORMS.get(short):
            return Value(ValueType.FORM, mentioned, form, form.zero)
        return Value(ValueType.MESSAGE, mentioned)


@cache
def message(name: str) -> Message:
    """Return a message by the full name of its definition; it may have to be filled first."""
    return Message(name)


def message_of(api_version: str, kind: str) -> Message | None:
    """
    Return the message of a kind that a request may carry, None if there is none.

    DeleteOptions and similar kinds are accepted in every group version, because Go
    registers them with each.
    """
    tables = table("messages")
    name = tables["kinds"].get(api_version, {}).get(kind) or tables["options"].get(kind)
    return message(name) if name else None


def _int32(value: int) -> int:
    return ((value & 0xFFFFFFFF) ^ 0x80000000) - 0x80000000


def _int64(value: int) -> int:
    return (value ^ (1 << 63)) - (1 << 63)


_NUMBERS: Final[Mapping[str, tuple[int, Callable[[int], Any]]]] = {
    "int32": (VARINT, _int32),
    "int64": (VARINT, _int64),
    "bool": (VARINT, bool),
    "double": (FIXED64, int),
}

SPAN: Final = Field(Op.VALUE, "raw", Value(ValueType.SPAN), kept=True)
"""A field of which only the position in the body is needed."""

WRAPPED: Final = Message("wrapped", {1: SPAN})
ENTRY: Final = Message("entry", {1: SPAN, 2: SPAN})
ENVELOPE: Final = Message(
    "Unknown",
    {
        1: Field(
            Op.MESSAGE,
            "type",
            Message("TypeMeta", {1: Field(Op.TEXT, "api_version", None), 2: Field(Op.TEXT, "kind", None)}),
        ),
        2: SPAN,
    },
)
"""The envelope of every body."""
