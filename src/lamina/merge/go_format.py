"""
Values as Go prints them in Kubernetes' messages.
"""

from __future__ import annotations

from typing import Any

_HTML = str.maketrans(
    {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"}
)


def html_escaped(json_text: str) -> str:
    """Return JSON as Go writes it, with HTML characters escaped."""
    return json_text.translate(_HTML)


def plain(value: Any) -> str:
    """Return a JSON value as a message shows it: `map[a:1 b:[x y]]`."""
    match value:
        case None:
            return "<nil>"
        case True | False:
            return "true" if value else "false"
        case float() if value.is_integer() and abs(value) < 1e21:
            return str(int(value))
        case dict():
            return f"map[{' '.join(f'{key}:{plain(value[key])}' for key in sorted(value))}]"
        case list():
            return f"[{' '.join(map(plain, value))}]"
        case _:
            return str(value)


def type_name(value: Any) -> str:
    """Return the Go type of a decoded JSON value, as messages name it."""
    match value:
        case None:
            return "<nil>"
        case bool():
            return "bool"
        case int():
            return "int64"
        case float():
            return "float64"
        case str():
            return "string"
        case list():
            return "[]interface {}"
        case _:
            return "map[string]interface {}"


def json_kind(value: Any) -> str:
    """Return what Go's JSON decoder calls a value of an unexpected type."""
    match value:
        case None:
            return "null"
        case bool():
            return "bool"
        case int() | float():
            return "number"
        case str():
            return "string"
        case list():
            return "array"
        case _:
            return "object"
