"""Choosing clusters for one placement, and saying who was chosen and why not more."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

from msgspec import Struct
from msgspec.structs import replace

from lamina.core.events import warning
from lamina.core.plan import Emit, Plan, Stage, set_status
from lamina.core.questions import Answers, Found, Read
from lamina.core.world import World
from lamina.errors import SpecError
from lamina.families.manifestwork.names import (
    CLUSTER,
    CLUSTER_SET,
    CLUSTER_SET_BINDING,
    DECISION,
    PLACEMENT,
    PLACEMENT_LABEL,
    SCORE,
)
from lamina.families.manifestwork.placement import api, scores, taints
from lamina.families.manifestwork.placement.decisions import by_number, decision_name, stages
from lamina.families.manifestwork.placement.eligible import Eligible, eligible
from lamina.families.manifestwork.placement.groups import Slice, group, matchers, slices
from lamina.families.manifestwork.placement.selecting import Matches, Scores, selector
from lamina.families.manifestwork.strategy import Group
from lamina.objects import meta
from lamina.objects.conditions import with_condition
from lamina.objects.types import Made, Obj, Ref

DISABLED = "cluster.open-cluster-management.io/experimental-scheduling-disable"
"""An annotation: whoever says so writes the decisions, and we leave them alone."""
BY = "placement"


class View(Struct, frozen=True, kw_only=True):
    """A placement, its decisions, and what there is to choose from."""

    placement: Obj
    decisions: tuple[Obj, ...]
    bindings: tuple[Obj, ...]
    sets: Mapping[str, Obj]
    clusters: tuple[Obj, ...]
    used: Mapping[str, int]
    add_ons: Mapping[tuple[str, str], Obj]


def by_its_placement(obj: Obj) -> Iterable[str]:
    placement = meta.labels(obj).get(PLACEMENT_LABEL)
    return (f"{meta.namespace(obj)}/{placement}",) if placement else ()


def gather(world: World, ref: Ref) -> View | None:
    placement = world.get(ref)
    if placement is None or (ref.group, ref.kind) != tuple(PLACEMENT) or meta.is_deleting(placement):
        return None
    if meta.annotations(placement).get(DISABLED) == "true":
        return None
    key = f"{ref.namespace}/{ref.name}"
    return View(
        placement=placement,
        decisions=tuple(world.found(DECISION, by_its_placement, key)),
        bindings=tuple(world.every(CLUSTER_SET_BINDING, ref.namespace)),
        sets={meta.name(one): one for one in world.every(CLUSTER_SET)},
        clusters=tuple(world.every(CLUSTER)),
        used=_used(world, key),
        add_ons={(meta.namespace(one), meta.name(one)): one for one in world.every(SCORE)},
    )


def _used(world: World, but: str) -> dict[str, int]:
    """Return how often other placements have chosen each cluster."""
    counts: dict[str, int] = {}
    for decision in world.every(DECISION):
        if but not in by_its_placement(decision):
            for one in (decision.get("status") or {}).get("decisions") or ():
                counts[one["clusterName"]] = counts.get(one["clusterName"], 0) + 1
    return counts


class _Choice(Struct, frozen=True, kw_only=True):
    chosen: tuple[Obj, ...]
    reason: str
    message: str
    again: datetime | None = None

    @property
    def is_satisfied(self) -> bool:
        return self.reason == "AllDecisionsScheduled"


def plan(view: View, answers: Answers, now: datetime) -> Plan:
    """Decide who is chosen; where the placement makes no sense, say so and leave the decisions as they are."""
    view, placement = _looked_at(view, answers), view.placement
    try:
        spec = api.spec(placement)
        taints.check(spec.tolerations)
        scores.check(spec.prioritizer_policy)
        named = matchers(spec.decision_strategy.group_strategy)
        choice = _choose(view, spec, now)
        known = _scores_of(view)
        groups = group(choice.chosen, spec.decision_strategy.group_strategy, named, known)
    except SpecError as wrong:
        return _misconfigured(view, str(wrong), now)
    if doubts := tuple(one for one in _doubts(view, spec, choice, now) if one not in answers):
        # Their works go; and whoever is shown the past has not heard of a taint that was taken off.
        return Plan(asks=doubts, because=choice.message)
    there = by_number(placement, view.decisions)
    wanted = slices(groups, there)
    said = set_status(placement, _status(placement, choice, groups, wanted, now))
    done = stages(placement, wanted, there, view.decisions)
    last = (Stage("say so", (said,)),) if said is not None else ()
    return Plan(
        stages=(*done, *last),
        look_again=choice.again - now if choice.again is not None else None,
        because=choice.message,
    )


def _looked_at(view: View, answers: Answers) -> View:
    """Return a view with clusters as they were read, where they were."""
    read = {asked.ref.name: answer for asked, answer in answers.known.items() if isinstance(asked, Read)}
    if not read:
        return view
    real = {name: answer.obj for name, answer in read.items() if isinstance(answer, Found)}
    there = (one for one in view.clusters if meta.name(one) not in read or meta.name(one) in real)
    return replace(view, clusters=tuple(real.get(meta.name(one), one) for one in there))


def _doubts(view: View, spec: api.Spec, choice: _Choice, now: datetime) -> Iterable[Read]:
    """Yield the look at each cluster that is given up because its taint was tolerated for long enough."""
    given_up = _decided(view) - {meta.name(one) for one in choice.chosen}
    for one in view.clusters:
        if meta.name(one) in given_up and taints.has_run_out(one, spec.tolerations, now):
            yield Read(meta.ref(one), whole=True)


def _decided(view: View) -> set[str]:
    """Return whom the decisions name."""
    return {
        one["clusterName"]
        for decision in view.decisions
        for one in (decision.get("status") or {}).get("decisions") or ()
    }


def _scores_of(view: View) -> dict[str, Scores]:
    found: dict[str, dict[str, Sequence[Obj]]] = {}
    for (cluster, name), one in view.add_ons.items():
        found.setdefault(cluster, {})[name] = (one.get("status") or {}).get("scores") or ()
    return dict(found)


def _choose(view: View, spec: api.Spec, now: datetime) -> _Choice:
    found = eligible(spec.cluster_sets, view.bindings, view.sets, view.clusters)
    # What makes no sense is said even where there is nobody to choose from.
    tests = [
        selector(one.required_cluster_selector, f"spec.predicates[{place}].requiredClusterSelector")
        for place, one in enumerate(spec.predicates)
    ]
    if not found.clusters:
        return _Choice(chosen=(), reason=found.reason, message=found.message)
    known = _scores_of(view)
    decided = _decided(view)
    feasible, again = _feasible(found, tests, known, spec, decided, now)
    if not feasible:
        message = "No ManagedCluster matches any of the cluster predicate"
        return _Choice(chosen=(), reason="NoManagedClusterMatched", message=message, again=again)
    facts = scores.Known(chosen=frozenset(decided), used=view.used, add_ons=view.add_ons, now=now)
    sums = scores.totals(feasible, spec.prioritizer_policy, facts)
    ranked = sorted(feasible, key=lambda one: (-sums[meta.name(one)], meta.name(one)))
    asked = spec.number_of_clusters
    chosen = tuple(ranked if asked is None else ranked[: max(asked, 0)])
    missing = 0 if asked is None else max(asked - len(chosen), 0)
    if missing:
        message = f"{missing} cluster decisions unscheduled"
        return _Choice(chosen=chosen, reason="NotAllDecisionsScheduled", message=message, again=again)
    message = "All cluster decisions scheduled"
    return _Choice(chosen=chosen, reason="AllDecisionsScheduled", message=message, again=again)


def _feasible(
    found: Eligible,
    tests: Sequence[Matches],
    known: Mapping[str, Scores],
    spec: api.Spec,
    decided: set[str],
    now: datetime,
) -> tuple[list[Obj], datetime | None]:
    """Return who may be chosen, and when that has to be looked at again though nothing changes."""
    feasible: list[Obj] = []
    again: datetime | None = None
    for cluster in found.clusters:
        own = known.get(meta.name(cluster), {})
        if tests and not any(test(cluster, own) for test in tests):
            continue
        admitted, ends = taints.admits(
            cluster, spec.tolerations, is_chosen=meta.name(cluster) in decided, now=now
        )
        if admitted:
            feasible.append(cluster)
        if ends is not None and (again is None or ends < again):
            again = ends
    return feasible, again


def _status(
    placement: Obj, choice: _Choice, groups: Sequence[Group], wanted: Sequence[Slice], now: datetime
) -> Made:
    old: Obj = placement.get("status") or {}
    said = with_condition(
        old.get("conditions") or (),
        "PlacementSatisfied",
        "True" if choice.is_satisfied else "False",
        reason=choice.reason,
        message=choice.message,
        now=now,
    )
    said = with_condition(
        said,
        "PlacementMisconfigured",
        "False",
        reason="Succeedconfigured",
        message="Placement configurations check pass",
        now=now,
    )
    return {**old, **_counted(placement, groups, wanted), "conditions": said}


def _counted(placement: Obj, groups: Sequence[Group], wanted: Sequence[Slice]) -> Made:
    """Return how many are chosen, and which objects say so."""
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
    old: Obj = placement.get("status") or {}
    conditions = with_condition(
        old.get("conditions") or (),
        "PlacementMisconfigured",
        "True",
        reason="Misconfigured",
        message=message,
        now=now,
    )
    conditions = with_condition(
        conditions, "PlacementSatisfied", "False", reason="Misconfigured", message=message, now=now
    )
    done, counted = _nobody(view)
    said = set_status(placement, {**old, **counted, "conditions": conditions})
    if said is None:
        return Plan(stages=done, because=message)
    told = Emit(event=warning(placement, "Misconfigured", message, by=BY, now=now))
    # Before a decision names nobody it is said why: then nobody takes it for a choice, and ends works over it.
    return Plan(stages=(Stage("say so", (said,)), *done, Stage("tell", (told,))), because=message)


def _nobody(view: View) -> tuple[tuple[Stage, ...], Made]:
    """
    Return how it is written down that nobody is chosen, and what is said of that; nothing where somebody was.

    Where the status says that somebody was, decisions that do not say so were deleted, or put back without a status.
    """
    selected = (view.placement.get("status") or {}).get("numberOfSelectedClusters")
    if selected or any((one.get("status") or {}).get("decisions") for one in view.decisions):
        return (), {}
    there = by_number(view.placement, view.decisions)
    wanted = slices(groups := [Group(index=0)], there)
    done = stages(view.placement, wanted, there, view.decisions, as_seen=True)
    return done, _counted(view.placement, groups, wanted)
