"""
Rolls on paper, whatever somebody does to them in the meantime: the stories that the sieve tells.

A kubelet that takes two seconds makes pods ready, so that a roll has a middle.
What is promised of every roll is checked after each write.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from lamina.core.controller import Controller, Watch, itself, only
from lamina.core.plan import NOTHING, Action, Apply, Create, Delete, Patch, Plan, change, one_stage
from lamina.core.questions import Answers
from lamina.families.metacontroller.rollback import rollback
from lamina.objects import conditions, meta
from lamina.objects.types import Made, Obj, Ref
from lamina.paper import Paper
from lamina.testing.sieve import Scenario, Step, Wrote
from tests.unit.families.metacontroller.catset import PARENT, REVISION, Cats, touched
from tests.unit.families.undoing import carry_out, seen

WAYS: Mapping[str, dict[str, Any]] = {
    "recreate": {"method": "RollingRecreate"},
    "in place": {"method": "RollingInPlace"},
    "recreate, server-side": {"method": "RollingRecreate", "applies": True},
    "in place, server-side": {"method": "RollingInPlace", "applies": True},
    "recreate, two at once": {"method": "RollingRecreate", "maxUnavailable": 2},
}
WORKS = timedelta(seconds=1)
"""Until there is nothing to do but wait for a pod."""
GETS_READY = timedelta(seconds=3)
OVER = timedelta(minutes=1)
_KEPT = 3
"""How many revisions are kept where somebody is to go back."""
_TAKES = timedelta(seconds=2)


def _run(pod: Obj, answers: Answers, now: datetime) -> Plan:
    """Have a pod's status say what runs, and two seconds later that it is ready."""
    status, image = pod.get("status") or {}, pod["spec"]["image"]
    if status.get("image") != image:
        since = {
            "image": image,
            "since": now.isoformat(),
            "conditions": [{"type": "Ready", "status": "False"}],
        }
        return one_stage(
            "start it", [change(pod, {"status": since}, "status")], because="it has another image"
        )
    if conditions.is_true(status["conditions"], "Ready"):
        return NOTHING
    due = datetime.fromisoformat(status["since"]) + _TAKES
    if now < due:
        return Plan(look_again=due - now, because="it takes a while")
    ready = {"conditions": [{"type": "Ready", "status": "True"}]}
    return one_stage("say so", [change(pod, {"status": ready}, "status")], because="it is ready")


KUBELET: Controller[Obj] = Controller(
    name="kubelet",
    watches=(Watch(selects=only("", "Pod"), concerns=itself),),
    gather=lambda world, ref: world.get(ref),
    plan=_run,
    manager="kubelet",
)


def given() -> Cats:
    cats = Cats()
    cats.start()
    return cats


def wants(**spec: Any) -> Step:
    return lambda paper: paper.patch(PARENT, {"spec": spec})


def image(name: str) -> Step:
    return wants(template={"image": name})


def loses_pods(paper: Paper) -> None:
    """One dies before its turn, one after it."""
    for name in ("nginx-0", "nginx-2"):
        if (ref := Ref("v1", "Pod", "default", name)) in paper.objects:
            paper.delete(ref)


def loses_revisions(paper: Paper) -> None:
    for revision in paper.listed(REVISION):
        paper.delete(meta.ref(revision))


def is_deleted(paper: Paper) -> None:
    paper.delete(PARENT)


def undoes(paper: Paper) -> None:
    """Somebody goes back to the revision before, by whichever way there is."""
    controller = Cats().controller(kept=_KEPT)
    carry_out(paper, PARENT, rollback(seen(paper, controller, PARENT), None))


STORIES: Mapping[str, Sequence[Step]] = {
    "a plain roll": (image("two"),),
    "scaled up in the middle": (image("two"), WORKS, wants(replicas=5)),
    "scaled down in the middle": (image("two"), WORKS, wants(replicas=1)),
    "scaled down and up": (image("two"), WORKS, wants(replicas=1), WORKS, wants(replicas=3)),
    "undone in the middle": (image("two"), WORKS, GETS_READY, undoes),
    "undone after the end": (image("two"), OVER, undoes),
    "turned round in the middle": (image("two"), WORKS, GETS_READY, image("one")),
    "changed again in the middle": (image("two"), WORKS, GETS_READY, GETS_READY, image("three")),
    "children die in the middle": (image("two"), WORKS, loses_pods),
    "revisions are lost in the middle": (image("two"), WORKS, loses_revisions),
    "deleted in the middle": (image("two"), WORKS, is_deleted),
}


# ── what is promised ──


def _claims(objects: Mapping[Ref, Made]) -> dict[str, dict[str, int]]:
    """Return each pod, and the images of the revisions that claim it with how new they are."""
    claimed: dict[str, dict[str, int]] = {}
    for revision in (obj for ref, obj in objects.items() if ref.kind == REVISION.kind):
        wanted = revision["parentPatch"]["spec"]["template"]["image"]
        number = int(meta.annotations(revision)["metacontroller.k8s.io/revision-number"])
        for group in revision["children"]:
            for name in group["names"]:
                claimed.setdefault(name, {})[wanted] = number
    return claimed


def _image(action: Action) -> str:
    obj: Made | Any = None
    if action.ref.kind == "Pod":
        obj = action.obj if isinstance(action, Create | Apply) else None
        obj = action.patch if isinstance(action, Patch) else obj
    return str(obj["spec"]["image"]) if obj and "spec" in obj else ""


