"""
One compiled rule of a schema: its program, message and cost.

`self` has the type of the schema node that has the rule, and so has `oldSelf`, which is
optional if the rule says so.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from msgspec import Struct

from lamina.cel.cost.estimate import estimate
from lamina.cel.cost.limits import PER_CALL
from lamina.cel.declarations import Environment, Limits, Variable
from lamina.cel.environment import KUBERNETES
from lamina.cel.errors import CompileError, ConstantError
from lamina.cel.program import Program, compile_expression
from lamina.cel.references import reads
from lamina.cel.schema import Declared
from lamina.cel.types import BOOL, STRING, optional_of
from lamina.server.kinds.custom.document import Document
from lamina.server.kinds.custom.fieldpath import BadPath, resolve_path

RULES: Final = "x-kubernetes-validations"
SELF: Final = "self"
OLD: Final = "oldSelf"
ESTIMATE_MARGIN: Final = 2
"""Estimates may be too low where a rule reads a value that it constructed, but at most by this factor."""


class Expression(Struct, frozen=True, kw_only=True):
    """
    A compiled expression, or its error; `most` is its maximum cost.

    `uncounted` is the same program without cost counting, for values whose size was
    measured and is small enough.
    """

    program: Program | None = None
    most: int = 0
    problem: str = ""
    uncounted: Program | None = None


class Rule(Struct, frozen=True, kw_only=True):
    """
    One compiled rule.

    `said` is its name in messages: its message, or its text. `shown` is the path of its
    errors, relative to the value. `message` computes the error message, if there is a
    message expression.
    """

    written: Mapping[str, Any]
    check: Expression
    message: Expression | None
    compares: bool
    """Whether it uses the old value."""
    optional: bool
    """Whether it is evaluated even without an old value."""
    shown: str

    @property
    def said(self) -> str:
        return str(self.written.get("message") or self.written["rule"]).strip()

    @property
    def refusal(self) -> str:
        """Return the error message, unless the message expression returns one."""
        message = str(self.written.get("message") or "").strip()
        return message if self.written.get("message") else f"failed rule: {self.said}"


def compile_rules(node: Document, declared: Declared) -> list[Rule]:
    """Return the rules of one schema node, in order."""
    written: Sequence[Mapping[str, Any]] = node.get(RULES, ())
    environments: dict[bool, Environment] = {}
    made = []
    for rule in written:
        optional = bool(rule.get("optionalOldSelf"))
        if optional not in environments:
            old = optional_of(declared.type) if optional else declared.type
            environments[optional] = KUBERNETES.extend(
                variables=(Variable(SELF, declared.type), Variable(OLD, old))
            )
        made.append(_rule(rule, node, declared, environments[optional], optional))
    return made


def _rule(
    written: Mapping[str, Any],
    node: Document,
    declared: Declared,
    environment: Environment,
    optional: bool,
) -> Rule:
    check, compares = _check(written["rule"], declared, environment)
    message = None
    if written.get("messageExpression") and not check.problem:
        message = _message(written["messageExpression"], declared, environment)
    return Rule(
        written=written,
        check=check,
        message=message,
        compares=compares,
        optional=optional,
        shown=_below(written.get("fieldPath", ""), node),
    )


def _check(text: str, declared: Declared, environment: Environment) -> tuple[Expression, bool]:
    if not text.strip():
        return Expression(), False
    try:
        program = compile_expression(text, environment, sizes=declared.sizes)
    except ConstantError as error:
        return Expression(problem=f"program instantiation failed: {error}"), OLD in text
    except CompileError as error:
        return Expression(problem=f"compilation failed: {error}"), False
    if program.result != BOOL:
        return Expression(problem="cel expression must evaluate to a bool"), False
    compares = OLD in text and OLD in reads(program.checked, environment).variables
    most = _most(program, declared)
    uncounted = None
    if most * ESTIMATE_MARGIN > PER_CALL:
        uncounted = Program(program.checked, environment.extend(limits=Limits()))
    return Expression(program=program, most=most, uncounted=uncounted), compares


def _message(text: str, declared: Declared, environment: Environment) -> Expression:
    opening = "messageExpression"
    try:
        program = compile_expression(text, environment, sizes=declared.sizes)
    except ConstantError as error:
        return Expression(problem=f"{opening} instantiation failed: {error}")
    except CompileError as error:
        return Expression(problem=f"{opening} compilation failed: {error}")
    if program.result != STRING:
        return Expression(problem=f"{opening} must evaluate to a string")
    return Expression(program=program, most=_most(program, declared))


def _most(program: Program, declared: Declared) -> int:
    return estimate(program.checked, program.environment, declared.sizes).most


def _below(path: str, node: Document) -> str:
    if not path:
        return ""
    try:
        return resolve_path(path, node).path
    except BadPath:
        return ""
