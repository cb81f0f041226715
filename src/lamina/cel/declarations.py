"""
The declarations of an environment: functions, macros, variables, types and constants.

An environment is a value. `extend` adds libraries and a caller's own functions and
variables.

`lamina.cel.parse.parse(text, environment)` and
`lamina.cel.check.check(parsed, environment)` use one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Protocol

from lamina.cel.ast import Expr, Literal, LiteralKind
from lamina.cel.types import Kind, Type

if TYPE_CHECKING:
    from lamina.cel.cost.size import CallEstimate, CostNode


class CallEstimator(Protocol):
    """
    Estimates the cost of one call.

    `target` and `args` have their type and, where known, their size. None
    falls back to the rules for the function's name.
    """

    def __call__(self, target: CostNode | None, args: Sequence[CostNode]) -> CallEstimate | None: ...


@dataclass(frozen=True, slots=True)
class Overload:
    """
    One signature of a function.

    `params` starts with the receiver where `member` is true. `implementation`
    takes the arguments in that order. A strict function is not called when an
    argument is an error. `cost` returns the run-time cost of a call, given its
    arguments and result; `estimate` is its static estimate. Both are only
    needed for functions without cost rules by name.
    """

    id: str
    params: tuple[Type, ...]
    result: Type
    member: bool = False
    implementation: Callable[..., Any] | None = field(default=None, compare=False)
    strict: bool = True
    cost: Callable[[Sequence[Any], Any], int] | None = field(default=None, compare=False)
    estimate: CallEstimator | None = field(default=None, compare=False)
    type_params: tuple[str, ...] = field(init=False, compare=False, repr=False)
    """The names of the type parameters in the signature."""

    def __post_init__(self) -> None:
        names = dict.fromkeys(name for type_ in (self.result, *self.params) for name in _parameters(type_))
        object.__setattr__(self, "type_params", tuple(names))


@dataclass(frozen=True, slots=True)
class Function:
    """A name and its overloads, in the order of resolution."""

    name: str
    overloads: tuple[Overload, ...]
    members: tuple[Overload, ...] = field(init=False, compare=False, repr=False)
    """The member overloads."""
    globals: tuple[Overload, ...] = field(init=False, compare=False, repr=False)
    """The global overloads."""
    cache: dict[Any, Any] = field(init=False, compare=False, repr=False)
    """The checker's results for calls, by the codes of their argument types."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "members", tuple(o for o in self.overloads if o.member))
        object.__setattr__(self, "globals", tuple(o for o in self.overloads if not o.member))
        object.__setattr__(self, "cache", {})


@dataclass(frozen=True, slots=True)
class Variable:
    """A variable of the activation."""

    name: str
    type: Type


@dataclass(frozen=True, slots=True)
class Constant:
    """A named constant, such as a value of an enum."""

    name: str
    type: Type
    value: int | float | str | bytes | bool | None
    kind: LiteralKind


class MacroContext(Protocol):
    """
    The builder of a macro's expansion.

    Every new node gets a new id and the position of the call. `copy` is for an
    argument that is used twice; `accumulator` is the accumulator variable.
    """

    accumulator: str

    def literal(self, value: int | float | str | bytes | bool | None, kind: LiteralKind) -> Expr: ...
    def ident(self, name: str) -> Expr: ...
    def accumulated(self) -> Expr: ...
    def call(self, function: str, *args: Expr) -> Expr: ...
    def member_call(self, function: str, target: Expr, *args: Expr) -> Expr: ...
    def select(self, operand: Expr, field: str, *, test_only: bool = False) -> Expr: ...
    def make_list(self, *items: Expr) -> Expr: ...
    def make_map(self, *entries: tuple[Expr, Expr]) -> Expr: ...
    def comprehension(
        self,
        iter_range: Expr,
        iter_var: str,
        accu_var: str,
        accu_init: Expr,
        condition: Expr,
        step: Expr,
        result: Expr,
        *,
        iter_var2: str = "",
    ) -> Expr: ...
    def copy(self, expr: Expr) -> Expr: ...
    def fail(self, message: str, at: Expr | None = None) -> MacroRefused: ...


class MacroRefused(Exception):
    """The arguments of a macro are invalid; raise what `MacroContext.fail` returns."""

    def __init__(self, message: str, at: int) -> None:
        super().__init__(message)
        self.message = message
        self.at = at


VARIADIC: Final = -1
"""The `arguments` of a variadic macro."""


@dataclass(frozen=True, slots=True)
class Macro:
    """
    A call that the parser expands.

    `expand` returns the expansion, or None to keep the call.
    """

    name: str
    arguments: int
    member: bool
    expand: Callable[[MacroContext, Expr | None, tuple[Expr, ...]], Expr | None] = field(compare=False)


