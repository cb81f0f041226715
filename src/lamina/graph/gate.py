"""
The gate of a definition: its propagateWhen, which lets instances adopt a new revision.

It is closed where an expression fails or returns anything but a bool.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct

from lamina.graph.graph import EACH
from lamina.graph.outcomes import Failed, UnresolvedError, holds
from lamina.graph.pacing import Paced, items_of
from lamina.objects.types import Obj

INSTANCES, DEFINITION = "instances", "rgd"
"""Variables: all instances, and the definition."""
_FIELD = "spec.propagateWhen"


class Gate(Struct, frozen=True):
    """Compiled conditions; `many` and `one` are the names of the list of instances, and of the candidate."""

    conditions: tuple[Any, ...]
    many: tuple[str, ...]
    one: tuple[str, ...]


class Population(Struct, frozen=True):
    """The variables that are the same for all candidates, and the candidates in order."""

    variables: Mapping[str, Any]
    items: Sequence[Obj]


def compile_gate(stated: Sequence[str], *, plural: str = "", singular: str = "") -> Gate:
    """
    Return the gate of these expressions; raises GraphError.

    `plural` and `singular` are the names of the generated kind, which are variables too.
    """
    from lamina.cel.schema import Declared
    from lamina.cel.types import DYN, list_of
    from lamina.graph.drafts import conditions_of_gate
    from lamina.graph.expressions import PACED, check_paced, declaring
    from lamina.graph.nodes import conditions

    fixed = (INSTANCES, EACH, DEFINITION)
    many = (INSTANCES, *(name for name in (plural,) if name and name not in fixed))
    one = (EACH, *(name for name in (singular,) if name and name not in (*fixed, plural)))
    variables = {
        DEFINITION: Declared(DYN),
        **dict.fromkeys(one, Declared(DYN)),
        **dict.fromkeys(many, Declared(list_of(DYN))),
    }
    written = conditions_of_gate(stated, _FIELD)
    for condition in written:
        check_paced(condition, variables)
    found = conditions(written, _FIELD, declaring(PACED, variables), variables, may_be_dyn=True)
    return Gate(found, many, one)


def population(gate: Gate, instances: Sequence[Paced], definition: Obj) -> Population:
    """Return the instances that a gate is evaluated for, in order; computed once for all candidates."""
    items = items_of(instances)
    return Population({DEFINITION: definition, **dict.fromkeys(gate.many, items)}, items)


def gate_open(gate: Gate, of: Population, index: int) -> bool | Failed:
    """Say whether the instance at an index may adopt the new revision."""
    variables = {**of.variables, **dict.fromkeys(gate.one, of.items[index])}
    try:
        return all(holds(one, variables, "propagateWhen") for one in gate.conditions)
    except UnresolvedError as error:
        return Failed("", error.message)
