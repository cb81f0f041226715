"""How far an instance is: how many children are at the input revision, whether all are ready, and what it waits for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from enum import StrEnum

from msgspec import Struct

from lamina.core.texts import joined
from lamina.families.resourcegraph.definitions.findings import Finding
from lamina.families.resourcegraph.instances.built_in import ALL_READY, not_ready
from lamina.families.resourcegraph.instances.children import input_stamp, node_of
from lamina.families.resourcegraph.instances.goal import Choice
from lamina.families.resourcegraph.instances.input_revisions import BLOCKED, COMPLETED, IN_PROGRESS, PENDING
from lamina.families.resourcegraph.instances.node_steps import NodeStep, Phase
from lamina.families.resourcegraph.instances.view import OBSERVED_INPUT, View
from lamina.graph.graph import NodeKind
from lamina.objects import meta
from lamina.objects.types import Obj


class InstanceState(StrEnum):
    """The state of an instance in its status."""

    IN_PROGRESS = "IN_PROGRESS"
    ACTIVE = "ACTIVE"
    ERROR = "ERROR"
    DELETING = "DELETING"


class Progress(Struct, frozen=True, kw_only=True):
    """
    How far an instance is.

    `propagation` is the status of the propagation of its input revision, and `input_status` that of
    the newest input revision. `because` is the sentence that says why it is not further.
    """

    state: InstanceState
    resources: Finding
    propagation: str
    input_status: str
    because: str = ""
    at: int = 0
    total: int = 0
    is_propagated: bool = False
    is_complete: bool = False


def progress(view: View, choice: Choice, steps: Sequence[NodeStep], left: Sequence[Obj]) -> Progress:
    """Return how far an instance is with a goal; `left` are the children that are to go."""
    target, newest = choice.target, choice.newest
    number = target.number if target is not None else 0
    at, total = _counts(view, steps, number)
    # What was complete once stays so: that a child fails later undoes no propagation.
    was_complete = target is not None and (
        target.status == COMPLETED or view.number(OBSERVED_INPUT) == number
    )
    is_known = was_complete or all(one.is_rendered for one in steps)
    is_propagated = is_known and at == total and not left
    is_settled = is_propagated and all(one.is_settled for one in steps)
    resources = _resources(steps, left)
    is_error = choice.resolved.effective.is_uncompiled or any(one.phase is Phase.ERROR for one in steps)
    is_complete = is_settled or was_complete
    status, because = _propagation(choice, steps, resources, is_complete=is_complete)
    is_started = target is not None and newest is not None and target.number == newest.number
    input_status = COMPLETED if is_complete else IN_PROGRESS
    return Progress(
        state=InstanceState.ERROR
        if is_error
        else InstanceState.ACTIVE
        if resources.is_true
        else InstanceState.IN_PROGRESS,
        resources=resources,
        propagation=status,
        input_status=input_status if is_started else PENDING,
        because=because,
        at=at,
        total=total,
        is_propagated=is_propagated,
        is_complete=is_complete,
    )


def _counts(view: View, steps: Sequence[NodeStep], number: int) -> tuple[int, int]:
    """Return how many children are at an input revision, and how many are desired, as far as that is known."""
    lives = Counter(node_of(one) for one in view.children)
    reached = Counter(node_of(one) for one in view.children if input_stamp(one, meta.uid(view.obj)) == number)
    at = total = 0
    for one in steps:
        if one.node.kind.is_external or one.phase is Phase.SKIPPED:
            continue
        if one.is_rendered:
            at += sum(child.stamp == number for child in one.children)
            total += len(one.children)
        else:
            least = 1 if one.node.kind is NodeKind.OBJECT else 0
            at += reached[one.node.id]
            total += max(least, lives[one.node.id])
    return at, total


def _resources(steps: Sequence[NodeStep], left: Sequence[Obj]) -> Finding:
    """Return the finding about the resources of an instance."""
    errors = [one.because for one in steps if one.phase is Phase.ERROR]
    if errors:
        return not_ready(f"resource error: {joined(errors)}")
    deleting = next((one for one in steps if one.phase is Phase.DELETING), None)
    if deleting is not None:
        return Finding("False", "ResourceDeleting", deleting.because)
    if any(not one.is_settled for one in steps) or left:
        return not_ready(f"awaiting resource readiness: {what_it_waits_for(steps, left)}")
    return ALL_READY


def what_it_waits_for(steps: Sequence[NodeStep], left: Sequence[Obj] = ()) -> str:
    """Return what an instance really waits for: nodes that only wait for others are named after these."""
    found = [one.because for one in steps if not one.is_settled and not one.is_dependent]
    if left:
        found.append(f"deletion of {joined([str(meta.ref(one)) for one in left])}")
    dependents = [f'"{one.node.id}"' for one in steps if one.is_dependent]
    if dependents:
        found.append(f"then {joined(dependents, ', ')}")
    return joined([one for one in found if one]) or "nothing"


def _propagation(
    choice: Choice, steps: Sequence[NodeStep], resources: Finding, *, is_complete: bool
) -> tuple[str, str]:
    """Return the status of the propagation, and why it is not further."""
    effective, target, newest = choice.resolved.effective, choice.target, choice.newest
    if effective.is_paused and newest is not None and newest is not target:
        return (
            BLOCKED,
            f"update policy is Paused: input revision {newest.number} is recorded, and not applied",
        )
    if is_complete:
        is_gated = bool(effective.pending) and effective.follows
        return (PENDING if is_gated else COMPLETED), effective.waits
    if effective.is_paused:
        return BLOCKED, "update policy is Paused: resources that it has not reached are left as they are"
    held = next((one for one in steps if one.phase is Phase.BLOCKED), None)
    if held is not None:
        return BLOCKED, held.because
    return IN_PROGRESS, resources.message