@dataclass(frozen=True, slots=True)
class Library:
    """Functions, macros, types and constants that belong together."""

    name: str
    functions: tuple[Function, ...] = ()
    macros: tuple[Macro, ...] = ()
    constants: tuple[Constant, ...] = ()
    variables: tuple[Variable, ...] = ()
    types: tuple[Type, ...] = ()


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of an expression's size and cost, by default Kubernetes'."""

    code_points: int = 100_000
    nesting: int = 250
    cost: int | None = None
    """The run-time cost limit of one evaluation; None does not count."""


@dataclass(frozen=True, slots=True)
class Flags:
    """
    The options in which environments differ.

    `homogeneous_literals`: the items of a list, and the keys and values of a
    map, must have one type (dyn counts as one). `cross_type_numeric_comparisons`:
    `1 < 1.5` type-checks. `optional_syntax`: `a.?b`, `a[?b]`, `[?x]`, `{?k: v}`.
    `backtick_fields`: fields quoted with backticks. `validate_literals`: conversions, regular
    expressions, durations, timestamps and format strings written as literals are
    checked at compile time. `kubernetes_costs`: costs are counted and estimated
    as Kubernetes does, where `has()` is free and its own functions have prices.
    `strict_values`: `has()` on a value without fields is an error, and so are
    a repeated map key and a key that is a double or null.
    """

    homogeneous_literals: bool = False
    cross_type_numeric_comparisons: bool = True
    optional_syntax: bool = True
    backtick_fields: bool = True
    validate_literals: bool = False
    kubernetes_costs: bool = False
    strict_values: bool = False


_NOTHING: Final[Mapping[Any, Any]] = MappingProxyType({})


@dataclass(frozen=True, slots=True, kw_only=True)
class Environment:
    """
    All declarations, by name.

    `container` is the namespace of relative names: in `a.b`, the name `c`
    resolves to `a.b.c`, `a.c` or `c`, the first that exists.
    """

    name: str = "plain"
    container: str = ""
    functions: Mapping[str, Function] = field(default_factory=lambda: _NOTHING)
    macros: Mapping[tuple[str, int, bool], Macro] = field(default_factory=lambda: _NOTHING)
    variables: Mapping[str, Variable] = field(default_factory=lambda: _NOTHING)
    constants: Mapping[str, Constant] = field(default_factory=lambda: _NOTHING)
    types: Mapping[str, Type] = field(default_factory=lambda: _NOTHING)
    libraries: frozenset[str] = frozenset()
    flags: Flags = field(default_factory=Flags)
    limits: Limits = field(default_factory=Limits)
    namespaces: frozenset[str] = field(init=False, compare=False, repr=False)
    """The first parts of all qualified names."""
    macro_names: frozenset[str] = field(init=False, compare=False, repr=False)
    """The names of all macros."""
    cache: dict[str, Any] = field(init=False, compare=False, repr=False)
    """The checker's results for names."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "cache", {})
        object.__setattr__(self, "macro_names", frozenset(macro for macro, _, _ in self.macros))
        named = (self.functions, self.variables, self.constants, self.types)
        parts = {name.partition(".")[0] for names in named for name in names if "." in name}
        object.__setattr__(self, "namespaces", frozenset(parts | {"google"}))

    def extend(
        self,
        *,
        libraries: Iterable[Library] = (),
        functions: Iterable[Function] = (),
        macros: Iterable[Macro] = (),
        variables: Iterable[Variable] = (),
        constants: Iterable[Constant] = (),
        types: Iterable[Type] = (),
        container: str | None = None,
        name: str | None = None,
        flags: Flags | None = None,
        limits: Limits | None = None,
    ) -> Environment:
        """
        Return this environment with more declarations.

        An existing function gets more overloads; one with the same id replaces
        the old one. Macros, variables, constants and types replace those with
        the same name.
        """
        libraries = tuple(libraries)
        functions = [*(f for library in libraries for f in library.functions), *functions]
        macros = [*(m for library in libraries for m in library.macros), *macros]
        constants = [*(c for library in libraries for c in library.constants), *constants]
        variables = [*(v for library in libraries for v in library.variables), *variables]
        types = [*(t for library in libraries for t in library.types), *types]
        merged = dict(self.functions)
        for function in functions:
            merged[function.name] = _joined(merged.get(function.name), function)
        return replace(
            self,
            name=self.name if name is None else name,
            container=self.container if container is None else container,
            functions=merged,
            macros={**self.macros, **{(m.name, m.arguments, m.member): m for m in macros}},
            variables={**self.variables, **{v.name: v for v in variables}},
            constants={**self.constants, **{c.name: c for c in constants}},
            types={**self.types, **{t.name: t for t in types}},
            libraries=self.libraries | {library.name for library in libraries},
            flags=self.flags if flags is None else flags,
            limits=self.limits if limits is None else limits,
        )

    def candidates(self, name: str) -> tuple[str, ...]:
        """
        Return the qualified names that a name may resolve to, in order.

        A name with a leading dot is fully qualified.
        """
        if name.startswith("."):
            return (name[1:],)
        if not self.container:
            return (name,)
        parts = self.container.split(".")
        prefixes = (".".join(parts[:length]) for length in range(len(parts), 0, -1))
        return (*(f"{prefix}.{name}" for prefix in prefixes), name)

    def overload(self, function: str, overload_id: str) -> Overload:
        """Return one overload of a function by its id."""
        return next(o for o in self.functions[function].overloads if o.id == overload_id)

    def literal(self, constant: Constant) -> Literal:
        return Literal(0, 0, constant.value, constant.kind)


def _joined(old: Function | None, new: Function) -> Function:
    if old is None:
        return new
    replaced = {overload.id: overload for overload in new.overloads}
    kept = [replaced.pop(overload.id, overload) for overload in old.overloads]
    return Function(new.name, (*kept, *replaced.values()))


def _parameters(type_: Type) -> Iterator[str]:
    if type_.kind is Kind.PARAM:
        yield type_.name
    for inner in type_.params:
        yield from _parameters(inner)
