"""
What happens next to the pods of a stateful set.

One pod at a time, unless the set is told to hurry: each pod is made when all
before it are available, and the last is the first to go. Pods that finished are
deleted and made again. Once every wanted pod is there, superfluous ones go;
once those are gone, pods of an old revision are replaced, from the highest
number down to the partition, each when the one before it is available.

    Parallel     makes and deletes all at once, but still updates one by one
    OnDelete     replaces nothing; a pod that somebody deletes comes back new

A pod that does not become available holds up everything after it, the update
that would mend it included.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from msgspec import Struct, field

from lamina.actors.workloads import pods, statefulset_claims
from lamina.actors.workloads.revisions import template_in
from lamina.actors.workloads.statefulset_identity import (
    claim_names,
    identity,
    is_itself,
    make_claims,
    make_pod,
    ordinal_of,
    ordinals,
    pod_name,
    revision_of,
    with_claims,
)
from lamina.core.plan import Delete, Patch, change, delete
from lamina.objects import meta
from lamina.objects.types import Made, Obj


class Situation(Struct, frozen=True, kw_only=True):
    """A set, its pods and claims as they are, and the revisions it is between."""

    stateful_set: Obj
    pods: Sequence[Obj]
    claims: Mapping[str, Obj]
    current: Obj
    update: Obj
    now: datetime


class Steps(Struct):
    """What to do now: claims first, then pods, and what it was for."""

    claims: list[Made] = field(default_factory=list)
    owners: list[Patch] = field(default_factory=list)
    corrections: list[Patch] = field(default_factory=list)
    made: list[Made] = field(default_factory=list)
    deleted: list[Obj] = field(default_factory=list)
    updating: list[Obj] = field(default_factory=list)
    """Those of the deleted that make room for a newer revision."""
    contested: list[str] = field(default_factory=list)
    claimants: dict[str, str] = field(default_factory=dict)
    """For whom each claim is made, by name."""
    because: str = "every pod is as it should be"

    @property
    def deletions(self) -> list[Delete]:
        return [delete(pod) for pod in self.deleted]


def next_steps(seen: Situation) -> Steps:
    """Return what happens next to the pods of a set."""
    steps = Steps()
    wanted, condemned = _sorted(seen)
    if not (_fill(seen, wanted, steps) and _thin(seen, wanted, condemned, steps)):
        return steps
    if seen.stateful_set["spec"].get("updateStrategy", {}).get("type") != "OnDelete":
        _update(seen, wanted, steps)
    return steps


def is_ordered(stateful_set: Obj) -> bool:
    return bool(stateful_set["spec"].get("podManagementPolicy") != "Parallel")


def is_well(pod: Obj) -> bool:
    """Say whether a pod runs and is ready."""
    return pods.phase(pod) == "Running" and pods.is_ready(pod)


def _sorted(seen: Situation) -> tuple[dict[int, Obj | None], list[tuple[int, Obj]]]:
    """Return the pod at each wanted number, and those at others, the highest first."""
    wanted: dict[int, Obj | None] = dict.fromkeys(ordinals(seen.stateful_set))
    condemned: list[tuple[int, Obj]] = []
    for pod in seen.pods:
        ordinal = ordinal_of(seen.stateful_set, pod)
        if ordinal in wanted:
            wanted[ordinal] = pod
        elif ordinal is not None:
            condemned.append((ordinal, pod))
    return wanted, sorted(condemned, key=lambda one: one[0], reverse=True)


def _is_available(seen: Situation, pod: Obj | None) -> bool:
    seconds = seen.stateful_set["spec"].get("minReadySeconds") or 0
    return pod is not None and not meta.is_deleting(pod) and pods.is_available(pod, seconds, seen.now)


def _fill(seen: Situation, wanted: Mapping[int, Obj | None], steps: Steps) -> bool:
    """Make the pods that are missing, and return whether superfluous ones may be thought of."""
    ordered = is_ordered(seen.stateful_set)
    for ordinal, pod in wanted.items():
        name = pod_name(seen.stateful_set, ordinal)
        if pod is None:
            if not _begin(seen, ordinal, steps):
                steps.because = f"the claims of {name} are on their way out"
                return False
            steps.because = f"{name} is missing"
            if ordered:
                return False
            continue
        if pods.is_finished(pod):
            if not meta.is_deleting(pod):
                steps.deleted.append(pod)
            steps.because = f"{name} has finished and has to go before it is made again"
            if ordered:
                return False
            continue
        if pods.phase(pod) == "Pending" and not _claim(seen, ordinal, steps):
            steps.because = f"the claims of {name} are on their way out"
            return False
        if ordered and not (is_well(pod) and _is_available(seen, pod)):
            steps.because = f"waiting for {name} to be available"
            return False
        _put_right(seen, pod, ordinal, steps)
    return True


def _begin(seen: Situation, ordinal: int, steps: Steps) -> bool:
    """Make a pod and its claims, and return whether that could be done."""
    stateful_set = seen.stateful_set
    name = pod_name(stateful_set, ordinal)
    for _, claim_name in claim_names(stateful_set, ordinal):
        claim = seen.claims.get(claim_name)
        if claim is not None and statefulset_claims.is_stale(claim, stateful_set, name):
            return False
    if not _claim(seen, ordinal, steps):
        return False
    revision = seen.current if _is_kept_back(stateful_set, ordinal) else seen.update
    steps.made.append(make_pod(stateful_set, template_in(revision), meta.name(revision), ordinal))
    return True


def _is_kept_back(stateful_set: Obj, ordinal: int) -> bool:
    """Say whether a new pod of that number belongs to the current revision rather than to the update."""
    strategy = stateful_set["spec"].get("updateStrategy") or {}
    rolling = strategy.get("rollingUpdate")
    start = ordinals(stateful_set).start
    if rolling is not None:
        return bool(ordinal < start + (rolling.get("partition") or 0))
    current = (stateful_set.get("status") or {}).get("currentReplicas") or 0
    return bool(strategy.get("type") == "RollingUpdate" and ordinal < start + current)


def _claim(seen: Situation, ordinal: int, steps: Steps) -> bool:
    """Make the claims of a pod that are missing, and return whether it has no claim that is going."""
    stateful_set = seen.stateful_set
    missing: list[Made] = []
    for claim in make_claims(stateful_set, ordinal):
        there = seen.claims.get(meta.name(claim))
        if there is None:
            owners = statefulset_claims.owners(stateful_set, {}, wanted=True)
            missing.append(meta.with_metadata(claim, ownerReferences=owners))
        elif meta.is_deleting(there):
            return False
    steps.claims += missing
    name = pod_name(stateful_set, ordinal)
    steps.claimants.update((meta.name(claim), name) for claim in missing)
    return True


def _put_right(seen: Situation, pod: Obj, ordinal: int, steps: Steps) -> None:
    """Give a pod back the label and the volumes it is known by, and its claims to whom they belong."""
    if not is_itself(seen.stateful_set, pod, ordinal):
        labels = identity(meta.name(pod), ordinal)
        patch: Made = {"metadata": {"labels": labels}}
        volumes = with_claims(seen.stateful_set, pod["spec"].get("volumes") or [], ordinal)
        if volumes and volumes != pod["spec"].get("volumes"):
            patch["spec"] = {"volumes": volumes}
        steps.corrections.append(change(pod, patch))
    _own(seen, pod, ordinal, steps, wanted=True)


def _own(seen: Situation, pod: Obj, ordinal: int, steps: Steps, *, wanted: bool) -> None:
    for _, name in claim_names(seen.stateful_set, ordinal):
        claim = seen.claims.get(name)
        if claim is None:
            continue
        correction = statefulset_claims.correction(claim, seen.stateful_set, pod, wanted=wanted)
        if correction is not None:
            steps.owners.append(correction)
            if statefulset_claims.is_contested(claim, seen.stateful_set, pod):
                steps.contested.append(name)


def _thin(
    seen: Situation,
    wanted: Mapping[int, Obj | None],
    condemned: Sequence[tuple[int, Obj]],
    steps: Steps,
) -> bool:
    """Let superfluous pods go, the highest first, and return whether an update may be thought of."""
    for ordinal, pod in condemned:
        _own(seen, pod, ordinal, steps, wanted=False)
    if not is_ordered(seen.stateful_set):
        steps.deleted += [pod for _, pod in condemned if not meta.is_deleting(pod)]
        if condemned:
            steps.because = "there are more pods than wanted"
        return True
    if not condemned:
        return True
    ill = [pod for pod in wanted.values() if not _is_available(seen, pod)]
    ill += [pod for _, pod in reversed(condemned) if not _is_available(seen, pod)]
    _, last = condemned[0]
    if meta.is_deleting(last):
        steps.because = f"waiting for {meta.name(last)} to go"
    elif not (is_well(last) and _is_available(seen, last)) and ill[0] is not last:
        steps.because = f"waiting for a pod to be available before {meta.name(last)} goes"
    else:
        steps.because = f"{meta.name(last)} is one too many"
        steps.deleted.append(last)
    return False


def _update(seen: Situation, wanted: Mapping[int, Obj | None], steps: Steps) -> None:
    """Replace the highest pod of an old revision, unless a higher one is still on its way."""
    rolling = (seen.stateful_set["spec"].get("updateStrategy") or {}).get("rollingUpdate") or {}
    partition = rolling.get("partition") or 0
    gone = {meta.uid(pod) for pod in steps.deleted}
    for pod in reversed(list(wanted.values())[partition:]):
        if pod is None:
            return
        leaving = meta.is_deleting(pod) or meta.uid(pod) in gone
        if revision_of(pod) != meta.name(seen.update) and not leaving:
            steps.because = f"{meta.name(pod)} is not on the newest revision"
            steps.deleted.append(pod)
            steps.updating.append(pod)
            return
        if leaving or not _is_available(seen, pod):
            steps.because = f"waiting for {meta.name(pod)} to be available before the next is updated"
            return
