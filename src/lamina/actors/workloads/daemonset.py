"""
The DaemonSet controller: a pod on every eligible node.

`daemonset_sync` decides which pods are created and deleted; this module gathers
the view, records revisions, and writes the status.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta

from msgspec import Struct

from lamina.actors.field_manager import MANAGER
from lamina.actors.workloads import event_recorder, pods, revisions, templates
from lamina.actors.workloads.daemonset_nodes import Eligibility, is_updated, make_pod
from lamina.actors.workloads.daemonset_sync import PodChanges, SyncInput, by_node, pod_changes
from lamina.actors.workloads.revisions import HASH_LABEL, REVISION, History, RevisionLookup
from lamina.actors.workloads.server_errors import reportable
from lamina.core.model.controller import Controller, Watch, itself, only
from lamina.core.model.events import normal, warning
from lamina.core.model.plan import NOTHING, Create, Delete, Emit, Plan, Stage, delete, one_stage, set_status
from lamina.core.model.queries import Answers, Query
from lamina.core.model.world import Change, World
from lamina.core.ownership import controller_ref
from lamina.core.ownership.controller_ref import Claim
from lamina.errors import LaminaError
from lamina.objects import meta, selectors
from lamina.objects.selectors import LabelSelector
from lamina.objects.types import GroupKind, Made, Obj, Ref

DAEMON_SET = GroupKind("apps", "DaemonSet")
NODE = GroupKind("", "Node")

_BY = "daemonset-controller"


class View(Struct, frozen=True, kw_only=True):
    """A DaemonSet, its claimed pods and revisions, the nodes, and the name of its revision."""

    daemon_set: Obj
    pods: Claim
    revisions: Claim
    nodes: Mapping[str, Obj]
    lookup: RevisionLookup


def gather(world: World, ref: Ref) -> View | None:
    daemon_set = world.get(ref)
    # The garbage collector deletes the pods of one that is being deleted.
    if daemon_set is None or meta.is_deleting(daemon_set):
        return None
    selector = _selector(daemon_set)
    collisions = (daemon_set.get("status") or {}).get("collisionCount") or 0
    return View(
        daemon_set=daemon_set,
        pods=controller_ref.claim(world, daemon_set, pods.POD, selector),
        revisions=controller_ref.claim(world, daemon_set, REVISION, selector),
        nodes={meta.name(node): node for node in world.every(NODE)},
        lookup=revisions.find_name(world, daemon_set, collisions, _mark),
    )


def _selector(daemon_set: Obj) -> LabelSelector:
    return selectors.from_object(daemon_set["spec"].get("selector"))


def _mark(template: Obj, collisions: int) -> str:
    return templates.compute_hash(template, collisions or None)


def queries(view: View, answers: Answers) -> tuple[Query, ...]:
    return controller_ref.queries(answers, view.pods, view.revisions)


def plan(view: View, answers: Answers, now: datetime) -> Plan:
    """Plan a DaemonSet: its revision first, then its status, then its pods."""
    daemon_set = view.daemon_set
    adopted = (*controller_ref.changes(view.revisions, answers), *controller_ref.changes(view.pods, answers))
    if adopted:
        # Adopted objects are counted once the cache has their new owner.
        return one_stage("adopt and release", adopted, because="objects match its selector, or no longer do")

    members = controller_ref.members(view.pods, answers)
    history = revisions.look_up(
        daemon_set, controller_ref.members(view.revisions, answers), view.lookup, HASH_LABEL
    )
    revision_hash = meta.labels(history.wanted).get(HASH_LABEL) or view.lookup.hash
    sync = SyncInput(
        daemon_set=daemon_set, nodes=view.nodes, pods=by_node(members), revision_hash=revision_hash, now=now
    )
    found = pod_changes(sync)
    names = pods.free_names(daemon_set, members, len(found.nodes))
    made = [
        make_pod(daemon_set, node, name, revision_hash) for node, name in zip(found.nodes, names, strict=True)
    ]
    write = set_status(daemon_set, _status(sync, view.lookup.collisions))
    deletes = tuple(Delete(ref=meta.ref(pod), uid=meta.uid(pod)) for pod in found.deleted)
    stages = (
        Stage("record the revision", history.record),
        Stage("write status", (write,) if write is not None else ()),
        Stage("create pods", tuple(Create(obj=pod) for pod in made)),
        Stage("delete pods", deletes),
        Stage("record events", tuple(_events(daemon_set, made, found, now))),
        Stage("delete revisions", tuple(_too_old(daemon_set, history, members))),
    )
    return Plan(
        stages=tuple(stage for stage in stages if stage.actions),
        requeue_after=_requeue_after(sync, members, found.wait),
        because=f"{len(made)} pods to create, {len(deletes)} to delete on {len(view.nodes)} nodes",
    )


def _status(sync: SyncInput, collisions: int) -> Made:
    desired = current = misplaced = ready = available = updated = 0
    for name in sync.nodes:
        there = sync.pods.get(name, ())
        if sync.eligibility(name) is not Eligibility.SHOULD_RUN:
            misplaced += bool(there)
            continue
        desired += 1
        if not there:
            continue
        current += 1
        if pods.is_ready(there[0]):
            ready += 1
            available += sync.is_available(there[0])
        updated += is_updated(sync.daemon_set, there[0], sync.revision_hash)
    old: Obj = sync.daemon_set.get("status") or {}
    rest = {
        "observedGeneration": meta.generation(sync.daemon_set),
        "updatedNumberScheduled": updated,
        "numberAvailable": available,
        "numberUnavailable": desired - available,
        "collisionCount": collisions,
    }
    return {
        **({"conditions": old["conditions"]} if old.get("conditions") else {}),
        "desiredNumberScheduled": desired,
        "currentNumberScheduled": current,
        "numberMisscheduled": misplaced,
        "numberReady": ready,
        **{field: count for field, count in rest.items() if count},
    }


def _events(daemon_set: Obj, made: Sequence[Obj], found: PodChanges, now: datetime) -> Iterable[Emit]:
    for node, pod in found.failed:
        where = f"{meta.namespace(pod)}/{meta.name(pod)} on node {node}"
        message = f"Found failed daemon pod {where}, will try to kill it"
        yield Emit(event=warning(daemon_set, "FailedDaemonPod", message, by=_BY, now=now))
    for node, pod in found.succeeded:
        where = f"{meta.namespace(pod)}/{meta.name(pod)} on node {node}"
        message = f"Found succeeded daemon pod {where}, will try to delete it"
        yield Emit(event=normal(daemon_set, "SucceededDaemonPod", message, by=_BY, now=now))
    yield from event_recorder.created(daemon_set, made, by=_BY, now=now)
    yield from event_recorder.deleted(daemon_set, found.deleted, by=_BY, now=now)


def _too_old(daemon_set: Obj, history: History, members: Sequence[Obj]) -> list[Delete]:
    """Return the oldest revisions beyond the limit that no pod has; those in use count, and stay."""
    limit = daemon_set["spec"].get("revisionHistoryLimit")
    old = [one for one in history.revisions if meta.name(one) != meta.name(history.wanted)]
    live = {meta.labels(pod).get(HASH_LABEL) for pod in members}
    idle = [one for one in old if meta.labels(one).get(HASH_LABEL) not in live]
    return [delete(one) for one in idle[: max(len(old) - (10 if limit is None else limit), 0)]]


def _requeue_after(sync: SyncInput, members: Sequence[Obj], wait: timedelta | None) -> timedelta | None:
    seconds = sync.daemon_set["spec"].get("minReadySeconds") or 0
    left = [wait, *(pods.available_in(pod, seconds, sync.now) for pod in members)]
    return min((one for one in left if one), default=None)


def complain(world: World, ref: Ref, error: LaminaError, now: datetime) -> Plan:
    daemon_set, failures = world.get(ref), reportable(error)
    if daemon_set is None or not failures:
        return NOTHING
    events = event_recorder.refused(daemon_set, failures, by=_BY, now=now)
    return one_stage("warn", events, because=str(failures[0]))


def _enqueue_all(world: World, change: Change) -> Iterable[Ref]:
    """A node that is created or deleted, or has changed labels or taints, enqueues every DaemonSet."""
    before, after = change.before, change.after
    if before is not None and after is not None and _relevant(before) == _relevant(after):
        return ()
    return [meta.ref(daemon_set) for daemon_set in world.every(DAEMON_SET)]


def _relevant(node: Obj) -> object:
    return meta.uid(node), meta.labels(node), (node.get("spec") or {}).get("taints") or []


DAEMON_SETS: Controller[View] = Controller(
    name="daemonsets",
    watches=(
        Watch(selects=only(*DAEMON_SET), enqueue=itself),
        Watch(selects=only(*pods.POD), enqueue=controller_ref.claimants(DAEMON_SET, _selector)),
        Watch(selects=only(*REVISION), enqueue=controller_ref.claimants(DAEMON_SET, _selector)),
        Watch(selects=only(*NODE), enqueue=_enqueue_all),
    ),
    gather=gather,
    queries=queries,
    plan=plan,
    complain=complain,
    manager=MANAGER,
)
