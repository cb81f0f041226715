"""
Probes that are CEL expressions about an object, as `self.status.phase == "Running"`.

`self` is the whole live object. The language is that of upstream's availability probes:
the standard library, the first version of the string extension, and Kubernetes' libraries
for URLs, regular expressions and lists; times without a zone are UTC.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from lamina.core.health.probe import HEALTHY, Probe, ProbeResult, unhealthy, unknown
from lamina.errors import SpecError
from lamina.objects.types import Obj

# CEL is imported on demand: it takes long to import, and most probes are no expressions.
if TYPE_CHECKING:
    from lamina.cel.ast import Source
    from lamina.cel.declarations import Environment
    from lamina.cel.errors import CompileError, Issue
    from lamina.cel.program import Program

_LONGEST = 200
"""How many characters of an expression a message shows."""


def cel_probe(rule: str, message: str) -> Probe:
    """
    Return the probe of an expression: an object for which it is false is unhealthy, with that message.

    An evaluation that fails, or costs more than Kubernetes allows for one expression, is unknown.
    Raises SpecError where the expression does not compile or may return something other than a bool.
    """
    from lamina.cel.errors import EvaluationError

    program = _program(rule)

    def ask(obj: Obj) -> ProbeResult:
        try:
            holds = program.evaluate({"self": obj})
        except EvaluationError as failed:
            return unknown(f"CEL program failed: {failed.message}")
        return HEALTHY if holds is True else unhealthy(message)

    return ask


def _program(rule: str) -> Program:
    from lamina.cel.errors import CompileError
    from lamina.cel.program import compile_expression
    from lamina.cel.types import BOOL

    shown = rule if len(rule) <= _LONGEST else f"{rule[:_LONGEST]}..."
    try:
        program = compile_expression(rule, _environment())
    except CompileError as wrong:
        raise SpecError(
            f'CEL expression "{shown}" does not compile: {_issues(wrong)}: '
            'correct it; the object is the variable "self"'
        ) from None
    if program.result != BOOL:
        raise SpecError(
            f'CEL expression must evaluate to a bool, and the type of "{shown}" is {program.result}: '
            'compare its value, as in "self.status.ready == true"'
        )
    return program


def _issues(wrong: CompileError) -> str:
    """Return all that is wrong with an expression, in one line: a condition shows it."""
    return "; ".join(" ".join(_issue(issue, wrong.source).split()) for issue in wrong.issues)


def _issue(issue: Issue, source: Source) -> str:
    text = issue.message
    if issue.at >= 0:
        line, column = source.position(issue.at)
        text = f"{text} (line {line}, column {column + 1})"
    return f"{text}, {issue.suggestion}" if issue.suggestion else text


@cache
def _environment() -> Environment:
    from lamina.cel.cost.limits import PER_CALL
    from lamina.cel.declarations import Environment, Flags, Library, Limits, Variable
    from lamina.cel.library.aggregates import AGGREGATES
    from lamina.cel.library.regex import KUBERNETES_REGEX
    from lamina.cel.library.standard import STANDARD
    from lamina.cel.library.strings import STRINGS_2
    from lamina.cel.library.urls import URLS
    from lamina.cel.macros import EXISTS_ONE_CAMEL
    from lamina.cel.types import DYN

    later = ("format", "strings.quote")
    strings = Library("strings", tuple(one for one in STRINGS_2.functions if one.name not in later))
    flags = Flags(
        homogeneous_literals=True,
        cross_type_numeric_comparisons=False,
        optional_syntax=False,
        backtick_fields=False,
        kubernetes_costs=True,
    )
    return Environment(name="probe", flags=flags, limits=Limits(cost=PER_CALL)).extend(
        libraries=(STANDARD, strings, URLS, KUBERNETES_REGEX, AGGREGATES),
        macros=(EXISTS_ONE_CAMEL,),
        variables=(Variable("self", DYN),),
    )
