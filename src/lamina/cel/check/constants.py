"""
Constant folding of literal conversions.

cel-go folds them when a program is planned, so `int('abc')` in a branch that is
never evaluated still makes a rule invalid. So does an invalid regular expression
in a literal.
"""

from __future__ import annotations

from typing import Any, Final

from lamina.cel.ast import Call, Checked, Comprehension, Expr, Literal, children
from lamina.cel.declarations import Environment
from lamina.cel.errors import EvaluationError, Issue
from lamina.cel.library.patterns import compiled
from lamina.cel.literals import literal_value
from lamina.cel.values import type_of

_CONVERSIONS: Final = frozenset(
    {"bool", "bytes", "double", "duration", "dyn", "int", "string", "timestamp", "type", "uint"}
)
_SEARCHES: Final = frozenset({"find", "findAll"})
_UNKNOWN: Final = object()


def constant_issue(checked: Checked, environment: Environment) -> Issue | None:
    """Return the first constant that cannot be computed, in the order of cel-go's planner."""
    constants: dict[int, Any] = {}
    try:
        for node in _planned(checked.expr):
            if isinstance(node, Literal):
                constants[node.id] = literal_value(node)
            elif isinstance(node, Call):
                constants[node.id] = _folded(node, constants, environment)
    except _Failed as failed:
        return failed.issue
    return None


class _Failed(Exception):
    def __init__(self, issue: Issue) -> None:
        super().__init__(issue.message)
        self.issue = issue


def _planned(expr: Expr) -> list[Expr]:
    """Return all subexpressions, inner ones first."""
    order: list[Expr] = []
    waiting = [expr]
    while waiting:
        node = waiting.pop()
        order.append(node)
        parts = children(node)
        if isinstance(node, Comprehension):
            parts = (parts[1], parts[0], *parts[2:])
        waiting.extend(parts)
    return order[::-1]


def _folded(call: Call, constants: dict[int, Any], environment: Environment) -> Any:
    """Return the value of a call with constant arguments."""
    try:
        if call.function in _SEARCHES and call.target is not None and isinstance(call.args[0], Literal):
            compiled(str(call.args[0].value))
        if call.function in _CONVERSIONS and call.target is None and len(call.args) == 1:
            value = constants.get(call.args[0].id, _UNKNOWN)
            return _UNKNOWN if value is _UNKNOWN else _converted(call.function, value, environment)
    except EvaluationError as error:
        raise _Failed(Issue(call.at, error.message)) from None
    return _UNKNOWN


def _converted(function: str, value: Any, environment: Environment) -> Any:
    if function == "dyn":
        return value
    name = type_of(value).name
    for overload in environment.functions[function].overloads:
        if overload.params[0].name == name and overload.implementation is not None:
            return overload.implementation(value)
    return _UNKNOWN
