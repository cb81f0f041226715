"""Activations: the values of variables while an expression is interpreted."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Protocol

from lamina.cel.errors import EvaluationError
from lamina.cel.values import Value

if TYPE_CHECKING:
    from lamina.cel.evaluate.cost import CostTracker


class Interpretable(Protocol):
    """
    A planned node of an expression.

    An error is a value here, of class EvaluationError, because `||` absorbs it
    when its other side is true. Only CostExceeded is raised.
    """

    def run(self, activation: Activation) -> Value: ...


class Activation(Protocol):
    """The variables of one scope, and the cost tracker."""

    tracker: CostTracker | None

    def resolve(self, name: str) -> Value:
        """Return the value of a variable; without one, an error."""


def with_position(error: EvaluationError, at: int) -> EvaluationError:
    """Return an error with this position, unless it has one."""
    if error.at < 0:
        error.at = at
    return error


class RootActivation:
    """The variables of the caller."""

    __slots__ = ("tracker", "variables")

    def __init__(self, variables: Mapping[str, Value], tracker: CostTracker | None) -> None:
        self.variables = variables
        self.tracker = tracker

    def resolve(self, name: str) -> Value:
        # A leading dot skips the scopes of loops, which has been done here.
        name = name.removeprefix(".")
        try:
            return self.variables[name]
        except KeyError:
            return EvaluationError(f"no such attribute(s): {name}")


class LoopActivation:
    """The variables of a comprehension. The accumulator is initialized when it is first read."""

    __slots__ = ("_accumulator", "_first", "_outer", "_started", "tracker", "values")

    def __init__(self, outer: Activation, accumulator: str, first: Interpretable) -> None:
        self._outer = outer
        self._accumulator = accumulator
        self._first = first
        self._started = False
        self.tracker = outer.tracker
        self.values: dict[str, Value] = {}

    def resolve(self, name: str) -> Value:
        if name in self.values:
            return self.values[name]
        if name == self._accumulator and not self._started:
            self._started = True
            self.values[name] = value = self._first.run(self._outer)
            return value
        return self._outer.resolve(name)

    def set_accumulator(self, value: Value) -> None:
        """Set the accumulator."""
        self._started = True
        self.values[self._accumulator] = value

    def finish(self, names: tuple[str, ...]) -> None:
        """Remove the loop variables: the result is evaluated outside the loop."""
        for name in names:
            if name != self._accumulator:
                self.values.pop(name, None)
