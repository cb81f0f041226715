"""
The disruption controller: the status of PodDisruptionBudgets.

1.  desiredHealthy is a number, or a percentage of the scale of the pods'
    controllers. The scale of a ReplicaSet is that of its Deployment.
2.  A pod is healthy while it is ready, not being deleted, and not in
    disruptedPods.
3.  An eviction adds its pod to disruptedPods before it deletes the pod. The
    entry stays until the pod is deleted, for two minutes at most.
4.  No disruptions are allowed while no pods are expected, nor where a scale
    cannot be found: the condition then says why.

The eviction subresource of the server enforces the budgets.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any, Final, TypeAlias

from msgspec import Struct

from lamina.actors.field_manager import MANAGER
from lamina.actors.workloads import pods
from lamina.actors.workloads.pods import POD
from lamina.core.model.controller import Controller, Watch, only
from lamina.core.model.events import normal, warning
from lamina.core.model.plan import Action, Emit, Patch, Plan, Stage, change, set_status
from lamina.core.model.queries import Answers
from lamina.core.model.world import Change, World
from lamina.core.ownership.selector_index import selected, selecting, selector_keys
from lamina.merge.patches import create_merge_patch
from lamina.objects import meta
from lamina.objects.conditions import find, with_condition
from lamina.objects.selectors import LabelSelector, from_object
from lamina.objects.times import moment, stamp
from lamina.objects.types import Condition, GroupKind, Made, Obj, OwnerRef, Ref

BUDGET: Final = GroupKind("policy", "PodDisruptionBudget")
_DEPLOYMENT: Final = GroupKind("apps", "Deployment")
_REPLICA_SET: Final = GroupKind("apps", "ReplicaSet")
_SCALED: Final = (
    _REPLICA_SET,
    _DEPLOYMENT,
    GroupKind("apps", "StatefulSet"),
    GroupKind("", "ReplicationController"),
)
_ALLOWED: Final = "DisruptionAllowed"
_TARGET: Final = "DisruptionTarget"
_TIMEOUT: Final = timedelta(minutes=2)
_AGAIN: Final = timedelta(seconds=20)
_BY: Final = "controllermanager"


class Unknown(Struct, frozen=True, kw_only=True):
    """Why the scale of a controller is not known."""

    because: str


Scale: TypeAlias = int | Unknown


class Budget(Struct, frozen=True, kw_only=True):
    """A budget, the pods it selects, and the scale of each of their controllers."""

    budget: Obj
    pods: tuple[Obj, ...]
    scales: Mapping[str, Scale]


class DisruptionTarget(Struct, frozen=True, kw_only=True):
    """A pod with the DisruptionTarget condition that is not being deleted."""

    pod: Obj
    since: datetime


View: TypeAlias = Budget | DisruptionTarget


def gather(world: World, ref: Ref) -> View | None:
    if ref.kind == "Pod":
        pod = world.get(ref)
        since = _target_since(pod) if pod is not None else None
        return DisruptionTarget(pod=pod, since=since) if pod is not None and since is not None else None
    budget = world.get(ref)
    if budget is None or meta.is_deleting(budget):
        return None
    selector = selector_of(budget)
    found = tuple(selected(world, POD, ref.namespace, selector)) if selector is not None else ()
    owners = {owner["uid"]: owner for pod in found if (owner := meta.controller_of(pod)) is not None}
    scales = {uid: _scale(world, ref.namespace, owner) for uid, owner in owners.items()}
    return Budget(budget=budget, pods=found, scales=scales)


def selector_of(budget: Obj) -> LabelSelector | None:
    """Return the selector of a budget; None without one, which selects no pods."""
    selector = (budget.get("spec") or {}).get("selector")
    return from_object(selector) if selector is not None else None


def by_selector(budget: Obj) -> Iterator[str]:
    """Index: the selector keys of a budget."""
    selector = selector_of(budget)
    if selector is not None:
        yield from selector_keys(meta.namespace(budget), selector)


def _scale(world: World, namespace: str, owner: OwnerRef) -> Scale:
    kind = GroupKind(owner["apiVersion"].rpartition("/")[0], owner["kind"])
    if kind not in _SCALED:
        served = world.kinds.preferred(kind)
        if served is None:
            return Unknown(because=f'no matches for kind "{kind.kind}" in version "{owner["apiVersion"]}"')
        named = f"{served.plural}.{served.group}" if served.group else served.plural
        return Unknown(because=f"{named} does not implement the scale subresource")
    there = world.get(Ref(owner["apiVersion"], owner["kind"], namespace, owner["name"]))
    if there is None or meta.uid(there) != owner["uid"]:
        return 0
    above = meta.controller_of(there) if kind == _REPLICA_SET else None
    if above is not None and above["kind"] == "Deployment":
        deployment = world.get(Ref(above["apiVersion"], above["kind"], namespace, above["name"]))
        if deployment is not None and meta.uid(deployment) == above["uid"]:
            there = deployment
    wanted: int = (there.get("spec") or {}).get("replicas", 1)
    return wanted


def plan(view: View, answers: Answers, now: datetime) -> Plan:
    return _reset_target(view, now) if isinstance(view, DisruptionTarget) else _count(view, now)


def _count(view: Budget, now: datetime) -> Plan:
    budget = view.budget
    needed = _needed(view)
    if isinstance(needed, Unknown):
        return _fail(budget, needed.because, now)
    expected, desired = needed
    disrupted, again = _disrupted(view, now)
    healthy = sum(
        1
        for pod in view.pods
        if pods.is_ready(pod) and not meta.is_deleting(pod) and meta.name(pod) not in disrupted
    )
    allowed = max(0, healthy - desired) if expected > 0 else 0
    generation = meta.generation(budget)
    status: Made = {
        "observedGeneration": generation,
        "disruptionsAllowed": allowed,
        "currentHealthy": healthy,
        "desiredHealthy": desired,
        "expectedPods": expected,
        "conditions": with_condition(
            _conditions(budget),
            _ALLOWED,
            "True" if allowed else "False",
            reason="SufficientPods" if allowed else "InsufficientPods",
            now=now,
            generation=generation,
        ),
    }
    if disrupted:
        status["disruptedPods"] = disrupted
    write = _status_write(budget, status)
    if write is None:
        return Plan(requeue_after=again)
    because = f"{healthy} of {expected} pods are healthy, {desired} are required"
    return Plan(
        stages=(Stage("write status", (write,)), *_events(view, now)),
        requeue_after=again,
        because=because,
    )


def _status_write(budget: Obj, status: Made) -> Patch | None:
    """Return the write of a status; entries removed from disruptedPods become nulls of the merge patch."""
    write = set_status(budget, status)
    old_entries = (budget.get("status") or {}).get("disruptedPods") or {}
    if write is None or not old_entries or not status.get("disruptedPods"):
        return write
    fields = {
        **write.patch["status"],
        "disruptedPods": create_merge_patch(old_entries, status["disruptedPods"]),
    }
    return change(budget, {"status": fields}, subresource="status")


def _conditions(budget: Obj) -> list[Condition]:
    return list((budget.get("status") or {}).get("conditions") or ())


def _needed(view: Budget) -> tuple[int, int] | Unknown:
    """Return expectedPods and desiredHealthy."""
    spec = view.budget.get("spec") or {}
    most, least = spec.get("maxUnavailable"), spec.get("minAvailable")
    if most is None and not isinstance(least, str):
        return len(view.pods), least or 0
    expected = 0
    for scale in view.scales.values():
        if isinstance(scale, Unknown):
            return scale
        expected += scale
    if most is not None:
        return expected, max(0, expected - _share(most, expected))
    return expected, _share(least, expected)


def _share(wanted: Any, total: int) -> int:
    """Return an int-or-percent value of a total, rounded up."""
    if isinstance(wanted, int):
        return wanted
    return -(-int(str(wanted).removesuffix("%")) * total // 100)


def _disrupted(view: Budget, now: datetime) -> tuple[dict[str, str], timedelta | None]:
    """Return the entries of disruptedPods that are still valid, and when the next of them expires."""
    old_entries: Mapping[str, str] = (view.budget.get("status") or {}).get("disruptedPods") or {}
    kept: dict[str, str] = {}
    ends: list[datetime] = []
    for pod in view.pods:
        since = moment(old_entries.get(meta.name(pod)))
        if since is not None and not meta.is_deleting(pod) and since + _TIMEOUT > now:
            kept[meta.name(pod)] = old_entries[meta.name(pod)]
            ends.append(since + _TIMEOUT)
    return kept, min(ends) - now if ends else None


def _events(view: Budget, now: datetime) -> Iterator[Stage]:
    """Yield the stage with events about missing and unmanaged pods."""
    events: list[Action] = []
    budget = view.budget
    if not view.pods:
        events.append(Emit(event=normal(budget, "NoPods", "No matching pods found", by=_BY, now=now)))
    spec = budget.get("spec") or {}
    by_scale = spec.get("maxUnavailable") is not None or isinstance(spec.get("minAvailable"), str)
    if by_scale and any(meta.controller_of(pod) is None for pod in view.pods):
        message = (
            f"Pods selected by this PodDisruptionBudget (selector: {selector_of(budget)}) were found to be "
            "unmanaged. As a result, the status of the PDB cannot be calculated correctly, which may result in "
            'undefined behavior. To account for these pods please set ".spec.minAvailable" field of the PDB to '
            "an integer value."
        )
        events.append(Emit(event=warning(budget, "UnmanagedPods", message, by=_BY, now=now)))
    if events:
        yield Stage("record events", tuple(events))


def _fail(budget: Obj, because: str, now: datetime) -> Plan:
    """Allow no disruptions, and report why."""
    status = dict(budget.get("status") or {})
    status["disruptionsAllowed"] = 0
    status["conditions"] = with_condition(
        _conditions(budget),
        _ALLOWED,
        "False",
        reason="SyncFailed",
        message=because,
        now=now,
        generation=status.get("observedGeneration", 0),
    )
    write = set_status(budget, status)
    if write is None:
        return Plan(requeue_after=_AGAIN, because=because)
    message = f"Failed to calculate the number of expected pods: {because}"
    event = warning(budget, "CalculateExpectedPodCountFailed", message, by=_BY, now=now)
    stages = (Stage("write status", (write,)), Stage("record events", (Emit(event=event),)))
    return Plan(stages=stages, requeue_after=_AGAIN, because=because)


# Stale DisruptionTarget conditions


def _target_since(pod: Obj) -> datetime | None:
    """Return since when a pod that is not being deleted has the DisruptionTarget condition."""
    if meta.is_deleting(pod) or pods.is_finished(pod):
        return None
    condition = find((pod.get("status") or {}).get("conditions") or (), _TARGET)
    if (
        condition is None
        or condition["status"] != "True"
        or condition.get("reason") == "TerminationByKubelet"
    ):
        return None
    return moment(condition.get("lastTransitionTime"))


def _reset_target(view: DisruptionTarget, now: datetime) -> Plan:
    left = view.since + _TIMEOUT - now
    if left > timedelta(0):
        return Plan(requeue_after=left)
    conditions = [
        {"type": _TARGET, "status": "False", "lastProbeTime": None, "lastTransitionTime": stamp(now)}
        if one["type"] == _TARGET
        else one
        for one in view.pod["status"]["conditions"]
    ]
    write = change(view.pod, {"status": {"conditions": conditions}}, subresource="status")
    return Plan(stages=(Stage("reset condition", (write,)),), because="it was not deleted")


# Enqueueing


def budgets_of(world: World, pod: Obj) -> Iterator[Ref]:
    """Yield the budgets that select a pod."""
    return map(
        meta.ref, selecting(world, BUDGET, by_selector, selector_of, meta.namespace(pod), meta.labels(pod))
    )


def _relevant(pod: Obj) -> Any:
    owner = meta.controller_of(pod)
    return (
        meta.uid(pod),
        meta.labels(pod),
        meta.is_deleting(pod),
        pods.is_ready(pod),
        owner["uid"] if owner is not None else "",
    )


def pod_changed(world: World, change: Change) -> Iterable[Ref]:
    """A changed pod enqueues its budgets, and itself if it has the DisruptionTarget condition."""
    if change.after is not None and _target_since(change.after) is not None:
        yield change.ref
    if world.count(BUDGET) and not change.preserves(_relevant):
        yield from dict.fromkeys(ref for pod in change.versions for ref in budgets_of(world, pod))


def budget_changed(world: World, change: Change) -> Iterable[Ref]:
    return () if change.after is None else (change.ref,)


def owner_changed(world: World, change: Change) -> Iterable[Ref]:
    """A controller with changed replicas enqueues the budgets of its pods."""
    if change.preserves(lambda owner: (owner.get("spec") or {}).get("replicas")):
        return ()
    uid = meta.uid(change.obj)
    owned = [*world.owned_by(uid, POD)]
    for between in world.owned_by(uid, _REPLICA_SET):
        owned += world.owned_by(meta.uid(between), POD)
    return tuple(dict.fromkeys(ref for pod in owned for ref in budgets_of(world, pod)))


BUDGETS: Controller[View] = Controller(
    name="disruption",
    watches=(
        Watch(selects=only(*BUDGET), enqueue=budget_changed),
        Watch(selects=only(*POD), enqueue=pod_changed),
        *(Watch(selects=only(*kind), enqueue=owner_changed) for kind in _SCALED),
    ),
    gather=gather,
    plan=plan,
    manager=MANAGER,
)
