"""
`'…'.format([…])`, in its two versions.

That of the specification prints plain numbers. Kubernetes has an older version, which
prints localized doubles (`1,052.033`, `1.052033×10⁰³`) and quotes the items of lists
and maps. Both have the same clauses: `%s %d %f %e %b %x %X %o %%`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final, Protocol

from lamina.cel.errors import EvaluationError
from lamina.cel.numbers import UInt, fixed, scientific, shortest
from lamina.cel.times import Duration, Timestamp
from lamina.cel.values import TypeValue, Value, type_of
from lamina.objects.go_quote import format_float, quoted

_PRECISION: Final = 6
# Go refuses a larger one too, which would only use memory.
_MOST_PRECISE: Final = 1_000_000
_SUPERSCRIPT: Final = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


class Style(Protocol):
    """The text of a value for each clause."""

    def string(self, value: Value) -> str: ...
    def decimal(self, value: Value) -> str: ...
    def fixed(self, value: Value, precision: int | None) -> str: ...
    def scientific(self, value: Value, precision: int | None) -> str: ...
    def binary(self, value: Value) -> str: ...
    def octal(self, value: Value) -> str: ...
    def hexadecimal(self, value: Value, upper: bool) -> str: ...


def format_with(style: Style, text: str, values: list[Any]) -> str:
    """Return a text with its clauses replaced by the values, in order."""
    made: list[str] = []
    place, taken = 0, 0
    while True:
        percent = text.find("%", place)
        if percent < 0:
            made.append(text[place:])
            return "".join(made)
        made.append(text[place:percent])
        if text[percent + 1 : percent + 2] == "%":
            made.append("%")
            place = percent + 2
            continue
        if taken >= len(values):
            raise EvaluationError(f"index {taken} out of range")
        if percent + 1 >= len(text):
            raise EvaluationError("unexpected end of string")
        place, clause, precision = read_clause(text, percent + 1)
        made.append(_shown(style, clause, precision, values[taken]))
        taken += 1


def read_clause(text: str, place: int) -> tuple[int, str, int | None]:
    """Return the end of a clause, its letter and its precision; `place` is after the percent sign."""
    precision: int | None = None
    if text[place] == ".":
        end = place + 1
        while end < len(text) and text[end] in "0123456789":
            end += 1
        if end >= len(text):
            raise _unreadable("error while parsing precision: could not find end of precision specifier")
        digits = text[place + 1 : end]
        if not digits or len(digits) > 18:
            problem = "value out of range" if digits else "invalid syntax"
            raise _unreadable(
                "error while parsing precision: error while converting precision to integer: "
                f'strconv.Atoi: parsing "{digits}": {problem}'
            )
        precision = int(digits)
        place = end
    letter = text[place]
    if letter not in "sdfebxXo":
        # Go reads one byte here, and prints it as a character.
        shown = chr(letter.encode("utf-8", "replace")[0])
        raise _unreadable(f'unrecognized formatting clause "{shown}"')
    if precision is not None and precision > _MOST_PRECISE:
        raise _unreadable(f"precision {precision} is too large")
    return place + 1, letter, precision


def _unreadable(why: str) -> EvaluationError:
    return EvaluationError(f"could not parse formatting clause: {why}")


def _shown(style: Style, clause: str, precision: int | None, value: Value) -> str:
    try:
        match clause:
            case "s":
                return style.string(value)
            case "d":
                return style.decimal(value)
            case "f":
                return style.fixed(value, precision)
            case "e":
                return style.scientific(value, precision)
            case "b":
                return style.binary(value)
            case "o":
                return style.octal(value)
            case _:
                return style.hexadecimal(value, clause == "X")
    except RecursionError:
        raise EvaluationError("error during formatting: nested too deeply") from None
    except EvaluationError as error:
        raise EvaluationError(f"error during formatting: {error.message}") from None


_STRING_CLAUSE: Final = (
    "string clause can only be used on strings, bools, bytes, ints, doubles, maps, lists, types, durations, and "
    "timestamps"
)


def _given(message: str, value: Value) -> EvaluationError:
    return EvaluationError(f"{message}, was given {type_of(value)}")


def _is_whole(value: Value) -> bool:
    return type(value) is int or type(value) is UInt


def _not_finite(value: float) -> str | None:
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    return None


def _in_base(value: Value, code: str, message: str) -> str:
    if _is_whole(value):
        return format(int(value), code)
    raise _given(message, value)


def _hexadecimal(value: Value, upper: bool, message: str) -> str:
    if isinstance(value, (str, bytes)):
        shown = (value.encode("utf-8", "replace") if isinstance(value, str) else value).hex()
        return shown.upper() if upper else shown
    return _in_base(value, "X" if upper else "x", message)


class Plain:
    """The specification's version."""

    def string(self, value: Value) -> str:
        if isinstance(value, bool):
            return "true" if value else "false"
        if value is None:
            return "null"
        if isinstance(value, str):
            return value
        if isinstance(value, bytes):
            return value.decode("utf-8", "replace")
        if isinstance(value, int):
            return str(int(value))
        if isinstance(value, float):
            return _not_finite(value) or _signed_zero(value) or shortest(value)
        if isinstance(value, (Duration, TypeValue)):
            return str(value)
        if isinstance(value, Timestamp):
            return str(value.utc())
        if isinstance(value, list):
            return f"[{', '.join(map(self.string, value))}]"
        if isinstance(value, dict):
            pairs = sorted((self.string(key), self.string(item)) for key, item in value.items())
            return "{" + ", ".join(f"{key}: {item}" for key, item in pairs) + "}"
        raise _given(_STRING_CLAUSE, value)

    def decimal(self, value: Value) -> str:
        if _is_whole(value):
            return str(int(value))
        if isinstance(value, float):
            return _not_finite(value) or _signed_zero(value) or shortest(value)
        raise _given("decimal clause can only be used on ints, uints, and doubles", value)

    def fixed(self, value: Value, precision: int | None) -> str:
        return self._number(value, precision, fixed, "fixed-point")

    def scientific(self, value: Value, precision: int | None) -> str:
        return self._number(value, precision, scientific, "scientific")

    def _number(
        self, value: Value, precision: int | None, show: Callable[[float, int], str], clause: str
    ) -> str:
        digits = _PRECISION if precision is None else precision
        if isinstance(value, float):
            return _not_finite(value) or show(value, digits)
        if _is_whole(value):
            return show(float(value), digits)
        raise _given(f"{clause} clause can only be used on ints, uints, and doubles", value)

    def binary(self, value: Value) -> str:
        if isinstance(value, bool):
            return "1" if value else "0"
        return _in_base(value, "b", "only ints, uints, and bools can be formatted as binary")

    def octal(self, value: Value) -> str:
        return _in_base(value, "o", "octal clause can only be used on ints and uints")

    def hexadecimal(self, value: Value, upper: bool) -> str:
        return _hexadecimal(value, upper, "only ints, uints, bytes, and strings can be formatted as hex")


