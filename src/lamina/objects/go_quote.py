"""How Kubernetes prints values in its messages: strings quoted as in Go, everything else as JSON."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Any

import orjson

_SHORT = {plain: f"\\{letter}" for plain, letter in zip('\a\b\f\n\r\t\v\\"', 'abfnrtv\\"', strict=True)}


def quoted(text: str) -> str:
    """Return a text in double quotes, with unprintable characters escaped."""
    if text.isprintable() and '"' not in text and "\\" not in text:
        return f'"{text}"'
    return f'"{"".join(map(_escaped, text))}"'


def is_printable(character: str) -> bool:
    """Say whether a character is printable; of all white space only the ASCII space is."""
    return character == " " or (character.isprintable() and not character.isspace())


def _escaped(character: str) -> str:
    if short := _SHORT.get(character):
        return short
    if is_printable(character):
        return character
    code = ord(character)
    if code < 0x80:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def shown(value: Any) -> str:
    """Return a value as a field error shows it."""
    match value:
        case str():
            return quoted(value)
        case bool():
            return "true" if value else "false"
        case int():
            return str(value)
        case float():
            return format_float(value)
        case _:
            return json_text(value)


def json_text(value: Any) -> str:
    """Return compact JSON as Go writes it, with HTML characters escaped."""
    text = orjson.dumps(value, option=orjson.OPT_NON_STR_KEYS, default=str).decode()
    for character in "<>&\u2028\u2029":
        if character in text:
            text = text.replace(character, f"\\u{ord(character):04x}")
    return text


def format_float(value: float) -> str:
    """Return a float in the fewest digits, with an exponent from a million on, as Go's %v does."""
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    if math.isnan(value):
        return "NaN"
    if value == 0:
        return "-0" if math.copysign(1, value) < 0 else "0"
    exact = Decimal(repr(value))
    exponent = exact.adjusted()
    if -4 <= exponent < 6:
        plain = format(exact, "f")
        return plain.rstrip("0").rstrip(".") if "." in plain else plain
    digits = "".join(map(str, exact.normalize().as_tuple().digits))
    fraction = f".{digits[1:]}" if len(digits) > 1 else ""
    sign = "-" if value < 0 else ""
    return f"{sign}{digits[0]}{fraction}e{'-' if exponent < 0 else '+'}{abs(exponent):02d}"
