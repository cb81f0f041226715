"""
Daemon sets: a pod on every node that is meant to have one.

Which pods are made and which go is decided in `daemonset_moves`; here a daemon
set and what belongs to it are gathered, its revisions recorded, and its status
told.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta

from msgspec import Struct

from lamina.actors.names import MANAGER
from lamina.actors.workloads import claim, pods, revisions, telling, templates
from lamina.actors.workloads.claim import Claim
from lamina.actors.workloads.daemonset_moves import Moves, Situation, by_node, moves
from lamina.actors.workloads.daemonset_nodes import Standing, is_updated, make_pod
from lamina.actors.workloads.refusals import serious
from lamina.actors.workloads.revisions import HASH_LABEL, REVISION, History, Place
from lamina.core.controller import Controller, Watch, itself, only
from lamina.core.events import normal, warning
from lamina.core.plan import NOTHING, Create, Delete, Emit, Plan, Stage, delete, one_stage, set_status
from lamina.core.questions import Answers, Question
from lamina.core.world import Change, World
from lamina.errors import LaminaError
from lamina.objects import meta, selectors
from lamina.objects.selectors import LabelSelector
from lamina.objects.types import GroupKind, Made, Obj, Ref

DAEMON_SET = GroupKind("apps", "DaemonSet")
NODE = GroupKind("", "Node")

_BY = "daemonset-controller"


class View(Struct, frozen=True, kw_only=True):
    """A daemon set, what it counts as its own, the nodes, and where its revision belongs."""

    daemon_set: Obj
    pods: Claim
    revisions: Claim
    nodes: Mapping[str, Obj]
    place: Place


def gather(world: World, ref: Ref) -> View | None:
    daemon_set = world.get(ref)
    # What becomes of one that is being deleted is the garbage collector's business.
    if daemon_set is None or meta.is_deleting(daemon_set):
        return None
    selector = _selector(daemon_set)
    collisions = (daemon_set.get("status") or {}).get("collisionCount") or 0
    return View(
        daemon_set=daemon_set,
        pods=claim.claim(world, daemon_set, pods.POD, selector),
        revisions=claim.claim(world, daemon_set, REVISION, selector),
        nodes={meta.name(node): node for node in world.every(NODE)},
        place=revisions.find_place(world, daemon_set, collisions, _mark),
    )


def _selector(daemon_set: Obj) -> LabelSelector:
    return selectors.from_object(daemon_set["spec"].get("selector"))


def _mark(template: Obj, collisions: int) -> str:
    return templates.mark(template, collisions or None)


def questions(view: View, answers: Answers) -> tuple[Question, ...]:
    asked = (*claim.questions(view.pods, answers), *claim.questions(view.revisions, answers))
    return tuple(dict.fromkeys(asked))


def plan(view: View, answers: Answers, now: datetime) -> Plan:
    """Decide what happens next to a daemon set: its revision first, then its status, then its pods."""
    daemon_set = view.daemon_set
    adopted = (*claim.changes(view.revisions, answers), *claim.changes(view.pods, answers))
    if adopted:
        # What was taken in is seen again as ours, and then counted.
        return one_stage("take in and let go", adopted, because="its selector says what is its own")

    members = claim.members(view.pods, answers)
    history = revisions.look_up(daemon_set, claim.members(view.revisions, answers), view.place, HASH_LABEL)
    mark = meta.labels(history.wanted).get(HASH_LABEL) or view.place.hash
    seen = Situation(daemon_set=daemon_set, nodes=view.nodes, pods=by_node(members), mark=mark, now=now)
    found = moves(seen)
    names = pods.free_names(daemon_set, members, len(found.nodes))
    made = [make_pod(daemon_set, node, name, mark) for node, name in zip(found.nodes, names, strict=True)]
    said = set_status(daemon_set, _status(seen, view.place.collisions))
    ends = tuple(Delete(ref=meta.ref(pod), uid=meta.uid(pod)) for pod in found.deleted)
    stages = (
        Stage("record the revision", history.record),
        Stage("say so", (said,) if said is not None else ()),
        Stage("make pods", tuple(Create(obj=pod) for pod in made)),
        Stage("delete pods", ends),
        Stage("tell", tuple(_told(daemon_set, made, found, now))),
        Stage("forget", tuple(_too_old(daemon_set, history, members))),
    )
    return Plan(
        stages=tuple(stage for stage in stages if stage.actions),
        look_again=_next_look(seen, members, found.wait),
        because=f"{len(made)} pods to make, {len(ends)} to delete on {len(view.nodes)} nodes",
    )


def _status(seen: Situation, collisions: int) -> Made:
    desired = current = misplaced = ready = available = updated = 0
    for name in seen.nodes:
        there = seen.pods.get(name, ())
        if seen.standing(name) is not Standing.RUNS:
            misplaced += bool(there)
            continue
        desired += 1
        if not there:
            continue
        current += 1
        if pods.is_ready(there[0]):
            ready += 1
            available += seen.is_available(there[0])
        updated += is_updated(seen.daemon_set, there[0], seen.mark)
    old: Obj = seen.daemon_set.get("status") or {}
    rest = {
        "observedGeneration": meta.generation(seen.daemon_set),
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


def _told(daemon_set: Obj, made: Sequence[Obj], found: Moves, now: datetime) -> Iterable[Emit]:
    for node, pod in found.failed:
        where = f"{meta.namespace(pod)}/{meta.name(pod)} on node {node}"
        message = f"Found failed daemon pod {where}, will try to kill it"
        yield Emit(event=warning(daemon_set, "FailedDaemonPod", message, by=_BY, now=now))
    for node, pod in found.succeeded:
        where = f"{meta.namespace(pod)}/{meta.name(pod)} on node {node}"
        message = f"Found succeeded daemon pod {where}, will try to delete it"
        yield Emit(event=normal(daemon_set, "SucceededDaemonPod", message, by=_BY, now=now))
    yield from telling.created(daemon_set, made, by=_BY, now=now)
    yield from telling.deleted(daemon_set, found.deleted, by=_BY, now=now)


def _too_old(daemon_set: Obj, history: History, members: Sequence[Obj]) -> list[Delete]:
    """Return the oldest revisions beyond the limit that no pod is on; those that a pod is on count, and stay."""
    limit = daemon_set["spec"].get("revisionHistoryLimit")
    old = [one for one in history.revisions if meta.name(one) != meta.name(history.wanted)]
    live = {meta.labels(pod).get(HASH_LABEL) for pod in members}
    idle = [one for one in old if meta.labels(one).get(HASH_LABEL) not in live]
    return [delete(one) for one in idle[: max(len(old) - (10 if limit is None else limit), 0)]]


def _next_look(seen: Situation, members: Sequence[Obj], wait: timedelta | None) -> timedelta | None:
    seconds = seen.daemon_set["spec"].get("minReadySeconds") or 0
    left = [wait, *(pods.available_in(pod, seconds, seen.now) for pod in members)]
    return min((one for one in left if one), default=None)


def complain(world: World, ref: Ref, error: LaminaError, now: datetime) -> Plan:
    daemon_set, failures = world.get(ref), serious(error)
    if daemon_set is None or not failures:
        return NOTHING
    said = telling.refused(daemon_set, failures, by=_BY, now=now)
    return one_stage("warn", said, because=str(failures[0]))


def _node_concerns(world: World, change: Change) -> Iterable[Ref]:
    """A node that comes, goes, or has other labels or taints concerns every daemon set."""
    before, after = change.before, change.after
    if before is not None and after is not None and _bearing(before) == _bearing(after):
        return ()
    return [meta.ref(daemon_set) for daemon_set in world.every(DAEMON_SET)]


def _bearing(node: Obj) -> object:
    return meta.uid(node), meta.labels(node), (node.get("spec") or {}).get("taints") or []


DAEMON_SETS: Controller[View] = Controller(
    name="daemonsets",
    watches=(
        Watch(selects=only(*DAEMON_SET), concerns=itself),
        Watch(selects=only(*pods.POD), concerns=claim.claimants(DAEMON_SET, _selector)),
        Watch(selects=only(*REVISION), concerns=claim.claimants(DAEMON_SET, _selector)),
        Watch(selects=only(*NODE), concerns=_node_concerns),
    ),
    gather=gather,
    questions=questions,
    plan=plan,
    complain=complain,
    manager=MANAGER,
)
