"""What is promised of every rollout, checked after each write, whatever has gone wrong before it."""

from collections.abc import Callable, Mapping
from typing import Any

from lamina.core.plan import Action, Create, Delete, Replace
from lamina.families.manifestwork.names import HASH, OWNER, PLACED_BY, REPLICA_SET
from lamina.objects import conditions, meta
from lamina.objects.types import Made, Obj, Ref
from lamina.paper import Paper
from lamina.testing.sieve import Mishap, Wrote
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


def said_before_sent(wrote: Wrote) -> None:
    """Nothing goes out that is not kept, and what goes out is what the status says."""
    for _ in sent([wrote.action]):
        assert isinstance(wrote.action, Create | Replace)
        tag, status = meta.labels(wrote.action.obj)[HASH], _owner(wrote.before).get("status") or {}
        goal = status.get("currentRevision" if status.get("abortedTime") else "updateRevision")
        assert tag == goal, f"{wrote.action.ref} is sent {tag}, and the status says {goal}"
        if wrote.mishap in (None, Mishap.DEATH):
            # That somebody else took away a revision cannot be known before it is heard.
            assert tag in kept_templates(wrote.before), f"{wrote.action.ref} is sent {tag}, which is not kept"


def never_sent_again(wrote: Wrote) -> None:
    """Whoever has turned round is not sent the broken revision again, not even by somebody who sees the past."""
    owner = _owner(wrote.before)
    status = owner.get("status") or {}
    if not status.get("abortedTime") or not sent([wrote.action]):
        return
    before = wrote.before.get(wrote.action.ref)
    assert isinstance(wrote.action, Create | Replace)
    back = before is not None and meta.labels(before)[HASH] == status["currentRevision"]
    turned = back and meta.generation(before or {}) > 1
    broken = meta.labels(wrote.action.obj)[HASH] == status["updateRevision"]
    assert not (turned and broken), f"{wrote.action.ref} is sent the broken revision again"


def keeps_the_pace(at_once: int) -> Callable[[Wrote], None]:
    """On the way out, no more of a placement are on the way than may be; the way back is taken by all at once."""

    def check(wrote: Wrote) -> None:
        status = _owner(wrote.before).get("status") or {}
        if status.get("abortedTime") or not sent([wrote.action]):
            return
        assert isinstance(wrote.action, Create | Replace)
        tag = meta.labels(wrote.action.obj)[HASH]
        placement = meta.labels(wrote.action.obj)[PLACED_BY]
        works = [obj for ref, obj in wrote.paper.objects.items() if ref.kind == WORK.kind]
        on_the_way = {
            meta.namespace(one)
            for one in works
            if (meta.labels(one)[HASH], meta.labels(one)[PLACED_BY]) == (tag, placement) and not _is_done(one)
        }
        busy = on_the_way & _selected(wrote.paper)
        assert len(busy) <= at_once, f"{sorted(busy)} are on the way"

    return check


def _selected(paper: Paper) -> set[str]:
    return {one["clusterName"] for held in paper.listed(DECISION) for one in held["status"]["decisions"]}


def _is_done(work: Obj) -> bool:
    said = (work.get("status") or {}).get("conditions") or ()
    found = conditions.find(said, "Progressing")
    return (
        found is not None
        and found["status"] == "False"
        and found["observedGeneration"] == meta.generation(work)
    )


def the_spec_is_somebody_elses(wrote: Wrote) -> None:
    """Whatever is aborted or undone, nobody writes the spec but those whose it is."""
    owner = _owner(wrote.paper.objects)
    assert not owner or owner["spec"] == _owner(wrote.before)["spec"], "the spec was written"


def numbers_grow(wrote: Wrote) -> None:
    """No number is given to two snapshots, and what a revision holds never changes."""
    given: dict[int, Any] = {}
    for ref, obj in wrote.paper.objects.items():
        if ref.kind == "ControllerRevision":
            assert given.setdefault(obj["revision"], obj["data"]) == obj["data"], f"two are {obj['revision']}"
            before = wrote.before.get(ref)
            assert before is None or meta.uid(before) != meta.uid(obj) or before["data"] == obj["data"]


def nothing_in_use_is_forgotten(wrote: Wrote) -> None:
    """A revision that is stable or wanted is kept, as far as whoever prunes can know."""
    action: Action = wrote.action
    owner = _owner(wrote.paper.objects)
    if not isinstance(action, Delete) or action.ref.kind != "ControllerRevision" or meta.is_deleting(owner):
        return
    status = owner.get("status") or {}
    lost = kept_templates(wrote.before).keys() - kept_templates(wrote.paper.objects).keys()
    assert not lost & {status.get("currentRevision"), status.get("updateRevision")}, f"{lost} is in use"


def nothing_is_forgotten_within_the_limit(wrote: Wrote) -> None:
    """Of those that nobody is on, as many are kept as the spec asks for, whatever has gone wrong."""
    action, owner = wrote.action, _owner(wrote.before)
    if not isinstance(action, Delete) or action.ref.kind != "ControllerRevision" or meta.is_deleting(owner):
        return
    left = sum(ref.kind == "ControllerRevision" for ref in wrote.paper.objects)
    assert left >= owner["spec"]["revisionHistoryLimit"], f"{action.ref} is forgotten, and {left} are left"
