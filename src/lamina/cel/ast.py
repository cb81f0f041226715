"""
The AST of an expression.

Every node has an `id`, unique within its expression, and `at`, its offset in the
source: the operator of an operation, the dot of a selection, the opening parenthesis
of a call, as in cel-go. Types, references and macro calls are kept in maps by id, so
a tree is immutable. Nodes have no references to their parents.

Operators are calls of functions whose names are not valid identifiers:

    _?_:_  _||_  _&&_  !_  -_  _==_  _!=_  _<_  _<=_  _>_  _>=_  _+_  _-_  _*_  _/_  _%_
    _[_]  _[?_]  @in  @not_strictly_false

`a.?b` is a Select with `optional`, `has(a.b)` one with `test_only`. All other macros
are expanded: `macro_calls` maps the id of an expansion to the original call.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping
from enum import StrEnum
from functools import cached_property
from typing import TYPE_CHECKING, Final, TypeAlias

from msgspec import Struct, field

if TYPE_CHECKING:
    from lamina.cel.types import Type


CONDITIONAL: Final = "_?_:_"
OR: Final = "_||_"
AND: Final = "_&&_"
NOT: Final = "!_"
NEGATE: Final = "-_"
EQUALS: Final = "_==_"
NOT_EQUALS: Final = "_!=_"
LESS: Final = "_<_"
LESS_EQUALS: Final = "_<=_"
GREATER: Final = "_>_"
GREATER_EQUALS: Final = "_>=_"
ADD: Final = "_+_"
SUBTRACT: Final = "_-_"
MULTIPLY: Final = "_*_"
DIVIDE: Final = "_/_"
MODULO: Final = "_%_"
INDEX: Final = "_[_]"
OPTIONAL_INDEX: Final = "_[?_]"
OPTIONAL_SELECT: Final = "_?._"
IN: Final = "@in"
NOT_STRICTLY_FALSE: Final = "@not_strictly_false"

ACCUMULATOR: Final = "@result"
"""The accumulator variable of macros; not a valid identifier in a source text."""

UNUSED: Final = "#unused"
"""The loop variable of a comprehension that only binds a name: the expansion of `cel.bind` and `optMap`."""


class LiteralKind(StrEnum):
    """The type of a literal."""

    INT = "int"
    UINT = "uint"
    DOUBLE = "double"
    STRING = "string"
    BYTES = "bytes"
    BOOL = "bool"
    NULL = "null"


class Literal(Struct, frozen=True, gc=False):
    """A literal value. An int and a uint are both a Python int, distinguished by `kind`."""

    id: int
    at: int
    value: int | float | str | bytes | bool | None
    kind: LiteralKind


class Ident(Struct, frozen=True, gc=False):
    """An identifier, with its leading dot if it has one."""

    id: int
    at: int
    name: str


class Select(Struct, frozen=True, gc=False):
    """`operand.field`, `operand.?field` (optional), or `has(operand.field)` (test_only)."""

    id: int
    at: int
    operand: Expr
    field: str
    test_only: bool = False
    optional: bool = False


class Call(Struct, frozen=True, gc=False):
    """A call of a function or an operator; `target` is the receiver of a member call."""

    id: int
    at: int
    function: str
    target: Expr | None
    args: tuple[Expr, ...]


class MakeList(Struct, frozen=True, gc=False):
    """`[a, ?b]`; `optional_indices` are the indexes of the items with a question mark."""

    id: int
    at: int
    items: tuple[Expr, ...]
    optional_indices: frozenset[int] = frozenset()


class FieldInit(Struct, frozen=True, gc=False):
    """One `name: value` of a struct."""

    id: int
    at: int
    name: str
    value: Expr
    optional: bool = False


class MakeStruct(Struct, frozen=True, gc=False):
    """`some.Type{name: value}`."""

    id: int
    at: int
    type_name: str
    fields: tuple[FieldInit, ...]


class Entry(Struct, frozen=True, gc=False):
    """One `key: value` of a map."""

    id: int
    at: int
    key: Expr
    value: Expr
    optional: bool = False


class MakeMap(Struct, frozen=True, gc=False):
    """`{key: value}`."""

    id: int
    at: int
    entries: tuple[Entry, ...]


class Comprehension(Struct, frozen=True, gc=False):
    """
    A loop over a list or the keys of a map; the expansion of most macros.

    With `iter_var2` the variables are index and element, or key and value.
    """

    id: int
    at: int
    iter_var: str
    iter_var2: str
    iter_range: Expr
    accu_var: str
    accu_init: Expr
    loop_condition: Expr
    loop_step: Expr
    result: Expr


Expr: TypeAlias = Literal | Ident | Select | Call | MakeList | MakeStruct | MakeMap | Comprehension


def children(expr: Expr) -> tuple[Expr, ...]:
    """Return the direct subexpressions, in source order."""
    match expr:
        case Select():
            return (expr.operand,)
        case Call():
            return expr.args if expr.target is None else (expr.target, *expr.args)
        case MakeList():
            return expr.items
        case MakeStruct():
            return tuple(field.value for field in expr.fields)
        case MakeMap():
            return tuple(part for entry in expr.entries for part in (entry.key, entry.value))
        case Comprehension():
            return (expr.iter_range, expr.accu_init, expr.loop_condition, expr.loop_step, expr.result)
        case _:
            return ()


def walk(expr: Expr) -> Iterator[Expr]:
    """Yield an expression and all its subexpressions, outermost first."""
    waiting = [expr]
    while waiting:
        node = waiting.pop()
        yield node
        waiting.extend(reversed(children(node)))


class Source(Struct, frozen=True, dict=True):
    """The text of an expression, and its name in messages. Offsets count code points."""

    text: str
    name: str = "<input>"

    @cached_property
    def _starts(self) -> tuple[int, ...]:
        """The offset of each line."""
        return (0, *(i + 1 for i, char in enumerate(self.text) if char == "\n"))

    def position(self, at: int) -> tuple[int, int]:
        """Return the line, counted from 1, and the column, counted from 0."""
        line = bisect_right(self._starts, max(at, 0))
        return line, max(at, 0) - self._starts[line - 1]

    def line(self, number: int) -> str:
        """Return one line, counted from 1, without its end."""
        start = self._starts[number - 1]
        end = self._starts[number] - 1 if number < len(self._starts) else len(self.text)
        return self.text[start:end]


class Parsed(Struct, frozen=True):
    """A parsed expression; `macro_calls` has the original calls of expanded macros, by the new id."""

    expr: Expr
    source: Source
    macro_calls: Mapping[int, Call] = field(default_factory=dict)


class Reference(Struct, frozen=True):
    """
    The declaration that a node refers to.

    `name` is the full name of a variable or constant, without a leading dot;
    `overloads` are the ids a call may reach at run time; `constant` is the value
    of a named constant (an enum value), where `name` is one.
    """

    name: str = ""
    overloads: tuple[str, ...] = ()
    constant: Literal | None = None


class Checked(Struct, frozen=True):
    """
    A type-checked expression.

    `expr` is the tree with resolved names: `a.b` as one variable is an Ident,
    `math.least(x)` a Call without a target. Ids are those of `parsed`.
    """

    parsed: Parsed
    expr: Expr
    types: Mapping[int, Type]
    references: Mapping[int, Reference]
    result: Type

    def type_of(self, expr: Expr) -> Type:
        return self.types[expr.id]
