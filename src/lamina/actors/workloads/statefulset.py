"""
Stateful sets: pods with names that stay.

What happens to the pods is decided in `statefulset_steps`; here a set and what
belongs to it are gathered, its revisions recorded, and its status told.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta

from msgspec import Struct

from lamina.actors.names import MANAGER
from lamina.actors.workloads import claim, pods, revisions
from lamina.actors.workloads.claim import Claim
from lamina.actors.workloads.refusals import serious
from lamina.actors.workloads.revisions import REVISION, History, Place
from lamina.actors.workloads.statefulset_identity import (
    claim_names,
    ordinal_of,
    ordinals,
    replicas,
    revision_of,
)
from lamina.actors.workloads.statefulset_steps import Situation, Steps, is_well, next_steps
from lamina.core.controller import Controller, Watch, itself, only
from lamina.core.events import normal, warning
from lamina.core.plan import NOTHING, Action, Create, Emit, Plan, Stage, one_stage, set_status
from lamina.core.questions import Answers, Question
from lamina.core.world import Change, World
from lamina.errors import LaminaError
from lamina.objects import meta, selectors
from lamina.objects.selectors import LabelSelector
from lamina.objects.types import GroupKind, Made, Obj, Ref

STATEFUL_SET = GroupKind("apps", "StatefulSet")

_BY = "statefulset-controller"
_HASH_LABEL = "controller.kubernetes.io/hash"
_AGAIN = timedelta(seconds=1)


class View(Struct, frozen=True, kw_only=True):
    """A set, what it counts as its own, the claims of its pods, and where its revision belongs."""

    stateful_set: Obj
    pods: Claim
    revisions: Claim
    claims: Mapping[str, Obj]
    place: Place


def gather(world: World, ref: Ref) -> View | None:
    stateful_set = world.get(ref)
    if stateful_set is None:
        return None
    selector = _selector(stateful_set)
    held = claim.claim(
        world, stateful_set, pods.POD, selector, counts=lambda pod: ordinal_of(stateful_set, pod) is not None
    )
    collisions = (stateful_set.get("status") or {}).get("collisionCount") or 0
    return View(
        stateful_set=stateful_set,
        pods=held,
        revisions=claim.claim(world, stateful_set, REVISION, selector),
        claims=_claims(world, stateful_set, (*held.held, *held.adoptable)),
        place=revisions.find_place(world, stateful_set, collisions),
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


def questions(view: View, answers: Answers) -> tuple[Question, ...]:
    asked = (*claim.questions(view.pods, answers), *claim.questions(view.revisions, answers))
    return tuple(dict.fromkeys(asked))


def plan(view: View, answers: Answers, now: datetime) -> Plan:
    """
    Decide what happens next to a set.

    Its revision comes first, then its status: what is made of a revision names
    one that is there. The status tells what was seen; only a pod that is about
    to be replaced is no longer counted as current.
    """
    stateful_set = view.stateful_set
    members = claim.members(view.pods, answers)
    if meta.is_deleting(stateful_set):
        return _farewell(view, members, now)
    adopted = (*claim.changes(view.revisions, answers), *claim.changes(view.pods, answers))
    if adopted:
        # What was taken in is seen again as ours, and then counted.
        return one_stage("take in and let go", adopted, because="its selector says what is its own")

    history = revisions.look_up(stateful_set, claim.members(view.revisions, answers), view.place, _HASH_LABEL)
    current = _current(stateful_set, history)
    seen = Situation(
        stateful_set=stateful_set,
        pods=members,
        claims=view.claims,
        current=current,
        update=history.wanted,
        now=now,
    )
    steps = next_steps(seen)
    status = _status(seen, view.place.collisions, len(steps.updating))
    said = set_status(stateful_set, status)
    live = {meta.name(current), *(revision_of(pod) for pod in members)}
    limit = stateful_set["spec"].get("revisionHistoryLimit")
    stages = (
        Stage("record the revision", history.record),
        Stage("say so", (said,) if said is not None else ()),
        Stage("see to the claims", (*(Create(obj=one) for one in steps.claims), *steps.owners)),
        Stage("move pods", _moves(steps)),
        Stage("tell", tuple(_told(stateful_set, steps, now))),
        Stage("forget", tuple(revisions.too_old(history, 10 if limit is None else limit, live))),
    )
    return Plan(
        stages=tuple(stage for stage in stages if stage.actions),
        look_again=_next_look(view, members, steps, now),
        because=steps.because,
    )


def _farewell(view: View, members: Sequence[Obj], now: datetime) -> Plan:
    """Only count what is left: whoever deletes a set deletes its pods and revisions as well."""
    old = view.stateful_set.get("status") or {}
    if not old.get("updateRevision"):
        return NOTHING
    seen = Situation(
        stateful_set=view.stateful_set,
        pods=members,
        claims={},
        current={"metadata": {"name": old.get("currentRevision") or old["updateRevision"]}},
        update={"metadata": {"name": old["updateRevision"]}},
        now=now,
    )
    said = set_status(view.stateful_set, _status(seen, old.get("collisionCount") or 0, 0))
    return one_stage("say so", [said] if said is not None else [], because="it is being deleted")


def _current(stateful_set: Obj, history: History) -> Obj:
    """Return the revision that pods are on before the update, which is the update itself in the beginning."""
    name = (stateful_set.get("status") or {}).get("currentRevision")
    return next((one for one in history.revisions if meta.name(one) == name), history.wanted)


def _status(seen: Situation, collisions: int, updating: int) -> Made:
    spec = seen.stateful_set["spec"]
    seconds = spec.get("minReadySeconds") or 0
    ready = [pod for pod in seen.pods if is_well(pod)]
    staying = [revision_of(pod) for pod in seen.pods if not meta.is_deleting(pod)]
    current, update = meta.name(seen.current), meta.name(seen.update)
    counts = {
        "readyReplicas": len(ready),
        "currentReplicas": staying.count(current) - updating,
        "updatedReplicas": staying.count(update),
    }
    wanted = replicas(seen.stateful_set)
    rolling = (spec.get("updateStrategy") or {}).get("type", "RollingUpdate") == "RollingUpdate"
    if rolling and wanted == counts["updatedReplicas"] == counts["readyReplicas"] == len(seen.pods):
        current, counts["currentReplicas"] = update, counts["updatedReplicas"]
    old: Obj = seen.stateful_set.get("status") or {}
    return {
        **({"conditions": old["conditions"]} if old.get("conditions") else {}),
        "observedGeneration": meta.generation(seen.stateful_set),
        "replicas": len(seen.pods),
        **{field: count for field, count in counts.items() if count},
        "availableReplicas": sum(pods.is_available(pod, seconds, seen.now) for pod in ready),
        "currentRevision": current,
        "updateRevision": update,
        "collisionCount": collisions,
    }


def _moves(steps: Steps) -> tuple[Action, ...]:
    return (*steps.corrections, *(Create(obj=pod) for pod in steps.made), *steps.deletions)


def _told(stateful_set: Obj, steps: Steps, now: datetime) -> Iterable[Emit]:
    name = meta.name(stateful_set)
    version = meta.resource_version(stateful_set)

    def tell(reason: str, message: str) -> Emit:
        return Emit(event=normal(stateful_set, reason, message, by=_BY, now=now, occasion=version))

    for claimed in steps.claims:
        about = f"Claim {meta.name(claimed)} Pod {steps.claimants[meta.name(claimed)]}"
        yield tell("SuccessfulCreate", f"Create {about} in StatefulSet {name} success")
    for pod in steps.made:
        yield tell("SuccessfulCreate", f"Create Pod {meta.name(pod)} in StatefulSet {name} successful")
    for correction in steps.corrections:
        yield tell("SuccessfulUpdate", f"Update Pod {correction.ref.name} in StatefulSet {name} successful")
    for gone in steps.deleted:
        yield tell("SuccessfulDelete", f"Delete Pod {meta.name(gone)} in StatefulSet {name} successful")
    for contested in steps.contested:
        message = (
            f"PersistentVolumeClaim {contested} has a conflicting OwnerReference that acts as a manging "
            "controller, the retention policy is ignored for this claim"
        )
        yield Emit(event=warning(stateful_set, "ConflictingController", message, by=_BY, now=now))


def _next_look(view: View, members: Sequence[Obj], steps: Steps, now: datetime) -> timedelta | None:
    """Return when a pod becomes available by time alone, or soon where a claim is in the way."""
    seconds = view.stateful_set["spec"].get("minReadySeconds") or 0
    left = [pods.available_in(pod, seconds, now) for pod in members]
    waits = [one for one in left if one]
    if any(meta.is_deleting(one) for one in view.claims.values()):
        waits.append(_AGAIN)
    return min(waits, default=None)


def complain(world: World, ref: Ref, error: LaminaError, now: datetime) -> Plan:
    """Say which pod could not be made."""
    view, failures = gather(world, ref), serious(error)
    if view is None or meta.is_deleting(view.stateful_set) or not failures:
        return NOTHING
    planned = plan(view, Answers(), now)
    made = [one.obj for one in planned.actions if isinstance(one, Create) and one.obj["kind"] == "Pod"]
    if not made:
        return NOTHING
    message = f"Create Pod {meta.name(made[0])} in StatefulSet {ref.name} failed error: {failures[0]}"
    event = warning(view.stateful_set, "FailedCreate", message, by=_BY, now=now)
    return one_stage("warn", [Emit(event=event)], because=message)


def _claim_concerns(world: World, change: Change) -> Iterable[Ref]:
    """A claim that goes, or is no longer whose it was, concerns the set it was made for, which its name tells."""
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
        Watch(selects=only(*STATEFUL_SET), concerns=itself),
        Watch(selects=only(*pods.POD), concerns=claim.claimants(STATEFUL_SET, _selector)),
        Watch(selects=only(*REVISION), concerns=claim.claimants(STATEFUL_SET, _selector)),
        Watch(selects=only("", "PersistentVolumeClaim"), concerns=_claim_concerns),
    ),
    gather=gather,
    questions=questions,
    plan=plan,
    complain=complain,
    manager=MANAGER,
)
