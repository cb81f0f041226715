"""Invariants of every rollout, checked after each write, whatever has failed before it."""

from collections.abc import Callable, Mapping
from typing import Any

from lamina.core.model.plan import Action, Create, Delete, Replace
from lamina.families.manifestwork.labels import HASH, OWNER, PLACED_BY, REPLICA_SET
from lamina.objects import conditions, meta
from lamina.objects.types import Made, Obj, Ref
from lamina.simulation import SimulatedCluster
from lamina.testing.crash_explorer import Perturbation, Write
from tests.unit.families.manifestwork.fleet import DECISION, WORK, sent


def _owner(objects: Mapping[Ref, Made]) -> Obj:
    return next((obj for ref, obj in objects.items() if ref.kind == REPLICA_SET.kind), {})


def kept_templates(objects: Mapping[Ref, Made]) -> dict[str, Obj]:
    """Return what each kept revision holds, by its hash."""
    return {
        meta.labels(obj)[HASH]: obj["data"]["spec"]["manifestWorkTemplate"]
        for ref, obj in objects.items()
        if ref.kind == "ControllerRevision" and OWNER in meta.labels(obj)
    }


def said_before_sent(write: Write) -> None:
    """A work is only sent a template that is kept as a revision and recorded in the status."""
    for _ in sent([write.action]):
        assert isinstance(write.action, Create | Replace)
        tag, status = meta.labels(write.action.obj)[HASH], _owner(write.before).get("status") or {}
        goal = status.get("currentRevision" if status.get("abortedTime") else "updateRevision")
        assert tag == goal, f"{write.action.ref} is sent {tag}, and the status says {goal}"
        if write.perturbation in (None, Perturbation.CRASH):
            # That another client deleted a revision cannot be known before the watch reports it.
            assert tag in kept_templates(write.before), f"{write.action.ref} is sent {tag}, which is not kept"


def counted_before_sent(write: Write) -> None:
    """
    When a work is sent, the status counts as updated only clusters that hold the revision it names.

    A count of the revision before is replaced by the write that records the new one, ahead of the
    first work. A reader that sees the new work therefore sees the new count in a later read. The
    way back of an abort is counted afterwards.
    """
    status = _owner(write.before).get("status") or {}
    if (
        not sent([write.action])
        or status.get("abortedTime")
        or write.perturbation not in (None, Perturbation.CRASH)
    ):
        return
    template = kept_templates(write.before).get(status.get("updateRevision", ""))
    works = [obj for ref, obj in write.before.items() if ref.kind == WORK.kind]
    holding = sum(work["spec"] == template for work in works)
    updated = (status.get("summary") or {}).get("updated", 0)
    assert updated <= holding, f"{updated} are counted as updated, and {holding} hold the revision"


def never_sent_again(write: Write) -> None:
    """A cluster that has been rolled back is not sent the broken revision again, not even with a stale view."""
    owner = _owner(write.before)
    status = owner.get("status") or {}
    if not status.get("abortedTime") or not sent([write.action]):
        return
    before = write.before.get(write.action.ref)
    assert isinstance(write.action, Create | Replace)
    back = before is not None and meta.labels(before)[HASH] == status["currentRevision"]
    reverted = back and meta.generation(before or {}) > 1
    broken = meta.labels(write.action.obj)[HASH] == status["updateRevision"]
    assert not (reverted and broken), f"{write.action.ref} is sent the broken revision again"


def keeps_the_pace(at_once: int) -> Callable[[Write], None]:
    """A rollout updates no more clusters of a placement at once than it may; an abort rolls back all at once."""

    def check(write: Write) -> None:
        status = _owner(write.before).get("status") or {}
        if status.get("abortedTime") or not sent([write.action]):
            return
        assert isinstance(write.action, Create | Replace)
        tag = meta.labels(write.action.obj)[HASH]
        placement = meta.labels(write.action.obj)[PLACED_BY]
        works = [obj for ref, obj in write.cluster.objects.items() if ref.kind == WORK.kind]
        on_the_way = {
            meta.namespace(one)
            for one in works
            if (meta.labels(one)[HASH], meta.labels(one)[PLACED_BY]) == (tag, placement) and not _is_done(one)
        }
        busy = on_the_way & _selected(write.cluster)
        assert len(busy) <= at_once, f"{sorted(busy)} are on the way"

    return check


def _selected(cluster: SimulatedCluster) -> set[str]:
    return {one["clusterName"] for held in cluster.listed(DECISION) for one in held["status"]["decisions"]}


def _is_done(work: Obj) -> bool:
    said = (work.get("status") or {}).get("conditions") or ()
    found = conditions.find(said, "Progressing")
    return (
        found is not None
        and found["status"] == "False"
        and found["observedGeneration"] == meta.generation(work)
    )


def the_spec_is_never_written(write: Write) -> None:
    """Whatever is aborted or rolled back, no controller writes the spec."""
    owner = _owner(write.cluster.objects)
    assert not owner or owner["spec"] == _owner(write.before)["spec"], "the spec was written"


def numbers_grow(write: Write) -> None:
    """No number is given to two snapshots, and what a revision holds never changes."""
    given: dict[int, Any] = {}
    for ref, obj in write.cluster.objects.items():
        if ref.kind == "ControllerRevision":
            assert given.setdefault(obj["revision"], obj["data"]) == obj["data"], f"two are {obj['revision']}"
            before = write.before.get(ref)
            assert before is None or meta.uid(before) != meta.uid(obj) or before["data"] == obj["data"]


def nothing_in_use_is_forgotten(write: Write) -> None:
    """A revision that is stable or wanted is kept, as far as its pruner can know."""
    action: Action = write.action
    owner = _owner(write.cluster.objects)
    if not isinstance(action, Delete) or action.ref.kind != "ControllerRevision" or meta.is_deleting(owner):
        return
    status = owner.get("status") or {}
    lost = kept_templates(write.before).keys() - kept_templates(write.cluster.objects).keys()
    assert not lost & {status.get("currentRevision"), status.get("updateRevision")}, f"{lost} is in use"


def nothing_is_forgotten_within_the_limit(write: Write) -> None:
    """Of the revisions without clusters, as many are kept as the spec asks for, whatever has failed."""
    action, owner = write.action, _owner(write.before)
    if not isinstance(action, Delete) or action.ref.kind != "ControllerRevision" or meta.is_deleting(owner):
        return
    left = sum(ref.kind == "ControllerRevision" for ref in write.cluster.objects)
    assert left >= owner["spec"]["revisionHistoryLimit"], f"{action.ref} is forgotten, and {left} are left"
