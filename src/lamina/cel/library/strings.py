"""The strings extension: search, substrings, case, join, format. Indexes count characters."""

from __future__ import annotations

from functools import partial
from typing import Any, Final

from lamina.cel.declarations import Library
from lamina.cel.errors import EvaluationError
from lamina.cel.library.formatting import LOCALIZED, PLAIN, Style, format_with
from lamina.cel.library.signature import Definition, method, to_functions
from lamina.cel.library.signature import function as plain_function
from lamina.cel.values import shown

_LOWER: Final = str.maketrans("ABCDEFGHIJKLMNOPQRSTUVWXYZ", "abcdefghijklmnopqrstuvwxyz")
_UPPER: Final = str.maketrans("abcdefghijklmnopqrstuvwxyz", "ABCDEFGHIJKLMNOPQRSTUVWXYZ")
_SPACE: Final = "\t\n\v\f\r \x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u2028\u2029\u202f\u205f\u3000"
_ESCAPED: Final = str.maketrans(
    {
        "\a": "\\a",
        "\b": "\\b",
        "\f": "\\f",
        "\n": "\\n",
        "\r": "\\r",
        "\t": "\\t",
        "\v": "\\v",
        "\\": "\\\\",
        '"': '\\"',
    }
)


def _out_of_range(place: int) -> EvaluationError:
    return EvaluationError(f"index out of range: {place}")


def char_at(text: str, place: int) -> str:
    if not 0 <= place <= len(text):
        raise _out_of_range(place)
    return text[place : place + 1]


def index_of(text: str, part: str, start: int = 0) -> int:
    if not part:
        return start
    if start < 0:
        raise _out_of_range(start)
    return text.find(part, start)


def last_index_of(text: str, part: str, start: int | None = None) -> int:
    if start is None:
        return text.rfind(part)
    if not part:
        return start
    if start < 0:
        raise _out_of_range(start)
    if start >= len(text):
        return -1
    return text.rfind(part, 0, start + len(part))


def index_within(text: str, part: str, start: int = 0) -> int:
    """Return the same as `index_of`; a start outside of the text is an error."""
    if not 0 <= start <= len(text):
        raise _out_of_range(start)
    return index_of(text, part, start)


def last_index_within(text: str, part: str, start: int | None = None) -> int:
    """Return the same as `last_index_of`; a start outside of the text is an error."""
    if start is not None and not 0 <= start <= len(text):
        raise _out_of_range(start)
    return last_index_of(text, part, start)


def lower_ascii(text: str) -> str:
    return text.translate(_LOWER)


def upper_ascii(text: str) -> str:
    return text.translate(_UPPER)


def replace(text: str, old: str, new: str, limit: int = -1) -> str:
    return text.replace(old, new, max(limit, -1) if limit < len(text) + 1 else -1)


def split(text: str, separator: str, limit: int = -1) -> list[str]:
    if limit == 0:
        return []
    if separator:
        return text.split(separator, limit - 1 if 0 < limit <= len(text) else -1)
    if 0 < limit < len(text):
        return [*text[: limit - 1], text[limit - 1 :]]
    return list(text)


def substring(text: str, start: int, end: int | None = None) -> str:
    if end is None:
        if not 0 <= start <= len(text):
            raise _out_of_range(start)
        return text[start:]
    if start > end:
        raise EvaluationError(f"invalid substring range. start: {start}, end: {end}")
    for place in (start, end):
        if not 0 <= place <= len(text):
            raise _out_of_range(place)
    return text[start:end]


def trim(text: str) -> str:
    return text.strip(_SPACE)


def reverse(text: str) -> str:
    return text[::-1]


def join(parts: list[Any], separator: str = "") -> str:
    for part in parts:
        if not isinstance(part, str):
            raise EvaluationError(f"join: invalid input: {shown(part)}")
    return separator.join(parts)


def quote(text: str) -> str:
    return f'"{text.encode("utf-8", "replace").decode().translate(_ESCAPED) if not text.isascii() else text.translate(_ESCAPED)}"'


_FIRST: Final = [
    method("charAt", "string_char_at_int", "string, int -> string", char_at),
    method("indexOf", "string_index_of_string", "string, string -> int", index_of),
    method("indexOf", "string_index_of_string_int", "string, string, int -> int", index_of),
    method("lastIndexOf", "string_last_index_of_string", "string, string -> int", last_index_of),
    method("lastIndexOf", "string_last_index_of_string_int", "string, string, int -> int", last_index_of),
    method("lowerAscii", "string_lower_ascii", "string -> string", lower_ascii),
    method("upperAscii", "string_upper_ascii", "string -> string", upper_ascii),
    method("replace", "string_replace_string_string", "string, string, string -> string", replace),
    method("replace", "string_replace_string_string_int", "string, string, string, int -> string", replace),
    method("split", "string_split_string", "string, string -> list(string)", split),
    method("split", "string_split_string_int", "string, string, int -> list(string)", split),
    method("substring", "string_substring_int", "string, int -> string", substring),
    method("substring", "string_substring_int_int", "string, int, int -> string", substring),
    method("trim", "string_trim", "string -> string", trim),
    method("join", "list_join", "list(string) -> string", join),
    method("join", "list_join_string", "list(string), string -> string", join),
    plain_function("strings.quote", "strings_quote", "string -> string", quote),
]
_REVERSE: Final = method("reverse", "string_reverse", "string -> string", reverse)


def _format(style: Style) -> Definition:
    return method("format", "string_format", "string, list(dyn) -> string", partial(format_with, style))


_WITHIN: Final = [
    method("indexOf", "string_index_of_string_int", "string, string, int -> int", index_within),
    method("lastIndexOf", "string_last_index_of_string_int", "string, string, int -> int", last_index_within),
]

STRINGS: Final = Library(
    name="strings",
    functions=to_functions(
        [
            *(one for one in _FIRST if one.overload.id not in {within.overload.id for within in _WITHIN}),
            *_WITHIN,
            _REVERSE,
            _format(PLAIN),
        ]
    ),
)
"""All functions, with the specification's `format`."""

STRINGS_2: Final = Library(name="strings", functions=to_functions([*_FIRST, _format(LOCALIZED)]))
"""The version of Kubernetes."""

STRINGS_3: Final = Library(name="strings", functions=to_functions([*_FIRST, _REVERSE, _format(LOCALIZED)]))
"""The version of resource graphs: Kubernetes' and `reverse`."""
