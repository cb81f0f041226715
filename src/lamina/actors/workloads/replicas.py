"""
As many pods as were asked for: what a ReplicaSet and a ReplicationController have in common.

1.  Pods that match and nobody controls are taken in, pods that no longer match
    are let go of, and what is left is counted. Pods that have finished or are
    on their way out do not count.
2.  Too few: pods are made, one, then two, then four, and so on, so that a
    server that refuses them is asked only a few times. Too many: those that
    will be missed least are deleted. No more than five hundred at a time.
3.  The status says what was seen, not what was just done: that is seen soon.
4.  An owner on its way out makes and deletes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple, cast

from msgspec import Struct

from lamina.actors.names import MANAGER
from lamina.actors.workloads import claim
from lamina.actors.workloads.claim import Claim, claimants
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
from lamina.actors.workloads.ranking import first_to_go
from lamina.actors.workloads.refusals import serious
from lamina.actors.workloads.telling import created, deleted, refused
from lamina.core.controller import Controller, Watch, itself, only
from lamina.core.plan import NOTHING, Action, Create, Delete, Emit, Plan, Stage, set_status
from lamina.core.questions import Answers, Question
from lamina.core.world import World
from lamina.errors import LaminaError
from lamina.objects import meta
from lamina.objects.conditions import find, with_condition, without_condition
from lamina.objects.selectors import LabelSelector, from_labels
from lamina.objects.types import GroupKind, Made, Obj, Ref

BURST = 500
"""How many pods are made or deleted before somebody looks again."""

_TOGETHER = timedelta(milliseconds=20)
"""How long news of a pod waits for more: pods come up by the hundred, and each look is at all of them."""
_FAILURE = "ReplicaFailure"


class Flavour(Struct, frozen=True, kw_only=True):
    """What a kind that keeps pods does in its own way: its name, how it selects, who speaks for it."""

    kind: GroupKind
    by: str
    selects: Callable[[Obj], LabelSelector]
    counts_terminating: bool
    """Whether its status says how many pods are on their way out."""


class View(Struct, frozen=True, kw_only=True):
    """An owner, its pods, and the pods that serve the same purpose if some have to go."""

    owner: Obj
    pods: Claim
    ready: tuple[Obj, ...] = ()
    """Which of those it holds are ready."""
    terminating: int
    related: tuple[Obj, ...] = ()

    @property
    def wanted(self) -> int:
        return wanted(self.owner)


def wanted(owner: Obj) -> int:
    """Return how many pods an owner asks for; one that does not say asks for one."""
    replicas = owner["spec"].get("replicas")
    return 1 if replicas is None else int(replicas)


def controller(flavour: Flavour, name: str) -> Controller[View]:
    """Return the controller of one kind that keeps pods."""

    def gather(world: World, ref: Ref) -> View | None:
        return _gather(flavour, world, ref)

    def plan(view: View, answers: Answers, now: datetime) -> Plan:
        return _plan(flavour, view, answers, now)

    def complain(world: World, ref: Ref, error: LaminaError, now: datetime) -> Plan:
        view = _gather(flavour, world, ref)
        return _complain(flavour, view, error, now) if view is not None else NOTHING

    concerns = claimants(flavour.kind, flavour.selects, matters=_matters)
    return Controller(
        name=name,
        watches=(
            Watch(selects=only(*flavour.kind), concerns=itself),
            Watch(selects=only(*POD), concerns=concerns, delay=_TOGETHER),
        ),
        gather=gather,
        questions=_questions,
        plan=plan,
        complain=complain,
        manager=MANAGER,
    )


def _gather(flavour: Flavour, world: World, ref: Ref) -> View | None:
    owner = world.get(ref)
    if owner is None:
        return None
    selector = flavour.selects(owner)
    held: list[Obj] = []
    ready: list[Obj] = []
    strays: list[Obj] = []
    terminating = 0
    # There may be thousands, and every one of them sets us thinking: those that are alike are looked at once.
    for likeness, there in world.alike(POD, standing, meta.uid(owner)).items():
        one = cast(Standing, likeness)
        matches = selector.matches(dict(one.labels))
        if one.is_terminating:
            terminating += len(there) if matches else 0
        elif matches:
            held += there
            ready += there if one.is_ready else ()
        else:
            strays += there
    pods = claim.sorted_out(world, owner, POD, selector, held, strays, is_active)
    too_many = len(pods.held) + len(pods.adoptable) > wanted(owner)
    related = _related(flavour, world, owner) if too_many else ()
    return View(owner=owner, pods=pods, ready=tuple(ready), terminating=terminating, related=related)


class Standing(NamedTuple):
    """What an owner looks at in a pod that has not finished."""

    labels: tuple[tuple[str, str], ...]
    is_terminating: bool
    is_ready: bool


def standing(pod: Obj) -> tuple[str, Standing] | None:
    """Return who controls a pod and how it stands; nothing where nobody does or it has finished."""
    controller = meta.controller_of(pod)
    if controller is None or phase(pod) in FINISHED:
        return None
    metadata = pod["metadata"]
    labels = tuple((metadata.get("labels") or {}).items())
    return controller["uid"], Standing(labels, bool(metadata.get("deletionTimestamp")), is_ready(pod))


def _related(flavour: Flavour, world: World, owner: Obj) -> tuple[Obj, ...]:
    """Return the pods of every owner that the same one controls; none where nobody does."""
    above = meta.controller_of(owner)
    if above is None:
        return ()
    siblings = [
        one for one in world.owned_by(above["uid"], flavour.kind) if meta.is_controlled_by(one, above["uid"])
    ]
    return tuple(pod for sibling in siblings for pod in world.owned_by(meta.uid(sibling), POD))


def _questions(view: View, answers: Answers) -> tuple[Question, ...]:
    return claim.questions(view.pods, answers)


def _plan(flavour: Flavour, view: View, answers: Answers, now: datetime) -> Plan:
    pods = claim.members(view.pods, answers)
    stages: list[Stage] = []
    if changes := claim.changes(view.pods, answers):
        stages.append(Stage("claim pods", changes))
    missing = view.wanted - len(pods)
    told: Sequence[Emit] = ()
    because = f"{len(pods)} of {view.wanted} pods"
    if missing and not meta.is_deleting(view.owner):
        if missing > 0:
            making, told = _make(flavour, view, pods, min(missing, BURST), now)
            stages += making
        else:
            doomed = first_to_go(pods, min(-missing, BURST), now, view.related)
            ends = tuple(Delete(ref=meta.ref(pod), uid=meta.uid(pod)) for pod in doomed)
            stages.append(Stage("delete pods", ends))
            told = deleted(view.owner, doomed, by=flavour.by, now=now)
    said: list[Action] = [*told]
    status, again = _status(flavour, view, pods, now)
    if patch := set_status(view.owner, status):
        said.append(patch)
    if said:
        stages.append(Stage("say so", tuple(said)))
    return Plan(stages=tuple(stages), look_again=again, because=because)


def _make(
    flavour: Flavour, view: View, pods: Sequence[Obj], many: int, now: datetime
) -> tuple[list[Stage], list[Emit]]:
    """Return the stages that make so many pods, twice as many each time, and what to tell in the end."""
    template = view.owner["spec"].get("template") or {}
    names = free_names(view.owner, pods, many)
    made = [from_template(view.owner, template, name) for name in names]
    stages: list[Stage] = []
    start, size = 0, 1
    while start < len(made):
        batch = tuple(Create(obj=pod) for pod in made[start : start + size])
        stages.append(Stage("make pods", batch))
        start, size = start + size, size * 2
    return stages, created(view.owner, made, by=flavour.by, now=now)


def _status(
    flavour: Flavour, view: View, pods: Sequence[Obj], now: datetime
) -> tuple[Made, timedelta | None]:
    """Return the status that says what was seen, and when time alone will change it."""
    owner = view.owner
    min_ready = owner["spec"].get("minReadySeconds") or 0
    template = owner["spec"].get("template") or {}
    full = from_labels((template.get("metadata") or {}).get("labels"))
    ready = [*view.ready, *(pod for pod in pods[len(view.pods.held) :] if is_ready(pod))]
    # A selector that asks for every label of the template has asked the pods already.
    asked = full == flavour.selects(owner)
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
    if flavour.counts_terminating:
        status["terminatingReplicas"] = view.terminating
    if conditions := without_condition((owner.get("status") or {}).get("conditions") or (), _FAILURE):
        status["conditions"] = conditions
    return status, again


def _complain(flavour: Flavour, view: View, error: LaminaError, now: datetime) -> Plan:
    """Say that pods could not be made or deleted; a namespace that is ending takes none, and that is no failure."""
    failures = serious(error)
    if not failures:
        return NOTHING
    pods = view.pods.held
    too_few = len(pods) < view.wanted
    status, _ = _status(flavour, view, pods, now)
    conditions = (view.owner.get("status") or {}).get("conditions") or ()
    if find(conditions, _FAILURE) is None:
        reason = "FailedCreate" if too_few else "FailedDelete"
        conditions = with_condition(
            conditions, _FAILURE, "True", now=now, reason=reason, message=str(failures[0])
        )
    patch = set_status(view.owner, {**status, "conditions": list(conditions)})
    said: list[Action] = [patch] if patch is not None else []
    if too_few:
        failure = find(conditions, _FAILURE)
        since = failure.get("lastTransitionTime", "") if failure is not None else ""
        said += refused(view.owner, failures, by=flavour.by, now=now, occasion=since)
    return Plan(stages=(Stage("say so", tuple(said)),) if said else (), because=str(failures[0]))


def _matters(before: Obj, after: Obj) -> bool:
    """Say whether an owner looks at what became of its pod: not at where it runs, nor how its containers fare."""
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
