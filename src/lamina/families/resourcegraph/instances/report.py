"""
Reports a pass over the nodes of an instance: its status, that of its input revisions, and what they supersede.

Input revisions that are further behind than the history has room for are deleted.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from msgspec.structs import replace

from lamina.core.model.plan import Action, Stage
from lamina.families.resourcegraph.instances import input_revisions, status
from lamina.families.resourcegraph.instances.goal import Choice
from lamina.families.resourcegraph.instances.input_revisions import COMPLETED, InputRevision
from lamina.families.resourcegraph.instances.instance_status import (
    instance_status,
    managed_resources,
    revision_fields,
)
from lamina.families.resourcegraph.instances.node_steps import NodeStep
from lamina.families.resourcegraph.instances.progress import Progress
from lamina.families.resourcegraph.instances.view import MANAGED_RESOURCES, OBSERVED_INPUT, OBSERVED_RGD, View
from lamina.objects.types import Made


def report(
    view: View, choice: Choice, steps: Sequence[NodeStep], found: Progress, now: datetime
) -> tuple[Stage, ...]:
    """Return the writes of a report, status by status, and of what is no longer kept."""
    newest = choice.newest
    assert newest is not None, "an instance with a revision has an input revision"
    live = _live(choice, found, newest)
    observed = _observed(view, choice, found)
    used = {*live, observed[0]}
    doomed = tuple(input_revisions.prunable(view.inputs, used, view.history_limit))
    stays = tuple(one for one in view.inputs if one not in doomed)
    target = choice.target.number if choice.target is not None else newest.number
    propagation = status.propagation(
        view,
        found.propagation,
        now,
        targetInputRevision=target,
        resourcesAtTarget=found.at,
        totalResources=found.total,
        pendingRGDRevision=choice.resolved.effective.pending,
        message=found.because,
    )
    history = input_revisions.history(stays, live, inline=view.is_inline)
    fields: Made = revision_fields(choice, observed, propagation, history)
    fields[MANAGED_RESOURCES] = managed_resources(view, choice, steps)
    made = instance_status(view, choice, steps, found, fields, now)
    effective = choice.resolved.effective
    pin = effective.number if effective.is_pinned else 0
    actions = (*_of_inputs(view, live, newest, found), *status.write(view.obj, made, now, pin=pin))
    deletions = (input_revisions.deletion(one) for one in doomed)
    stages = (
        Stage("report", actions),
        Stage("delete old input revisions", tuple(one for one in deletions if one is not None)),
    )
    return tuple(one for one in stages if one.actions)


def _live(choice: Choice, found: Progress, newest: InputRevision) -> dict[int, InputRevision]:
    """Return the input revisions that are not superseded, as they are to be reported."""
    live = {newest.number: replace(newest, status=found.input_status)}
    if choice.target is not None and choice.target.number != newest.number:
        live[choice.target.number] = choice.target
    return live


def _observed(view: View, choice: Choice, found: Progress) -> tuple[int, int]:
    """Return the input revision that was completed last, and the revision of the definition in it."""
    target = choice.target
    if target is not None and found.is_complete:
        return target.number, target.revision
    done = [one for one in view.inputs if one.status == COMPLETED]
    if done:
        return done[-1].number, done[-1].revision
    return view.number(OBSERVED_INPUT), view.number(OBSERVED_RGD)


def _of_inputs(
    view: View, live: dict[int, InputRevision], newest: InputRevision, found: Progress
) -> tuple[Action, ...]:
    """Return the writes of the statuses of input revisions."""
    is_started = found.input_status != input_revisions.PENDING
    at, total = (found.at, found.total) if is_started else (0, 0)
    own = input_revisions.report(newest, status=found.input_status, hash=newest.hash, at=at, total=total)
    older = (one for one in view.inputs if one.number not in live)
    return (*(() if own is None else (own,)), *input_revisions.supersede(older))
