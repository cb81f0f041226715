"""Evaluates what an author reports about an instance: fields of its status, and conditions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from msgspec import Struct

from lamina.graph.graph import SCHEMA, Graph
from lamina.graph.outcomes import (
    Failed,
    Pending,
    UnresolvedError,
    evaluated,
)
from lamina.graph.problems import short
from lamina.graph.scope import Scope
from lamina.objects.types import Condition, Made

_FIELDS = ("type", "status", "reason", "message")
_STATUSES = ("True", "False", "Unknown")


class ConditionsResult(Struct, frozen=True):
    """
    The author's conditions without transition times, and why others are not there.

    Where something is pending or failed, earlier conditions of other types are to be kept.
    """

    conditions: tuple[Condition, ...]
    failures: tuple[Failed, ...] = ()
    pending: tuple[Pending, ...] = ()


def status_fields(graph: Graph, scope: Scope) -> tuple[Made, tuple[Failed, ...]]:
    """Return the author's status fields that can be evaluated, and the failures of others; pending ones are absent."""
    failures: list[UnresolvedError] = []
    made: Made = graph.compiled.gather(scope.variables, failures)
    return made, tuple(Failed("", f"status: {error.message}") for error in failures)


def author_conditions(graph: Graph, scope: Scope, built_in: Mapping[str, Condition]) -> ConditionsResult:
    """Return the author's conditions; `built_in` are those that `runtime.condition(schema, …)` may name."""
    schema = {**scope.variables[SCHEMA], "status": {"conditions": [dict(one) for one in built_in.values()]}}
    variables = {**scope.variables, SCHEMA: schema}
    found: list[Condition] = []
    failures: list[Failed] = []
    pending: list[Pending] = []
    for expression in graph.compiled.conditions:
        try:
            value = evaluated(expression, variables, "condition")
            found += _flat(value, short(expression.text))
        except UnresolvedError as error:
            match error.outcome(""):
                case Pending() as one:
                    pending.append(one)
                case Failed() as one:
                    failures.append(one)
    counts = Counter(one["type"] for one in found)
    twice = sorted(type_ for type_, count in counts.items() if count > 1)
    if twice:
        failures.append(Failed("", f"duplicate condition type(s) [{', '.join(twice)}] dropped"))
    kept = tuple(one for one in found if counts[one["type"]] == 1)
    return ConditionsResult(kept, tuple(failures), tuple(pending))


def _flat(value: Any, text: str) -> Iterator[Condition]:
    """Yield the conditions of a result: one, or a list of them; raises UnresolvedError."""
    for one in value if isinstance(value, list) else (value,):
        if not isinstance(one, Mapping) or not set(one) >= {*_FIELDS}:
            raise UnresolvedError(f'condition "{text}" must return a condition or a list of them')
        if not one["type"] or one["status"] not in _STATUSES:
            raise UnresolvedError(f'condition "{text}" found no condition: it has no type or no status')
        yield Condition(type=one["type"], status=one["status"], reason=one["reason"], message=one["message"])
