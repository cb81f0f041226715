"""
Expressions in strings: `${…}`.

A string that is one expression as a whole has the value of it, of any type; one with
expressions among text is text. Expressions end at the brace that closes them. Braces in
double-quoted literals do not count, those in single-quoted ones do, as for upstream;
where that reading is not possible, the other one is tried.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from msgspec import Struct

from lamina.cel.environment import GRAPH
from lamina.cel.errors import ParseError
from lamina.cel.parse import parse
from lamina.errors import SpecError

_OPENING: Final = "${"
_STEP: Final = re.compile(r"""["'{}\\]|\$\{""")
_SHOWN: Final = 80
_MOST_SCANNED: Final = 5_000_000
"""The characters that are read of one string, each once for every `${` before it that has no end."""


class Expression(NamedTuple):
    """An expression, and its position in the string: `start` is that of its first character behind `${`."""

    source: str
    start: int

    @property
    def end(self) -> int:
        """The position behind the closing brace."""
        return self.start + len(self.source) + 1


class Parts(Struct, frozen=True):
    """A string as literals and expressions, in order; without expressions it is plain text."""

    text: str
    parts: tuple[str | Expression, ...]

    @property
    def expressions(self) -> tuple[Expression, ...]:
        return tuple(part for part in self.parts if isinstance(part, Expression))

    @property
    def is_plain(self) -> bool:
        return not self.expressions

    @property
    def standalone(self) -> Expression | None:
        """The expression that is the whole string; a blank or a line end beside it makes it a template."""
        first = self.parts[0] if len(self.parts) == 1 else None
        return first if isinstance(first, Expression) else None


class _Reading(NamedTuple):
    """The expressions of a string, and whether an expression begins in it and does not end."""

    expressions: tuple[Expression, ...]
    is_open: bool


class _NestedError(Exception):
    """An expression begins inside of another; carries its position."""

    def __init__(self, at: int) -> None:
        super().__init__(at)
        self.at = at


def extract(text: str) -> Parts:
    """Return the literals and expressions of a string; raises SpecError where expressions are nested."""
    if _OPENING not in text:
        return Parts(text, (text,))
    found = _read(text)
    parts: list[str | Expression] = []
    position = 0
    for expression in found.expressions:
        if literal := text[position : expression.start - len(_OPENING)]:
            parts.append(literal)
        parts.append(expression)
        position = expression.end
    if literal := text[position:]:
        parts.append(literal)
    return Parts(text, tuple(parts))


def _read(text: str) -> _Reading:
    """Return the reading of a string, the one with single quotes where only that is possible."""
    first: _Reading | _NestedError
    try:
        first = _scan(text, single_quotes=False)
    except _NestedError as nested:
        first = nested
    if "'" in text:
        try:
            second = _scan(text, single_quotes=True)
            if second != first and not _is_sound(first) and _is_sound(second):
                return second
        except _NestedError:
            pass
    if isinstance(first, _NestedError):
        raise SpecError(
            "nested expressions are not allowed unless inside string literals: "
            f"there is a second ${{ at position {first.at}, before {text[first.at + 2 :][:_SHOWN]!r}; "
            'literal text is written ${"${"}'
        )
    return first


def _is_sound(reading: _Reading | _NestedError) -> bool:
    return (
        isinstance(reading, _Reading)
        and not reading.is_open
        and all(_parses(expression.source) for expression in reading.expressions)
    )


def _parses(source: str) -> bool:
    try:
        parse(source, GRAPH)
    except ParseError:
        return False
    return True


def _scan(text: str, *, single_quotes: bool) -> _Reading:
    found: list[Expression] = []
    is_open = False
    scanned = 0
    start = text.find(_OPENING)
    while start != -1:
        start += len(_OPENING)
        end = _closing(text, start, single_quotes)
        scanned += (len(text) if end == -1 else end) - start
        if scanned > _MOST_SCANNED:
            raise SpecError('a string has too many ${ without an end: literal text is written ${"${"}')
        if end == -1:
            # It is plain text, and another expression may begin behind it.
            is_open = True
            start = text.find(_OPENING, start - 1)
            continue
        found.append(Expression(text[start:end], start))
        start = text.find(_OPENING, end + 1)
    return _Reading(tuple(found), is_open)


def _closing(text: str, start: int, single_quotes: bool) -> int:
    """Return the position of the brace that closes an expression; -1 where none does."""
    depth, quote = 1, ""
    position = start
    while (step := _STEP.search(text, position)) is not None:
        at, token = step.start(), step.group()
        # Of `${` only the sign is consumed: its brace counts as any other.
        position = at + 1
        if quote:
            if token == "\\":
                position += 1
            elif token == quote:
                quote = ""
        elif token == '"' or (token == "'" and single_quotes):
            quote = token
        elif token == "{":
            depth += 1
        elif token == "}":
            depth -= 1
            if depth == 0:
                return at
        elif token == _OPENING and text[at - 1] != '"':
            raise _NestedError(at)
    return -1
