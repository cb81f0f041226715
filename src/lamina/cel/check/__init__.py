"""
Checking an expression before it is evaluated: names, types, and literals that cannot be converted.
"""

from __future__ import annotations

from lamina.cel.ast import Checked, Parsed
from lamina.cel.check.checker import Checker
from lamina.cel.check.constants import constant_issue
from lamina.cel.check.literals import literal_issues
from lamina.cel.check.meaning import with_meaning
from lamina.cel.declare import Environment
from lamina.cel.errors import CheckError, ConstantError, Issue

__all__ = ["check"]


def check(parsed: Parsed, environment: Environment) -> Checked:
    """
    Return an expression with its types.

    Raises CheckError, whose text is cel-go's, or ConstantError where all types fit
    and a constant has no value.
    """
    checker = Checker(parsed, environment)
    try:
        checker.check(parsed.expr)
        checker.settle()
        expr = with_meaning(parsed.expr, checker.meant) if checker.meant else parsed.expr
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
