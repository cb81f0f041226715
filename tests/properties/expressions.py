"""How to make any expression of a type, and any input for it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, TypeVar

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from lamina.cel.declarations import Variable
from lamina.cel.types import BOOL, DOUBLE, DYN, INT, STRING, list_of, map_of

T = TypeVar("T")
Draw = Callable[[SearchStrategy[Any]], Any]

VARIABLES = (
    Variable("i", INT),
    Variable("j", INT),
    Variable("d", DOUBLE),
    Variable("s", STRING),
    Variable("t", STRING),
    Variable("b", BOOL),
    Variable("l", list_of(INT)),
    Variable("w", list_of(STRING)),
    Variable("m", map_of(STRING, INT)),
    Variable("x", DYN),
)
"""The variables that expressions are made of."""

integers = st.sampled_from([0, 1, 2, -1, 3, 7, 100, 2**31, 2**63 - 1, -(2**63)]) | st.integers(-5, 5)
doubles = st.sampled_from([0.0, 1.0, -1.5, 2.5, 1e10, 0.1]) | st.floats(
    allow_nan=False, allow_infinity=False, width=32
)
WORDS = ("", "a", "b", "ab", "name", "Hello", "é", "x-y", "1", "true")
words = st.sampled_from(WORDS)
json_values: SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | integers | doubles | words,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=3),
    max_leaves=6,
)


@st.composite
def inputs(draw: Draw, *, fitting: bool = True) -> dict[str, Any]:
    """Return values for the variables; those that are not `fitting` may have other types than declared."""
    made: dict[str, Any] = {
        "i": draw(integers),
        "j": draw(integers),
        "d": draw(doubles),
        "s": draw(words),
        "t": draw(words),
        "b": draw(st.booleans()),
        "l": draw(st.lists(integers, max_size=4)),
        "w": draw(st.lists(words, max_size=4)),
        "m": draw(st.dictionaries(words, integers, max_size=3)),
        "x": draw(json_values),
    }
    if not fitting:
        for name in draw(st.sets(st.sampled_from(sorted(made)), max_size=3)):
            made[name] = draw(json_values)
        for name in draw(st.sets(st.sampled_from(sorted(made)), max_size=1)):
            del made[name]
    return made


def _written(value: str) -> str:
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"


class _Maker:
    """Writes an expression; every choice is one draw, so that a failing example becomes a small one."""

    def __init__(self, draw: Draw) -> None:
        self._draw = draw
        self._names: list[str] = []

    def any(self, depth: int) -> str:
        kinds = (self.boolean, self.integer, self.text, self.list, self.anything, self.double)
        return self._one(kinds)(depth)

    def _one(self, choices: Sequence[T]) -> T:
        return choices[self._draw(_up_to(len(choices)))]

    def boolean(self, depth: int) -> str:
        if depth <= 0:
            return self._one(("b", "true", "false"))
        d = depth - 1
        match self._one(range(15)):
            case 0:
                return f"({self.boolean(d)} && {self.boolean(d)})"
            case 1:
                return f"({self.boolean(d)} || {self.boolean(d)})"
            case 2:
                return f"!{self.boolean(d)}"
            case 3:
                return f"({self.boolean(d)} ? {self.boolean(d)} : {self.boolean(d)})"
            case 4:
                return f"({self.integer(d)} {self._one(_ORDER)} {self.integer(d)})"
            case 5:
                return f"({self.text(d)} {self._one(_ORDER)} {self.text(d)})"
            case 6:
                return f"({self.double(d)} {self._one(('<', '>='))} {self.double(d)})"
            case 7:
                return f"({self.integer(d)} in {self.list(d)})"
            case 8:
                return f"({self.text(d)} in {self._one(('m', 'w', _LETTERS, _MAP))})"
            case 9:
                return f"{self.text(d)}.{self._one(('startsWith', 'contains', 'endsWith'))}({self.text(d)})"
            case 10:
                return f"has(m.{self._one(('a', 'ab', 'name'))})"
            case 11:
                return f"has(x.{self._one(('a', 'ab', 'name'))})"
            case 12:
                return f"({self.anything(d)} {self._one(('==', '!='))} {self.anything(d)})"
            case 13:
                return f"({self.anything(d)} {self._one(_ORDER)} {self.anything(d)})"
            case _:
                return self._loop(d, self._one(("all", "exists", "exists_one")), self.boolean)

    def integer(self, depth: int) -> str:
        if depth <= 0:
            return self._one((*self._names, "i", "j", "0", "1", "2", "-1", "7", "9223372036854775807"))
        d = depth - 1
        match self._one(range(9)):
            case 0:
                return f"({self.integer(d)} {self._one(('+', '-', '*', '/', '%'))} {self.integer(d)})"
            case 1:
                return f"({self.boolean(d)} ? {self.integer(d)} : {self.integer(d)})"
            case 2:
                return f"size({self.text(d)})"
            case 3:
                return f"{self.list(d)}.size()"
            case 4:
                return f"{self.list(d)}[{self.integer(d)}]"
            case 5:
                return f"m[{self.text(d)}]"
            case 6:
                return f"int({self.double(d)})"
            case 7:
                return f"m.{self._one(('a', 'ab'))}"
            case _:
                return f"-({self.integer(d)})"

    def double(self, depth: int) -> str:
        if depth <= 0:
            return self._one(("d", "0.0", "1.5", "-2.5", "1e3"))
        if self._one((True, False)):
            return f"double({self.integer(depth - 1)})"
        return f"({self.double(depth - 1)} {self._one(('+', '-', '*', '/'))} {self.double(depth - 1)})"

    def text(self, depth: int) -> str:
        if depth <= 0:
            return self._one(("s", "t", *map(_written, WORDS)))
        d = depth - 1
        match self._one(range(4)):
            case 0:
                return f"({self.text(d)} + {self.text(d)})"
            case 1:
                return f"({self.boolean(d)} ? {self.text(d)} : {self.text(d)})"
            case 2:
                return f"string({self.integer(d)})"
            case _:
                return f"w[{self.integer(d)}]"

    def list(self, depth: int) -> str:
        if depth <= 0:
            return self._one(("l", "[1, 2, 3]", "[]", "[i, j]"))
        d = depth - 1
        match self._one(range(5)):
            case 0:
                return f"({self.list(d)} + {self.list(d)})"
            case 1:
                return f"[{self.integer(d)}, {self.integer(d)}]"
            case 2:
                return self._loop(d, "map", self.integer)
            case 3:
                return self._loop(d, "filter", self.boolean)
            case _:
                return f"({self.boolean(d)} ? {self.list(d)} : {self.list(d)})"

    def anything(self, depth: int) -> str:
        """Write something whose type is not known before it is evaluated."""
        field = self._one(("a", "b", "name"))
        match self._one(range(9)):
            case 0:
                return "x"
            case 1:
                return f"x.{field}"
            case 2:
                return f"x.{field}.{self._one(('a', 'b'))}"
            case 3:
                return f"x[{self.integer(0)}]"
            case 4:
                return f"x.?{field}.orValue(dyn({self.integer(depth - 1)}))"
            case 5:
                return f"x.?{field}.?{self._one(('a', 'b'))}.hasValue()"
            case 6:
                return f"(dyn({self._known(depth)}) + dyn({self._known(depth)}))"
            case 7:
                return f"[dyn({self._known(depth)}), dyn({self._known(depth)})]"
            case _:
                return f"dyn({self._known(depth)})"

    def _known(self, depth: int) -> str:
        return self._one((self.integer, self.text, self.boolean, self.double, self.list))(depth - 1)

    def _loop(self, depth: int, macro: str, body: Callable[[int], str]) -> str:
        over = self.list(depth)
        name = f"v{len(self._names)}"
        self._names.append(name)
        said = body(depth)
        self._names.pop()
        return f"{over}.{macro}({name}, {said})"


_ORDER = ("==", "!=", "<", "<=", ">", ">=")
_LETTERS, _MAP = "['a', 'b']", "{'a': 1}"


@lru_cache
def _up_to(count: int) -> SearchStrategy[int]:
    return st.integers(0, count - 1)


@st.composite
def expressions(draw: Draw, depth: int = 3) -> str:
    """Return any expression."""
    return _Maker(draw).any(depth)
