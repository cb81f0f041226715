"""
One policy, asked about one request with one set of parameters.

Its match conditions come first: one that is false ends the matter. Variables are
worked out when an expression asks for them, once. What the expressions cost is
counted, and when they have used up what they may cost, that is the decision.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from lamina.cel.cost.limits import MESSAGE_BYTES, PER_MATCH_CONDITIONS, PER_OBJECT
from lamina.cel.errors import EvaluationError
from lamina.server.policies.compiled import Compiled, Expression, Validation
from lamina.server.policies.names import VARIABLES

_SPENT: Final = "validation failed due to running out of cost budget, no further validation rules will be run"


class Refusal(NamedTuple):
    """Why a policy is against a request; `failed` where it could not find out."""

    message: str
    reason: str = "Invalid"
    failed: bool = False


class _Spent(Exception):
    """Nothing more may be evaluated."""


def judge(made: Compiled, variables: Mapping[str, Any]) -> list[Refusal]:
    """Return what a policy has against a request; nothing where it is not about it, or content."""
    met = conditions_met(made.conditions, variables)
    if isinstance(met, Refusal):
        return [met]
    return _validations(made, variables) + _annotations(made, variables) if met else []


def conditions_met(conditions: Sequence[Expression], variables: Mapping[str, Any]) -> Refusal | bool:
    """Say whether a policy or a webhook is about a request; a refusal where that cannot be found out."""
    meter = _Meter(PER_MATCH_CONDITIONS)
    try:
        found = [meter.evaluate(one, variables) for one in conditions]
    except _Spent:
        return Refusal(_SPENT, failed=True)
    if any(one is False for one in found):
        return False
    failed = [one.message for one in found if isinstance(one, EvaluationError)]
    if not failed:
        return True
    return Refusal(failed[0] if len(failed) == 1 else f"[{', '.join(failed)}]", failed=True)


def _validations(made: Compiled, variables: Mapping[str, Any]) -> list[Refusal]:
    meter = _Meter(PER_OBJECT)
    seen = {**variables, VARIABLES: _Lazy(made.variables, variables, meter)}
    try:
        found = [meter.evaluate(one.check, seen) for one in made.validations]
    except _Spent:
        return [Refusal(_SPENT, failed=True)]
    refusals = []
    for validation, held in zip(made.validations, found, strict=True):
        if isinstance(held, EvaluationError):
            refusals.append(Refusal(held.message, failed=True))
        elif held is not True:
            refusals.append(_refusal(validation, meter, seen))
    return refusals


def _refusal(validation: Validation, meter: _Meter, seen: Mapping[str, Any]) -> Refusal:
    said = ""
    if validation.message is not None:
        try:
            made = meter.evaluate(validation.message, seen)
        except _Spent:
            return Refusal(f"failed messageExpression: {_SPENT}", failed=True)
        said = made.strip() if isinstance(made, str) else ""
    fits = said and len(said.encode()) <= MESSAGE_BYTES and "\n" not in said
    return Refusal(said if fits else validation.said, validation.reason)


def _annotations(made: Compiled, variables: Mapping[str, Any]) -> list[Refusal]:
    """Return the annotations that cannot be evaluated; those that can are dropped, since there is no audit."""
    meter = _Meter(PER_OBJECT)
    seen = {**variables, VARIABLES: _Lazy(made.variables, variables, meter)}
    try:
        found = [meter.evaluate(one, seen) for one in made.annotations]
    except _Spent:
        return [Refusal(_SPENT, failed=True)]
    return [Refusal(one.message, failed=True) for one in found if isinstance(one, EvaluationError)]


class _Meter:
    """Evaluates, and counts what it costs."""

    __slots__ = ("left",)

    def __init__(self, left: int) -> None:
        self.left = left

    def evaluate(self, expression: Expression, variables: Mapping[str, Any]) -> Any:
        """Return the value of an expression, or an error that says which one it was."""
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
            raise _Spent
        self.left -= cost


class _Lazy(dict[str, Any]):
    """The variables of a policy: each has its value, or raises its error, from when it is first looked at."""

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