def claimed_before_made(wrote: Wrote) -> None:
    """A child is never made anything but what the newest claim on it says, as far as that can be seen."""
    made, claims = _image(wrote.action), _claims(wrote.paper.objects)
    # Whoever takes away every record, unseen, takes away what was said before it is done.
    claimed = claims.get(wrote.action.ref.name)
    if made and claimed:
        assert made == max(claimed, key=lambda one: claimed[one]), (
            f"{wrote.action.ref} is made {made}: {claimed}"
        )


def keeps_the_pace(at_once: int) -> Callable[[Wrote], None]:
    """
    No write moves more than may move at once, not even by whoever starts with the past before its eyes.

    How many are on the way is read off many objects, and a server compares the version
    of the one that is written and of no other. A child that the past shows where it
    should be, though somebody is moving it just then, would be claimed in passing; so
    those that are claimed in passing are looked at for real.
    """

    def check(wrote: Wrote) -> None:
        before, claims = _claims(wrote.before), _claims(wrote.paper.objects)
        there = {
            ref.name: obj["spec"]["image"] for ref, obj in wrote.paper.objects.items() if ref.kind == "Pod"
        }
        for wanted in {image for images in claims.values() for image in images}:
            gained = [
                name
                for name, images in claims.items()
                if wanted == max(images, key=lambda one: images[one])
                and wanted not in before.get(name, {})
                and before.get(name)
                and there.get(name) != wanted
            ]
            assert len(gained) <= at_once, f"{gained} are moved by one write"

    return check


def control_never_moves_back_by_itself(wrote: Wrote) -> None:
    """A child that is wanted passes to an older snapshot only where the spec asks for that one."""
    parent = wrote.paper.objects.get(PARENT)
    if parent is None:
        return
    before, after = _claims(wrote.before), _claims(wrote.paper.objects)
    for name in before.keys() & after.keys() & _wanted(parent):
        was, now = (max(claims[name], key=claims[name].__getitem__) for claims in (before, after))
        if now != parent["spec"]["template"]["image"]:
            assert after[name][now] >= before[name][was], f"{name} passes from {was} back to {now}"


def _wanted(parent: Obj) -> set[str]:
    return {f"nginx-{number}" for number in range(parent["spec"]["replicas"])}


def the_spec_is_somebody_elses(wrote: Wrote) -> None:
    """Whatever is rolled out or undone, no controller writes the spec of a parent."""
    before, after = wrote.before.get(PARENT), wrote.paper.objects.get(PARENT)
    assert before is None or after is None or before["spec"] == after["spec"], "the spec was written"


def numbers_grow(wrote: Wrote) -> None:
    """No number is given to two snapshots."""
    given: dict[str, Any] = {}
    for ref, revision in wrote.paper.objects.items():
        if ref.kind == REVISION.kind:
            number = meta.annotations(revision)["metacontroller.k8s.io/revision-number"]
            assert given.setdefault(number, revision["parentPatch"]) == revision["parentPatch"], (
                f"two are number {number}"
            )


def snapshots_stay(wrote: Wrote) -> None:
    """What a revision holds never changes."""
    for ref, revision in wrote.before.items():
        now = wrote.paper.objects.get(ref)
        if ref.kind == REVISION.kind and now is not None and meta.uid(now) == meta.uid(revision):
            assert now["parentPatch"] == revision["parentPatch"], f"{ref} holds something else"


def nothing_in_use_is_forgotten(wrote: Wrote) -> None:
    """A revision that alone claims a child that is wanted is kept."""
    parent = wrote.paper.objects.get(PARENT)
    if not isinstance(wrote.action, Delete) or wrote.action.ref.kind != REVISION.kind or parent is None:
        return
    lost = _wanted(parent) & (_claims(wrote.before).keys() - _claims(wrote.paper.objects).keys())
    assert not lost or meta.is_deleting(parent), f"nobody claims {sorted(lost)} any more"


def outcome(paper: Paper) -> Any:
    """Return what a roll leads to: which pods of which image, which revisions with whom, and what is said of it."""
    assert isinstance(paper, Cats)
    revisions = [
        (one["parentPatch"], [{**group, "names": sorted(group["names"])} for group in one["children"]])
        for one in paper.revisions()
    ]
    said = paper.condition()["status"] if PARENT in paper.objects else "gone"
    return paper.pods(), sorted(revisions, key=str), said


def scenarios() -> Iterator[Scenario]:
    """Yield each story, told in each way."""
    for way, how in WAYS.items():
        for name, steps in STORIES.items():
            kept = _KEPT if undoes in steps else 0
            controller = Cats().controller(**how, finalizes=is_deleted in steps, kept=kept)
            yield Scenario(
                name=f"{name}, {way}",
                given=given,
                steps=steps,
                controllers=(controller,),
                others=(KUBELET,),
                promises=(
                    claimed_before_made,
                    keeps_the_pace(how.get("maxUnavailable", 1)),
                    control_never_moves_back_by_itself,
                    the_spec_is_somebody_elses,
                    numbers_grow,
                    snapshots_stay,
                    nothing_in_use_is_forgotten,
                ),
                outcome=outcome,
                # In place, a child still says that it is ready of what it was: who dies may be quicker than its kubelet.
                deeds=(lambda paper: sorted(touched(paper))) if how["method"] == "RollingRecreate" else None,
            )
