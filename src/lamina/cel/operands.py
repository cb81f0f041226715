"""
The parser of operands: identifiers, literals, brackets, and their member accesses.

Brackets contain expressions, which the subclass of `OperandParser` parses.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from itertools import count
from typing import Final

from lamina.cel.ast import (
    INDEX,
    NEGATE,
    NOT,
    OPTIONAL_INDEX,
    Call,
    Entry,
    Expr,
    FieldInit,
    Ident,
    Literal,
    LiteralKind,
    MakeList,
    MakeMap,
    MakeStruct,
    Select,
)
from lamina.cel.ast_builder import AstBuilder
from lamina.cel.declarations import VARIADIC, Environment, MacroRefused
from lamina.cel.errors import Issue
from lamina.cel.lex import ESCAPED, FLOAT, IDENTIFIER, INT, Tokens
from lamina.cel.literals import LITERALS, literal

RESERVED: Final = frozenset(
    [
        "as",
        "break",
        "const",
        "continue",
        "else",
        "false",
        "for",
        "function",
        "if",
        "import",
        "in",
        "let",
        "loop",
        "package",
        "namespace",
        "null",
        "return",
        "true",
        "var",
        "void",
        "while",
    ]
)
"""Reserved identifiers, which cannot name a variable or a function; they can name a field."""

_NUMBERS: Final = frozenset({INT, FLOAT})


class UnexpectedTokenError(Exception):
    """An unexpected token."""


class OperandParser(ABC):
    """Parses operands."""

    def __init__(self, tokens: Tokens, environment: Environment) -> None:
        self._kinds, self._texts, self._starts = tokens.kinds, tokens.texts, tokens.starts
        self._environment, self._at = environment, 0
        self._new = count(1).__next__
        self._structs = "{" in tokens.kinds
        self.issues = tokens.issues
        self.macro_calls: dict[int, Call] = {}

    @abstractmethod
    def _expression(self) -> Expr:
        """Parse an expression, up to the token that cannot continue it."""

    def _operand(self) -> Expr:
        """Parse an operand: unary operators, the primary, and its member accesses."""
        kinds, starts, first = self._kinds, self._starts, self._at
        at, kind, sign = first, kinds[first], ""
        if kind == "!" or (kind == "-" and kinds[at + 1] not in _NUMBERS):
            while kinds[at] == kind:
                at += 1
            if (at - first) % 2:
                sign = NOT if kind == "!" else NEGATE
            self._at, kind = at, kinds[at]
        value: Expr
        if kind == IDENTIFIER or (kind == "." and kinds[at + 1] == IDENTIFIER):
            place = starts[at]
            dot = ""
            if kind == ".":
                dot, at = ".", at + 1
            name = self._texts[at]
            if self._structs and (brace := self._brace_after(at)):
                value = self._struct(dot + "".join(self._texts[at:brace]), brace)
            else:
                if name in RESERVED:
                    self.issues.append(Issue(place, f"reserved identifier: {name}"))
                if kinds[at + 1] == "(":
                    self._at = at + 2
                    value = self._call(dot + name, starts[at + 1], None, self._arguments())
                else:
                    self._at = at + 1
                    value = Ident(self._new(), starts[at], dot + name)
        elif kind == "(":
            self._at = at + 1
            value = self._expression()
            self._take(")")
        elif kind == "[":
            value = self._list()
        elif kind == "{":
            value = self._map()
        else:
            value = self._literal()
        at = self._at
        kind = kinds[at]
        while kind == "." or kind == "[":
            if kind == "." and kinds[at + 1] == IDENTIFIER:
                name = self._texts[at + 1]
                if kinds[at + 2] == "(":
                    self._at = at + 3
                    value = self._call(name, starts[at + 2], value, self._arguments())
                else:
                    self._at = at + 2
                    value = Select(self._new(), starts[at], value, name)
            elif kind == ".":
                self._at = at + 1
                optional = self._question(starts[at], "unsupported syntax '.?'")
                value = Select(self._new(), starts[at], value, self._field(), False, optional)
            else:
                self._at = at + 1
                optional = self._question(starts[at], "unsupported syntax '[?'")
                key = self._expression()
                self._take("]")
                function = OPTIONAL_INDEX if optional else INDEX
                value = Call(self._new(), starts[at], function, None, (value, key))
            at = self._at
            kind = kinds[at]
        return Call(self._new(), starts[first], sign, None, (value,)) if sign else value

    def _take(self, kind: str) -> None:
        """Consume a token of this kind."""
        if self._kinds[self._at] != kind:
            raise UnexpectedTokenError
        self._at += 1

    def _question(self, at: int, message: str) -> bool:
        """Consume a question mark, if there is one."""
        if self._kinds[self._at] != "?":
            return False
        self._at += 1
        if not self._environment.flags.optional_syntax:
            self.issues.append(Issue(at, message))
        return True

    def _field(self) -> str:
        """Parse the name of a field."""
        kind, text = self._kinds[self._at], self._texts[self._at]
        self._at += 1
        if kind == IDENTIFIER:
            return text
        if kind != ESCAPED:
            raise UnexpectedTokenError
        if not self._environment.flags.backtick_fields:
            self.issues.append(Issue(self._starts[self._at - 1], "unsupported syntax: '`'"))
        return text[1:-1]

    def _literal(self) -> Expr:
        at, sign = self._at, ""
        start = self._starts[at]
        if self._kinds[at] == "-":
            sign, at = "-", at + 1
        kind = self._kinds[at]
        if kind not in LITERALS:
            raise UnexpectedTokenError
        self._at = at + 1
        value, read, message = literal(kind, self._texts[at], sign)
        if message is not None:
            self.issues.append(Issue(start, message))
        return Literal(self._new(), start, value, read)

    # Brackets

    def _arguments(self) -> tuple[Expr, ...]:
        kinds = self._kinds
        if kinds[self._at] == ")":
            self._at += 1
            return ()
        found = [self._expression()]
        while kinds[self._at] == ",":
            self._at += 1
            found.append(self._expression())
        self._take(")")
        return tuple(found)

    def _more(self, closing: str, *, begun: bool) -> bool:
        """Consume the comma before another item, or the end of a list; a trailing comma is allowed."""
        if begun or (self._kinds[self._at] == "," and self._kinds[self._at + 1] == closing):
            if self._kinds[self._at] == closing:
                self._at += 1
                return False
            self._take(",")
        if self._kinds[self._at] == closing:
            self._at += 1
            return False
        return True

    def _list(self) -> Expr:
        at = self._starts[self._at]
        self._at += 1
        items: list[Expr] = []
        optional: list[int] = []
        while self._more("]", begun=bool(items)):
            if self._question(self._starts[self._at], "unsupported syntax '?'"):
                optional.append(len(items))
            items.append(self._expression())
        return MakeList(self._new(), at, tuple(items), frozenset(optional))

    def _map(self) -> Expr:
        at = self._starts[self._at]
        self._at += 1
        entries: list[Entry] = []
        while self._more("}", begun=bool(entries)):
            optional = self._question(self._starts[self._at], "unsupported syntax '?'")
            key = self._expression()
            colon = self._starts[self._at]
            self._take(":")
            entries.append(Entry(self._new(), colon, key, self._expression(), optional))
        return MakeMap(self._new(), at, tuple(entries))

    def _brace_after(self, at: int) -> int:
        """Return the index of the brace after a qualified name; 0 without one."""
        while self._kinds[at + 1] == "." and self._kinds[at + 2] == IDENTIFIER:
            at += 2
        return at + 1 if self._kinds[at + 1] == "{" else 0

    def _struct(self, name: str, brace: int) -> Expr:
        self._at = brace + 1
        fields: list[FieldInit] = []
        while self._more("}", begun=bool(fields)):
            optional = self._question(self._starts[self._at], "unsupported syntax '?'")
            field, colon = self._field(), self._starts[self._at]
            self._take(":")
            fields.append(FieldInit(self._new(), colon, field, self._expression(), optional))
        return MakeStruct(self._new(), self._starts[brace], name, tuple(fields))

    def _call(self, function: str, at: int, target: Expr | None, args: tuple[Expr, ...]) -> Expr:
        """Return a call, or its macro expansion."""
        environment = self._environment
        if function in environment.macro_names:
            macros = environment.macros
            macro = macros.get((function, len(args), target is not None)) or macros.get(
                (function, VARIADIC, target is not None)
            )
            if macro is not None:
                try:
                    expanded = macro.expand(AstBuilder(self._new, at, self.macro_calls), target, args)
                except MacroRefused as refused:
                    self.issues.append(Issue(refused.at, refused.message))
                    return Literal(self._new(), at, None, LiteralKind.NULL)
                if expanded is not None:
                    self.macro_calls[expanded.id] = Call(0, at, function, target, args)
                    return expanded
        return Call(self._new(), at, function, target, args)
