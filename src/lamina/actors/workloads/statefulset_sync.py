"""
The pods of a StatefulSet to create, update and delete.

With OrderedReady, one pod at a time: each pod is created when all before it are
available, and the last is deleted first. Finished pods are deleted and recreated.
Once every wanted pod exists, surplus ones are deleted; after those, pods of an old
revision are replaced, from the highest ordinal down to the partition, each when the
one before it is available.

    Parallel     creates and deletes all at once, but updates one by one
    OnDelete     replaces no pods; a deleted pod is recreated with the update revision

A pod that does not become available blocks all steps after it, including an update
that would repair it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from msgspec import Struct, field

from lamina.actors.workloads import pods, statefulset_claims
from lamina.actors.workloads.revisions import template_in
from lamina.actors.workloads.statefulset_identity import (
    claim_names,
    has_identity,
    identity,
    make_claims,
    make_pod,
    ordinal_of,
    ordinals,
    pod_name,
    revision_of,
    with_claims,
)
from lamina.core.model.plan import Delete, Patch, change, delete
from lamina.objects import meta
from lamina.objects.types import Made, Obj


class SyncInput(Struct, frozen=True, kw_only=True):
    """A StatefulSet, its pods and claims, and its current and update revision."""

    stateful_set: Obj
    pods: Sequence[Obj]
    claims: Mapping[str, Obj]
    current: Obj
    update: Obj
    now: datetime


class Steps(Struct):
    """The next steps: claims first, then pods, with the reason."""

    claims: list[Made] = field(default_factory=list)
    owners: list[Patch] = field(default_factory=list)
    corrections: list[Patch] = field(default_factory=list)
    made: list[Made] = field(default_factory=list)
    deleted: list[Obj] = field(default_factory=list)
    updating: list[Obj] = field(default_factory=list)
    """The deleted pods that are replaced by the update revision."""
    contested: list[str] = field(default_factory=list)
    claimants: dict[str, str] = field(default_factory=dict)
    """The pod of each created claim, by name."""
    because: str = "every pod is up to date"

    @property
    def deletions(self) -> list[Delete]:
        return [delete(pod) for pod in self.deleted]


def next_steps(sync: SyncInput) -> Steps:
    """Return the next steps for the pods of a StatefulSet."""
    steps = Steps()
    wanted, condemned = _by_ordinal(sync)
    if not (_fill(sync, wanted, steps) and _scale_down(sync, wanted, condemned, steps)):
        return steps
    if sync.stateful_set["spec"].get("updateStrategy", {}).get("type") != "OnDelete":
        _update(sync, wanted, steps)
    return steps


def is_ordered(stateful_set: Obj) -> bool:
    return bool(stateful_set["spec"].get("podManagementPolicy") != "Parallel")


def is_healthy(pod: Obj) -> bool:
    """Say whether a pod runs and is ready."""
    return pods.phase(pod) == "Running" and pods.is_ready(pod)


def _by_ordinal(sync: SyncInput) -> tuple[dict[int, Obj | None], list[tuple[int, Obj]]]:
    """Return the pod of each wanted ordinal, and those of other ordinals, the highest first."""
    wanted: dict[int, Obj | None] = dict.fromkeys(ordinals(sync.stateful_set))
    condemned: list[tuple[int, Obj]] = []
    for pod in sync.pods:
        ordinal = ordinal_of(sync.stateful_set, pod)
        if ordinal in wanted:
            wanted[ordinal] = pod
        elif ordinal is not None:
            condemned.append((ordinal, pod))
    return wanted, sorted(condemned, key=lambda one: one[0], reverse=True)


def _is_available(sync: SyncInput, pod: Obj | None) -> bool:
    seconds = sync.stateful_set["spec"].get("minReadySeconds") or 0
    return pod is not None and not meta.is_deleting(pod) and pods.is_available(pod, seconds, sync.now)


def _fill(sync: SyncInput, wanted: Mapping[int, Obj | None], steps: Steps) -> bool:
    """Create missing pods, and return whether surplus ones may be deleted."""
    ordered = is_ordered(sync.stateful_set)
    for ordinal, pod in wanted.items():
        name = pod_name(sync.stateful_set, ordinal)
        if pod is None:
            if not _create(sync, ordinal, steps):
                steps.because = f"the claims of {name} are being deleted"
                return False
            steps.because = f"{name} is missing"
            if ordered:
                return False
            continue
        if pods.is_finished(pod):
            if not meta.is_deleting(pod):
                steps.deleted.append(pod)
            steps.because = f"{name} has finished and is deleted before it is recreated"
            if ordered:
                return False
            continue
        if pods.phase(pod) == "Pending" and not _claim(sync, ordinal, steps):
            steps.because = f"the claims of {name} are being deleted"
            return False
        if ordered and not (is_healthy(pod) and _is_available(sync, pod)):
            steps.because = f"waiting for {name} to be available"
            return False
        _correct(sync, pod, ordinal, steps)
    return True


def _create(sync: SyncInput, ordinal: int, steps: Steps) -> bool:
    """Create a pod and its claims, and return whether that was possible."""
    stateful_set = sync.stateful_set
    name = pod_name(stateful_set, ordinal)
    for _, claim_name in claim_names(stateful_set, ordinal):
        claim = sync.claims.get(claim_name)
        if claim is not None and statefulset_claims.is_stale(claim, stateful_set, name):
            return False
    if not _claim(sync, ordinal, steps):
        return False
    revision = sync.current if _has_current_revision(stateful_set, ordinal) else sync.update
    steps.made.append(make_pod(stateful_set, template_in(revision), meta.name(revision), ordinal))
    return True


def _has_current_revision(stateful_set: Obj, ordinal: int) -> bool:
    """Say whether a new pod of this ordinal has the current revision rather than the update revision."""
    strategy = stateful_set["spec"].get("updateStrategy") or {}
    rolling = strategy.get("rollingUpdate")
    start = ordinals(stateful_set).start
    if rolling is not None:
        return bool(ordinal < start + (rolling.get("partition") or 0))
    current = (stateful_set.get("status") or {}).get("currentReplicas") or 0
    return bool(strategy.get("type") == "RollingUpdate" and ordinal < start + current)


def _claim(sync: SyncInput, ordinal: int, steps: Steps) -> bool:
    """Create missing claims of a pod, and return whether none of its claims is being deleted."""
    stateful_set = sync.stateful_set
    missing: list[Made] = []
    for claim in make_claims(stateful_set, ordinal):
        there = sync.claims.get(meta.name(claim))
        if there is None:
            owners = statefulset_claims.owners(stateful_set, {}, wanted=True)
            missing.append(meta.with_metadata(claim, ownerReferences=owners))
        elif meta.is_deleting(there):
            return False
    steps.claims += missing
    name = pod_name(stateful_set, ordinal)
    steps.claimants.update((meta.name(claim), name) for claim in missing)
    return True


def _correct(sync: SyncInput, pod: Obj, ordinal: int, steps: Steps) -> None:
    """Restore the identity label and volumes of a pod, and the owners of its claims."""
    if not has_identity(sync.stateful_set, pod, ordinal):
        labels = identity(meta.name(pod), ordinal)
        patch: Made = {"metadata": {"labels": labels}}
        volumes = with_claims(sync.stateful_set, pod["spec"].get("volumes") or [], ordinal)
        if volumes and volumes != pod["spec"].get("volumes"):
            patch["spec"] = {"volumes": volumes}
        steps.corrections.append(change(pod, patch))
    _correct_owners(sync, pod, ordinal, steps, wanted=True)


def _correct_owners(sync: SyncInput, pod: Obj, ordinal: int, steps: Steps, *, wanted: bool) -> None:
    for _, name in claim_names(sync.stateful_set, ordinal):
        claim = sync.claims.get(name)
        if claim is None:
            continue
        correction = statefulset_claims.correction(claim, sync.stateful_set, pod, wanted=wanted)
        if correction is not None:
            steps.owners.append(correction)
            if statefulset_claims.is_contested(claim, sync.stateful_set, pod):
                steps.contested.append(name)


def _scale_down(
    sync: SyncInput,
    wanted: Mapping[int, Obj | None],
    condemned: Sequence[tuple[int, Obj]],
    steps: Steps,
) -> bool:
    """Delete surplus pods, the highest first, and return whether an update may follow."""
    for ordinal, pod in condemned:
        _correct_owners(sync, pod, ordinal, steps, wanted=False)
    if not is_ordered(sync.stateful_set):
        steps.deleted += [pod for _, pod in condemned if not meta.is_deleting(pod)]
        if condemned:
            steps.because = "there are more pods than wanted"
        return True
    if not condemned:
        return True
    unavailable = [pod for pod in wanted.values() if not _is_available(sync, pod)]
    unavailable += [pod for _, pod in reversed(condemned) if not _is_available(sync, pod)]
    _, last = condemned[0]
    if meta.is_deleting(last):
        steps.because = f"waiting for the deletion of {meta.name(last)}"
    elif not (is_healthy(last) and _is_available(sync, last)) and unavailable[0] is not last:
        steps.because = f"waiting for a pod to be available before {meta.name(last)} is deleted"
    else:
        steps.because = f"{meta.name(last)} is surplus"
        steps.deleted.append(last)
    return False


def _update(sync: SyncInput, wanted: Mapping[int, Obj | None], steps: Steps) -> None:
    """Replace the highest pod of an old revision, unless a higher one is not available yet."""
    rolling = (sync.stateful_set["spec"].get("updateStrategy") or {}).get("rollingUpdate") or {}
    partition = rolling.get("partition") or 0
    gone = {meta.uid(pod) for pod in steps.deleted}
    for pod in reversed(list(wanted.values())[partition:]):
        if pod is None:
            return
        leaving = meta.is_deleting(pod) or meta.uid(pod) in gone
        if revision_of(pod) != meta.name(sync.update) and not leaving:
            steps.because = f"{meta.name(pod)} is not on the newest revision"
            steps.deleted.append(pod)
            steps.updating.append(pod)
            return
        if leaving or not _is_available(sync, pod):
            steps.because = f"waiting for {meta.name(pod)} to be available before the next is updated"
            return
