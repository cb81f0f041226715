"""
Evaluation of one policy for one request with one set of parameters.

Match conditions come first: a false one skips the policy. Variables are evaluated on
first use, once. The cost of all expressions is limited by a budget; exceeding it
denies the request.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from lamina.cel.cost.limits import MESSAGE_BYTES, PER_MATCH_CONDITIONS, PER_OBJECT
from lamina.cel.errors import EvaluationError
from lamina.server.kinds.builtin.admission_cel.compiled import Compiled, Expression, Validation
from lamina.server.kinds.builtin.admission_cel.variables import VARIABLES

_BUDGET_EXCEEDED: Final = (
    "validation failed due to running out of cost budget, no further validation rules will be run"
)


class Denial(NamedTuple):
    """Why a policy denies a request; `failed` if its evaluation failed."""

    message: str
    reason: str = "Invalid"
    failed: bool = False


class _BudgetExceeded(Exception):
    """The cost budget is used up."""


def evaluate_policy(made: Compiled, variables: Mapping[str, Any]) -> list[Denial]:
    """Return the denials of a request; none if the policy does not match or is satisfied."""
    met = conditions_met(made.conditions, variables)
    if isinstance(met, Denial):
        return [met]
    return _validations(made, variables) + _annotations(made, variables) if met else []


def conditions_met(conditions: Sequence[Expression], variables: Mapping[str, Any]) -> Denial | bool:
    """Return whether match conditions are met; a denial if that cannot be evaluated."""
    meter = _Meter(PER_MATCH_CONDITIONS)
    try:
        found = [meter.evaluate(one, variables) for one in conditions]
    except _BudgetExceeded:
        return Denial(_BUDGET_EXCEEDED, failed=True)
    if any(one is False for one in found):
        return False
    failed = [one.message for one in found if isinstance(one, EvaluationError)]
    if not failed:
        return True
    return Denial(failed[0] if len(failed) == 1 else f"[{', '.join(failed)}]", failed=True)


def _validations(made: Compiled, variables: Mapping[str, Any]) -> list[Denial]:
    meter = _Meter(PER_OBJECT)
    seen = {**variables, VARIABLES: _Lazy(made.variables, variables, meter)}
    try:
        found = [meter.evaluate(one.check, seen) for one in made.validations]
    except _BudgetExceeded:
        return [Denial(_BUDGET_EXCEEDED, failed=True)]
    refusals = []
    for validation, passed in zip(made.validations, found, strict=True):
        if isinstance(passed, EvaluationError):
            refusals.append(Denial(passed.message, failed=True))
        elif passed is not True:
            refusals.append(_refusal(validation, meter, seen))
    return refusals


def _refusal(validation: Validation, meter: _Meter, seen: Mapping[str, Any]) -> Denial:
    message = ""
    if validation.message is not None:
        try:
            made = meter.evaluate(validation.message, seen)
        except _BudgetExceeded:
            return Denial(f"failed messageExpression: {_BUDGET_EXCEEDED}", failed=True)
        message = made.strip() if isinstance(made, str) else ""
    fits = message and len(message.encode()) <= MESSAGE_BYTES and "\n" not in message
    return Denial(message if fits else validation.said, validation.reason)


def _annotations(made: Compiled, variables: Mapping[str, Any]) -> list[Denial]:
    """Return the failures of audit annotations; their values are dropped, since there is no audit."""
    meter = _Meter(PER_OBJECT)
    seen = {**variables, VARIABLES: _Lazy(made.variables, variables, meter)}
    try:
        found = [meter.evaluate(one, seen) for one in made.annotations]
    except _BudgetExceeded:
        return [Denial(_BUDGET_EXCEEDED, failed=True)]
    return [Denial(one.message, failed=True) for one in found if isinstance(one, EvaluationError)]


class _Meter:
    """Evaluates expressions and counts their cost."""

    __slots__ = ("left",)

    def __init__(self, left: int) -> None:
        self.left = left

    def evaluate(self, expression: Expression, variables: Mapping[str, Any]) -> Any:
        """Return the value of an expression, or an error that names the expression."""
        if expression.program is None:
            return EvaluationError(f"compilation error: {expression.problem}")
        if expression.most is not None:
            try:
                value = expression.program.evaluate(variables)
            except EvaluationError as error:
                return self._failed(expression, error)
            self.spend(expression.most)
            return value
        outcome = expression.program.run(variables)
        self.spend(outcome.cost)
        return outcome.value if outcome.error is None else self._failed(expression, outcome.error)

    def _failed(self, expression: Expression, error: EvaluationError) -> EvaluationError:
        return EvaluationError(f"expression '{expression.text}' resulted in error: {error.message}")

    def spend(self, cost: int) -> None:
        if cost > self.left:
            raise _BudgetExceeded
        self.left -= cost


class _Lazy(dict[str, Any]):
    """The variables of a policy; each is evaluated on first access and keeps its value or error."""

    __slots__ = ("_errors", "_expressions", "_meter", "_outer")

    def __init__(
        self, expressions: Mapping[str, Expression], outer: Mapping[str, Any], meter: _Meter
    ) -> None:
        super().__init__()
        self._expressions = expressions
        self._outer = outer
        self._meter = meter
        self._errors: dict[str, EvaluationError] = {}

    def __contains__(self, name: object) -> bool:
        return name in self._expressions

    def __len__(self) -> int:
        return len(self._expressions)

    def get(self, name: str, default: Any = None) -> Any:
        return self[name] if name in self._expressions else default

    def __missing__(self, name: str) -> Any:
        if name not in self._expressions:
            raise KeyError(name)
        if name not in self._errors:
            value = self._value(name, self._expressions[name])
            if not isinstance(value, EvaluationError):
                self[name] = value
                return value
            self._errors[name] = value
        raise self._errors[name]

    def _value(self, name: str, expression: Expression) -> Any:
        opening = f'composited variable "{name}" fails to'
        if expression.program is None:
            return EvaluationError(f"{opening} compile: {expression.problem}")
        outcome = expression.program.run({**self._outer, VARIABLES: self})
        self._meter.spend(outcome.cost)
        if outcome.error is not None:
            return EvaluationError(f"{opening} evaluate: {outcome.error.message}")
        return outcome.value
