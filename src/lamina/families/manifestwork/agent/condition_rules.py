"""
Conditions of conditionRules: expressions about an object, which all have to be true.

An expression that fails, or whose result is no boolean, makes the condition False, with
the error as its message. One expression may cost a million units, all those of an object
ten million.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from lamina.core.crd.schema_dsl import CONDITION
from lamina.families.manifestwork.agent.api import ConditionRule
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
_JOB_MESSAGE = 'result ? "Job is finished" : "Job is not finished"'
_POD_MESSAGE = (
    'has(object.status) && has(object.status.phase) ? "Pod is in phase " + object.status.phase : ""'
)


class _WellKnown(NamedTuple):
    """The expressions of a well-known condition, and the one of its message."""

    expressions: tuple[str, ...]
    message: str


WELL_KNOWN = {
    ("batch/v1", "Job", "Complete"): _WellKnown(("has(object.status)", _JOB_IS_OVER), _JOB_MESSAGE),
    ("v1", "Pod", "Complete"): _WellKnown((_POD_IS_OVER,), _POD_MESSAGE),
}
"""WellKnownConditions, by kind and condition, with the messages of Open Cluster Management."""


class RuleCondition(Struct, frozen=True):
    """One condition of one object."""

    condition: str
    status: str
    reason: str
    message: str


class _Budget:
    """The cost that is left for the expressions of one object."""

    def __init__(self) -> None:
        self._left = _ALL

    def evaluate(self, program: Program, variables: Mapping[str, Any]) -> Any:
        """Return the result of an expression; raises EvaluationError."""
        outcome = program.run(variables, min(_EACH, self._left))
        self._left = max(0, self._left - outcome.cost)
        if outcome.error is not None:
            raise outcome.error
        return outcome.value


def evaluated(obj: Obj, rules: Sequence[ConditionRule]) -> Iterator[RuleCondition]:
    """Yield the condition that each rule computes from an object."""
    budget = _Budget()
    for rule in rules:
        if len(rule.condition) > _LONGEST or not _NAME.fullmatch(rule.condition):
            # A server would refuse the whole status with it.
            continue
        match rule.type:
            case "CEL":
                yield _judged(obj, rule, rule.cel_expressions, budget)
            case "WellKnownConditions":
                kind = str(obj.get("apiVersion") or ""), str(obj.get("kind") or "")
                found = WELL_KNOWN.get((*kind, rule.condition))
                if found is not None:
                    yield _judged(obj, _with_message(rule, found.message), found.expressions, budget)
            case _:
                message = f"unrecognized condition rule type {rule.type}"
                yield RuleCondition(rule.condition, "Unknown", INVALID, message)


def _with_message(rule: ConditionRule, message: str) -> ConditionRule:
    """Return a rule with a message of its kind, unless the user has given one."""
    return rule if rule.message or rule.message_expression else replace(rule, message_expression=message)


def _judged(obj: Obj, rule: ConditionRule, expressions: Sequence[str], budget: _Budget) -> RuleCondition:
    from lamina.cel.errors import CelError

    if not expressions:
        return RuleCondition(rule.condition, "Unknown", INVALID, "the rule has no expression")
    holds = True
    try:
        for text in expressions:
            answer = budget.evaluate(_program(text, False), {"object": obj})
            if answer is not True and answer is not False:
                message = f"expected bool result, got {_type(answer)}"
                return RuleCondition(rule.condition, "False", EXPRESSION_ERROR, message)
            holds = answer
            if not holds:
                break
    except CelError as wrong:
        return RuleCondition(rule.condition, "False", EXPRESSION_ERROR, str(wrong))
    except RecursionError:
        return RuleCondition(rule.condition, "Unknown", INTERNAL_ERROR, "the expression is nested too deeply")
    return RuleCondition(rule.condition, str(holds), EVALUATED, _message(obj, rule, holds, budget))


def _message(obj: Obj, rule: ConditionRule, holds: bool, budget: _Budget) -> str:
    from lamina.cel.errors import CelError

    if rule.message_expression:
        try:
            reported = budget.evaluate(
                _program(rule.message_expression, True), {"object": obj, "result": holds}
            )
        except CelError as wrong:
            return str(wrong)
        if not isinstance(reported, str):
            return f"expected message expression to have a string result, got {_type(reported)}"
        if reported:
            return reported
    if rule.message:
        return rule.message
    return f"Manifest is {rule.condition}" if holds else f"Manifest is not {rule.condition}"


def _type(value: Any) -> str:
    """Return the type of a value as the expression language names it."""
    from lamina.cel.values import type_of

    return type_of(value).name


@lru_cache(maxsize=512)
def _program(text: str, knows_result: bool) -> Program:
    """Return an expression, compiled once; raises CompileError."""
    # Imported on demand: most works have no expressions.
    from lamina.cel.declarations import Function, Overload, Variable
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
