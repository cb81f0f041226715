"""
From tokens to a tree.

One loop and a stack of open brackets, so that no nesting is too deep for
Python; what is too deep for Kubernetes is refused with its words. Inside a
bracket, operators wait on a stack until one that binds less tightly arrives.
Chains of `&&` and of `||` become balanced trees, as cel-go has them.
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
    NEGATE,
    NOT,
    NOT_EQUALS,
    OR,
    SUBTRACT,
    Call,
    Expr,
    Ident,
    Literal,
    Parsed,
    Select,
    Source,
)
from lamina.cel.brackets import Brackets, TooDeepError, UnreadableError
from lamina.cel.declare import Environment
from lamina.cel.errors import Issue, ParseError
from lamina.cel.frame import RELATION, Frame
from lamina.cel.lex import FLOAT, IDENTIFIER, INT, Token, tokenize
from lamina.cel.literals import LITERALS, literal
from lamina.cel.nesting import depth, is_too_nested
from lamina.cel.syntax import complaints

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
"""Words that cannot name a variable or a function; they can name a field."""

_DEPTH: Final = 1.4
"""How many levels of a tree, macros rewritten, a level of nesting may make."""
_SUM, _PRODUCT = RELATION + 1, RELATION + 2
_BINARY: Final = {
    "<": (RELATION, LESS),
    "<=": (RELATION, LESS_EQUALS),
    ">": (RELATION, GREATER),
    ">=": (RELATION, GREATER_EQUALS),
    "==": (RELATION, EQUALS),
    "!=": (RELATION, NOT_EQUALS),
    "in": (RELATION, IN),
    "+": (_SUM, ADD),
    "-": (_SUM, SUBTRACT),
    "*": (_PRODUCT, MULTIPLY),
    "/": (_PRODUCT, DIVIDE),
    "%": (_PRODUCT, MODULO),
}


def parse(text: str, environment: Environment, *, name: str = "<input>") -> Parsed:
    """
    Read an expression, and rewrite its macros.

    Raises ParseError, whose text is cel-go's.
    """
    source = Source(text, name)
    limits = environment.limits
    if len(text) > limits.code_points:
        message = f"expression code point size exceeds limit: size: {len(text)}, limit {limits.code_points}"
        raise ParseError(source, [Issue(-1, message)])
    tokens, issues = tokenize(text)
    reader = _Reader(tokens, environment)
    reader.issues += issues
    try:
        expr = reader.read()
        if len(tokens) > limits.nesting:
            if is_too_nested(expr, reader.macro_calls, limits.nesting):
                raise TooDeepError("max recursion depth exceeded")
            if depth(expr) > _DEPTH * limits.nesting:
                raise TooDeepError(f"expression recursion limit exceeded: {limits.nesting}")
    except TooDeepError as deep:
        raise ParseError(source, [*reader.issues, Issue(-1, str(deep))]) from None
    except UnreadableError:
        raise ParseError(source, complaints(text, tokens, reader.issues)) from None
    if reader.issues:
        raise ParseError(source, complaints(text, tokens, reader.issues) if issues else reader.issues)
    return Parsed(expr, source, reader.macro_calls)


class _Reader(Brackets):
    """Reads one expression."""

    def read(self) -> Expr:
        """Return the expression that all the tokens make."""
        frame = self._open("start", 0)
        tokens, frames = self._tokens, self._frames
        while True:
            value = self._operand()
            while value is not None:
                frame = frames[-1]
                value = self._members(value)
                if value is None:
                    break
                if frame.prefix is not None:
                    function, at = frame.prefix
                    frame.prefix = None
                    value = Call(self._new(), at, function, None, (value,))
                frame.operands.append(value)
                kind = tokens[self._at].kind
                if kind in _BINARY:
                    self._operator(frame, kind)
                    break
                if kind == "&&":
                    frame.ands.append((self._reduced(frame), tokens[self._at].at))
                    self._at += 1
                    break
                if kind == "||":
                    frame.ors.append((self._conjunction(frame), tokens[self._at].at))
                    self._at += 1
                    break
                value = self._end(frame, kind)
                if not frames:
                    if value is None:
                        raise UnreadableError
                    return value

    def _operator(self, frame: Frame, kind: str) -> None:
        precedence, function = _BINARY[kind]
        operators = frame.operators
        while operators and operators[-1][0] >= precedence:
            self._apply(frame)
        operators.append((precedence, function, self._tokens[self._at].at))
        base = frame.relations if precedence == RELATION else frame.sums
        if base + len(operators) > self._limit:
            waiting = sum([(other == RELATION) is (precedence == RELATION) for other, *_ in operators])
            if base + waiting > self._limit:
                raise self._too_deep()
        self._at += 1

    def _apply(self, frame: Frame) -> None:
        _, function, at = frame.operators.pop()
        right = frame.operands.pop()
        frame.operands[-1] = Call(self._new(), at, function, None, (frame.operands[-1], right))

    def _reduced(self, frame: Frame) -> Expr:
        while frame.operators:
            self._apply(frame)
        return frame.operands.pop()

    def _conjunction(self, frame: Frame) -> Expr:
        last = self._reduced(frame)
        if not frame.ands:
            return last
        chain, frame.ands = frame.ands, []
        return self._balanced(AND, chain, last)

    def _finished(self, frame: Frame) -> Expr:
        last = self._conjunction(frame)
        if not frame.ors:
            return last
        chain, frame.ors = frame.ors, []
        return self._balanced(OR, chain, last)

    def _balanced(self, function: str, chain: list[tuple[Expr, int]], last: Expr) -> Expr:
        terms = [*(term for term, _ in chain), last]
        places = [at for _, at in chain]

        def tree(low: int, high: int) -> Expr:
            middle = (low + high + 1) // 2
            left = terms[middle] if middle == low else tree(low, middle - 1)
            right = terms[middle + 1] if middle == high else tree(middle + 1, high)
            return Call(self._new(), places[middle], function, None, (left, right))

        return tree(0, len(places) - 1)

    def _end(self, frame: Frame, kind: str) -> Expr | None:
        """
        End an expression at a token that cannot continue it.

        Returns the value of the bracket it closes, ready to be continued itself,
        or None where another expression of the same bracket follows.
        """
        value = self._finished(frame)
        if kind == "?" and frame.kind != "then":
            inner = self._open("then", self._tokens[self._at].at)
            inner.target = value
            self._at += 1
            return None
        if frame.kind == "then":
            if kind != ":":
                raise UnreadableError
            self._frames.pop()
            inner = self._open("else", frame.at)
            inner.target, inner.items = frame.target, [value]
            self._at += 1
            return None
        while frame.kind == "else":
            assert frame.target is not None
            value = Call(self._new(), frame.at, CONDITIONAL, None, (frame.target, frame.items[0], value))
            self._frames.pop()
            frame = self._frames[-1]
        return self._close(frame, kind, value)

    def _operand(self) -> Expr | None:
        """Read what an operator can be applied to; None where that is a bracket that was opened."""
        token = self._tokens[self._at]
        kind = token.kind
        if kind == "!" or kind == "-":
            signs = 1
            while self._tokens[self._at + signs].kind == kind:
                signs += 1
            following = self._tokens[self._at + signs].kind
            if kind == "-" and signs == 1 and following in (INT, FLOAT):
                return self._literal(token.at)
            self._at += signs
            if signs % 2:
                self._frames[-1].prefix = (NOT if kind == "!" else NEGATE, token.at)
            token = self._tokens[self._at]
            kind = token.kind
            if kind == "-" and self._tokens[self._at + 1].kind in (INT, FLOAT):
                return self._literal(token.at)
        if kind == IDENTIFIER:
            return self._name(token, "")
        if kind == "(":
            self._at += 1
            self._open("(", token.at)
            return None
        if kind == "[":
            self._at += 1
            return self._bracket("list", token.at)
        if kind == "{":
            self._at += 1
            return self._bracket("key", token.at)
        if kind == "." and self._tokens[self._at + 1].kind == IDENTIFIER:
            self._at += 1
            return self._name(token, ".")
        return self._literal(token.at)

    def _name(self, first: Token, dot: str) -> Expr | None:
        """Read a variable, a call, or the type name of a struct."""
        token = self._tokens[self._at]
        if self._structs:
            end = self._at + 1
            while self._tokens[end].kind == "." and self._tokens[end + 1].kind == IDENTIFIER:
                end += 2
            if self._tokens[end].kind == "{":
                name = "".join(part.text for part in self._tokens[self._at : end])
                self._at = end + 1
                return self._bracket("field", self._tokens[end].at, function=dot + name)
        self._at += 1
        if token.text in RESERVED:
            self.issues.append(Issue(first.at, f"reserved identifier: {token.text}"))
        after = self._tokens[self._at]
        if after.kind == "(":
            self._at += 1
            return self._bracket("args", after.at, function=dot + token.text)
        return Ident(self._new(), token.at, dot + token.text)

    def _members(self, value: Expr) -> Expr | None:
        """Read what follows a value: fields, calls and indices; None where a bracket was opened."""
        while True:
            token = self._tokens[self._at]
            if token.kind == ".":
                self._at += 1
                optional = self._tokens[self._at].kind == "?"
                if optional:
                    self._at += 1
                    if not self._environment.flags.optional_syntax:
                        self.issues.append(Issue(token.at, "unsupported syntax '.?'"))
                plain = self._tokens[self._at].kind == IDENTIFIER
                name = self._field_name()
                after = self._tokens[self._at]
                if plain and not optional and after.kind == "(":
                    self._at += 1
                    called = self._bracket("args", after.at, value, name)
                    if called is None:
                        return None
                    value = called
                else:
                    value = Select(self._new(), token.at, value, name, False, optional)
            elif token.kind == "[":
                self._at += 1
                frame = self._open("index", token.at)
                frame.target = value
                if self._tokens[self._at].kind == "?":
                    self._at += 1
                    frame.function = "?"
                    if not self._environment.flags.optional_syntax:
                        self.issues.append(Issue(token.at, "unsupported syntax '[?'"))
                return None
            else:
                return value

    def _literal(self, at: int) -> Expr:
        token = self._tokens[self._at]
        sign = ""
        if token.kind == "-":
            sign = "-"
            self._at += 1
            token = self._tokens[self._at]
        if token.kind not in LITERALS:
            raise UnreadableError
        self._at += 1
        value, kind, complaint = literal(token, sign)
        if complaint is not None:
            self.issues.append(Issue(at, complaint))
        return Literal(self._new(), at, value, kind)
