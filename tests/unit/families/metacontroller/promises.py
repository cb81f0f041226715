"""What is promised of every roll, checked after each write."""

from collections.abc import Callable, Mapping
from typing import Any

from lamina.core.plan import Action, Apply, Create, Delete, Patch
from lamina.objects import meta
from lamina.objects.types import Made, Obj, Ref
from lamina.paper.kinds import POD
from lamina.testing.sieve import Wrote
from tests.unit.families.metacontroller.catset import BOX, PARENT, REVISION

ROLLED = (POD, BOX)
NAMES = frozenset(kind.kind for kind in ROLLED)


def _claims(objects: Mapping[Ref, Made]) -> dict[str, dict[str, int]]:
    """Return each pod, and the images of the revisions of its parent that claim it with how new they are."""
    claimed: dict[str, dict[str, int]] = {}
    owner = objects.get(PARENT)
    for revision in (obj for ref, obj in objects.items() if ref.kind == REVISION.kind):
        if owner is not None and not meta.is_controlled_by(revision, meta.uid(owner)):
            # One of a parent that was there before, or that nobody has taken on yet.
            continue
        wanted = revision["parentPatch"]["spec"]["template"]["image"]
        number = int(meta.annotations(revision)["metacontroller.k8s.io/revision-number"])
        for group in revision["children"]:
            for name in group["names"]:
                claimed.setdefault(name, {})[wanted] = number
    return claimed


def _image(action: Action) -> str:
    obj: Made | Any = None
    if action.ref.kind in NAMES:
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
            ref.name: obj["spec"]["image"] for ref, obj in wrote.paper.objects.items() if ref.kind in NAMES
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
    return {f"{kind}-{number}" for kind in ("nginx", "box") for number in range(parent["spec"]["replicas"])}


def the_spec_is_somebody_elses(wrote: Wrote) -> None:
    """Whatever is rolled out or undone, no controller writes the spec of a parent."""
    before, after = wrote.before.get(PARENT), wrote.paper.objects.get(PARENT)
    assert before is None or after is None or before["spec"] == after["spec"], "the spec was written"


def numbers_grow(wrote: Wrote) -> None:
    """No number is given to two snapshots of one parent."""
    given: dict[tuple[str, str], Any] = {}
    for ref, revision in wrote.paper.objects.items():
        owner = meta.controller_of(revision)
        if ref.kind == REVISION.kind and owner is not None:
            number = meta.annotations(revision)["metacontroller.k8s.io/revision-number"]
            first = given.setdefault((owner["uid"], number), revision["parentPatch"])
            assert first == revision["parentPatch"], f"two are number {number}"


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
