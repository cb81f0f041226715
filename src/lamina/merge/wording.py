"""
Values in the words of Kubernetes' own messages.

A message that quotes a value quotes it the way Go prints one, and people
search for what they were shown.
"""

from __future__ import annotations

from typing import Any

_ESCAPES = {
    "\a": "\\a", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\v": "\\v",
    "\\": "\\\\", '"': '\\"',
}  # fmt: skip


def quoted(text: str) -> str:
    """Return a string in double quotes: what cannot be printed is escaped, everything else is kept."""
    if text.isprintable() and '"' not in text and "\\" not in text:
        return f'"{text}"'
    return f'"{"".join(map(_escaped, text))}"'


def _escaped(character: str) -> str:
    known = _ESCAPES.get(character)
    if known is not None:
        return known
    if character.isprintable():
        return character
    code = ord(character)
    if code < 0x80:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


_HTML = str.maketrans(
    {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"}
)


def html_escaped(json_text: str) -> str:
    """Return JSON the way Go writes it, which keeps it harmless inside a web page."""
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
    """Return what a message calls the type of a JSON value."""
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
    """Return what Go's JSON decoder calls a value that is not what it expected."""
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
