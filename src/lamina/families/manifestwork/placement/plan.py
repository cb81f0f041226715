"""The next step of one placement: its decisions, and a status that says why not more clusters are selected."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from lamina.core.model.events import warning
from lamina.core.model.plan import Emit, Plan, Stage, set_status
from lamina.core.model.queries import Answers, Read
from lamina.errors import SpecError
from lamina.families.manifestwork.hub.strategy import Group
from lamina.families.manifestwork.placement import api
from lamina.families.manifestwork.placement.decisions import by_number, decision_name, stages
from lamina.families.manifestwork.placement.groups import Slice, group, matchers, slices
from lamina.families.manifestwork.placement.select import Selection, check, evicted, select
from lamina.families.manifestwork.placement.view import View, with_live_clusters
from lamina.objects import meta
from lamina.objects.conditions import with_condition
from lamina.objects.types import Made, Obj

_BY = "placement"


def plan(view: View, answers: Answers, now: datetime) -> Plan:
    """Return the next step; a placement whose spec is invalid keeps its decisions, and its status says why."""
    view, placement = with_live_clusters(view, answers), view.placement
    try:
        spec = api.spec(placement)
        check(spec)
        named = matchers(spec.decision_strategy.group_strategy)
        selection = select(view, spec, now)
        groups = group(selection.clusters, spec.decision_strategy.group_strategy, named, view.scores)
    except SpecError as wrong:
        return _misconfigured(view, str(wrong), now)
    reads = [Read(meta.ref(one), whole=True) for one in evicted(view, spec, selection, now)]
    if unanswered := tuple(one for one in reads if one not in answers):
        # An eviction deletes works, and a stale cache may lack the removal of the taint.
        return Plan(queries=unanswered, because=selection.message)
    there = by_number(placement, view.decisions)
    wanted = slices(groups, there)
    status = set_status(placement, _status(placement, selection, groups, wanted, now))
    report = (Stage("report", (status,)),) if status is not None else ()
    return Plan(
        stages=(*stages(placement, wanted, there, view.decisions), *report),
        requeue_after=selection.changes_at - now if selection.changes_at is not None else None,
        because=selection.message,
    )


def _status(
    placement: Obj, selection: Selection, groups: Sequence[Group], wanted: Sequence[Slice], now: datetime
) -> Made:
    old: Obj = placement.get("status") or {}
    satisfied = with_condition(
        old.get("conditions") or (),
        "PlacementSatisfied",
        "True" if selection.is_satisfied else "False",
        reason=selection.reason,
        message=selection.message,
        now=now,
    )
    both = with_condition(
        satisfied,
        "PlacementMisconfigured",
        "False",
        reason="Succeedconfigured",
        message="Placement configurations check pass",
        now=now,
    )
    return {**old, **_counts(placement, groups, wanted), "conditions": both}


def _counts(placement: Obj, groups: Sequence[Group], wanted: Sequence[Slice]) -> Made:
    """Return how many clusters are selected, and which decisions list them."""
    listed = [
        {
            "decisionGroupIndex": one.index,
            "decisionGroupName": one.name,
            "decisions": [
                decision_name(placement, own.number) for own in wanted if own.group.index == one.index
            ],
            "clusterCount": len(one.clusters),
        }
        for one in groups
    ]
    return {"numberOfSelectedClusters": sum(len(one.clusters) for one in groups), "decisionGroups": listed}


def _misconfigured(view: View, message: str, now: datetime) -> Plan:
    placement = view.placement
    conditions = (placement.get("status") or {}).get("conditions") or ()
    for name, status in (("PlacementMisconfigured", "True"), ("PlacementSatisfied", "False")):
        conditions = with_condition(
            conditions, name, status, reason="Misconfigured", message=message, now=now
        )
    decided, counts = _empty(view)
    old: Obj = placement.get("status") or {}
    patch = set_status(placement, {**old, **counts, "conditions": conditions})
    if patch is None:
        return Plan(stages=decided, because=message)
    event = Emit(event=warning(placement, "Misconfigured", message, by=_BY, now=now))
    # The reason first: a decision without clusters alone would delete the works of the placement.
    stages = (Stage("report", (patch,)), *decided, Stage("emit events", (event,)))
    return Plan(stages=stages, because=message)


def _empty(view: View) -> tuple[tuple[Stage, ...], Made]:
    """
    Return the stages that write a decision without clusters, and the counts; nothing where clusters are selected.

    Where the status counts clusters and no decision lists them, the decisions were
    deleted, or restored without a status.
    """
    counted = (view.placement.get("status") or {}).get("numberOfSelectedClusters")
    if counted or view.selected:
        return (), {}
    there = by_number(view.placement, view.decisions)
    wanted = slices(groups := [Group(index=0)], there)
    done = stages(view.placement, wanted, there, view.decisions, as_seen=True)
    return done, _counts(view.placement, groups, wanted)
