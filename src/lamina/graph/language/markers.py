"""
The lexer of markers: `default="x" minLength=1`.

It reads character by character, and is lenient where upstream's is, because manifests
depend on it: white space ends a marker whose key is complete and is skipped elsewhere,
so `required default=1` is one marker with an unknown key, and so is all that follows a
second `|`.
"""

from __future__ import annotations

from typing import Final, NamedTuple

SPACES: Final = (
    "\t\n\v\f\r \x85\xa0\u1680" + "".join(map(chr, range(0x2000, 0x200B))) + "\u2028\u2029\u202f\u205f\u3000"
)
"""White space as in Go, which does not count the separators U+001C to U+001F."""

KEYS: Final = frozenset({
    "required", "default", "description", "minimum", "maximum", "validation", "enum", "immutable", "pattern",
    "uniqueItems", "minLength", "maxLength", "minItems", "maxItems", "listType", "listMapKey",
})  # fmt: skip


class FieldError(ValueError):
    """What is wrong with the text of one field; the caller adds the path."""


class Marker(NamedTuple):
    key: str
    value: str


def read_markers(text: str) -> list[Marker]:
    """Return the markers of a field, in order; raises FieldError."""
    found: list[Marker] = []
    key: str | None = None
    buffer: list[str] = []
    in_quotes = escaped = False
    depth = 0
    for char in text:
        outside = not in_quotes and depth == 0
        if char == "=" and key is None and outside:
            key = _key("".join(buffer))
            buffer.clear()
            continue
        if char in SPACES and outside:
            if key is not None:
                found.append(Marker(key, _value("".join(buffer))))
                key = None
                buffer.clear()
            continue
        buffer.append(char)
        if char == '"' and not escaped:
            in_quotes = not in_quotes
        elif in_quotes:
            escaped = char == "\\" and not escaped
        elif char in "{[":
            depth += 1
        elif char in "}]":
            depth -= 1
            if depth < 0:
                raise FieldError(
                    f"unmatched closing bracket/brace {char!r}: put a value with brackets in double quotes"
                )
    if key is None:
        raise FieldError(
            f"marker key '{''.join(buffer)}' without a value: "
            "markers are key=value, without blanks around '=', and text with blanks is in double quotes"
        )
    if in_quotes:
        raise FieldError(
            f"unclosed quote in the value of {key}: end it with '\"', and write \\\" inside of it"
        )
    if depth:
        raise FieldError(f"unclosed bracket/brace in the value of {key}")
    return [*found, Marker(key, _value("".join(buffer)))]


def _key(text: str) -> str:
    key = text.strip(SPACES)
    if not key:
        raise FieldError("empty marker key: markers are key=value, without blanks around '='")
    if key in KEYS:
        return key
    if "|" in key:
        remedy = "a field has one '|', and blanks between its markers"
    else:
        remedy = f"the markers are {', '.join(sorted(KEYS))}"
    raise FieldError(f'invalid marker key "{key}": unknown marker: {key}: {remedy}')


def _value(text: str) -> str:
    """Return a value without its quotes; a backslash stays unless it precedes a quote or a backslash."""
    if len(text) < 2 or not (text.startswith('"') and text.endswith('"')):
        return text.strip(SPACES)
    made: list[str] = []
    escaped = False
    for char in text[1:-1]:
        if not escaped and char == "\\":
            escaped = True
            continue
        made.append(f"\\{char}" if escaped and char not in '"\\' else char)
        escaped = False
    return "".join(made)
