"""The nesting depth of an expression, counted as in cel-go."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from lamina.cel import ast
from lamina.cel.ast import Call, Expr, Select, children

_COUNTED: Final = frozenset(
    {
        *(ast.LESS, ast.LESS_EQUALS, ast.GREATER, ast.GREATER_EQUALS, ast.EQUALS, ast.NOT_EQUALS, ast.IN),
        *(ast.ADD, ast.SUBTRACT, ast.MULTIPLY, ast.DIVIDE, ast.MODULO),
        *(ast.CONDITIONAL, ast.INDEX, ast.OPTIONAL_INDEX),
    }
)


def is_too_nested(expr: Expr, macro_calls: Mapping[int, Call], limit: int) -> bool:
    """Say whether an expression, before macro expansion, exceeds the nesting limit."""
    waiting: list[tuple[Expr, int]] = [(expr, 0)]
    while waiting:
        node, depth = waiting.pop()
        written = macro_calls.get(node.id, node)
        depth += isinstance(written, Select) or (
            isinstance(written, Call) and (written.target is not None or written.function in _COUNTED)
        )
        if depth > limit:
            return True
        waiting.extend((child, depth) for child in children(written))
    return False


def depth(expr: Expr) -> int:
    """Return the number of levels of a tree."""
    deepest = 0
    waiting: list[tuple[Expr, int]] = [(expr, 1)]
    while waiting:
        node, level = waiting.pop()
        deepest = max(deepest, level)
        waiting.extend((child, level + 1) for child in children(node))
    return deepest
