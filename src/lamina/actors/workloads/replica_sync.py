"""
The sync of ReplicaSets and ReplicationControllers.

1.  Matching pods without a controller are adopted, pods that no longer match are
    released, and the rest is counted. Finished and terminating pods do not count.
2.  Missing pods are created in slow-start batches of one, two, four and so on, so
    that a server that refuses them gets few requests. Surplus pods are deleted by
    `deletion_order`. At most five hundred at a time.
3.  The status reports the observed pods; the next sync counts those of this one.
4.  An owner that is being deleted creates and deletes no pods.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple, cast

from msgspec import Struct

from lamina.actors.field_manager import MANAGER
from lamina.actors.workloads.deletion_order import pods_to_delete
from lamina.actors.workloads.event_recorder import created, deleted, refused
from lamina.actors.workloads.pods import (
    FINISHED,
    POD,
    available_in,
    free_names,
    from_template,
    is_active,
    is_ready,
    phase,
)
from lamina.actors.workloads.server_errors import reportable
from lamina.core.model.controller import Controller, Watch, itself, only
from lamina.core.model.plan import NOTHING, Action, Create, Delete, Emit, Plan, Stage, set_status
from lamina.core.model.queries import Answers, Query
from lamina.core.model.world import World
from lamina.core.ownership import controller_ref
from lamina.core.ownership.controller_ref import Claim, claimants
from lamina.errors import LaminaError
from lamina.objects import meta
from lamina.objects.conditions import find, with_condition, without_condition
from lamina.objects.selectors import LabelSelector, from_labels
from lamina.objects.types import GroupKind, Made, Obj, Ref

BURST = 500
"""The most pods that one sync creates or deletes."""

_TOGETHER = timedelta(milliseconds=20)
"""The delay in which changes of pods are collected: they come in bursts, and each sync reads all pods."""
_FAILURE = "ReplicaFailure"


class Variant(Struct, frozen=True, kw_only=True):
    """What the two kinds do differently: the kind, the event source, the selector."""

    kind: GroupKind
    by: str
    selects: Callable[[Obj], LabelSelector]
    counts_terminating: bool
    """Whether its status has terminatingReplicas."""


class View(Struct, frozen=True, kw_only=True):
    """An owner, its pods, and the related pods if some are to be deleted."""

    owner: Obj
    pods: Claim
    ready: tuple[Obj, ...] = ()
    """The ready ones of its pods."""
    terminating: int
    related: tuple[Obj, ...] = ()

    @property
    def wanted(self) -> int:
        return wanted(self.owner)


def wanted(owner: Obj) -> int:
    """Return the replicas of an owner, 1 by default."""
    replicas = owner["spec"].get("replicas")
    return 1 if replicas is None else int(replicas)


def controller(variant: Variant, name: str) -> Controller[View]:
    """Return the controller of one of the two kinds."""

    def gather(world: World, ref: Ref) -> View | None:
        return _gather(variant, world, ref)

    def plan(view: View, answers: Answers, now: datetime) -> Plan:
        return _plan(variant, view, answers, now)

    def complain(world: World, ref: Ref, error: LaminaError, now: datetime) -> Plan:
        view = _gather(variant, world, ref)
        return _complain(variant, view, error, now) if view is not None else NOTHING

    enqueue_owner = claimants(variant.kind, variant.selects, matters=_is_relevant)
    return Controller(
        name=name,
        watches=(
            Watch(selects=only(*variant.kind), enqueue=itself),
            Watch(selects=only(*POD), enqueue=enqueue_owner, delay=_TOGETHER),
        ),
        gather=gather,
        queries=_queries,
        plan=plan,
        complain=complain,
        manager=MANAGER,
    )


def _gather(variant: Variant, world: World, ref: Ref) -> View | None:
    owner = world.get(ref)
    if owner is None:
        return None
    selector = variant.selects(owner)
    held: list[Obj] = []
    ready: list[Obj] = []
    non_matching: list[Obj] = []
    terminating = 0
    # There may be thousands of pods, so those with equal relevant fields are checked once.
    for key, there in world.grouped(POD, pod_state, meta.uid(owner)).items():
        one = cast(PodState, key)
        matches = selector.matches(dict(one.labels))
        if one.is_terminating:
            terminating += len(there) if matches else 0
        elif matches:
            held += there
            ready += there if one.is_ready else ()
        else:
            non_matching += there
    pods = controller_ref.complete_claim(world, owner, POD, selector, held, non_matching, is_active)
    too_many = len(pods.held) + len(pods.adoptable) > wanted(owner)
    related = _related(variant, world, owner) if too_many else ()
    return View(owner=owner, pods=pods, ready=tuple(ready), terminating=terminating, related=related)


class PodState(NamedTuple):
    """The fields of an unfinished pod that a sync depends on."""

    labels: tuple[tuple[str, str], ...]
    is_terminating: bool
    is_ready: bool


def pod_state(pod: Obj) -> tuple[str, PodState] | None:
    """Return the controller's uid and the state of a pod; None where it has no controller or is finished."""
    controller = meta.controller_of(pod)
    if controller is None or phase(pod) in FINISHED:
        return None
    metadata = pod["metadata"]
    labels = tuple((metadata.get("labels") or {}).items())
    return controller["uid"], PodState(labels, bool(metadata.get("deletionTimestamp")), is_ready(pod))


