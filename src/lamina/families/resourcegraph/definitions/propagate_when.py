"""Evaluates the propagateWhen of a definition for its instances."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

from lamina.errors import LaminaError
from lamina.families.resourcegraph.definitions.instance_facts import InstanceFacts
from lamina.families.resourcegraph.definitions.view import Revision, View
from lamina.graph.gate import Gate, compile_gate, gate_open
from lamina.graph.gate import population as variables
from lamina.graph.graph import GraphError
from lamina.graph.outcomes import Failed
from lamina.graph.pacing import Paced
from lamina.objects.types import Obj

# CEL is imported on demand: it takes long to import, and most definitions have no propagateWhen.
if TYPE_CHECKING:
    from lamina.cel.ast import Expr

_PACES = ("exponentiallyUpdated", "exponentiallyReady", "linearlyUpdated", "linearlyReady")


class GateError(LaminaError):
    """A propagateWhen does not compile, or cannot be evaluated; nothing is let through then."""


def let_through(
    view: View,
    current: Revision,
    following: Sequence[InstanceFacts],
    is_candidate: Callable[[InstanceFacts], bool],
) -> tuple[InstanceFacts, ...]:
    """Return the candidates for which propagateWhen holds, of all that follow, in their order; raises GateError."""
    schema = view.stated.schema
    gate = _compiled(view.stated.propagate_when, view.crd_name.partition(".")[0], schema.kind.lower())
    if isinstance(gate, GraphError):
        raise GateError(str(gate))
    number = current.number
    paced = [Paced(one.obj, one.observed == number, one.is_ready) for one in following]
    population = variables(gate, paced, _with_current(view.definition, number))
    found: list[InstanceFacts] = []
    for index, one in enumerate(following):
        if not is_candidate(one):
            continue
        answer = gate_open(gate, population, index)
        if isinstance(answer, Failed):
            raise GateError(answer.because)
        if answer:
            found.append(one)
        elif _is_ordered(gate):
            break
    return tuple(found)


def _with_current(definition: Obj, number: int) -> Obj:
    return {**definition, "status": {**(definition.get("status") or {}), "currentRevision": number}}


@lru_cache(maxsize=1024)
def _compiled(stated: tuple[str, ...], plural: str, singular: str) -> Gate | GraphError:
    try:
        return compile_gate(stated, plural=plural, singular=singular)
    except GraphError as wrong:
        return wrong.with_traceback(None)


@lru_cache(maxsize=1024)
def _is_ordered(gate: Gate) -> bool:
    """
    Say whether a gate that is closed for an instance is closed for all after it.

    It is where the instance only matters to the functions of a pace, by its index: then not
    every one of a thousand instances has to be evaluated.
    """
    return all(_falls(one.program.checked.expr, gate.one) for one in gate.conditions)


def _falls(expr: Expr, names: Sequence[str]) -> bool:
    from lamina.cel.ast import AND, OR, Call

    if isinstance(expr, Call):
        if expr.function in _PACES:
            return True
        if expr.function in (AND, OR):
            return all(_falls(one, names) for one in expr.args)
    return not any(name in names for name in _names(expr))


def _names(expr: Expr) -> Iterator[str]:
    from lamina.cel.ast import Ident, walk

    return (node.name for node in walk(expr) if isinstance(node, Ident))
