"""
The type checker: names, types, and constants without a value.
"""

from __future__ import annotations

from lamina.cel.ast import Checked, Parsed
from lamina.cel.check.checker import Checker
from lamina.cel.check.constants import constant_issue
from lamina.cel.check.literals import literal_issues
from lamina.cel.check.resolve import with_resolved_names
from lamina.cel.declarations import Environment
from lamina.cel.errors import CheckError, ConstantError, Issue

__all__ = ["check"]


def check(parsed: Parsed, environment: Environment) -> Checked:
    """
    Return a checked expression.

    Raises CheckError, whose text is cel-go's, or ConstantError where all types
    match and a constant has no value.
    """
    checker = Checker(parsed, environment)
    try:
        checker.check(parsed.expr)
        checker.resolve_type_parameters()
        expr = with_resolved_names(parsed.expr, checker.resolved) if checker.resolved else parsed.expr
    except RecursionError:
        message = f"expression recursion limit exceeded: {environment.limits.nesting}"
        raise CheckError(parsed.source, [Issue(-1, message)]) from None
    if checker.issues:
        raise CheckError(parsed.source, checker.issues)
    checked = Checked(parsed, expr, checker.types, checker.references, checker.types[parsed.expr.id])
    if environment.flags.validate_literals or environment.flags.homogeneous_literals:
        issues = literal_issues(checked, environment)
        if issues:
            raise CheckError(parsed.source, issues)
    if environment.flags.validate_literals:
        issue = constant_issue(checked, environment)
        if issue is not None:
            raise ConstantError(parsed.source, issue)
    return checked
