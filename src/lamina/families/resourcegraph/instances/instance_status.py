"""The status of an instance after a pass over its nodes: the author's fields, the controller's, and the conditions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from itertools import islice

from lamina.families.resourcegraph.instances import built_in
from lamina.families.resourcegraph.instances.children import input_stamp, made_by
from lamina.families.resourcegraph.instances.goal import Choice, Goal
from lamina.families.resourcegraph.instances.node_steps import NodeStep, Phase, scope_of
from lamina.families.resourcegraph.instances.pass_findings import findings
from lamina.families.resourcegraph.instances.progress import InstanceState, Progress
from lamina.families.resourcegraph.instances.view import (
    CURRENT_INPUT,
    CURRENT_RGD,
    HISTORY,
    MOST_LISTED,
    OBSERVED_INPUT,
    OBSERVED_RGD,
    View,
)
from lamina.graph.evaluate import ConditionsResult, author_conditions, ready, status_fields
from lamina.objects import meta
from lamina.objects.types import Condition, Made, Obj, Ref


def instance_status(
    view: View,
    choice: Choice,
    steps: Sequence[NodeStep],
    found: Progress,
    fields: Mapping[str, object],
    now: datetime,
) -> Made:
    """Return the status; `fields` are those of the controller, left out where the author has one of that name."""
    goal = choice.goal
    own = built_in.built_in(view.obj, findings(view, choice, found), now)
    authored: Made = {}
    result: ConditionsResult | None = None
    if goal is not None:
        scope = scope_of(view, goal, _observed(view, goal, steps))
        authored, _ = status_fields(goal.graph, scope)
        if goal.graph.hides_conditions:
            result = author_conditions(goal.graph, scope, {one["type"]: one for one in own})
    mine = {name: value for name, value in fields.items() if name not in view.authored}
    return {
        **mine,
        **authored,
        "state": str(InstanceState.ERROR if result is not None and result.failures else found.state),
        "conditions": _shown(view, own, result, now),
    }


def _shown(
    view: View, own: list[Condition], result: ConditionsResult | None, now: datetime
) -> list[Condition]:
    if result is None:
        return own
    is_partial = bool(result.failures or result.pending)
    return built_in.authored(view.obj, result.conditions, own, now, is_partial=is_partial)


def _observed(view: View, goal: Goal, steps: Sequence[NodeStep]) -> dict[str, Sequence[Obj]]:
    """Return the objects that the author's fields have of nodes: of one that is not rendered now, those that exist."""
    found: dict[str, Sequence[Obj]] = {}
    for one in steps:
        if one.phase is Phase.SKIPPED:
            continue
        objects = one.observed
        if not one.is_rendered and not one.node.kind.is_external:
            objects = made_by(one.node.id, view.children)
        if objects or one.node.kind.is_many:
            found[one.node.id] = objects
    return found


def revision_fields(
    choice: Choice, observed: tuple[int, int], propagation: Obj, history: Sequence[Obj]
) -> Made:
    """Return the controller's fields of the status; those that are 0 or empty are left out."""
    target = choice.target
    made = {
        CURRENT_INPUT: target.number if target is not None else 0,
        CURRENT_RGD: target.revision if target is not None else 0,
        OBSERVED_INPUT: observed[0],
        OBSERVED_RGD: observed[1],
        "propagation": propagation,
        HISTORY: list(history),
    }
    return {name: value for name, value in made.items() if value}


def managed_resources(view: View, choice: Choice, steps: Sequence[NodeStep]) -> list[Made]:
    """
    Return the children of an instance, as its status lists them: the first ones, with how far each is.

    Of a node that is not rendered now, they are those that it has.
    """
    listed = islice(_children(view, steps), MOST_LISTED)
    return [_listed(view, choice, step, ref, live, state) for step, ref, live, state in listed]


def _children(view: View, steps: Sequence[NodeStep]) -> Iterator[tuple[NodeStep, Ref, Obj | None, str]]:
    """Yield the children of each node, with the cached object and the state of each."""
    for one in steps:
        for child in one.children:
            yield one, child.desired.ref, child.live, str(one.phase if child.is_same else child.relation)
        if not one.is_rendered:
            for live in made_by(one.node.id, view.children):
                yield one, meta.ref(live), live, str(one.phase)


def _listed(view: View, choice: Choice, step: NodeStep, ref: Ref, live: Obj | None, state: str) -> Made:
    is_ready = step.phase is Phase.SYNCED
    if live is not None and choice.goal is not None and not is_ready and not meta.is_deleting(live):
        scope, graph = scope_of(view, choice.goal, {}), choice.goal.graph
        is_ready = ready(graph, step.node, scope, (live,)).is_healthy
    made = {
        "id": step.node.id,
        "apiVersion": ref.api_version,
        "kind": ref.kind,
        "namespace": ref.namespace,
        "name": ref.name,
        "state": state,
        "inputRevision": input_stamp(live, meta.uid(view.obj)) if live is not None else 0,
    }
    return {**{name: value for name, value in made.items() if value}, "ready": is_ready}
