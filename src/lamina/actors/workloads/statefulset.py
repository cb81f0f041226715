"""
The StatefulSet controller: pods with stable names.

`statefulset_sync` decides which pods are created, updated and deleted; this module
gathers the view, records revisions, and writes the status.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta

from msgspec import Struct

from lamina.actors.field_manager import MANAGER
from lamina.actors.workloads import pods, revisions
from lamina.actors.workloads.revisions import REVISION, History, RevisionLookup
from lamina.actors.workloads.server_errors import reportable
from lamina.actors.workloads.statefulset_identity import (
    claim_names,
    ordinal_of,
    ordinals,
    replicas,
    revision_of,
)
from lamina.actors.workloads.statefulset_sync import Steps, SyncInput, is_healthy, next_steps
from lamina.core.model.controller import Controller, Watch, itself, only
from lamina.core.model.events import normal, warning
from lamina.core.model.plan import NOTHING, Action, Create, Emit, Plan, Stage, one_stage, set_status
from lamina.core.model.queries import Answers, Query
from lamina.core.model.world import Change, World
from lamina.core.ownership import controller_ref
from lamina.core.ownership.controller_ref import Claim
from lamina.errors import LaminaError
from lamina.objects import meta, selectors
from lamina.objects.selectors import LabelSelector
from lamina.objects.types import GroupKind, Made, Obj, Ref

STATEFUL_SET = GroupKind("apps", "StatefulSet")

_BY = "statefulset-controller"
_HASH_LABEL = "controller.kubernetes.io/hash"
_AGAIN = timedelta(seconds=1)


class View(Struct, frozen=True, kw_only=True):
    """A StatefulSet, its claimed pods and revisions, the volume claims of its pods, and the name of its revision."""

    stateful_set: Obj
    pods: Claim
    revisions: Claim
    claims: Mapping[str, Obj]
    lookup: RevisionLookup


def gather(world: World, ref: Ref) -> View | None:
    stateful_set = world.get(ref)
    if stateful_set is None:
        return None
    selector = _selector(stateful_set)
    held = controller_ref.claim(
        world, stateful_set, pods.POD, selector, counts=lambda pod: ordinal_of(stateful_set, pod) is not None
    )
    collisions = (stateful_set.get("status") or {}).get("collisionCount") or 0
    return View(
        stateful_set=stateful_set,
        pods=held,
        revisions=controller_ref.claim(world, stateful_set, REVISION, selector),
        claims=_claims(world, stateful_set, (*held.held, *held.adoptable)),
        lookup=revisions.find_name(world, stateful_set, collisions),
    )


def _selector(stateful_set: Obj) -> LabelSelector:
    return selectors.from_object(stateful_set["spec"].get("selector"))


def _claims(world: World, stateful_set: Obj, members: Iterable[Obj]) -> dict[str, Obj]:
    if not stateful_set["spec"].get("volumeClaimTemplates"):
        return {}
    numbers = {*ordinals(stateful_set), *(ordinal_of(stateful_set, pod) for pod in members)}
    found: dict[str, Obj] = {}
    for number in sorted(one for one in numbers if one is not None):
        for _, name in claim_names(stateful_set, number):
            there = world.get(Ref("v1", "PersistentVolumeClaim", meta.namespace(stateful_set), name))
            if there is not None:
                found[name] = there
    return found


def queries(view: View, answers: Answers) -> tuple[Query, ...]:
    return controller_ref.queries(answers, view.pods, view.revisions)


def plan(view: View, answers: Answers, now: datetime) -> Plan:
    """
    Plan a StatefulSet.

    Its revision is written first, then its status, because pods refer to the
    revision. The status reports the observed pods; only a pod that is about to
    be replaced no longer counts as current.
    """
    stateful_set = view.stateful_set
    members = controller_ref.members(view.pods, answers)
    if meta.is_deleting(stateful_set):
        return _plan_deleting(view, members, now)
    adopted = (*controller_ref.changes(view.revisions, answers), *controller_ref.changes(view.pods, answers))
    if adopted:
        # Adopted objects are counted once the cache has their new owner.
        return one_stage("adopt and release", adopted, because="objects match its selector, or no longer do")

    history = revisions.look_up(
        stateful_set, controller_ref.members(view.revisions, answers), view.lookup, _HASH_LABEL
    )
    current = _current(stateful_set, history)
    sync = SyncInput(
        stateful_set=stateful_set,
        pods=members,
        claims=view.claims,
        current=current,
        update=history.wanted,
        now=now,
    )
    steps = next_steps(sync)
    status = _status(sync, view.lookup.collisions, len(steps.updating))
    write = set_status(stateful_set, status)
    live = {meta.name(current), *(revision_of(pod) for pod in members)}
    limit = stateful_set["spec"].get("revisionHistoryLimit")
    stages = (
        Stage("record the revision", history.record),
        Stage("write status", (write,) if write is not None else ()),
        Stage("write claims", (*(Create(obj=one) for one in steps.claims), *steps.owners)),
        Stage("write pods", _pod_actions(steps)),
        Stage("record events", tuple(_events(stateful_set, steps, now))),
        Stage("delete revisions", tuple(revisions.too_old(history, 10 if limit is None else limit, live))),
    )
    return Plan(
        stages=tuple(stage for stage in stages if stage.actions),
        requeue_after=_requeue_after(view, members, steps, now),
        because=steps.because,
    )


def _plan_deleting(view: View, members: Sequence[Obj], now: datetime) -> Plan:
    """Only update the status: the garbage collector deletes the pods and revisions."""
    old = view.stateful_set.get("status") or {}
    if not old.get("updateRevision"):
        return NOTHING
    sync = SyncInput(
        stateful_set=view.stateful_set,
        pods=members,
        claims={},
        current={"metadata": {"name": old.get("currentRevision") or old["updateRevision"]}},
        update={"metadata": {"name": old["updateRevision"]}},
        now=now,
    )
    write = set_status(view.stateful_set, _status(sync, old.get("collisionCount") or 0, 0))
    return one_stage("write status", [write] if write is not None else [], because="it is being deleted")


def _current(stateful_set: Obj, history: History) -> Obj:
    """Return the current revision, which is the update revision at first."""
    name = (stateful_set.get("status") or {}).get("currentRevision")
    return next((one for one in history.revisions if meta.name(one) == name), history.wanted)


def _status(sync: SyncInput, collisions: int, updating: int) -> Made:
    spec = sync.stateful_set["spec"]
    seconds = spec.get("minReadySeconds") or 0
    ready = [pod for pod in sync.pods if is_healthy(pod)]
    running = [revision_of(pod) for pod in sync.pods if not meta.is_deleting(pod)]
    current, update = meta.name(sync.current), meta.name(sync.update)
    counts = {
        "readyReplicas": len(ready),
        "currentReplicas": running.count(current) - updating,
        "updatedReplicas": running.count(update),
    }
    wanted = replicas(sync.stateful_set)
    rolling = (spec.get("updateStrategy") or {}).get("type", "RollingUpdate") == "RollingUpdate"
    if rolling and wanted == counts["updatedReplicas"] == counts["readyReplicas"] == len(sync.pods):
        current, counts["currentReplicas"] = update, counts["updatedReplicas"]
    old: Obj = sync.stateful_set.get("status") or {}
    return {
        **({"conditions": old["conditions"]} if old.get("conditions") else {}),
        "observedGeneration": meta.generation(sync.stateful_set),
        "replicas": len(sync.pods),
        **{field: count for field, count in counts.items() if count},
        "availableReplicas": sum(pods.is_available(pod, seconds, sync.now) for pod in ready),
        "currentRevision": current,
        "updateRevision": update,
        "collisionCount": collisions,
    }


def _pod_actions(steps: Steps) -> tuple[Action, ...]:
    return (*steps.corrections, *(Create(obj=pod) for pod in steps.made), *steps.deletions)


def _events(stateful_set: Obj, steps: Steps, now: datetime) -> Iterable[Emit]:
    name = meta.name(stateful_set)
    version = meta.resource_version(stateful_set)

    def event(reason: str, message: str) -> Emit:
        return Emit(event=normal(stateful_set, reason, message, by=_BY, now=now, occasion=version))

    for claimed in steps.claims:
        about = f"Claim {meta.name(claimed)} Pod {steps.claimants[meta.name(claimed)]}"
        yield event("SuccessfulCreate", f"Create {about} in StatefulSet {name} success")
    for pod in steps.made:
        yield event("SuccessfulCreate", f"Create Pod {meta.name(pod)} in StatefulSet {name} successful")
    for correction in steps.corrections:
        yield event("SuccessfulUpdate", f"Update Pod {correction.ref.name} in StatefulSet {name} successful")
    for gone in steps.deleted:
        yield event("SuccessfulDelete", f"Delete Pod {meta.name(gone)} in StatefulSet {name} successful")
    for contested in steps.contested:
        message = (
            f"PersistentVolumeClaim {contested} has a conflicting OwnerReference that acts as a manging "
            "controller, the retention policy is ignored for this claim"
        )
        yield Emit(event=warning(stateful_set, "ConflictingController", message, by=_BY, now=now))


def _requeue_after(view: View, members: Sequence[Obj], steps: Steps, now: datetime) -> timedelta | None:
    """Return the time until a pod becomes available, or a retry where a claim is being deleted."""
    seconds = view.stateful_set["spec"].get("minReadySeconds") or 0
    left = [pods.available_in(pod, seconds, now) for pod in members]
    waits = [one for one in left if one]
    if any(meta.is_deleting(one) for one in view.claims.values()):
        waits.append(_AGAIN)
    return min(waits, default=None)


def complain(world: World, ref: Ref, error: LaminaError, now: datetime) -> Plan:
    """Record an event about the pod that could not be created."""
    view, failures = gather(world, ref), reportable(error)
    if view is None or meta.is_deleting(view.stateful_set) or not failures:
        return NOTHING
    planned = plan(view, Answers(), now)
    made = [one.obj for one in planned.actions if isinstance(one, Create) and one.obj["kind"] == "Pod"]
    if not made:
        return NOTHING
    message = f"Create Pod {meta.name(made[0])} in StatefulSet {ref.name} failed error: {failures[0]}"
    event = warning(view.stateful_set, "FailedCreate", message, by=_BY, now=now)
    return one_stage("warn", [Emit(event=event)], because=message)


def _enqueue_by_claim(world: World, change: Change) -> Iterable[Ref]:
    """A claim that is deleted or changes its owners enqueues the StatefulSet that its name refers to."""
    before, after = change.before, change.after
    if before is None:
        return
    if after is not None and (
        meta.owner_refs(before) == meta.owner_refs(after)
        and meta.is_deleting(before) == meta.is_deleting(after)
        and meta.uid(before) == meta.uid(after)
    ):
        return
    name = meta.name(before)
    for stateful_set in world.every(STATEFUL_SET, meta.namespace(before)):
        for template in stateful_set["spec"].get("volumeClaimTemplates") or ():
            stem = f"{meta.name(template)}-{meta.name(stateful_set)}-"
            if name.startswith(stem) and name.removeprefix(stem).isdigit():
                yield meta.ref(stateful_set)


STATEFUL_SETS: Controller[View] = Controller(
    name="statefulsets",
    watches=(
        Watch(selects=only(*STATEFUL_SET), enqueue=itself),
        Watch(selects=only(*pods.POD), enqueue=controller_ref.claimants(STATEFUL_SET, _selector)),
        Watch(selects=only(*REVISION), enqueue=controller_ref.claimants(STATEFUL_SET, _selector)),
        Watch(selects=only("", "PersistentVolumeClaim"), enqueue=_enqueue_by_claim),
    ),
    gather=gather,
    queries=queries,
    plan=plan,
    complain=complain,
    manager=MANAGER,
)