def _signed_zero(value: float) -> str | None:
    return None if value else format_float(value)


class Localized:
    """Kubernetes' version: localized numbers, and quoted nested values."""

    def string(self, value: Value) -> str:
        if isinstance(value, list):
            return f"[{', '.join(map(self._nested, value))}]"
        if isinstance(value, dict):
            pairs = sorted((self._key(key), self._nested(item)) for key, item in value.items())
            return "{" + ", ".join(f"{key}:{item}" for key, item in pairs) + "}"
        if value is None:
            return "null"
        if isinstance(value, bool):
            return "true" if value else "false"
        if isinstance(value, bytes):
            try:
                return value.decode("utf-8")
            except UnicodeDecodeError:
                problem = "invalid UTF-8 in bytes, cannot convert to string"
                raise EvaluationError(f'could not convert argument "{problem}" to string') from None
        if isinstance(value, float):
            return format_float(value)
        if isinstance(value, int):
            return str(int(value))
        if isinstance(value, (str, Duration, Timestamp, TypeValue)):
            return str(value)
        raise _given(_STRING_CLAUSE, value)

    def _nested(self, value: Value) -> str:
        if isinstance(value, float):
            return f'"{_go_infinity(value)}"' if not math.isfinite(value) else fixed(value, _PRECISION)
        if isinstance(value, Timestamp):
            return f'timestamp("{value}")'
        if isinstance(value, Duration):
            return f'duration("{value}")'
        if not isinstance(value, (str, bytes, bool, int, list, dict, TypeValue)) and value is not None:
            raise EvaluationError(f"no formatting function for {type_of(value)}")
        shown = self.string(value)
        if isinstance(value, str):
            return quoted(shown)
        return f"b{quoted(shown)}" if isinstance(value, bytes) else shown

    def _key(self, value: Value) -> str:
        if isinstance(value, (str, int)):
            return self._nested(value)
        raise EvaluationError(f"no formatting function for map key of type {type_of(value)}")

    def decimal(self, value: Value) -> str:
        return _in_base(value, "d", "decimal clause can only be used on integers")

    def fixed(self, value: Value, precision: int | None) -> str:
        number = self._double(value, "fixed-point")
        if not math.isfinite(number):
            return _symbol(number)
        return f"{number:,.{_PRECISION if precision is None else precision}f}"

    def scientific(self, value: Value, precision: int | None) -> str:
        number = self._double(value, "scientific")
        # The precision is used as the width; there are always six digits.
        width = _PRECISION if precision is None else precision
        if not math.isfinite(number):
            return _symbol(number).rjust(width)
        digits, _, exponent = scientific(number, _PRECISION).partition("e")
        power = f"{'-' if int(exponent) < 0 else ''}{abs(int(exponent)):02d}".translate(_SUPERSCRIPT)
        return f"{digits}×10{power}".rjust(width)

    def _double(self, value: Value, clause: str) -> float:
        if isinstance(value, float):
            return value
        if value in ("NaN", "Infinity", "-Infinity"):
            return float(value)
        raise _given(f"{clause} clause can only be used on doubles", value)

    def binary(self, value: Value) -> str:
        if isinstance(value, bool):
            return "1" if value else "0"
        return _in_base(value, "b", "only integers and bools can be formatted as binary")

    def octal(self, value: Value) -> str:
        return _in_base(value, "o", "octal clause can only be used on integers")

    def hexadecimal(self, value: Value, upper: bool) -> str:
        return _hexadecimal(value, upper, "only integers, byte buffers, and strings can be formatted as hex")


def _go_infinity(value: float) -> str:
    return "NaN" if math.isnan(value) else "+Inf" if value > 0 else "-Inf"


def _symbol(value: float) -> str:
    return "NaN" if math.isnan(value) else "∞" if value > 0 else "-∞"


PLAIN: Final[Style] = Plain()
LOCALIZED: Final[Style] = Localized()
