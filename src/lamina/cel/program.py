"""
Programs: compiled expressions.

    program = compile_expression("self.replicas <= self.limit", environment)
    program.evaluate({"self": {"replicas": 3, "limit": 5}})

A program runs generated Python code, and the interpreter where that bails out: errors
and their positions come from the interpreter. Where an evaluation may exceed the cost
limit of its environment, both count the cost.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import orjson

from lamina.cel.ast import Checked, Source
from lamina.cel.check import check
from lamina.cel.cost.estimate import estimate
from lamina.cel.cost.size import CostNode, Estimate, SizeEstimator, no_sizes
from lamina.cel.declarations import Environment
from lamina.cel.errors import CostExceeded, EvaluationError
from lamina.cel.evaluate.activation import Interpretable, RootActivation
from lamina.cel.evaluate.codegen import Counted, Generated, generate, generate_counted
from lamina.cel.evaluate.codegen_runtime import BailOut
from lamina.cel.evaluate.cost import EXCEEDED, UNLIMITED, CostTracker
from lamina.cel.evaluate.plan import Planner
from lamina.cel.parse import parse
from lamina.cel.types import Type
from lamina.cel.values import Value


@dataclass(frozen=True, slots=True)
class EvaluationOutcome:
    """The result of an evaluation: a value or an error, and the cost."""

    value: Value
    error: EvaluationError | None
    cost: int


_SHORT: Final = 5_000
"""The cost limit of a first, interpreted evaluation, before code is generated."""
_LENGTHS: Final = tuple(1 << power for power in range(20, 6, -2))


def _size_limited(made: Generated, largest: int) -> Generated:
    """Return a function that bails out where the variables are too large."""

    def carry_out(variables: Mapping[str, Value]) -> Value:
        # No value is longer than all of them, and measuring is much faster than counting.
        if len(orjson.dumps(variables)) > largest:
            raise BailOut
        return made(variables)

    return carry_out


def _not_generated(variables: Mapping[str, Value]) -> Value:
    raise BailOut


class Program:
    """
    A checked expression with its environment.

    Code is generated at the first evaluation, so that an expression that is
    only checked costs less.
    """

    __slots__ = (
        "_asked", "_counted", "_counts", "_fast", "_ran", "_ready", "_steps", "checked", "environment", "sizes",
    )  # fmt: skip

    def __init__(self, checked: Checked, environment: Environment, sizes: SizeEstimator = no_sizes) -> None:
        self.checked = checked
        self.environment = environment
        self.sizes = sizes
        self._ready = False
        self._counts = False
        self._counted: Counted | None = None
        self._asked = False
        self._ran = False
        self._fast: Generated = _not_generated
        self._steps: Interpretable | None = None

    @property
    def result(self) -> Type:
        """The type of the result."""
        return self.checked.result

    @property
    def source(self) -> Source:
        return self.checked.parsed.source

    def evaluate(self, variables: Mapping[str, Value]) -> Value:
        """Return the value of the expression; raises EvaluationError, with its position."""
        try:
            return self._fast(variables)
        except CostExceeded:
            raise CostExceeded(EXCEEDED, source=self.source) from None
        except Exception:
            # The interpreter handles all cases, and raises only EvaluationError.
            return self._evaluate_slow(variables)

    def run(self, variables: Mapping[str, Value], budget: int | None = None) -> EvaluationOutcome:
        """Evaluate and count the cost; `budget` replaces the limit of the environment."""
        limit = self.environment.limits.cost if budget is None else budget
        if limit is None:
            limit = UNLIMITED
        if not self._ran:
            self._ran = True
            outcome = self._interpret_counted(variables, min(limit, _SHORT))
            if limit <= _SHORT or not isinstance(outcome.error, CostExceeded):
                return outcome
        counted = self._counting()
        if counted is None:
            return self._interpret_counted(variables, limit)
        try:
            value, cost = counted(variables, limit)
            return EvaluationOutcome(value, None, cost)
        except CostExceeded:
            return EvaluationOutcome(None, CostExceeded(EXCEEDED, source=self.source), limit + 1)
        except Exception:
            # As in `evaluate`.
            return self._interpret_counted(variables, limit)

    def _counting(self) -> Counted | None:
        """Return code that counts, None where there is none: it has Kubernetes' cost rules only."""
        if not self._asked:
            self._asked = True
            if self.environment.flags.kubernetes_costs:
                self._counted = generate_counted(self.checked, self.environment)
        return self._counted

    def _interpret_counted(self, variables: Mapping[str, Value], limit: int) -> EvaluationOutcome:
        tracker = CostTracker(limit, kubernetes=self.environment.flags.kubernetes_costs)
        try:
            value = self._run_steps(variables, tracker)
        except CostExceeded as error:
            return EvaluationOutcome(None, error, tracker.cost)
        if isinstance(value, EvaluationError):
            value.source = value.source or self.source
            return EvaluationOutcome(None, value, tracker.cost)
        return EvaluationOutcome(value, None, tracker.cost)

    def _evaluate_slow(self, variables: Mapping[str, Value]) -> Value:
        if self._ready:
            return self._interpret(variables)
        made = self._prepared()
        self._ready = True
        if made is None:
            return self._interpret(variables)
        self._fast = made
        return self.evaluate(variables)

    def _prepared(self) -> Generated | None:
        limit = self.environment.limits.cost
        if limit is None or self._stays_within(limit, self.sizes):
            return generate(self.checked, self.environment)
        self._counts = True
        counted = self._counting()
        if counted is not None:
            return lambda variables: counted(variables, limit)[0]
        largest = self._largest_input(limit)
        made = None if largest is None else generate(self.checked, self.environment)
        return None if made is None or largest is None else _size_limited(made, largest)

    def _largest_input(self, limit: int) -> int | None:
        """Return the length of the variables, as JSON, up to which an evaluation stays within the limit."""
        for largest in _LENGTHS:

            def sizes(node: CostNode, largest: int = largest) -> Estimate | None:
                known = self.sizes(node)
                if known is None:
                    return Estimate(0, largest) if node.path else None
                return Estimate(known.least, min(known.most, largest))

            if self._stays_within(limit, sizes):
                return largest
        return None

    def _stays_within(self, limit: int, sizes: SizeEstimator) -> bool:
        # An index of a new value costs two and is estimated at one, as in Kubernetes.
        return estimate(self.checked, self.environment, sizes).most * 2 <= limit

    def _interpret(self, variables: Mapping[str, Value]) -> Value:
        tracker = None
        if self._counts:
            tracker = CostTracker(
                self.environment.limits.cost, kubernetes=self.environment.flags.kubernetes_costs
            )
        value = self._run_steps(variables, tracker)
        if isinstance(value, EvaluationError):
            value.source = value.source or self.source
            raise value
        return value

    def _run_steps(self, variables: Mapping[str, Value], tracker: CostTracker | None) -> Value:
        try:
            if self._steps is None:
                self._steps = Planner(self.checked, self.environment).plan(self.checked.expr)
            return self._steps.run(RootActivation(variables, tracker))
        except CostExceeded:
            raise CostExceeded(EXCEEDED, source=self.source) from None
        except RecursionError:
            return EvaluationError("expression is nested too deeply")
        except (OverflowError, MemoryError):
            return EvaluationError("value is too large")


def compile_expression(
    text: str, environment: Environment, *, sizes: SizeEstimator = no_sizes, name: str = "<input>"
) -> Program:
    """Return the program of an expression; raises CompileError, with all issues."""
    return Program(check(parse(text, environment, name=name), environment), environment, sizes)
