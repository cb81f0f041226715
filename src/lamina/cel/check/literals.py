"""
Validators of literals: `duration('x')`, `s.matches('[')`, `[1, dyn('a')]`.

Kubernetes runs them after the type check, so that a rule that can never be
evaluated is rejected at admission.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from lamina.cel.ast import Call, Checked, Expr, Literal, LiteralKind, MakeList, MakeMap, children
from lamina.cel.check.formats import format_issue
from lamina.cel.check.unify import equivalent
from lamina.cel.declarations import Environment
from lamina.cel.errors import EvaluationError, Issue
from lamina.cel.library.patterns import compiled
from lamina.cel.literals import literal_value as literal_value
from lamina.cel.types import Type

_CONVERTED: Final = ("duration", "timestamp")
_MIXED: Final = frozenset({"format", "cel.@block"})
"""Functions whose arguments may hold literals of mixed types."""


def literal_issues(checked: Checked, environment: Environment) -> list[Issue]:
    """Return the errors of the literals of an expression, in Kubernetes' order."""
    issues: list[Issue] = []
    flags = environment.flags
    nodes = list(_walk(checked.expr, exempt=False))
    for name in (*_CONVERTED, "matches") if flags.validate_literals else ():
        for node, _ in nodes:
            if not isinstance(node, Call) or node.function != name or not node.args:
                continue
            arg = node.args[0]
            if isinstance(arg, Literal) and not _is_valid(node, arg, checked, environment):
                issues.append(Issue(arg.at, f"invalid {name} argument"))
    if flags.validate_literals:
        calls = [node for node, _ in nodes if isinstance(node, Call)]
        issues += [issue for call in calls if (issue := format_issue(call, checked)) is not None]
    if not flags.homogeneous_literals:
        return issues
    for node, exempt in nodes:
        if isinstance(node, MakeList) and not exempt:
            issues += _mixed_list(node, checked)
    for node, exempt in nodes:
        if isinstance(node, MakeMap) and not exempt:
            issues += _mixed_map(node, checked)
    return issues


def _walk(expr: Expr, *, exempt: bool) -> Iterator[tuple[Expr, bool]]:
    waiting = [(expr, exempt)]
    while waiting:
        node, exempt = waiting.pop()
        yield node, exempt
        exempt = exempt or (isinstance(node, Call) and node.function in _MIXED)
        waiting.extend((child, exempt) for child in reversed(children(node)))


def _is_valid(call: Call, arg: Literal, checked: Checked, environment: Environment) -> bool:
    if call.function == "matches":
        return _compiles(arg.value)
    if call.function == "duration" and arg.kind is not LiteralKind.STRING:
        return False
    overload = environment.overload(call.function, checked.references[call.id].overloads[0])
    if overload.implementation is None:
        return True
    try:
        overload.implementation(literal_value(arg))
    except EvaluationError:
        return False
    return True


def _compiles(pattern: Any) -> bool:
    try:
        compiled(pattern)
    except EvaluationError:
        return False
    return True


def _mixed_list(node: MakeList, checked: Checked) -> Iterator[Issue]:
    first: Type | None = None
    for place, item in enumerate(node.items):
        found = checked.types[item.id]
        if place in node.optional_indices and found.params:
            found = found.params[0]
        if first is None:
            first = found
        elif not equivalent(first, found):
            yield Issue(item.at, f"expected type '{first}' but found '{found}'")
            return


def _mixed_map(node: MakeMap, checked: Checked) -> Iterator[Issue]:
    first: tuple[Type, Type] | None = None
    for entry in node.entries:
        key, value = checked.types[entry.key.id], checked.types[entry.value.id]
        if entry.optional and value.params:
            value = value.params[0]
        if first is None:
            first = (key, value)
            continue
        for expr, wanted, found in ((entry.key, first[0], key), (entry.value, first[1], value)):
            if not equivalent(wanted, found):
                yield Issue(expr.at, f"expected type '{wanted}' but found '{found}'")
