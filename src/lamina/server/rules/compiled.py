"""
One rule of a schema, compiled: what it asks, what it says when the answer is no, and what asking may cost.

`self` has the type that the schema gives the node the rule stands at, and so has
`oldSelf`, which is optional where the rule says so.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from msgspec import Struct

from lamina.cel.cost.estimate import estimate
from lamina.cel.cost.limits import PER_CALL
from lamina.cel.declare import Environment, Limits, Variable
from lamina.cel.environment import KUBERNETES
from lamina.cel.errors import CompileError, ConstantError
from lamina.cel.program import Program, compile_expression
from lamina.cel.reads import reads
from lamina.cel.schema import Declared
from lamina.cel.types import BOOL, STRING, optional_of
from lamina.server.custom.document import Document
from lamina.server.custom.fieldpath import BadPath, follow

RULES: Final = "x-kubernetes-validations"
SELF: Final = "self"
OLD: Final = "oldSelf"
SURELY: Final = 2
"""An estimate may be below the cost where something is read from a value just made, but never by more than this."""


class Expression(Struct, frozen=True, kw_only=True):
    """
    A compiled expression, or why it is none; `most` is what evaluating it may cost at most.

    `uncounted` is the same program without a limit, where the first one would have
    to count: it is for values that have been measured and are small enough.
    """

    program: Program | None = None
    most: int = 0
    problem: str = ""
    uncounted: Program | None = None


class Rule(Struct, frozen=True, kw_only=True):
    """
    One rule, ready to be asked.

    `said` is what names it in messages: its message, or its text. `shown` is where
    its refusals point, below the value it is about. `message` is what makes the
    sentence of a refusal, if something does.
    """

    written: Mapping[str, Any]
    check: Expression
    message: Expression | None
    compares: bool
    """Whether it asks for the old value."""
    optional: bool
    """Whether it is asked even where there is no old value."""
    shown: str

    @property
    def said(self) -> str:
        return str(self.written.get("message") or self.written["rule"]).strip()

    @property
    def refusal(self) -> str:
        """Return what is said when the rule does not hold and nothing better is found."""
        message = str(self.written.get("message") or "").strip()
        return message if self.written.get("message") else f"failed rule: {self.said}"


def compile_rules(node: Document, declared: Declared) -> list[Rule]:
    """Return the rules that stand at one node of a schema, in their order."""
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
    if most * SURELY > PER_CALL:
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
        return follow(path, node).path
    except BadPath:
        return ""
