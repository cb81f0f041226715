"""
Conditions that somebody wrote rules for: expressions about an object, all of which must hold.

An expression that fails, or whose answer is no yes or no, makes the condition False
and says so. One expression may cost a million, all those of an object ten million.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from lamina.families.manifestwork.kinds.words import CONDITION
from lamina.families.manifestwork.spoke.api import ConditionRule
from lamina.objects.types import Obj

if TYPE_CHECKING:
    from lamina.cel.program import Program

EVALUATED, EXPRESSION_ERROR = "ConditionRuleEvaluated", "ConditionRuleExpressionError"
INVALID, INTERNAL_ERROR = "ConditionRuleInvalid", "ConditionRuleInternalError"
REASONS = frozenset((EVALUATED, EXPRESSION_ERROR, INVALID, INTERNAL_ERROR))

_EACH, _ALL = 1_000_000, 10_000_000
_NAME, _LONGEST = re.compile(CONDITION["properties"]["type"]["pattern"]), 316
_JOB_IS_OVER = (
    'hasConditions(object.status) && object.status.conditions.exists(c, (c.type == "Complete" || c.type == "Failed") '
    '&& c.status == "True")'
)
_POD_IS_OVER = (
    'has(object.status) && has(object.status.phase) && object.status.phase in ["Succeeded", "Failed"]'
)
WELL_KNOWN = {
    ("batch/v1", "Job", "Complete"): ("has(object.status)", _JOB_IS_OVER),
    ("v1", "Pod", "Complete"): (_POD_IS_OVER,),
}
"""The expressions that need not be written out."""


class Judged(Struct, frozen=True):
    """One condition of one object."""

    condition: str
    status: str
    reason: str
    message: str


class _Budget:
    """What is left to spend on the expressions of one object."""

    def __init__(self) -> None:
        self._left = _ALL

    def evaluate(self, program: Program, variables: Mapping[str, Any]) -> Any:
        """Return the answer of an expression; raises EvaluationError."""
        outcome = program.run(variables, min(_EACH, self._left))
        self._left = max(0, self._left - outcome.cost)
        if outcome.error is not None:
            raise outcome.error
        return outcome.value


def judged(obj: Obj, rules: Sequence[ConditionRule]) -> Iterator[Judged]:
    """Yield the condition that each rule makes of an object, where it makes one."""
    budget = _Budget()
    for rule in rules:
        if len(rule.condition) > _LONGEST or not _NAME.fullmatch(rule.condition):
            # No server would take it, nor anything that is said beside it.
            continue
        match rule.type:
            case "CEL":
                yield _judged(obj, rule, rule.cel_expressions, budget)
            case "WellKnownConditions":
                kind = str(obj.get("apiVersion") or ""), str(obj.get("kind") or "")
                expressions = WELL_KNOWN.get((*kind, rule.condition))
                if expressions is not None:
                    yield _judged(obj, rule, expressions, budget)
            case _:
                message = f"unrecognized condition rule type {rule.type}"
                yield Judged(rule.condition, "Unknown", INVALID, message)


def _judged(obj: Obj, rule: ConditionRule, expressions: Sequence[str], budget: _Budget) -> Judged:
    from lamina.cel.errors import CelError

    if not expressions:
        return Judged(rule.condition, "Unknown", INVALID, "the rule has no expression")
    holds = True
    try:
        for text in expressions:
            answer = budget.evaluate(_program(text, False), {"object": obj})
            if answer is not True and answer is not False:
                message = f"expected bool result, got {type(answer).__name__}"
                return Judged(rule.condition, "False", EXPRESSION_ERROR, message)
            holds = answer
            if not holds:
                break
    except CelError as wrong:
        return Judged(rule.condition, "False", EXPRESSION_ERROR, str(wrong))
    except RecursionError:
        return Judged(rule.condition, "Unknown", INTERNAL_ERROR, "the expression is nested too deeply")
    return Judged(rule.condition, str(holds), EVALUATED, _message(obj, rule, holds, budget))


def _message(obj: Obj, rule: ConditionRule, holds: bool, budget: _Budget) -> str:
    from lamina.cel.errors import CelError

    if rule.message_expression:
        try:
            said = budget.evaluate(_program(rule.message_expression, True), {"object": obj, "result": holds})
        except CelError as wrong:
            return str(wrong)
        if not isinstance(said, str):
            return f"expected message expression to have a string result, got {type(said).__name__}"
        if said:
            return said
    if rule.message:
        return rule.message
    return f"Manifest is {rule.condition}" if holds else f"Manifest is not {rule.condition}"


@lru_cache(maxsize=512)
def _program(text: str, knows_result: bool) -> Program:
    """Return an expression, read and checked once; raises CompileError."""
    # Most works have no expressions, and reading them takes a whole language.
    from lamina.cel.declare import Function, Overload, Variable
    from lamina.cel.environment import KUBERNETES
    from lamina.cel.program import compile_expression
    from lamina.cel.types import BOOL, DYN

    has_conditions = Overload("status_has_conditions", (DYN,), BOOL, implementation=_has_conditions)
    variables = [Variable("object", DYN), *([Variable("result", BOOL)] if knows_result else [])]
    environment = KUBERNETES.extend(
        variables=variables, functions=[Function("hasConditions", (has_conditions,))]
    )
    return compile_expression(text, environment)


def _has_conditions(value: Any) -> bool:
    found = value.get("conditions") if isinstance(value, Mapping) else None
    return isinstance(found, list | tuple) and len(found) > 0
