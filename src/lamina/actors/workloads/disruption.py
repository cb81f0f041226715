"""
Budgets of disruption: how many pods are well, how many should be, and how many may be spared.

1.  What should be well is a number, or a share of what the pods' controllers
    want between them. The scale of a replica set is that of its deployment.
2.  A pod counts as well while it is ready, nobody has asked it to go, and no
    eviction of it is under way.
3.  An eviction notes its pod on the budget before the pod goes. The note is
    kept until the pod does, for two minutes at most.
4.  Nothing may be spared while no pods are expected, nor where a scale cannot
    be found: the budget then says why.

What is refused on its account is decided by the server, when somebody evicts.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any, Final, TypeAlias

from msgspec import Struct

from lamina.actors.names import MANAGER
from lamina.actors.workloads import pods
from lamina.actors.workloads.pods import POD
from lamina.actors.workloads.selecting import changes, insisted, same, selected, selecting, sides
from lamina.core.controller import Controller, Watch, only
from lamina.core.events import normal, warning
from lamina.core.plan import Action, Emit, Patch, Plan, Stage, change, set_status
from lamina.core.questions import Answers
from lamina.core.world import Change, World
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
_PATIENCE: Final = timedelta(minutes=2)
_AGAIN: Final = timedelta(seconds=20)
_BY: Final = "controllermanager"


class Unknown(Struct, frozen=True, kw_only=True):
    """Why the scale of a controller is not known."""

    because: str


Scale: TypeAlias = int | Unknown


class Budget(Struct, frozen=True, kw_only=True):
    """A budget, the pods it covers, and how many pods each of their controllers wants."""

    budget: Obj
    pods: tuple[Obj, ...]
    scales: Mapping[str, Scale]


class Disturbed(Struct, frozen=True, kw_only=True):
    """A pod that was to go, says it itself, and has not been asked to."""

    pod: Obj
    since: datetime


View: TypeAlias = Budget | Disturbed


def gather(world: World, ref: Ref) -> View | None:
    if ref.kind == "Pod":
        pod = world.get(ref)
        since = _disturbed(pod) if pod is not None else None
        return Disturbed(pod=pod, since=since) if pod is not None and since is not None else None
    budget = world.get(ref)
    if budget is None or meta.is_deleting(budget):
        return None
    selector = selector_of(budget)
    found = tuple(selected(world, ref.namespace, selector)) if selector is not None else ()
    owners = {owner["uid"]: owner for pod in found if (owner := meta.controller_of(pod)) is not None}
    scales = {uid: _scale(world, ref.namespace, owner) for uid, owner in owners.items()}
    return Budget(budget=budget, pods=found, scales=scales)


def selector_of(budget: Obj) -> LabelSelector | None:
    """Return which pods a budget covers; one without a selector covers none."""
    selector = (budget.get("spec") or {}).get("selector")
    return from_object(selector) if selector is not None else None


def by_selector(budget: Obj) -> Iterator[str]:
    """Find a budget by a label of the pods it covers."""
    selector = selector_of(budget)
    if selector is not None:
        yield insisted(meta.namespace(budget), selector)


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
    return _calm(view, now) if isinstance(view, Disturbed) else _count(view, now)


def _count(view: Budget, now: datetime) -> Plan:
    budget = view.budget
    needed = _needed(view)
    if isinstance(needed, Unknown):
        return _fail(budget, needed.because, now)
    expected, desired = needed
    disrupted, again = _under_way(view, now)
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
    write = _written(budget, status)
    if write is None:
        return Plan(look_again=again)
    because = f"{healthy} of {expected} pods are well, {desired} should be"
    return Plan(
        stages=(Stage("say so", (write,)), *_tell(view, now)),
        look_again=again,
        because=because,
    )


def _written(budget: Obj, status: Made) -> Patch | None:
    """Return the write of a status; names that a map has lost are taken out of it one by one."""
    write = set_status(budget, status)
    noted = (budget.get("status") or {}).get("disruptedPods") or {}
    if write is None or not noted or not status.get("disruptedPods"):
        return write
    fields = {**write.patch["status"], "disruptedPods": changes(noted, status["disruptedPods"])}
    return change(budget, {"status": fields}, subresource="status")


def _conditions(budget: Obj) -> list[Condition]:
    return list((budget.get("status") or {}).get("conditions") or ())


def _needed(view: Budget) -> tuple[int, int] | Unknown:
    """Return how many pods there should be, and how many of them well."""
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


def _share(wanted: Any, whole: int) -> int:
    """Return a number, or a percentage of the whole, rounded up."""
    if isinstance(wanted, int):
        return wanted
    return -(-int(str(wanted).removesuffix("%")) * whole // 100)


def _under_way(view: Budget, now: datetime) -> tuple[dict[str, str], timedelta | None]:
    """Return whose eviction is under way and since when, and when the next of them should be over."""
    noted: Mapping[str, str] = (view.budget.get("status") or {}).get("disruptedPods") or {}
    kept: dict[str, str] = {}
    ends: list[datetime] = []
    for pod in view.pods:
        since = moment(noted.get(meta.name(pod)))
        if since is not None and not meta.is_deleting(pod) and since + _PATIENCE > now:
            kept[meta.name(pod)] = noted[meta.name(pod)]
            ends.append(since + _PATIENCE)
    return kept, min(ends) - now if ends else None


def _tell(view: Budget, now: datetime) -> Iterator[Stage]:
    """Yield what there is to tell beside the numbers."""
    told: list[Action] = []
    budget = view.budget
    if not view.pods:
        told.append(Emit(event=normal(budget, "NoPods", "No matching pods found", by=_BY, now=now)))
    spec = budget.get("spec") or {}
    by_scale = spec.get("maxUnavailable") is not None or isinstance(spec.get("minAvailable"), str)
    if by_scale and any(meta.controller_of(pod) is None for pod in view.pods):
        message = (
            f"Pods selected by this PodDisruptionBudget (selector: {selector_of(budget)}) were found to be "
            "unmanaged. As a result, the status of the PDB cannot be calculated correctly, which may result in "
            'undefined behavior. To account for these pods please set ".spec.minAvailable" field of the PDB to '
            "an integer value."
        )
        told.append(Emit(event=warning(budget, "UnmanagedPods", message, by=_BY, now=now)))
    if told:
        yield Stage("tell", tuple(told))


def _fail(budget: Obj, because: str, now: datetime) -> Plan:
    """Spare nothing, and say why."""
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
        return Plan(look_again=_AGAIN, because=because)
    message = f"Failed to calculate the number of expected pods: {because}"
    event = warning(budget, "CalculateExpectedPodCountFailed", message, by=_BY, now=now)
    stages = (Stage("say so", (write,)), Stage("tell", (Emit(event=event),)))
    return Plan(stages=stages, look_again=_AGAIN, because=because)


# ── pods that were to go, and did not ──


def _disturbed(pod: Obj) -> datetime | None:
    """Return since when a pod that nobody has asked to go says that it is about to."""
    if meta.is_deleting(pod) or pods.is_finished(pod):
        return None
    said = find((pod.get("status") or {}).get("conditions") or (), _TARGET)
    if said is None or said["status"] != "True" or said.get("reason") == "TerminationByKubelet":
        return None
    return moment(said.get("lastTransitionTime"))


def _calm(view: Disturbed, now: datetime) -> Plan:
    left = view.since + _PATIENCE - now
    if left > timedelta(0):
        return Plan(look_again=left)
    conditions = [
        {"type": _TARGET, "status": "False", "lastProbeTime": None, "lastTransitionTime": stamp(now)}
        if one["type"] == _TARGET
        else one
        for one in view.pod["status"]["conditions"]
    ]
    write = change(view.pod, {"status": {"conditions": conditions}}, subresource="status")
    return Plan(stages=(Stage("take it back", (write,)),), because="nobody has asked it to go")


# ── whom a change concerns ──


def budgets_of(world: World, pod: Obj) -> Iterator[Ref]:
    """Yield the budgets that cover a pod."""
    return map(meta.ref, selecting(world, BUDGET, by_selector, selector_of, pod))


def _bearing(pod: Obj) -> Any:
    owner = meta.controller_of(pod)
    return (
        meta.uid(pod),
        meta.labels(pod),
        meta.is_deleting(pod),
        pods.is_ready(pod),
        owner["uid"] if owner is not None else "",
    )


def pod_changed(world: World, change: Change) -> Iterable[Ref]:
    """A pod concerns its budgets, and itself where it says that it is about to go."""
    if change.after is not None and _disturbed(change.after) is not None:
        yield change.ref
    if world.count(BUDGET) and not same(change, _bearing):
        yield from dict.fromkeys(ref for pod in sides(change) for ref in budgets_of(world, pod))


def budget_changed(world: World, change: Change) -> Iterable[Ref]:
    return () if change.after is None else (change.ref,)


def owner_changed(world: World, change: Change) -> Iterable[Ref]:
    """Whoever wants another number of pods concerns the budgets of those it has."""
    if same(change, lambda owner: (owner.get("spec") or {}).get("replicas")):
        return ()
    uid = meta.uid(change.obj)
    owned = [*world.owned_by(uid, POD)]
    for between in world.owned_by(uid, _REPLICA_SET):
        owned += world.owned_by(meta.uid(between), POD)
    return tuple(dict.fromkeys(ref for pod in owned for ref in budgets_of(world, pod)))


BUDGETS: Controller[View] = Controller(
    name="disruption",
    watches=(
        Watch(selects=only(*BUDGET), concerns=budget_changed),
        Watch(selects=only(*POD), concerns=pod_changed),
        *(Watch(selects=only(*kind), concerns=owner_changed) for kind in _SCALED),
    ),
    gather=gather,
    plan=plan,
    manager=MANAGER,
)
