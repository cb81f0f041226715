"""
The slow path of rule evaluation: violations with kube-apiserver's messages and order.

Ratcheting: a violation by an unchanged value becomes a warning, if the value or one of
its ancestors can be correlated with the old object and is unchanged. Evaluation errors
and transition rules are not ratcheted.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from lamina.cel.cost.limits import MESSAGE_BYTES
from lamina.cel.errors import CostExceeded
from lamina.errors import Cause
from lamina.objects.go_quote import quoted
from lamina.server import field_errors
from lamina.server.kinds.custom.cel_rules.compiled import Expression, Rule
from lamina.server.kinds.custom.cel_rules.fast_path import (
    Node,
    counterpart,
    counterparts,
    with_optional,
)
from lamina.server.kinds.custom.ratchet import Link
from lamina.server.kinds.custom.schema_errors import shown_value

_BUDGET_EXCEEDED: Final = (
    "validation failed due to running out of cost budget, no further validation rules will be run"
)
_OVERLOAD: Final = "no such overload"


class _BudgetExceeded(Exception):
    """The budget is exceeded; evaluation stops."""


class _Correlated(NamedTuple):
    """The old values that a value is correlated with: its own, or that of its nearest correlated ancestor."""

    link: Link | None
    around: Link | None

    @property
    def unchanged(self) -> bool:
        link = self.link if self.link is not None else self.around
        return link is not None and link.equal

    def field(self, name: str) -> _Correlated:
        if self.link is None:
            return self
        if self.around is None and name in ("apiVersion", "kind"):
            # These count as unchanged: both objects are in the requested version.
            return _Correlated(None, None)
        return _Correlated(self.link.field(name), self.link)

    def element(self, index: int) -> _Correlated:
        return self if self.link is None else _Correlated(self.link.element(index), self.link)


class SlowCheck:
    """
    The evaluation of all rules for one object, at most at the cost of a budget.

    `causes` are the violations, `excused` those that were ratcheted.
    """

    __slots__ = ("_left", "causes", "excused")

    def __init__(self, budget: int) -> None:
        self._left = budget
        self.causes: list[Cause] = []
        self.excused: list[Cause] = []

    def check(self, root: Node, new: Any, old: Any, path: str, link: Link | None) -> None:
        """Evaluate the rules; `link` correlates the object with the old one, and without it nothing is ratcheted."""
        try:
            self._check(root, new, old, path, _Correlated(link, None))
        except _BudgetExceeded:
            return

    def _check(self, node: Node, value: Any, old: Any, path: str, correlated: _Correlated) -> None:
        if value is None:
            return
        if node.rules:
            self._evaluate_rules(node, value, old, path, correlated)
        if isinstance(value, list):
            if node.element is not None:
                known = counterparts(node, old)
                for index, part in enumerate(value):
                    before = counterpart(node, known, part)
                    self._check(node.element, part, before, f"{path}[{index}]", correlated.element(index))
        elif isinstance(value, dict):
            was = old if isinstance(old, dict) else {}
            for name, part in value.items():
                if node.element is not None:
                    self._check(node.element, part, was.get(name), f"{path}[{name}]", correlated.field(name))
                elif (inner := node.fields.get(name)) is not None:
                    below = f"{path}.{name}" if path else name
                    self._check(inner, part, was.get(name), below, correlated.field(name))

    def _evaluate_rules(self, node: Node, value: Any, old: Any, path: str, correlated: _Correlated) -> None:
        variables, item_path = node.variables(value, old), path or "<nil>"
        if self._left <= 0:
            self._stop(item_path, node.type, _BUDGET_EXCEEDED)
        for rule in node.rules:
            if rule.check.problem:
                self.causes.append(
                    field_errors.invalid(item_path, node.type, f"rule compile error: {rule.check.problem}")
                )
            elif rule.check.program is None or (rule.compares and old is None and not rule.optional):
                continue
            else:
                self._evaluate_rule(
                    rule,
                    node,
                    value,
                    with_optional(variables) if rule.optional else variables,
                    path,
                    correlated,
                )

    def _evaluate_rule(
        self,
        rule: Rule,
        node: Node,
        value: Any,
        variables: dict[str, Any],
        path: str,
        correlated: _Correlated,
    ) -> None:
        """Evaluate a rule for a value, and add its violation."""
        item_path = path or "<nil>"
        if not self._holds(rule, node, variables, item_path):
            where = f"{path}.{rule.shown}" if path and rule.shown else rule.shown or item_path
            detail = self._detail(rule, variables, node, where, correlated)
            self._add(_refusal(where, value, detail, rule.written.get("reason")), rule, correlated)

    def _holds(self, rule: Rule, node: Node, variables: dict[str, Any], item_path: str) -> bool:
        """Return whether a rule holds; an evaluation error is added, and counts as if it held."""
        assert rule.check.program is not None
        outcome = rule.check.program.run(variables)
        if outcome.cost > self._left:
            self._stop(item_path, node.type, _BUDGET_EXCEEDED)
        self._left -= outcome.cost
        error = outcome.error
        if error is None:
            return outcome.value is True
        if isinstance(error, CostExceeded):
            reason = "no further validation rules will be run due to call cost exceeds limit for rule"
            self._stop(item_path, node.type, f"'{error.message}': {reason}: {rule.said}")
        if error.message.startswith(_OVERLOAD):
            reason = "call arguments did not match a supported operator, function or macro signature for rule"
            detail = f"'{error.message}': {reason}: {rule.said}"
        else:
            detail = f"{error.message} evaluating rule: {rule.said}"
        self.causes.append(field_errors.invalid(item_path, node.type, detail))
        return True

    def _stop(self, item_path: str, kind: str, reason: str) -> None:
        self.causes.append(field_errors.invalid(item_path, kind, reason))
        raise _BudgetExceeded

    def _add(self, cause: Cause, rule: Rule, correlated: _Correlated) -> None:
        (self.excused if not rule.compares and correlated.unchanged else self.causes).append(cause)

    def _detail(
        self, rule: Rule, variables: dict[str, Any], node: Node, where: str, correlated: _Correlated
    ) -> str:
        """Return the message of a violation: the value of its expression, if that is one short line."""
        message = rule.message
        if message is None or message.program is None:
            return rule.refusal
        said = self._message(rule, message, variables, node, where, correlated)
        fits = said and len(said.encode()) <= MESSAGE_BYTES and "\n" not in said
        return said if fits else rule.refusal

    def _message(
        self,
        rule: Rule,
        message: Expression,
        variables: dict[str, Any],
        node: Node,
        where: str,
        correlated: _Correlated,
    ) -> str:
        assert message.program is not None
        outcome = message.program.run(variables)
        reason = ""
        if outcome.cost > self._left:
            reason = (
                "messageExpression evaluation failed due to running out of cost budget, "
                "no further validation rules will be run"
            )
        elif isinstance(outcome.error, CostExceeded):
            source = quoted(rule.written["messageExpression"])
            reason = (
                "no further validation rules will be run due to call cost exceeds limit for "
                f"messageExpression: {source}"
            )
        if reason:
            self._add(field_errors.invalid(where, node.type, reason), rule, correlated)
            raise _BudgetExceeded
        self._left -= outcome.cost
        value = outcome.value if outcome.error is None else ""
        return value.strip() if isinstance(value, str) else ""


def _refusal(where: str, value: Any, detail: str, reason: str | None) -> Cause:
    """Return the error of a violation; an object or list is not printed."""
    if reason == "FieldValueForbidden":
        return field_errors.forbidden(where, detail)
    if reason == "FieldValueRequired":
        return field_errors.required(where, detail)
    whole = isinstance(value, dict | list)
    if reason == "FieldValueDuplicate":
        return Cause(reason, "Duplicate value", where) if whole else field_errors.duplicate(where, value)
    if whole:
        return Cause("FieldValueInvalid", f"Invalid value: {detail}", where)
    return field_errors.invalid(where, shown_value(value), detail)
