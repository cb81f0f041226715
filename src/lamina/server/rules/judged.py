"""
The slow way through the rules: what is wrong with an object, in the real server's words and order.

A value that was stored so and has not changed is let pass with a warning, as long
as it can be found in the old object, or something around it can and has not
changed either. What cannot be evaluated, and what compares, is never let pass.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from lamina.cel.cost.limits import MESSAGE_BYTES, PER_OBJECT
from lamina.cel.errors import CostExceeded
from lamina.errors import Cause
from lamina.objects.printing import quoted
from lamina.server import fields
from lamina.server.custom.document import Document
from lamina.server.custom.problems import shown_value
from lamina.server.custom.ratchet import Link
from lamina.server.rules.asked import (
    Glance,
    Node,
    Unsettled,
    counterpart,
    counterparts,
    root_of,
    with_optional,
)
from lamina.server.rules.compiled import Expression, Rule

_SPENT: Final = "validation failed due to running out of cost budget, no further validation rules will be run"
_OVERLOAD: Final = "no such overload"


class Verdict(NamedTuple):
    """What rules have against an object, and what they let pass."""

    causes: list[Cause]
    excused: list[Cause]


_CLEAR: Final = Verdict([], [])


class Rules:
    """All rules of one schema."""

    __slots__ = ("_document", "_root")

    def __init__(self, document: Document, *, resource: bool = True) -> None:
        self._document = document
        self._root = root_of(document, resource=resource)

    def judge(
        self,
        new: Any,
        old: Any = None,
        path: str = "",
        *,
        ratchets: bool = True,
        budget: int = PER_OBJECT,
    ) -> Verdict:
        """
        Return what is wrong with an object, or with what an update makes of it.

        `path` is where it stands, nothing for one that stands alone; `budget` is
        what all rules together may cost.
        """
        if self._root is None:
            return _CLEAR
        try:
            Glance(budget).look(self._root, new, old)
        except Unsettled:
            judge = _Judge(budget)
            link = Link(self._document, new, old) if old is not None and ratchets else None
            judge.look(self._root, new, old, path, _Ties(link, None))
            return Verdict(judge.causes, judge.excused)
        return _CLEAR


class _Spent(Exception):
    """The budget is spent; nothing more is asked."""


class _Ties(NamedTuple):
    """What a value is tied to in the old object: itself, or else the nearest thing around it that is."""

    link: Link | None
    around: Link | None

    @property
    def unchanged(self) -> bool:
        tie = self.link if self.link is not None else self.around
        return tie is not None and tie.equal

    def field(self, name: str) -> _Ties:
        if self.link is None:
            return self
        if self.around is None and name in ("apiVersion", "kind"):
            # These are never seen to change: both objects are in the version that was asked for.
            return _Ties(None, None)
        return _Ties(self.link.field(name), self.link)

    def element(self, index: int) -> _Ties:
        return self if self.link is None else _Ties(self.link.element(index), self.link)


class _Judge:
    """One look at one object."""

    __slots__ = ("_left", "causes", "excused")

    def __init__(self, budget: int) -> None:
        self._left = budget
        self.causes: list[Cause] = []
        self.excused: list[Cause] = []

    def look(self, root: Node, new: Any, old: Any, path: str, ties: _Ties) -> None:
        try:
            self._look(root, new, old, path, ties)
        except _Spent:
            return

    def _look(self, node: Node, value: Any, old: Any, path: str, ties: _Ties) -> None:
        if value is None:
            return
        if node.rules:
            self._ask(node, value, old, path, ties)
        if isinstance(value, list):
            if node.element is not None:
                known = counterparts(node, old)
                for index, part in enumerate(value):
                    before = counterpart(node, known, part)
                    self._look(node.element, part, before, f"{path}[{index}]", ties.element(index))
        elif isinstance(value, dict):
            was = old if isinstance(old, dict) else {}
            for name, part in value.items():
                if node.element is not None:
                    self._look(node.element, part, was.get(name), f"{path}[{name}]", ties.field(name))
                elif (inner := node.fields.get(name)) is not None:
                    below = f"{path}.{name}" if path else name
                    self._look(inner, part, was.get(name), below, ties.field(name))

    def _ask(self, node: Node, value: Any, old: Any, path: str, ties: _Ties) -> None:
        variables, here = node.variables(value, old), path or "<nil>"
        if self._left <= 0:
            self._stop(here, node.type, _SPENT)
        for rule in node.rules:
            if rule.check.problem:
                self.causes.append(
                    fields.invalid(here, node.type, f"rule compile error: {rule.check.problem}")
                )
            elif rule.check.program is None or (rule.compares and old is None and not rule.optional):
                continue
            else:
                self._put(
                    rule, node, value, with_optional(variables) if rule.optional else variables, path, ties
                )

    def _put(
        self, rule: Rule, node: Node, value: Any, variables: dict[str, Any], path: str, ties: _Ties
    ) -> None:
        """Put a rule to a value, and add what it has against it."""
        here = path or "<nil>"
        if not self._holds(rule, node, variables, here):
            where = f"{path}.{rule.shown}" if path and rule.shown else rule.shown or here
            detail = self._detail(rule, variables, node, where, ties)
            self._add(_refusal(where, value, detail, rule.written.get("reason")), rule, ties)

    def _holds(self, rule: Rule, node: Node, variables: dict[str, Any], here: str) -> bool:
        """Say whether a rule holds; one that cannot be evaluated is complained about, and counts as if it did."""
        assert rule.check.program is not None
        outcome = rule.check.program.run(variables)
        if outcome.cost > self._left:
            self._stop(here, node.type, _SPENT)
        self._left -= outcome.cost
        error = outcome.error
        if error is None:
            return outcome.value is True
        if isinstance(error, CostExceeded):
            why = "no further validation rules will be run due to call cost exceeds limit for rule"
            self._stop(here, node.type, f"'{error.message}': {why}: {rule.said}")
        if error.message.startswith(_OVERLOAD):
            why = "call arguments did not match a supported operator, function or macro signature for rule"
            detail = f"'{error.message}': {why}: {rule.said}"
        else:
            detail = f"{error.message} evaluating rule: {rule.said}"
        self.causes.append(fields.invalid(here, node.type, detail))
        return True

    def _stop(self, here: str, kind: str, why: str) -> None:
        self.causes.append(fields.invalid(here, kind, why))
        raise _Spent

    def _add(self, cause: Cause, rule: Rule, ties: _Ties) -> None:
        (self.excused if not rule.compares and ties.unchanged else self.causes).append(cause)

    def _detail(self, rule: Rule, variables: dict[str, Any], node: Node, where: str, ties: _Ties) -> str:
        """Return the sentence of a refusal: what its expression makes, if that is one line and not too long."""
        message = rule.message
        if message is None or message.program is None:
            return rule.refusal
        said = self._said(rule, message, variables, node, where, ties)
        fits = said and len(said.encode()) <= MESSAGE_BYTES and "\n" not in said
        return said if fits else rule.refusal

    def _said(
        self,
        rule: Rule,
        message: Expression,
        variables: dict[str, Any],
        node: Node,
        where: str,
        ties: _Ties,
    ) -> str:
        assert message.program is not None
        outcome = message.program.run(variables)
        why = ""
        if outcome.cost > self._left:
            why = (
                "messageExpression evaluation failed due to running out of cost budget, "
                "no further validation rules will be run"
            )
        elif isinstance(outcome.error, CostExceeded):
            source = quoted(rule.written["messageExpression"])
            why = (
                "no further validation rules will be run due to call cost exceeds limit for "
                f"messageExpression: {source}"
            )
        if why:
            self._add(fields.invalid(where, node.type, why), rule, ties)
            raise _Spent
        self._left -= outcome.cost
        value = outcome.value if outcome.error is None else ""
        return value.strip() if isinstance(value, str) else ""


def _refusal(where: str, value: Any, detail: str, reason: str | None) -> Cause:
    """Return the cause of a rule that does not hold; a value that is an object or a list is not shown."""
    if reason == "FieldValueForbidden":
        return fields.forbidden(where, detail)
    if reason == "FieldValueRequired":
        return fields.required(where, detail)
    whole = isinstance(value, dict | list)
    if reason == "FieldValueDuplicate":
        return Cause(reason, "Duplicate value", where) if whole else fields.duplicate(where, value)
    if whole:
        return Cause("FieldValueInvalid", f"Invalid value: {detail}", where)
    return fields.invalid(where, shown_value(value), detail)