def _related(variant: Variant, world: World, owner: Obj) -> tuple[Obj, ...]:
    """Return the pods of all owners with the same controller; none without one."""
    above = meta.controller_of(owner)
    if above is None:
        return ()
    siblings = [
        one for one in world.owned_by(above["uid"], variant.kind) if meta.is_controlled_by(one, above["uid"])
    ]
    return tuple(pod for sibling in siblings for pod in world.owned_by(meta.uid(sibling), POD))


def _queries(view: View, answers: Answers) -> tuple[Query, ...]:
    return controller_ref.queries(answers, view.pods)


def _plan(variant: Variant, view: View, answers: Answers, now: datetime) -> Plan:
    pods = controller_ref.members(view.pods, answers)
    stages: list[Stage] = []
    if changes := controller_ref.changes(view.pods, answers):
        stages.append(Stage("claim pods", changes))
    missing = view.wanted - len(pods)
    events: Sequence[Emit] = ()
    because = f"{len(pods)} of {view.wanted} pods"
    if missing and not meta.is_deleting(view.owner):
        if missing > 0:
            making, events = _create(variant, view, pods, min(missing, BURST), now)
            stages += making
        else:
            surplus = pods_to_delete(pods, min(-missing, BURST), now, view.related)
            deletes = tuple(Delete(ref=meta.ref(pod), uid=meta.uid(pod)) for pod in surplus)
            stages.append(Stage("delete pods", deletes))
            events = deleted(view.owner, surplus, by=variant.by, now=now)
    reports: list[Action] = [*events]
    status, again = _status(variant, view, pods, now)
    if patch := set_status(view.owner, status):
        reports.append(patch)
    if reports:
        stages.append(Stage("write status", tuple(reports)))
    return Plan(stages=tuple(stages), requeue_after=again, because=because)


def _create(
    variant: Variant, view: View, pods: Sequence[Obj], many: int, now: datetime
) -> tuple[list[Stage], list[Emit]]:
    """Return the stages that create pods in slow-start batches, and the events."""
    template = view.owner["spec"].get("template") or {}
    names = free_names(view.owner, pods, many)
    made = [from_template(view.owner, template, name) for name in names]
    stages: list[Stage] = []
    start, size = 0, 1
    while start < len(made):
        batch = tuple(Create(obj=pod) for pod in made[start : start + size])
        stages.append(Stage("create pods", batch))
        start, size = start + size, size * 2
    return stages, created(view.owner, made, by=variant.by, now=now)


def _status(
    variant: Variant, view: View, pods: Sequence[Obj], now: datetime
) -> tuple[Made, timedelta | None]:
    """Return the observed status, and the time until a pod becomes available."""
    owner = view.owner
    min_ready = owner["spec"].get("minReadySeconds") or 0
    template = owner["spec"].get("template") or {}
    full = from_labels((template.get("metadata") or {}).get("labels"))
    ready = [*view.ready, *(pod for pod in pods[len(view.pods.held) :] if is_ready(pod))]
    # With a selector of all template labels, all pods match.
    asked = full == variant.selects(owner)
    labelled = len(pods) if asked else sum(full.matches(meta.labels(pod)) for pod in pods)
    left = [available_in(pod, min_ready, now) for pod in ready] if min_ready else []
    waiting = [one for one in left if one is None or one]
    again = min((one for one in waiting if one is not None), default=None)
    counts = {
        "fullyLabeledReplicas": labelled,
        "readyReplicas": len(ready),
        "availableReplicas": len(ready) - len(waiting),
        "observedGeneration": meta.generation(owner),
    }
    status: Made = {"replicas": len(pods), **{field: count for field, count in counts.items() if count}}
    if variant.counts_terminating:
        status["terminatingReplicas"] = view.terminating
    if conditions := without_condition((owner.get("status") or {}).get("conditions") or (), _FAILURE):
        status["conditions"] = conditions
    return status, again


def _complain(variant: Variant, view: View, error: LaminaError, now: datetime) -> Plan:
    """Report that pods could not be created or deleted, unless the namespace is terminating."""
    failures = reportable(error)
    if not failures:
        return NOTHING
    pods = view.pods.held
    too_few = len(pods) < view.wanted
    status, _ = _status(variant, view, pods, now)
    conditions = (view.owner.get("status") or {}).get("conditions") or ()
    if find(conditions, _FAILURE) is None:
        reason = "FailedCreate" if too_few else "FailedDelete"
        conditions = with_condition(
            conditions, _FAILURE, "True", now=now, reason=reason, message=str(failures[0])
        )
    patch = set_status(view.owner, {**status, "conditions": list(conditions)})
    reports: list[Action] = [patch] if patch is not None else []
    if too_few:
        failure = find(conditions, _FAILURE)
        since = failure.get("lastTransitionTime", "") if failure is not None else ""
        reports += refused(view.owner, failures, by=variant.by, now=now, occasion=since)
    return Plan(stages=(Stage("write status", tuple(reports)),) if reports else (), because=str(failures[0]))


def _is_relevant(before: Obj, after: Obj) -> bool:
    """Say whether a change of a pod is relevant: its deletion, phase or readiness changed."""
    return (
        before["metadata"].get("deletionTimestamp") != after["metadata"].get("deletionTimestamp")
        or phase(before) != phase(after)
        or _readiness(before) != _readiness(after)
    )


def _readiness(pod: Obj) -> object:
    for condition in (pod.get("status") or {}).get("conditions") or ():
        if condition["type"] == "Ready":
            return condition["status"], condition.get("lastTransitionTime")
    return None
