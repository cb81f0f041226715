"""
What stands in brackets: arguments, items, entries, fields, indices.

A bracket that is opened is a frame on a stack until it is closed, so that no
nesting is too deep for Python; what is too deep for Kubernetes is refused.
"""

from __future__ import annotations

from itertools import count
from typing import Final

from lamina.cel.ast import (
    INDEX,
    OPTIONAL_INDEX,
    Call,
    Entry,
    Expr,
    FieldInit,
    Literal,
    LiteralKind,
    MakeList,
    MakeMap,
    MakeStruct,
)
from lamina.cel.declare import VARIADIC, Environment, MacroRefused
from lamina.cel.errors import Issue
from lamina.cel.frame import RELATION, Frame
from lamina.cel.grow import Grower
from lamina.cel.lex import ESCAPED, IDENTIFIER, Token

_CLOSING: Final = {"(": ")", "args": ")", "list": "]", "index": "]", "key": "}", "value": "}", "field": "}"}


class UnreadableError(Exception):
    """A token stands where it cannot."""


class TooDeepError(Exception):
    """The expression nests deeper than allowed."""


class Brackets:
    """Reads what is in brackets; what is in between is read by whoever goes through the tokens."""

    def __init__(self, tokens: list[Token], environment: Environment) -> None:
        self._tokens, self._environment, self._at = tokens, environment, 0
        self._frames: list[Frame] = []
        self._new = count(1).__next__
        self._limit = environment.limits.nesting
        self._structs = any(token[0] == "{" for token in tokens)
        self.issues: list[Issue] = []
        self.macro_calls: dict[int, Call] = {}

    def _open(self, kind: str, at: int) -> Frame:
        """Start reading inside a bracket, or after the `?` or `:` of a conditional."""
        if not self._frames:
            frame = Frame(kind, at, 1, 1, 1)
        else:
            around = self._frames[-1]
            if kind == "then" or kind == "else":
                frame = Frame(kind, at, around.depth + (kind == "else"), around.sums, around.relations)
            else:
                related = sum([precedence == RELATION for precedence, *_ in around.operators])
                sums = around.sums + len(around.operators) - related
                frame = Frame(kind, at, around.depth + 1, sums + 1, around.relations + related + 1)
            if frame.depth > self._limit or frame.sums > self._limit or frame.relations > self._limit:
                raise self._too_deep()
        self._frames.append(frame)
        return frame

    def _too_deep(self) -> TooDeepError:
        return TooDeepError(f"expression recursion limit exceeded: {self._limit}")

    def _close(self, frame: Frame, kind: str, value: Expr) -> Expr | None:
        self._at += 1
        match frame.kind, kind:
            case "start", "<EOF>":
                self._frames.pop()
                return value
            case "(", ")":
                self._frames.pop()
                return value
            case "index", "]":
                self._frames.pop()
                assert frame.target is not None
                function = OPTIONAL_INDEX if frame.function else INDEX
                return Call(self._new(), frame.at, function, None, (frame.target, value))
            case ("args", "," | ")") | ("list", "," | "]"):
                frame.items.append(value)
            case "key", ":":
                frame.items.append(value)
                frame.targets.append((self._tokens[self._at - 1].at, ""))
                frame.kind = "value"
                return None
            case ("value", "," | "}"):
                frame.items.append(value)
                frame.kind = "key"
            case ("field", "," | "}"):
                frame.items.append(value)
            case _:
                raise UnreadableError
        return self._after_item(frame, kind)

    def _after_item(self, frame: Frame, kind: str) -> Expr | None:
        """Go on to the next item of a bracket that holds several, or close it."""
        closing = _CLOSING[frame.kind]
        if kind == "," and frame.kind != "args" and self._tokens[self._at].kind == closing:
            self._at += 1
            kind = closing
        if kind == ",":
            self._start_item(frame)
            return None
        self._frames.pop()
        return self._built(frame)

    def _start_item(self, frame: Frame) -> None:
        """Read what stands before the expression of an item: a question mark, or a field's name."""
        if frame.kind == "args":
            return
        token = self._tokens[self._at]
        optional = token.kind == "?"
        if optional:
            self._at += 1
            if not self._environment.flags.optional_syntax:
                self.issues.append(Issue(token.at, "unsupported syntax '?'"))
        frame.optional.append(optional)
        if frame.kind == "field":
            name = self._field_name()
            colon = self._tokens[self._at]
            if colon.kind != ":":
                raise UnreadableError
            self._at += 1
            frame.targets.append((colon.at, name))

    def _built(self, frame: Frame) -> Expr:
        """Return what a closed bracket holds."""
        items = tuple(frame.items)
        if frame.kind == "args":
            return self._call(frame.function, frame.at, frame.target, items)
        if frame.kind == "list":
            optional = frozenset(i for i, marked in enumerate(frame.optional) if marked)
            return MakeList(self._new(), frame.at, items, optional)
        if frame.kind == "field":
            fields = tuple(
                FieldInit(self._new(), at, name, value, optional)
                for (at, name), value, optional in zip(frame.targets, items, frame.optional, strict=True)
            )
            return MakeStruct(self._new(), frame.at, frame.function, fields)
        entries = tuple(
            Entry(self._new(), at, key, value, optional)
            for (at, _), key, value, optional in zip(
                frame.targets, items[::2], items[1::2], frame.optional, strict=True
            )
        )
        return MakeMap(self._new(), frame.at, entries)

    def _bracket(self, kind: str, at: int, target: Expr | None = None, function: str = "") -> Expr | None:
        """Open a bracket that holds several items; return its value at once where it holds none."""
        frame = self._open(kind, at)
        frame.target, frame.function = target, function
        closing = _CLOSING[kind]
        upcoming = self._tokens[self._at].kind
        if upcoming == "," and kind != "args" and self._tokens[self._at + 1].kind == closing:
            self._at += 1
            upcoming = closing
        if upcoming == closing:
            self._at += 1
            self._frames.pop()
            return self._built(frame)
        self._start_item(frame)
        return None

    def _field_name(self) -> str:
        token = self._tokens[self._at]
        self._at += 1
        if token.kind == IDENTIFIER:
            return token.text
        if token.kind != ESCAPED:
            raise UnreadableError
        if not self._environment.flags.backtick_fields:
            self.issues.append(Issue(token.at, "unsupported syntax: '`'"))
        return token.text[1:-1]

    def _call(self, function: str, at: int, target: Expr | None, args: tuple[Expr, ...]) -> Expr:
        """Return a call, or what a macro of that name makes of it."""
        macros = self._environment.macros
        macro = macros.get((function, len(args), target is not None)) or macros.get(
            (function, VARIADIC, target is not None)
        )
        if macro is not None:
            try:
                grown = macro.expand(Grower(self._new, at, self.macro_calls), target, args)
            except MacroRefused as refused:
                self.issues.append(Issue(refused.at, refused.message))
                return Literal(self._new(), at, None, LiteralKind.NULL)
            if grown is not None:
                self.macro_calls[grown.id] = Call(0, at, function, target, args)
                return grown
        return Call(self._new(), at, function, target, args)
