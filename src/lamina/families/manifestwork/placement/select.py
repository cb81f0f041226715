"""Which clusters a placement selects: eligible, matching, tolerated, and ranked by score."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta

from msgspec import Struct

from lamina.errors import SpecError
from lamina.families.manifestwork.placement import api, scores
from lamina.families.manifestwork.placement.cluster_selector import Matches, Scores, selector
from lamina.families.manifestwork.placement.filter import Eligible, eligible
from lamina.families.manifestwork.placement.view import View
from lamina.objects import meta
from lamina.objects.times import moment
from lamina.objects.types import Obj


class Selection(Struct, frozen=True, kw_only=True):
    """The selected clusters, best first, why there are not more, and when that may change by itself."""

    clusters: tuple[Obj, ...]
    reason: str
    message: str
    changes_at: datetime | None = None

    @property
    def is_satisfied(self) -> bool:
        return self.reason == "AllDecisionsScheduled"


def check(spec: api.Spec) -> None:
    """Raise SpecError where tolerations or prioritizers make no sense."""
    _check_tolerations(spec.tolerations)
    scores.check(spec.prioritizer_policy)


def select(view: View, spec: api.Spec, now: datetime) -> Selection:
    """Return the selected clusters; raises SpecError for an invalid predicate, even without clusters."""
    predicates = [
        selector(one.required_cluster_selector, f"spec.predicates[{place}].requiredClusterSelector")
        for place, one in enumerate(spec.predicates)
    ]
    found = eligible(spec.cluster_sets, view.bindings, view.sets, view.clusters)
    if not found.clusters:
        return Selection(clusters=(), reason=found.reason, message=found.message)
    selected = view.selected
    feasible, changes_at = _feasible(found, predicates, view.scores, spec, selected, now)
    if not feasible:
        message = "No ManagedCluster matches any of the cluster predicate"
        return Selection(
            clusters=(), reason="NoManagedClusterMatched", message=message, changes_at=changes_at
        )
    inputs = scores.ScoreInputs(selected=selected, used=view.used, add_ons=view.add_ons, now=now)
    totals = scores.totals(feasible, spec.prioritizer_policy, inputs)
    ranked = sorted(feasible, key=lambda one: (-totals[meta.name(one)], meta.name(one)))
    wanted = spec.number_of_clusters
    clusters = tuple(ranked if wanted is None else ranked[: max(wanted, 0)])
    missing = 0 if wanted is None else max(wanted - len(clusters), 0)
    reason, message = "AllDecisionsScheduled", "All cluster decisions scheduled"
    if missing:
        reason, message = "NotAllDecisionsScheduled", f"{missing} cluster decisions unscheduled"
    return Selection(clusters=clusters, reason=reason, message=message, changes_at=changes_at)


def _feasible(
    found: Eligible,
    predicates: Sequence[Matches],
    known: Mapping[str, Scores],
    spec: api.Spec,
    selected: frozenset[str],
    now: datetime,
) -> tuple[list[Obj], datetime | None]:
    """Return the clusters that may be selected, and when the end of a toleration changes that."""
    feasible: list[Obj] = []
    changes_at: datetime | None = None
    for cluster in found.clusters:
        name = meta.name(cluster)
        if predicates and not any(matches(cluster, known.get(name, {})) for matches in predicates):
            continue
        admitted, ends = _admits(cluster, spec.tolerations, is_selected=name in selected, now=now)
        if admitted:
            feasible.append(cluster)
        if ends is not None and (changes_at is None or ends < changes_at):
            changes_at = ends
    return feasible, changes_at


def evicted(view: View, spec: api.Spec, selection: Selection, now: datetime) -> Iterator[Obj]:
    """Yield the clusters that are no longer selected because the toleration of a taint has ended."""
    given_up = view.selected - {meta.name(one) for one in selection.clusters}
    for one in view.clusters:
        if meta.name(one) in given_up and _has_expired(one, spec.tolerations, now):
            yield one


# Taints that keep a cluster from being selected, and tolerations that end


def _check_tolerations(tolerations: Sequence[api.Toleration]) -> None:
    """Raise SpecError where a toleration contradicts itself."""
    for place, one in enumerate(tolerations):
        field = f"spec.tolerations[{place}]"
        if not one.key and one.operator != "Exists":
            raise SpecError(f"{field}.operator: must be Exists where there is no key")
        if one.operator == "Exists" and one.value:
            raise SpecError(f"{field}.value: must be empty where the operator is Exists")


def _admits(
    cluster: Obj, tolerations: Sequence[api.Toleration], *, is_selected: bool, now: datetime
) -> tuple[bool, datetime | None]:
    """Say whether the taints of a cluster let it be selected, and when the end of a toleration changes that."""
    again: datetime | None = None
    for taint in (cluster.get("spec") or {}).get("taints") or ():
        effect = taint.get("effect")
        if effect == "PreferNoSelect" or (effect == "NoSelectIfNew" and is_selected):
            continue
        tolerated, ends = _tolerated(taint, tolerations, now)
        if not tolerated:
            return False, None
        if ends is not None and (again is None or ends < again):
            again = ends
    return True, again


def _has_expired(cluster: Obj, tolerations: Sequence[api.Toleration], now: datetime) -> bool:
    """Say whether a toleration of one of the taints of a cluster has ended."""
    return any(
        any(_matches(taint, one) for one in tolerations) and not _tolerated(taint, tolerations, now)[0]
        for taint in (cluster.get("spec") or {}).get("taints") or ()
    )


def _tolerated(
    taint: Obj, tolerations: Sequence[api.Toleration], now: datetime
) -> tuple[bool, datetime | None]:
    ending: datetime | None = None
    for one in tolerations:
        if not _matches(taint, one):
            continue
        if one.toleration_seconds is None:
            return True, None
        added = moment(taint.get("timeAdded")) or now
        ends = added + timedelta(seconds=one.toleration_seconds)
        if ends > now and (ending is None or ends > ending):
            ending = ends
    return ending is not None, ending


def _matches(taint: Obj, one: api.Toleration) -> bool:
    if one.effect and one.effect != taint.get("effect"):
        return False
    if one.key and one.key != taint.get("key"):
        return False
    return one.operator == "Exists" or one.value == (taint.get("value") or "")
