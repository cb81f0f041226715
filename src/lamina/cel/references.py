"""
The references of an expression: its variables, their fields, and functions.

No types are needed. Loops are followed: `pods.items.exists(p, p.status.phase ==
'Running')` reads `pods.items[*].status.phase`. A path is as long as possible; the
expression may read everything below it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from lamina.cel.ast import (
    INDEX,
    OPTIONAL_INDEX,
    Call,
    Checked,
    Comprehension,
    Expr,
    Ident,
    Literal,
    MakeList,
    MakeMap,
    Parsed,
    Select,
    children,
)
from lamina.cel.declarations import Environment
from lamina.cel.errors import CelError
from lamina.cel.types import Kind, Type

EACH: Final = "*"
"""The step from a list or map to any of its items or values."""

Step: TypeAlias = str | int


@dataclass(frozen=True, slots=True)
class Path:
    """A variable, and a path of fields, keys and indexes into it."""

    variable: str
    steps: tuple[Step, ...] = ()

    def __str__(self) -> str:
        shown = self.variable
        for step in self.steps:
            if step == EACH or isinstance(step, int):
                shown += f"[{step}]"
            elif step.isidentifier():
                shown += f".{step}"
            else:
                shown += f'["{step}"]'
        return shown


@dataclass(frozen=True, slots=True)
class Reads:
    """
    The references of an expression, in source order, without duplicates.

    `tested` are the paths of `has()`; they are in `paths` too. `functions` are
    the names of called functions, without operators.
    """

    paths: tuple[Path, ...]
    tested: tuple[Path, ...]
    functions: tuple[str, ...]

    @property
    def variables(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(path.variable for path in self.paths))


def reads(expression: Parsed | Checked, environment: Environment | None = None) -> Reads:
    """
    Return the references of an expression.

    With an environment, `math.least` is resolved as a function, and `int` as a
    type; without one, both names are taken for variables.
    """
    types = expression.types if isinstance(expression, Checked) else {}
    tracer = _Tracer(environment, types)
    try:
        tracer.end(tracer.trace(expression.expr))
    except RecursionError:
        raise CelError("expression is nested too deeply") from None
    return Reads(tuple(tracer.paths), tuple(tracer.tested), tuple(tracer.functions))


@dataclass(slots=True)
class _Tracer:
    environment: Environment | None
    types: Mapping[int, Type]
    paths: dict[Path, None] = field(default_factory=dict)
    tested: dict[Path, None] = field(default_factory=dict)
    functions: dict[str, None] = field(default_factory=dict)
    scopes: list[dict[str, Path | None]] = field(default_factory=list)

    def end(self, path: Path | None) -> None:
        """Record a path that nothing extends."""
        if path is not None:
            self.paths[path] = None

    def trace(self, expr: Expr) -> Path | None:
        """Return the path of an expression, if it is one; record the paths inside it otherwise."""
        match expr:
            case Ident():
                return self._ident(expr)
            case Select():
                return self._select(expr)
            case Call(function=function, args=(container, key)) if function in (INDEX, OPTIONAL_INDEX):
                return self._index(container, key)
            case Call():
                self._call(expr)
                return None
            case Comprehension():
                return self._comprehension(expr)
            case _:
                for child in children(expr):
                    self.end(self.trace(child))
                return None

    def _ident(self, expr: Ident) -> Path | None:
        for scope in () if expr.name.startswith(".") else reversed(self.scopes):
            if expr.name in scope:
                return scope[expr.name]
        type_ = self.types.get(expr.id)
        if type_ is not None and type_.kind is Kind.TYPE:
            return None
        name = expr.name.removeprefix(".")
        environment = self.environment
        if environment is not None and name not in environment.variables and _is_type(name, environment):
            return None
        return Path(name)

    def _select(self, expr: Select) -> Path | None:
        operand = self.trace(expr.operand)
        if operand is None:
            return None
        path = Path(operand.variable, (*operand.steps, expr.field))
        if not expr.test_only:
            return path
        self.end(path)
        self.tested[path] = None
        return None

    def _index(self, container: Expr, key: Expr) -> Path | None:
        held = self.trace(container)
        step: Step = EACH
        if isinstance(key, Literal) and isinstance(key.value, str | int) and not isinstance(key.value, bool):
            step = key.value
        else:
            self.end(self.trace(key))
        return None if held is None else Path(held.variable, (*held.steps, step))

    def _call(self, expr: Call) -> None:
        qualified = self._qualified(expr)
        if qualified is not None:
            self.functions[qualified] = None
        else:
            if expr.function[:1].isalpha():
                self.functions[expr.function] = None
            if expr.target is not None:
                self.end(self.trace(expr.target))
        for arg in expr.args:
            self.end(self.trace(arg))

    def _qualified(self, expr: Call) -> str | None:
        """Return the full name of a function whose target is part of its name."""
        parts, node = [expr.function], expr.target
        while isinstance(node, Select):
            parts.append(node.field)
            node = node.operand
        if not isinstance(node, Ident) or self.environment is None:
            return None
        name = ".".join(reversed([*parts, node.name]))
        known = self.environment.functions
        return next((found for found in self.environment.candidates(name) if found in known), None)

    def _comprehension(self, expr: Comprehension) -> Path | None:
        if isinstance(expr.iter_range, MakeList | MakeMap):
            self.end(self.trace(expr.iter_range))
            held = None
        else:
            held = self.trace(expr.iter_range)
            self.end(held)
        start = self.trace(expr.accu_init)
        element = None if held is None else Path(held.variable, (*held.steps, EACH))
        loop = {expr.iter_var: None, expr.iter_var2: element} if expr.iter_var2 else {expr.iter_var: element}
        self.scopes.append({expr.accu_var: start})
        self.scopes.append(loop)
        loops = not isinstance(expr.iter_range, MakeList) or expr.iter_range.items
        for part in (expr.loop_condition, expr.loop_step) if loops else ():
            self.end(self.trace(part))
        self.scopes.pop()
        result = self.trace(expr.result)
        self.scopes.pop()
        return result


def _is_type(name: str, environment: Environment) -> bool:
    return any(
        candidate in environment.types or candidate in _TYPE_NAMES
        for candidate in environment.candidates(name)
    )


_TYPE_NAMES: Final = frozenset(
    {"bool", "bytes", "double", "int", "list", "map", "null_type", "string", "type", "uint"}
)
