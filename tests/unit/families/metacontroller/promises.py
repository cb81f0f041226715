"""Invariants of every rollout, checked after each write."""

from collections.abc import Callable, Mapping
from typing import Any

from lamina.core.model.plan import Action, Apply, Create, Delete, Patch
from lamina.objects import meta
from lamina.objects.types import Made, Obj, Ref
from lamina.simulation.cluster.kinds import POD
from lamina.testing.crash_explorer import Write
from tests.unit.families.metacontroller.catset import BOX, PARENT, REVISION

ROLLED = (POD, BOX)
NAMES = frozenset(kind.kind for kind in ROLLED)


def _claims(objects: Mapping[Ref, Made]) -> dict[str, dict[str, int]]:
    """Return each pod, and the images of the revisions of its parent that claim it with how new they are."""
    claimed: dict[str, dict[str, int]] = {}
    owner = objects.get(PARENT)
    for revision in (obj for ref, obj in objects.items() if ref.kind == REVISION.kind):
        if owner is not None and not meta.is_controlled_by(revision, meta.uid(owner)):
            # It belongs to an earlier parent, or is not adopted yet.
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


def claimed_before_made(write: Write) -> None:
    """A child is only ever made what the newest claim on it says, as far as the view shows."""
    made, claims = _image(write.action), _claims(write.cluster.objects)
    # A perturbation that deletes every revision unseen deletes the claims, too.
    claimed = claims.get(write.action.ref.name)
    if made and claimed:
        assert made == max(claimed, key=lambda one: claimed[one]), (
            f"{write.action.ref} is made {made}: {claimed}"
        )


def keeps_the_pace(at_once: int) -> Callable[[Write], None]:
    """
    No write moves more than may move at once, not even that of a process with a stale view.

    How many are in progress depends on many objects, and a server compares the version
    only of the object that is written. A child that a stale view shows up to date,
    while it is being moved, would be claimed along with the others; so children that
    are claimed without being moved are read live.
    """

    def check(write: Write) -> None:
        before, claims = _claims(write.before), _claims(write.cluster.objects)
        there = {
            ref.name: obj["spec"]["image"] for ref, obj in write.cluster.objects.items() if ref.kind in NAMES
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


def control_never_moves_back_by_itself(write: Write) -> None:
    """A child that is wanted passes to an older snapshot only where the spec asks for that one."""
    parent = write.cluster.objects.get(PARENT)
    if parent is None:
        return
    before, after = _claims(write.before), _claims(write.cluster.objects)
    for name in before.keys() & after.keys() & _wanted(parent):
        was, now = (max(claims[name], key=claims[name].__getitem__) for claims in (before, after))
        if now != parent["spec"]["template"]["image"]:
            assert after[name][now] >= before[name][was], f"{name} passes from {was} back to {now}"


def _wanted(parent: Obj) -> set[str]:
    return {f"{kind}-{number}" for kind in ("nginx", "box") for number in range(parent["spec"]["replicas"])}


def the_spec_is_never_written(write: Write) -> None:
    """Whatever is rolled out or rolled back, no controller writes the spec of a parent."""
    before, after = write.before.get(PARENT), write.cluster.objects.get(PARENT)
    assert before is None or after is None or before["spec"] == after["spec"], "the spec was written"


def numbers_grow(write: Write) -> None:
    """No number is given to two snapshots of one parent."""
    given: dict[tuple[str, str], Any] = {}
    for ref, revision in write.cluster.objects.items():
        owner = meta.controller_of(revision)
        if ref.kind == REVISION.kind and owner is not None:
            number = meta.annotations(revision)["metacontroller.k8s.io/revision-number"]
            first = given.setdefault((owner["uid"], number), revision["parentPatch"])
            assert first == revision["parentPatch"], f"two are number {number}"


def snapshots_stay(write: Write) -> None:
    """What a revision holds never changes."""
    for ref, revision in write.before.items():
        now = write.cluster.objects.get(ref)
        if ref.kind == REVISION.kind and now is not None and meta.uid(now) == meta.uid(revision):
            assert now["parentPatch"] == revision["parentPatch"], f"{ref} holds something else"


def nothing_in_use_is_forgotten(write: Write) -> None:
    """A revision that alone claims a child that is wanted is kept."""
    parent = write.cluster.objects.get(PARENT)
    if not isinstance(write.action, Delete) or write.action.ref.kind != REVISION.kind or parent is None:
        return
    lost = _wanted(parent) & (_claims(write.before).keys() - _claims(write.cluster.objects).keys())
    assert not lost or meta.is_deleting(parent), f"no revision claims {sorted(lost)} any more"
