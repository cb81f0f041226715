"""
The one form of a compile error.

    spec.resources[0].template.spec.replicas: undefined field 'size' (line 1, column 12)
     | schema.spec.size
     | ...........^
    the fields of schema.spec are: name, replicas

First the field and what is wrong with it; then, where an expression is at fault, its line
and a caret; and last what to write instead.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lamina.graph.graph import GraphError

# CEL is imported on demand: it takes long to import.
if TYPE_CHECKING:
    from lamina.cel.ast import Source

_LONGEST_LINE, _LONGEST = 400, 200
"""How many characters of an expression a message shows: of the line with the error, and among other text."""


def short(text: str) -> str:
    """Return an expression as a message quotes it: in one line, and cut where it is long."""
    line = " ".join(text.split())
    return line if len(line) <= _LONGEST else f"{line[:_LONGEST]}..."


def problem(field: str, message: str, remedy: str = "") -> GraphError:
    """Return the error of a field."""
    return GraphError("\n".join(filter(None, (f"{field}: {message}", remedy))))


def expression_problem(field: str, message: str, source: Source, at: int, remedy: str = "") -> GraphError:
    """Return the error of an expression in a field, at an offset into its source."""
    return GraphError(pointed(f"{field}: {message}", source, at, remedy))


def pointed(message: str, source: Source, at: int, remedy: str = "") -> str:
    """Return a message with a position, the line of an expression that it is in, and a caret."""
    if at < 0:
        return "\n".join(filter(None, (message, remedy)))
    line, column = source.position(at)
    text = source.line(line).replace("\t", " ")
    start = 0 if column < _LONGEST_LINE else column - _LONGEST_LINE // 2
    shown = text[start : start + _LONGEST_LINE]
    lines = (
        f"{message} (line {line}, column {column + 1})",
        f" | {shown}",
        f" | {'.' * (column - start)}^",
        remedy,
    )
    return "\n".join(filter(None, lines))
