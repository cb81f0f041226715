"""Where names get their values while an expression is carried out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Protocol

from lamina.cel.errors import EvaluationError
from lamina.cel.values import Value

if TYPE_CHECKING:
    from lamina.cel.evaluate.cost import Tracker


class Step(Protocol):
    """
    One part of an expression, ready to be carried out.

    An error is a value here, of class EvaluationError: `||` may still have use
    for its other side. Only CostExceeded is raised, since it ends everything.
    """

    def run(self, frame: Frame) -> Value: ...


class Frame(Protocol):
    """The names that can be seen from one place, and who counts."""

    tracker: Tracker | None

    def resolve(self, name: str) -> Value:
        """Return the value of a name; one that has none is an error."""


def placed(error: EvaluationError, at: int) -> EvaluationError:
    """Return the error, which happened here unless it already knows where."""
    if error.at < 0:
        error.at = at
    return error


class Outermost:
    """The variables the caller gave."""

    __slots__ = ("tracker", "variables")

    def __init__(self, variables: Mapping[str, Value], tracker: Tracker | None) -> None:
        self.variables = variables
        self.tracker = tracker

    def resolve(self, name: str) -> Value:
        # A leading dot passes by the names of the loops around, and has done so by now.
        name = name.removeprefix(".")
        try:
            return self.variables[name]
        except KeyError:
            return EvaluationError(f"no such attribute(s): {name}")


class Loop:
    """The names inside a comprehension. The accumulator gets its first value when it is first looked at."""

    __slots__ = ("_accumulator", "_first", "_outer", "_started", "tracker", "values")

    def __init__(self, outer: Frame, accumulator: str, first: Step) -> None:
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

    def gather(self, value: Value) -> None:
        """Set the accumulator."""
        self._started = True
        self.values[self._accumulator] = value

    def finish(self, names: tuple[str, ...]) -> None:
        """Forget the loop variables: the result is evaluated outside the loop."""
        for name in names:
            if name != self._accumulator:
                self.values.pop(name, None)
