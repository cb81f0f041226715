"""
The writer of generated code: its lines, temporary names, and constants.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

from lamina.cel.types import Kind

_DEEPEST: Final = 20
"""The depth of parentheses after which a value is assigned to a name; Python's own limit is not much higher."""


class NotGenerated(Exception):
    """No code is generated for this expression; it is interpreted."""


@dataclass(frozen=True, slots=True)
class Piece:
    """
    Python code for a value.

    `sure` is the kind that the value is proven to have; the declared type of a
    field is no proof. `simple` code may be written twice.
    """

    code: str
    sure: Kind | None = None
    depth: int = 0
    simple: bool = False
    literal: bool = False


class _Block:
    """Lines that are executed together or not at all, and their constant cost."""

    __slots__ = ("cost", "indent", "lines", "start")

    def __init__(self, lines: list[str], indent: int) -> None:
        self.lines, self.start, self.indent, self.cost = lines, len(lines), indent, 0


class Writer:
    """Writes the body of one function; with `counts`, one that counts its cost."""

    def __init__(self, *, counts: bool = False) -> None:
        self.counts = counts
        self.values: dict[str, Any] = {}
        self._lines: list[str] = []
        self._blocks = [_Block(self._lines, 1)]
        self._indent = 1
        self._count = 0
        self._named: dict[int, str] = {}

    def name(self, prefix: str = "t") -> str:
        """Return a new name."""
        self._count += 1
        return f"{prefix}{self._count}"

    def line(self, text: str) -> None:
        self._lines.append("    " * self._indent + text)

    def charge(self, cost: int) -> None:
        """Add to the constant cost of the current block, which is counted at its start."""
        if not self.counts or not cost:
            return
        block = self._blocks[-1]
        if block.cost:
            del block.lines[block.start]
        block.cost += cost
        block.lines.insert(block.start, f"{'    ' * block.indent}C += {block.cost}")

    def charge_computed(self, code: str) -> None:
        """Count a cost that is computed at run time, and check the limit."""
        self.line(f"C += {code}")
        self.check()

    def check(self) -> None:
        """Check the cost limit."""
        self.line("if C > L: exceed()")

    def let(self, piece: Piece) -> Piece:
        """Assign a value to a name, unless its code is simple."""
        if piece.simple:
            return piece
        name = self.name()
        self.line(f"{name} = {piece.code}")
        return Piece(name, piece.sure, 0, simple=True)

    def shallow(self, piece: Piece) -> Piece:
        """Assign a value to a name where its code is nested too deeply."""
        return self.let(piece) if piece.depth > _DEEPEST else piece

    def value(self, value: Any) -> str:
        """Return the name of a constant object."""
        known = self._named.get(id(value))
        if known is None:
            known = self._named[id(value)] = f"K{len(self.values)}"
            self.values[known] = value
        return known

    @contextmanager
    def aside(self) -> Iterator[list[str]]:
        """Collect indented lines instead of writing them; `add` writes them."""
        kept, self._lines = self._lines, []
        self._indent += 1
        collected = self._lines
        self._blocks.append(_Block(collected, self._indent))
        try:
            yield collected
        finally:
            self._blocks.pop()
            self._indent -= 1
            self._lines = kept

    def add(self, lines: list[str]) -> None:
        self._lines.extend(lines)

    @contextmanager
    def uncounted(self) -> Iterator[None]:
        """Write code without cost."""
        counts, self.counts = self.counts, False
        try:
            yield
        finally:
            self.counts = counts

    @contextmanager
    def block(self) -> Iterator[None]:
        """Write a block whose cost is only counted when it is reached."""
        self._blocks.append(_Block(self._lines, self._indent))
        try:
            yield
        finally:
            self._blocks.pop()

    @contextmanager
    def inside(self) -> Iterator[None]:
        """Write an indented block."""
        self._indent += 1
        try:
            with self.block():
                yield
        finally:
            self._indent -= 1

    def source(self, result: str) -> str:
        """Return the whole function; one that counts takes a limit, and also returns the cost."""
        if not self.counts:
            return "\n".join(["def carry_out(V):", *self._lines, f"    return {result}", ""])
        self.line(f"result = {result}")
        self.check()
        return "\n".join(["def carry_out(V, L):", "    C = 0", *self._lines, "    return result, C", ""])
