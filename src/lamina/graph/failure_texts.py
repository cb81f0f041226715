"""
What a message says of a failed evaluation, without the values that it read.

A message of CEL may quote a value, and that of a Secret is not to get into a condition. So of
expressions that read other objects only the kind of the failure is shown, and what is part of
the expression anyway.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from lamina.graph.graph import SCHEMA

if TYPE_CHECKING:
    from lamina.cel.errors import EvaluationError
    from lamina.graph.expressions import Expression

_WITH_TYPES = (
    # These name functions and types, no values.
    r"no such overload(?:: .*)?$",
    r"type conversion error from '[\w.]+' to '[\w.]+'",
    r"unsupported (?:index|key) type:? '?[\w.]+'?",
    r"unsupported comprehension range type: [\w.]+$",
    r"a (?:value|map with a key) of type [\w.]+ cannot be written as JSON",
)
_FIXED = (
    "no such key", "no such field", "no such attribute(s)", "no such attribute", "index out of bounds",
    "index out of range", "out of bounds", "division by zero", "modulus by zero", "unsigned integer overflow",
    "integer overflow", "timestamp overflow", "unknown time zone", "too large for an integer",
    "bytes cannot be written as JSON: encode it explicitly", "invalid UTF-8 in bytes, cannot convert to string",
    "URL parse error during conversion from string", "network address parse error during conversion from string",
    "parse error during conversion from string", "with zone value is not allowed", "IPv4-mapped IPv6 address",
    "error parsing regexp", "Illegal regex", "regular expression has more than one capturing group",
    "replacement string references group", "invalid replacement string", "failed to parse JSON",
    "failed to marshal JSON", "illegal base64 data", "optional.none() dereference", "is not optional",
    "cannot initialize optional", "Failed with repeated key", "insert failed", "unsupported index value",
    "invalid substring range", "cannot slice", "join: invalid input", "called on empty list",
    "argument must not be empty", "list elements must be comparable", "list elements must have the same type",
    "level must be non-negative", "error during formatting", "could not parse formatting clause",
    "unexpected end of string", "no formatting function", "NaN values cannot be ordered",
    "length must be positive", "length must be at most", "min must be less than max",
    "type must not be empty", "status must be one of True, False, Unknown", "of a condition is a string",
    "a wave has at least one item", "one of the arguments is the list of all items",
    "the other argument is an item that knows its index", "cannot convert value to integer",
    "expression is nested too deeply", "value is too large",
)  # fmt: skip
_KIND = re.compile("|".join((*(f"^{one}" for one in _WITH_TYPES), *map(re.escape, _FIXED))))
_ESCAPES = (("__dash__", "-"), ("__dot__", "."), ("__slash__", "/"))
_OTHER = "it cannot be evaluated with these values"


def failure_text(expression: Expression, error: EvaluationError) -> str:
    """Return what is shown of an error: its message, without values where other objects are read."""
    message = error.message
    if set(expression.variables) <= {SCHEMA}:
        return message
    found = _KIND.search(message)
    kind = found[0] if found is not None else _OTHER
    rest = message[found.end() :] if found is not None else message
    if found is not None and found.start() == 0 and (not rest or _is_written(rest, expression.text)):
        return message
    return f"{kind} ({_position(expression, error)}the value is not shown)"


def _is_written(rest: str, text: str) -> bool:
    """Say whether what follows the kind of an error is a name or a number that the expression has."""
    for escape, character in _ESCAPES:
        text = text.replace(escape, character)
    detail = rest.removeprefix(": ")
    return bool(detail) and re.search(rf"(?<![\w-]){re.escape(detail)}(?![\w-])", text) is not None


def _position(expression: Expression, error: EvaluationError) -> str:
    if error.at < 0:
        return ""
    line, column = expression.program.source.position(error.at)
    return f"line {line}, column {column + 1}; "
