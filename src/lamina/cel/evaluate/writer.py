"""
Where generated code is written: lines, names that are used once, and values that code refers to by name.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

from lamina.cel.types import Kind

_DEEPEST: Final = 20
"""How deep parentheses are nested before a value gets a name; Python's own limit is not far above."""


class NotWorthIt(Exception):
    """This expression is not generated; the steps carry it out."""


@dataclass(frozen=True, slots=True)
class Piece:
    """
    Python for a value.

    `sure` is the kind the value certainly has, where something is certain: the
    type of a field is a promise somebody else made. `simple` code may be
    written twice.
    """

    code: str
    sure: Kind | None = None
    depth: int = 0
    simple: bool = False
    literal: bool = False


class Writer:
    """Writes the body of one function."""

    def __init__(self) -> None:
        self.values: dict[str, Any] = {}
        self._lines: list[str] = []
        self._indent = 1
        self._count = 0
        self._named: dict[int, str] = {}

    def name(self, prefix: str = "t") -> str:
        """Return a name nobody has."""
        self._count += 1
        return f"{prefix}{self._count}"

    def line(self, text: str) -> None:
        self._lines.append("    " * self._indent + text)

    def let(self, piece: Piece) -> Piece:
        """Give a value a name, unless it has one."""
        if piece.simple:
            return piece
        name = self.name()
        self.line(f"{name} = {piece.code}")
        return Piece(name, piece.sure, 0, simple=True)

    def shallow(self, piece: Piece) -> Piece:
        """Give a value a name where its code has become too deep."""
        return self.let(piece) if piece.depth > _DEEPEST else piece

    def value(self, value: Any) -> str:
        """Return a name for an object that the code refers to."""
        known = self._named.get(id(value))
        if known is None:
            known = self._named[id(value)] = f"K{len(self.values)}"
            self.values[known] = value
        return known

    @contextmanager
    def aside(self) -> Iterator[list[str]]:
        """Collect lines, one step further in, instead of writing them; `add` writes them."""
        kept, self._lines = self._lines, []
        self._indent += 1
        collected = self._lines
        try:
            yield collected
        finally:
            self._indent -= 1
            self._lines = kept

    def add(self, lines: list[str]) -> None:
        self._lines.extend(lines)

    @contextmanager
    def inside(self) -> Iterator[None]:
        """Write one step further in."""
        self._indent += 1
        try:
            yield
        finally:
            self._indent -= 1

    def source(self, result: str) -> str:
        """Return the whole function."""
        return "\n".join(["def carry_out(V):", *self._lines, f"    return {result}", ""])
