"""
What an evaluation comes to, where it is not a value: data that are pending, or a failure.

CEL reports what is missing by its messages only, as for upstream: a missing key, field,
variable or element may still come, and everything else is an error.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from lamina.graph.failure_texts import failure_text
from lamina.graph.problems import pointed, short

# CEL is imported on demand: it takes long, and evaluations come after its import.
if TYPE_CHECKING:
    from lamina.cel.errors import EvaluationError
    from lamina.graph.expressions import Expression

_MISSING = ("no such key", "no such field", "no such attribute", "index out of bounds")


class Pending(Struct, frozen=True):
    """Data that an expression needs is not there yet. `because` names the node, the expression and the data."""

    node: str
    because: str


class Failed(Struct, frozen=True):
    """An expression cannot be evaluated, or its value cannot be used. `because` names the node and the expression."""

    node: str
    because: str


class UnresolvedError(Exception):
    """An expression has no value; `is_pending` says whether it may have one later."""

    def __init__(self, message: str, *, is_pending: bool = False) -> None:
        super().__init__(message)
        self.message = message
        self.is_pending = is_pending

    def outcome(self, node: str) -> Pending | Failed:
        because = f'node "{node}": {self.message}' if node else self.message
        return Pending(node, because) if self.is_pending else Failed(node, because)


def evaluated(expression: Expression, variables: Mapping[str, Any], what: str) -> Any:
    """Return the value of an expression; raises UnresolvedError, whose message says what the expression is."""
    from lamina.cel.errors import EvaluationError

    try:
        return expression.program.evaluate(variables)
    except EvaluationError as error:
        raise unresolved(expression, error, what) from None


def holds(expression: Expression, variables: Mapping[str, Any], what: str) -> bool:
    """Return whether a condition is true; an empty optional is not. Raises UnresolvedError."""
    from lamina.cel.values import Optional

    value = evaluated(expression, variables, what)
    if isinstance(value, Optional):
        value = value.value
    if value is None:
        return False
    if not isinstance(value, bool):
        raise UnresolvedError(f'{what} "{short(expression.text)}" did not return bool')
    return value


def unresolved(expression: Expression, error: EvaluationError, what: str) -> UnresolvedError:
    """Return why an expression has no value, by the whole message; it is shown without values of other objects."""
    from lamina.cel.errors import CostExceeded

    shown = f'{what} "{short(expression.text)}"'
    if isinstance(error, CostExceeded):
        said = f"{shown} in {expression.field} costs more than one evaluation may: {error.message}"
        parsed, remedy = expression.program.checked, "shorten the lists that it goes through"
        return UnresolvedError(pointed(said, expression.program.source, parsed.expr.at, remedy))
    if any(missing in error.message for missing in _MISSING):
        return UnresolvedError(f"{shown} waits for data: {failure_text(expression, error)}", is_pending=True)
    return UnresolvedError(f"{shown} failed: {failure_text(expression, error)}")
