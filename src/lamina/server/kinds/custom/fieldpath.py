"""
Paths that name a field of a schema: `.spec.color`, `.spec['a.b']`.

Selectable fields and the `fieldPath` of validation rules use them. A path is resolved
in the schema, and the field must exist.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from lamina.server.kinds.custom.document import Document, value_schema

_ESCAPES: Final = dict(zip("abfnrtv'\\", "\a\b\f\n\r\t\v'\\", strict=True))
_ESCAPED: Final = re.compile(r"\\.")


class BadPath(ValueError):
    """An invalid path, or one of a field that does not exist."""


class ResolvedField(NamedTuple):
    """A resolved path: its form in messages, its first step, and the schema of the field."""

    path: str
    root: str
    schema: Document | None


def resolve_path(path: str, document: Document, *, brackets: bool = True) -> ResolvedField:
    """Return the resolved path; raises BadPath. `brackets` is whether `['name']` is allowed."""
    shown, root = "", ""
    schema: Document | None = document
    tokens = _tokens(path)
    for token in tokens:
        if token == "[":
            if not brackets:
                raise BadPath("array notation is not allowed")
            name = _unquoted(_next(tokens))
        elif token == ".":
            name = _next(tokens)
        else:
            raise BadPath(f"expected [ or . but got: {token}")
        if schema is None or not (schema.get("properties") or "additionalProperties" in schema):
            raise BadPath("does not refer to a valid field")
        if properties := schema.get("properties"):
            shown = f"{shown}.{name}" if shown else name
            if name not in properties:
                raise BadPath("does not refer to a valid field")
            schema = properties[name]
        else:
            shown = f"{shown}[{name}]"
            schema = value_schema(schema)
        root = root or name
        if token == "[" and (end := _next(tokens)) != "]":
            raise BadPath(f"expected ] but got {end}")
    return ResolvedField(shown, root, schema)


def _tokens(path: str) -> Iterator[str]:
    at = 0
    while at < len(path):
        if path[at] in ".[]":
            end = at + 1
        elif path[at] == "'":
            end = at + 1
            while end < len(path) and not (path[end] == "'" and path[end - 1] != "\\"):
                end += 1
            end = min(end + 1, len(path))
        else:
            end = at
            while end < len(path) and path[end] not in ".[]":
                end += 1
        yield path[at:end]
        at = end


def _next(tokens: Iterator[str]) -> str:
    token = next(tokens, None)
    if token is None:
        raise BadPath("unexpected end of JSON path")
    return token


def _unquoted(token: str) -> str:
    if len(token) < 2 or not token.startswith("'") or not token.endswith("'"):
        raise BadPath(f"expected single quoted string but got {token}")
    return _ESCAPED.sub(_unescaped, token[1:-1])


def _unescaped(found: re.Match[str]) -> str:
    char = _ESCAPES.get(found.group()[1])
    if char is None:
        raise BadPath(f"invalid string literal: invalid escape char {found.group()}")
    return char
