"""
The parser: tokens to an AST.

Operators are parsed by precedence with a stack, so that only brackets recurse;
expressions beyond the nesting limit are rejected with cel-go's messages. Chains of
`&&` and of `||` become balanced trees, as in cel-go.
"""

from __future__ import annotations

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
    LESS,
    LESS_EQUALS,
    MODULO,
    MULTIPLY,
    NOT_EQUALS,
    OR,
    SUBTRACT,
    Call,
    Expr,
    Parsed,
    Source,
)
from lamina.cel.declarations import Environment
from lamina.cel.depth import depth, is_too_nested
from lamina.cel.errors import Issue, ParseError
from lamina.cel.lex import EOF, Tokens, tokenize
from lamina.cel.operands import OperandParser, UnexpectedTokenError
from lamina.cel.syntax_errors import syntax_issues

_DEPTH: Final = 1.4
"""The levels of the tree, after macro expansion, that a level of nesting may have."""
_RELATION, _SUM, _PRODUCT = 1, 2, 3
_BINARY: Final = {
    "<": (_RELATION, LESS),
    "<=": (_RELATION, LESS_EQUALS),
    ">": (_RELATION, GREATER),
    ">=": (_RELATION, GREATER_EQUALS),
    "==": (_RELATION, EQUALS),
    "!=": (_RELATION, NOT_EQUALS),
    "in": (_RELATION, IN),
    "+": (_SUM, ADD),
    "-": (_SUM, SUBTRACT),
    "*": (_PRODUCT, MULTIPLY),
    "/": (_PRODUCT, DIVIDE),
    "%": (_PRODUCT, MODULO),
}
_INFIX: Final = frozenset({*_BINARY, "&&", "||"})


class TooDeepError(Exception):
    """The expression exceeds the nesting limit."""


def parse(text: str, environment: Environment, *, name: str = "<input>") -> Parsed:
    """
    Parse an expression, and expand its macros.

    Raises ParseError, whose text is cel-go's.
    """
    source = Source(text, name)
    limits = environment.limits
    if len(text) > limits.code_points:
        message = f"expression code point size exceeds limit: size: {len(text)}, limit {limits.code_points}"
        raise ParseError(source, [Issue(-1, message)])
    tokens = tokenize(text)
    unrecognized = bool(tokens.issues)
    parser = _Parser(tokens, environment)
    try:
        expr = parser.read()
        if len(tokens.kinds) > limits.nesting:
            if is_too_nested(expr, parser.macro_calls, limits.nesting):
                raise TooDeepError("max recursion depth exceeded")
            if depth(expr) > _DEPTH * limits.nesting:
                raise TooDeepError(_too_deep(limits.nesting))
    except TooDeepError as deep:
        raise ParseError(source, [*parser.issues, Issue(-1, str(deep))]) from None
    except RecursionError:
        # Only expressions far beyond the limit get here.
        raise ParseError(source, [*parser.issues, Issue(-1, _too_deep(limits.nesting))]) from None
    except UnexpectedTokenError:
        raise ParseError(source, syntax_issues(text, [*tokens], parser.issues)) from None
    if parser.issues:
        raise ParseError(
            source, syntax_issues(text, [*tokens], parser.issues) if unrecognized else parser.issues
        )
    return Parsed(expr, source, parser.macro_calls)


def _too_deep(limit: int) -> str:
    return f"expression recursion limit exceeded: {limit}"


class _Parser(OperandParser):
    """
    Parses one expression.

    It counts open constructs, because cel-go limits the recursion of each grammar
    rule: brackets, else branches of conditionals, and operators whose right side
    is not parsed yet, which are sums and products, or relations.
    """

    def __init__(self, tokens: Tokens, environment: Environment) -> None:
        super().__init__(tokens, environment)
        self._limit = environment.limits.nesting
        self._brackets = self._elses = self._sums = self._relations = 0

    def read(self) -> Expr:
        """Return the expression of all tokens."""
        expr = self._expression()
        self._take(EOF)
        return expr

    def _expression(self) -> Expr:
        self._brackets += 1
        if self._brackets + self._elses + self._sums + self._relations > self._limit:
            self._measure()
        value = self._operand()
        kind = self._kinds[self._at]
        if kind in _INFIX:
            value = self._operations(value)
            kind = self._kinds[self._at]
        if kind == "?":
            value = self._conditional(value)
        self._brackets -= 1
        return value

    def _measure(self) -> None:
        if self._brackets + max(self._elses, self._sums, self._relations) > self._limit:
            raise TooDeepError(_too_deep(self._limit))

    def _conditional(self, value: Expr) -> Expr:
        """Parse a conditional, and the conditionals nested in its else branches."""
        chain: list[tuple[Expr, Expr, int]] = []
        while self._kinds[self._at] == "?":
            at = self._starts[self._at]
            self._at += 1
            chosen = self._operations(self._operand())
            self._take(":")
            chain.append((value, chosen, at))
            self._elses += 1
            self._measure()
            value = self._operations(self._operand())
        self._elses -= len(chain)
        for condition, chosen, at in reversed(chain):
            value = Call(self._new(), at, CONDITIONAL, None, (condition, chosen, value))
        return value

    def _operations(self, value: Expr) -> Expr:
        """Parse the binary operators after an operand, with their right sides."""
        kinds, starts = self._kinds, self._starts
        waiting: list[tuple[Expr, int, str, int]] = []
        ands: list[tuple[Expr, int]] = []
        ors: list[tuple[Expr, int]] = []
        while True:
            at = self._at
            kind = kinds[at]
            operator = _BINARY.get(kind)
            precedence = 0 if operator is None else operator[0]
            while waiting and waiting[-1][1] >= precedence:
                value = self._applied(waiting.pop(), value)
            if operator is not None:
                waiting.append((value, precedence, operator[1], starts[at]))
                if precedence == _RELATION:
                    self._relations += 1
                else:
                    self._sums += 1
                if self._brackets + self._sums + self._relations > self._limit:
                    self._measure()
            elif kind == "&&":
                ands.append((value, starts[at]))
            else:
                if ands:
                    value = self._balanced(AND, ands, value)
                    ands = []
                if kind == "||":
                    ors.append((value, starts[at]))
                else:
                    return self._balanced(OR, ors, value) if ors else value
            self._at = at + 1
            value = self._operand()

    def _applied(self, waiting: tuple[Expr, int, str, int], right: Expr) -> Expr:
        left, precedence, function, at = waiting
        if precedence == _RELATION:
            self._relations -= 1
        else:
            self._sums -= 1
        return Call(self._new(), at, function, None, (left, right))

    def _balanced(self, function: str, chain: list[tuple[Expr, int]], last: Expr) -> Expr:
        """Return a chain of one operator as a balanced tree."""
        if len(chain) == 1:
            return Call(self._new(), chain[0][1], function, None, (chain[0][0], last))
        middle = len(chain) // 2
        left, at = chain[middle]
        if middle:
            left = self._balanced(function, chain[:middle], left)
        right = self._balanced(function, chain[middle + 1 :], last) if middle + 1 < len(chain) else last
        return Call(self._new(), at, function, None, (left, right))
