"""
An expression, ready to be evaluated as often as one likes.

    program = compile_expression("self.replicas <= self.limit", environment)
    program.evaluate({"self": {"replicas": 3, "limit": 5}})

Generated Python answers, and steps answer where that does not know: when
something fails, they say what and where. Where an evaluation may cost more than
its environment allows, the generated code counts, and so do the steps.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import orjson

from lamina.cel.ast import Checked, Source
from lamina.cel.check import check
from lamina.cel.cost.estimate import estimate
from lamina.cel.cost.size import CostNode, Sizes, Span, no_sizes
from lamina.cel.declare import Environment
from lamina.cel.errors import CostExceeded, EvaluationError
from lamina.cel.evaluate.cost import EXCEEDED, UNLIMITED, Tracker
from lamina.cel.evaluate.frame import Outermost, Step
from lamina.cel.evaluate.generate import Counted, Generated, generate, generate_counted
from lamina.cel.evaluate.generated import Unsure
from lamina.cel.evaluate.plan import Planner
from lamina.cel.parse import parse
from lamina.cel.types import Type
from lamina.cel.values import Value


@dataclass(frozen=True, slots=True)
class Outcome:
    """What an evaluation came to: a value, or an error, and what it cost."""

    value: Value
    error: EvaluationError | None
    cost: int


_SHORT: Final = 5_000
"""What is so cheap that it is done before any code is generated for it."""
_LENGTHS: Final = tuple(1 << power for power in range(20, 6, -2))


def _measured(made: Generated, largest: int) -> Generated:
    """Return a function that knows its answer only where the variables are not too large."""

    def carry_out(variables: Mapping[str, Value]) -> Value:
        # Nothing in them is longer than all of them, and measuring is much quicker than counting.
        if len(orjson.dumps(variables)) > largest:
            raise Unsure
        return made(variables)

    return carry_out


def _unready(variables: Mapping[str, Value]) -> Value:
    raise Unsure


class Program:
    """
    A checked expression in its environment.

    Nothing is generated before the first evaluation, so that an expression
    that is only checked costs no more than that.
    """

    __slots__ = (
        "_asked", "_counted", "_counts", "_fast", "_ran", "_ready", "_steps", "checked", "environment", "sizes",
    )  # fmt: skip

    def __init__(self, checked: Checked, environment: Environment, sizes: Sizes = no_sizes) -> None:
        self.checked = checked
        self.environment = environment
        self.sizes = sizes
        self._ready = False
        self._counts = False
        self._counted: Counted | None = None
        self._asked = False
        self._ran = False
        self._fast: Generated = _unready
        self._steps: Step | None = None

    @property
    def result(self) -> Type:
        """The type of the answer."""
        return self.checked.result

    @property
    def source(self) -> Source:
        return self.checked.parsed.source

    def evaluate(self, variables: Mapping[str, Value]) -> Value:
        """Return the value of the expression; raises EvaluationError, which knows its place."""
        try:
            return self._fast(variables)
        except CostExceeded:
            raise CostExceeded(EXCEEDED, source=self.source) from None
        except Exception:
            # Whatever it was, the steps know better. They raise nothing but errors of ours.
            return self._settled(variables)

    def run(self, variables: Mapping[str, Value], budget: int | None = None) -> Outcome:
        """Evaluate and count; `budget`, where there is one, takes the place of the environment's."""
        limit = self.environment.limits.cost if budget is None else budget
        if limit is None:
            limit = UNLIMITED
        if not self._ran:
            self._ran = True
            outcome = self._walked(variables, min(limit, _SHORT))
            if limit <= _SHORT or not isinstance(outcome.error, CostExceeded):
                return outcome
        counted = self._counting()
        if counted is None:
            return self._walked(variables, limit)
        try:
            value, cost = counted(variables, limit)
            return Outcome(value, None, cost)
        except CostExceeded:
            return Outcome(None, CostExceeded(EXCEEDED, source=self.source), limit + 1)
        except Exception:
            # As in `evaluate`.
            return self._walked(variables, limit)

    def _counting(self) -> Counted | None:
        """Return code that counts, where there is some: it knows Kubernetes' prices and no others."""
        if not self._asked:
            self._asked = True
            if self.environment.flags.kubernetes_costs:
                self._counted = generate_counted(self.checked, self.environment)
        return self._counted

    def _walked(self, variables: Mapping[str, Value], limit: int) -> Outcome:
        tracker = Tracker(limit, kubernetes=self.environment.flags.kubernetes_costs)
        try:
            value = self._stepped(variables, tracker)
        except CostExceeded as error:
            return Outcome(None, error, tracker.cost)
        if isinstance(value, EvaluationError):
            value.source = value.source or self.source
            return Outcome(None, value, tracker.cost)
        return Outcome(value, None, tracker.cost)

    def _settled(self, variables: Mapping[str, Value]) -> Value:
        if self._ready:
            return self._exactly(variables)
        made = self._prepared()
        self._ready = True
        if made is None:
            return self._exactly(variables)
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
        return None if made is None or largest is None else _measured(made, largest)

    def _largest_input(self, limit: int) -> int | None:
        """Return how long the variables may be, written as JSON, for their evaluation to stay within the limit."""
        for largest in _LENGTHS:

            def sizes(node: CostNode, largest: int = largest) -> Span | None:
                known = self.sizes(node)
                if known is None:
                    return Span(0, largest) if node.path else None
                return Span(known.least, min(known.most, largest))

            if self._stays_within(limit, sizes):
                return largest
        return None

    def _stays_within(self, limit: int, sizes: Sizes) -> bool:
        # An index of what was just made costs two and is estimated at one, in Kubernetes too.
        return estimate(self.checked, self.environment, sizes).most * 2 <= limit

    def _exactly(self, variables: Mapping[str, Value]) -> Value:
        tracker = None
        if self._counts:
            tracker = Tracker(
                self.environment.limits.cost, kubernetes=self.environment.flags.kubernetes_costs
            )
        value = self._stepped(variables, tracker)
        if isinstance(value, EvaluationError):
            value.source = value.source or self.source
            raise value
        return value

    def _stepped(self, variables: Mapping[str, Value], tracker: Tracker | None) -> Value:
        try:
            if self._steps is None:
                self._steps = Planner(self.checked, self.environment).plan(self.checked.expr)
            return self._steps.run(Outermost(variables, tracker))
        except CostExceeded:
            raise CostExceeded(EXCEEDED, source=self.source) from None
        except RecursionError:
            return EvaluationError("expression is nested too deeply")
        except (OverflowError, MemoryError):
            return EvaluationError("value is too large")


def compile_expression(
    text: str, environment: Environment, *, sizes: Sizes = no_sizes, name: str = "<input>"
) -> Program:
    """Return a program for an expression; raises CompileError, which says all that is wrong with it."""
    return Program(check(parse(text, environment, name=name), environment), environment, sizes)
