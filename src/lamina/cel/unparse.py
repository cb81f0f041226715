"""
From a tree back to text.

What is written means what was read, with macros as they were called; parentheses
are there only where they are needed.
"""

from __future__ import annotations

import math
import re
from typing import Final

from lamina.cel.ast import (
    ADD,
    AND,
    CONDITIONAL,
    DIVIDE,
    EQUALS,
    GREATER,
    GREATER_EQUALS,
    IN,
    INDEX,
    LESS,
    LESS_EQUALS,
    MODULO,
    MULTIPLY,
    NEGATE,
    NOT,
    NOT_EQUALS,
    OPTIONAL_INDEX,
    OR,
    SUBTRACT,
    Call,
    Comprehension,
    Expr,
    Ident,
    Literal,
    LiteralKind,
    MakeList,
    MakeMap,
    MakeStruct,
    Parsed,
    Select,
    children,
)

_BINARY: Final = {
    OR: ("||", 2),
    AND: ("&&", 3),
    **{
        function: (sign, 4)
        for function, sign in (
            (EQUALS, "=="), (NOT_EQUALS, "!="), (LESS, "<"), (LESS_EQUALS, "<="), (GREATER, ">"),
            (GREATER_EQUALS, ">="), (IN, "in"),
        )
    },
    ADD: ("+", 5),
    SUBTRACT: ("-", 5),
    MULTIPLY: ("*", 6),
    DIVIDE: ("/", 6),
    MODULO: ("%", 6),
}  # fmt: skip
_CONDITIONAL, _UNARY, _MEMBER, _PRIMARY = 1, 7, 8, 9
_ESCAPES: Final = {
    "\a": "\\a", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\v": "\\v", "\\": "\\\\",
    '"': '\\"',
}  # fmt: skip
_IDENTIFIER: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_WORDS: Final = frozenset({"true", "false", "null", "in"})


def unparse(parsed: Parsed) -> str:
    """Return the text of an expression."""
    return _Writer(parsed).text


class _Writer:
    """Writes from the inside out, so that no nesting is too deep."""

    def __init__(self, parsed: Parsed) -> None:
        self._macro_calls = parsed.macro_calls
        self._done: dict[int, tuple[str, int]] = {}
        nodes = [parsed.expr]
        for node in nodes:
            nodes.extend(children(self._macro_calls.get(node.id, node)))
        for node in reversed(nodes):
            self._done[node.id] = self._shown(node)
        self.text = self.write(parsed.expr)

    def write(self, expr: Expr) -> str:
        return self._done[expr.id][0]

    def _at_least(self, expr: Expr, binding: int) -> str:
        """Return an expression, in parentheses if it binds less tightly than it has to here."""
        text, own = self._done[expr.id]
        return f"({text})" if own < binding else text

    def _shown(self, expr: Expr) -> tuple[str, int]:
        written = self._macro_calls.get(expr.id, expr)
        match written:
            case Literal():
                return _literal(written)
            case Ident():
                return written.name, _PRIMARY
            case Select():
                return self._select(written)
            case Call():
                return self._call(written)
            case MakeList():
                marked = written.optional_indices
                items = (
                    f"{'?' if i in marked else ''}{self.write(item)}" for i, item in enumerate(written.items)
                )
                return f"[{', '.join(items)}]", _PRIMARY
            case MakeMap():
                entries = (
                    f"{'?' if e.optional else ''}{self.write(e.key)}: {self.write(e.value)}"
                    for e in written.entries
                )
                return f"{{{', '.join(entries)}}}", _PRIMARY
            case MakeStruct():
                fields = (
                    f"{'?' if f.optional else ''}{_field(f.name)}: {self.write(f.value)}"
                    for f in written.fields
                )
                return f"{written.type_name}{{{', '.join(fields)}}}", _PRIMARY
            case Comprehension():
                raise ValueError("a comprehension that no macro made cannot be written")

    def _select(self, expr: Select) -> tuple[str, int]:
        operand = self._at_least(expr.operand, _MEMBER)
        selected = f"{operand}.{'?' if expr.optional else ''}{_field(expr.field)}"
        return (f"has({selected})", _PRIMARY) if expr.test_only else (selected, _MEMBER)

    def _call(self, expr: Call) -> tuple[str, int]:
        function, args = expr.function, expr.args
        if expr.target is not None:
            return f"{self._at_least(expr.target, _MEMBER)}.{function}({self._listed(args)})", _MEMBER
        if function in _BINARY:
            sign, binding = _BINARY[function]
            left, right = self._at_least(args[0], binding), self._at_least(args[1], binding + 1)
            return f"{left} {sign} {right}", binding
        if function == CONDITIONAL:
            condition, yes = (
                self._at_least(args[0], _CONDITIONAL + 1),
                self._at_least(args[1], _CONDITIONAL + 1),
            )
            return f"{condition} ? {yes} : {self._at_least(args[2], _CONDITIONAL)}", _CONDITIONAL
        if function in (NOT, NEGATE):
            text, own = self._done[args[0].id]
            bare = own >= _MEMBER and not (function == NEGATE and text[:1] in "0123456789.-")
            return f"{'!' if function == NOT else '-'}{text if bare else f'({text})'}", _UNARY
        if function in (INDEX, OPTIONAL_INDEX):
            mark = "?" if function == OPTIONAL_INDEX else ""
            return f"{self._at_least(args[0], _MEMBER)}[{mark}{self.write(args[1])}]", _MEMBER
        return f"{function}({self._listed(args)})", _PRIMARY

    def _listed(self, args: tuple[Expr, ...]) -> str:
        return ", ".join(self.write(arg) for arg in args)


def _field(name: str) -> str:
    return name if _IDENTIFIER.fullmatch(name) and name not in _WORDS else f"`{name}`"


def _literal(literal: Literal) -> tuple[str, int]:
    value = literal.value
    match literal.kind:
        case LiteralKind.STRING:
            assert isinstance(value, str)
            return f'"{"".join(_ESCAPES.get(char, char) for char in value)}"', _PRIMARY
        case LiteralKind.BYTES:
            assert isinstance(value, bytes)
            shown = "".join(chr(b) if 32 <= b < 127 and b not in (34, 92) else f"\\{b:03o}" for b in value)
            return f'b"{shown}"', _PRIMARY
        case LiteralKind.BOOL:
            return str(value).lower(), _PRIMARY
        case LiteralKind.NULL:
            return "null", _PRIMARY
        case LiteralKind.UINT:
            return f"{value!r}u", _PRIMARY
        case LiteralKind.DOUBLE:
            assert isinstance(value, float)
            return _double(value), _PRIMARY
        case _:
            return str(value), _PRIMARY


def _double(value: float) -> str:
    shown = repr(value)
    if math.isfinite(value) and "." not in shown and "e" not in shown:
        shown += ".0"
    return shown
