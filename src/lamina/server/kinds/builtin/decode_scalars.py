"""
Decoders of scalar values, with Go's errors.

A decoder takes the value, the path of its parent and its label in it, and returns the
value as Go would encode it again.
"""

from __future__ import annotations

import base64
from collections.abc import Callable
from typing import Any, Final, TypeAlias

from lamina.objects.quantities import canonical_quantity, milli_quantity
from lamina.server.kinds.builtin.values import canonical_bytes

Path: TypeAlias = tuple[Any, Any]
Step: TypeAlias = Callable[[Any, Path, str | int], Any]

BOUNDS: Final = {"int32": (-(2**31), 2**31 - 1), "int64": (-(2**63), 2**63 - 1)}
_GO_NAMES: Final = {
    str: "string",
    bool: "bool",
    int: "number",
    float: "number",
    dict: "object",
    list: "array",
}


class TypeMismatch(ValueError):
    """
    A body does not fit its kind; the message is Go's.

    `fields` and `struct` are set while the exception propagates, from the innermost
    struct outwards; a type with its own decoding has its own message.
    """

    def __init__(self, given: str, wanted: str = "", message: str = "") -> None:
        super().__init__(given, wanted, message)
        self.given = given
        self.wanted = wanted
        self.message = message
        self.struct = ""
        self.fields: list[str] = []

    def inside(self, struct: str, names: tuple[str, ...]) -> None:
        """Add the struct and the field that the error occurred in."""
        self.struct = self.struct or struct
        self.fields[:0] = names

    def __str__(self) -> str:
        if self.message:
            return self.message
        if not self.struct:
            return f"json: cannot unmarshal {self.given} into Go value of type {self.wanted}"
        where = f"{self.struct}.{'.'.join(self.fields)}"
        return f"json: cannot unmarshal {self.given} into Go struct field {where} of type {self.wanted}"


def json_type(value: Any) -> str:
    """Return Go's name for a JSON type."""
    return _GO_NAMES.get(type(value), "null")


def scalar(wanted: type, shown: str) -> Step:
    def decode_scalar(value: Any, path: Path, label: str | int) -> Any:
        if type(value) is wanted:
            return value
        raise TypeMismatch(json_type(value), shown)

    return decode_scalar


def integer(least: int, most: int, shown: str) -> Step:
    def decode_integer(value: Any, path: Path, label: str | int) -> Any:
        if type(value) is int and least <= value <= most:
            return value
        raise TypeMismatch(f"number {value!r}" if type(value) in (int, float) else json_type(value), shown)

    return decode_integer


def decode_float(value: Any, path: Path, label: str | int) -> Any:
    if type(value) is float:
        # Go prints a whole number without a point.
        return int(value) if value.is_integer() and abs(value) < 1e21 else value
    if type(value) is int:
        return value
    raise TypeMismatch(json_type(value), "float64")


_byte: Final = integer(0, 255, "uint8")
_int32: Final = integer(*BOUNDS["int32"], "int32")


def decode_bytes(value: Any, path: Path, label: str | int) -> Any:
    if type(value) is str:
        try:
            return canonical_bytes(value)
        except ValueError as error:
            raise TypeMismatch("", "", str(error)) from None
    if type(value) is list:
        # Go also accepts bytes as a list of numbers.
        return base64.b64encode(bytes(_byte(one or 0, path, label) for one in value)).decode()
    raise TypeMismatch(json_type(value), "[]uint8")


def decode_amount(value: Any, path: Path, label: str | int) -> Any:
    """Decode a resource quantity, which is rounded up to thousandths."""
    try:
        return milli_quantity(value if type(value) is str else canonical_quantity(value))
    except ValueError as error:
        raise TypeMismatch("", "", str(error)) from None


def decode_quantity(value: Any, path: Path, label: str | int) -> Any:
    try:
        return canonical_quantity(value)
    except ValueError as error:
        raise TypeMismatch("", "", str(error)) from None


def time(read: Callable[[str], str | None]) -> Step:
    def decode_time(value: Any, path: Path, label: str | int) -> Any:
        if type(value) is not str:
            raise TypeMismatch(json_type(value), "string")
        try:
            return read(value)
        except ValueError as error:
            raise TypeMismatch("", "", str(error)) from None

    return decode_time


def int_or_string(value: Any, path: Path, label: str | int) -> Any:
    return value if type(value) is str else _int32(value, path, label)


def unchanged(value: Any, path: Path, label: str | int) -> Any:
    return value
