"""
Invariants of revisions, checked after each write, whatever has failed before it.

They know the specs and the live objects, and nothing of how the controllers decide: what a
revision contains is read from its spec and its slices, and what it controls from the owner
references of the objects.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from lamina.actors.garbage import FOREGROUND
from lamina.core.model.plan import Apply, Create, Delete, Emit
from lamina.families.objectset.labels import (
    CACHED,
    DELETION_POLICY,
    OWNING_DEPLOYMENT,
    REVISION,
)
from lamina.objects import conditions, meta
from lamina.objects.types import Made, Obj, Ref
from lamina.testing.crash_explorer import Invariant, Perturbation, Write

Objects = Mapping[Ref, Made]

OWN = ("ObjectSet", "ObjectSetPhase", "ObjectDeployment", "ObjectSlice")
_MUTABLE = ("lifecycleState", "revision", "progressDeadlineSeconds")


class Item(NamedTuple):
    """One object of a spec: where it is written to, its manifest, and its phase."""

    ref: Ref
    manifest: Obj
    phase: int
    is_classed: bool


def items(objects: Objects, one: Obj) -> list[Item]:
    """The objects that the spec of a set contains, with those of its slices."""
    found: list[Item] = []
    for number, phase in enumerate((one.get("spec") or {}).get("phases") or ()):
        listed = list(phase.get("objects") or ())
        for name in phase.get("slices") or ():
            listed += (objects.get(_slice(one, name)) or {}).get("objects") or ()
        for each in listed:
            where = meta.ref(each["object"])._replace(namespace=meta.namespace(one))
            found.append(Item(where, each["object"], number, bool(phase.get("class"))))
    return found


def _slice(one: Obj, name: str) -> Ref:
    return meta.ref(one)._replace(kind="ObjectSlice", name=name)


def contents(objects: Objects, one: Obj) -> set[Ref]:
    return {item.ref for item in items(objects, one)}


def sets(objects: Objects) -> list[Made]:
    return [obj for ref, obj in objects.items() if ref.kind == "ObjectSet"]


def number(one: Obj) -> int:
    found: int = (one.get("spec") or {}).get("revision") or (one.get("status") or {}).get("revision") or 0
    return found


def state(one: Obj) -> str:
    return (one.get("spec") or {}).get("lifecycleState") or "Active"


def is_archived(one: Obj) -> bool:
    return conditions.is_true(conditions.of(one), "Archived")


def is_live(one: Obj) -> bool:
    return state(one) != "Archived" and not is_archived(one) and not meta.is_deleting(one)


def works(one: Obj) -> bool:
    """Say whether a set is available or has succeeded; what it reported holds until its next report."""
    return any(conditions.is_true(conditions.of(one), name) for name in ("Available", "Succeeded"))


def lineage(objects: Objects, one: Obj) -> list[Made]:
    """The revisions of the same thing, with the given one, oldest first."""
    found, ahead = {meta.uid(one): one}, [one]
    while ahead:
        this = ahead.pop()
        for other in sets(objects):
            if meta.uid(other) not in found and _is_sibling(this, other):
                found[meta.uid(other)] = other
                ahead.append(other)
    return sorted((dict(each) for each in found.values()), key=lambda each: (number(each), meta.name(each)))


def _is_sibling(one: Obj, other: Obj) -> bool:
    deployment = meta.labels(one).get(OWNING_DEPLOYMENT)
    return (
        (bool(deployment) and deployment == meta.labels(other).get(OWNING_DEPLOYMENT))
        or meta.name(other) in _previous(one)
        or meta.name(one) in _previous(other)
    )


def _previous(one: Obj) -> list[str]:
    return [each["name"] for each in (one.get("spec") or {}).get("previous") or ()]


def essential(objects: Objects, one: Obj) -> list[Made]:
    """The revisions that must not lose an object: the latest, and the newest that is available or has succeeded."""
    live = [each for each in lineage(objects, one) if is_live(each) and not _is_doomed(objects, each)]
    return [*live[-1:], *[each for each in live if works(each)][-1:]]


def _working(objects: Objects, one: Obj) -> list[Made]:
    """The newest revision that is available or has succeeded, also where it is archived."""
    found = [each for each in lineage(objects, one) if not meta.is_deleting(each)]
    return [
        each
        for each in found
        if conditions.is_true(conditions.of(each), "Succeeded") or (is_live(each) and works(each))
    ][-1:]


def _is_doomed(objects: Objects, one: Obj) -> bool:
    """Say whether the deployment of a set is being deleted or gone: the garbage collector deletes the set next."""
    found = meta.controller_of(one)
    if found is None:
        return False
    owner = objects.get(meta.ref(one)._replace(kind=found["kind"], name=found["name"]))
    return owner is None or meta.uid(owner) != found["uid"] or meta.is_deleting(owner)


def controller(objects: Objects, obj: Obj | None) -> Made | None:
    """The set that controls an object, by itself or by one of its ObjectSetPhases."""
    found = meta.controller_of(obj) if obj is not None else None
    if found is None:
        return None
    holder = objects.get(Ref(found["apiVersion"], found["kind"], meta.namespace(obj or {}), found["name"]))
    if holder is None or meta.uid(holder) != found["uid"]:
        return None
    return controller(objects, holder) if holder["kind"] == "ObjectSetPhase" else holder


def _is_managed(ref: Ref) -> bool:
    return ref.kind not in (*OWN, "Event", "Namespace")


def _is_exact(write: Write) -> bool:
    """Say whether the process that writes has a current view."""
    return write.perturbation in (None, Perturbation.CRASH)


# ── deletions ──


def deletes_nothing_that_is_needed(write: Write) -> None:
    """
    No object is deleted that the latest revision contains, or the newest one that works.

    As long as a revision is live, that is also one that was archived. What a deletion in the foreground
    deletes, the garbage collector deletes at once, whatever the controllers do.
    """
    obj = write.before.get(write.action.ref)
    if obj is None or not _owners_end_in_the_foreground(write.before, obj):
        the_controllers_delete_nothing_that_is_needed(write)


def the_controllers_delete_nothing_that_is_needed(write: Write) -> None:
    """What the garbage collector may delete in the foreground, the controllers do not."""
    ref = write.action.ref
    if not isinstance(write.action, Delete) or not _is_managed(ref):
        return
    holder = controller(write.before, write.before.get(ref))
    for one in [holder] if holder is not None else sets(write.before):
        needed = essential(write.before, one)
        archived = [each for each in _working(write.before, one) if meta.uid(each) != meta.uid(one)]
        for kept in (*needed, *(archived if needed else ())):
            assert ref not in contents(write.before, kept), (
                f"{ref} is deleted, and {_named(kept)} contains it"
            )


def _owners_end_in_the_foreground(objects: Objects, obj: Obj) -> bool:
    """Say whether all owners of an object are being deleted in the foreground, by themselves or with their set."""
    uids = {one["uid"] for one in meta.owner_refs(obj)}
    owners = [one for one in objects.values() if meta.uid(one) in uids]
    ending = [one if one["kind"] == "ObjectSet" else controller(objects, one) or one for one in owners]
    return bool(ending) and all(FOREGROUND in meta.finalizers(one) for one in ending)


def archives_nothing_that_is_needed(write: Write) -> None:
    """
    When a revision is archived, nothing that it would delete is in the latest one, or in the newest that works.

    One that has succeeded counts also after it was archived because it had handed everything over.
    """
    before, after = write.before.get(write.action.ref), write.cluster.objects.get(write.action.ref)
    if before is None or after is None or write.action.ref.kind != "ObjectSet":
        return
    if state(before) == "Archived" or state(after) != "Archived":
        return
    lost = {
        ref
        for ref in contents(write.before, before)
        if meta.uid(controller(write.before, write.before.get(ref)) or {}) == meta.uid(before)
    }
    for kept in (*essential(write.before, before), *_working(write.before, before)):
        needed = lost & contents(write.before, kept)
        assert not needed, f"{_named(before)} is archived, and {_named(kept)} contains {_listed(needed)}"


def prunes_only_what_is_archived(write: Write) -> None:
    """A set is deleted only once it is archived, and not while it is the newest that works, unless its deployment is gone."""
    ref = write.action.ref
    if not isinstance(write.action, Delete) or ref.kind != "ObjectSet":
        return
    one = write.before[ref]
    found = meta.controller_of(one)
    owner = write.before.get(ref._replace(kind="ObjectDeployment", name=found["name"] if found else ""))
    if owner is not None and not meta.is_deleting(owner):
        assert is_archived(one), f"{_named(one)} is deleted, and is not archived"
        if _is_exact(write):
            working = [meta.uid(each) for each in _working(write.before, one)]
            assert meta.uid(one) not in working, f"{_named(one)} is deleted, and is the newest that works"


# ── control ──


def has_one_controller(write: Write) -> None:
    """An object has exactly one controller in each version, unless it is orphaned on purpose."""
    ref = write.action.ref
    before, after = write.before.get(ref), write.cluster.objects.get(ref)
    if after is None or not _is_managed(ref) or not (_is_ours(before) or _is_ours(after)):
        return
    holders = [one for one in meta.owner_refs(after) if one.get("controller")]
    if not holders and before is not None and _is_orphaned(write.before, before, _is_exact(write)):
        return
    assert len(holders) == 1, f"{ref} has {len(holders)} controllers: {meta.owner_refs(after)}"
    assert _is_ours(after), f"{ref} has lost its label"


def _is_ours(obj: Obj | None) -> bool:
    return obj is not None and CACHED in meta.labels(obj)


def _is_orphaned(objects: Objects, obj: Obj, is_exact: bool) -> bool:
    """Say whether the owner of an object that is deleted or archived leaves it."""
    holder = controller(objects, obj)
    policy = meta.annotations(obj).get(DELETION_POLICY)
    if holder is None:
        return True
    # The garbage collector removes the references of owners that are deleted in these ways.
    released = {"orphan", FOREGROUND} & set(meta.finalizers(holder))
    # By an old view it has not removed them yet.
    is_deleting = meta.is_deleting(holder) and not is_exact
    return not is_live(holder) and (policy == "Orphan" or bool(released) or is_deleting)


def control_moves_forward(write: Write) -> None:
    """
    An object passes to a newer revision, and to an older one only from one that is archived or being deleted.

    A set that is linked to the others by none that exists is not one of their revisions.
    """
    ref = write.action.ref
    if not _is_managed(ref):
        return
    before = controller(write.before, write.before.get(ref))
    after = controller(write.cluster.objects, write.cluster.objects.get(ref))
    if before is None or after is None or meta.uid(before) == meta.uid(after) or not is_live(before):
        return
    # By an old view, what links it to the others may not exist yet.
    related = lineage(write.before, before) if _is_exact(write) else [after] * _is_sibling(before, after)
    is_related = meta.uid(after) in map(meta.uid, related)
    assert number(after) > number(before) or not is_related, (
        f"{ref} passes from {_named(before)} back to {_named(after)}"
    )


def control_comes_with_the_content(write: Write) -> None:
    """The write that makes a revision the controller of an object has its number and its content, too."""
    ref = write.action.ref
    obj = write.cluster.objects.get(ref)
    if not isinstance(write.action, Create | Apply) or not _is_managed(ref) or obj is None:
        return
    holder, phase = controller(write.cluster.objects, obj), _phase_of(write.cluster.objects, obj)
    if phase is not None and meta.controller_of(phase) is None:
        # Its set is deleted with --cascade=orphan.
        holder, manifests = phase, [one["object"] for one in phase["spec"]["objects"]]
        wanted = [one for one in manifests if (one["kind"], meta.name(one)) == (ref.kind, ref.name)]
    elif holder is not None:
        wanted = [item.manifest for item in items(write.cluster.objects, holder) if item.ref == ref]
    assert holder is not None, f"{ref} is written, and no set controls it"
    assert meta.annotations(obj).get(REVISION) == str(number(holder)), (
        f"{ref} has another number than {_named(holder)}"
    )
    assert wanted, f"{_named(holder)} writes {ref}, which it does not contain"
    assert _has(obj, wanted[0]), f"{ref} has not the content of {_named(holder)}"


def _has(live: Any, wanted: Any) -> bool:
    if isinstance(wanted, Mapping):
        return isinstance(live, Mapping) and all(
            name in live and _has(live[name], value) for name, value in wanted.items() if value is not None
        )
    return bool(live == wanted)


def only_live_revisions_gain_control(write: Write) -> None:
    """A revision that is archived or being deleted takes no object over and creates none, not even by a stale view."""
    ref = write.action.ref
    if not isinstance(write.action, Create | Apply) or not _is_managed(ref):
        return
    after = controller(write.cluster.objects, write.cluster.objects.get(ref))
    before = controller(write.before, write.before.get(ref))
    if after is None or (before is not None and meta.uid(before) == meta.uid(after)):
        return
    assert is_live(after), f"{_named(after)} gains {ref}, and is {state(after)}"


def superseded_failures_gain_nothing(write: Write) -> None:
    """A revision that never succeeded, and of which a newer one has objects, creates none and takes none over, nor a phase."""
    ref = write.action.ref
    is_managed = _is_managed(ref) or ref.kind == "ObjectSetPhase"
    if not _is_exact(write) or not isinstance(write.action, Create | Apply) or not is_managed:
        return
    written = write.cluster.objects.get(ref)
    after, before = (
        controller(write.cluster.objects, written),
        controller(write.before, write.before.get(ref)),
    )
    if after is None or (before is not None and meta.uid(before) == meta.uid(after)):
        return
    has_succeeded = conditions.is_true(conditions.of(after), "Succeeded")
    assert has_succeeded or not _is_superseded(write.before, after), (
        f"{_named(after)} gains {ref}, and a newer revision has objects of it"
    )


def only_active_revisions_write(write: Write) -> None:
    """A paused, archived or deleted revision writes no object."""
    if (
        not _is_exact(write)
        or not isinstance(write.action, Create | Apply)
        or not _is_managed(write.action.ref)
    ):
        return
    obj = write.cluster.objects.get(write.action.ref)
    holder, phase = controller(write.cluster.objects, obj), _phase_of(write.before, obj)
    if holder is None:
        return
    # The controller of a phase is told by its set.
    is_paused = state(holder) != "Active" if phase is None else bool(phase["spec"].get("paused"))
    assert is_live(holder) and not is_paused, (
        f"{_named(holder)} writes {write.action.ref}, and is {state(holder)}"
    )


def _phase_of(objects: Objects, obj: Obj | None) -> Made | None:
    """The ObjectSetPhase that controls an object."""
    found = meta.controller_of(obj) if obj is not None else None
    if found is None or found["kind"] != "ObjectSetPhase":
        return None
    return objects.get(Ref(found["apiVersion"], found["kind"], meta.namespace(obj or {}), found["name"]))


# ── order ──


def phases_come_in_order(write: Write) -> None:
    """A revision gains an object of a phase only once all phases before it pass; newer revisions' objects are not waited for."""
    ref, objects = write.action.ref, write.before
    if not _is_exact(write) or not isinstance(write.action, Create | Apply):
        return
    written = write.cluster.objects.get(ref)
    if ref.kind == "ObjectSetPhase":
        one = controller(write.cluster.objects, written)
        assert one is not None, f"{ref} has no set"
        names = [phase["name"] for phase in one["spec"]["phases"]]
        place = names.index(ref.name.removeprefix(f"{meta.name(one)}-"))
    elif _is_managed(ref) and _kind_of_controller(written) == "ObjectSet":
        one = controller(write.cluster.objects, written)
        assert one is not None
        if meta.uid(controller(objects, objects.get(ref)) or {}) == meta.uid(one):
            return
        place = next(item.phase for item in items(objects, one) if item.ref == ref)
    else:
        return
    for item in items(objects, one):
        if item.phase < place:
            _check_passes(objects, one, item, ref)


def _kind_of_controller(obj: Obj | None) -> str:
    found = meta.controller_of(obj) if obj is not None else None
    return found["kind"] if found is not None else ""


def _check_passes(objects: Objects, one: Obj, item: Item, ref: Ref) -> None:
    live = objects.get(item.ref)
    holder = controller(objects, live)
    if holder is not None and number(holder) > number(one):
        return
    if item.is_classed:
        phase = objects.get(_phase_ref(one, item))
        passes = conditions.is_true(conditions.of(phase or {}), "Available") or _is_superseded(objects, one)
        assert passes, f"{_named(one)} gains {ref}, and the phase of {item.ref} does not pass"
        return
    if live is None and _is_superseded(objects, one):
        # It creates nothing any more, and does not wait for what it does not create.
        return
    assert live is not None, f"{_named(one)} gains {ref}, and {item.ref} does not exist"
    assert meta.uid(holder or {}) == meta.uid(one), (
        f"{_named(one)} gains {ref}, and does not control {item.ref}"
    )
    assert is_healthy(live), f"{_named(one)} gains {ref}, and {item.ref} fails its probe"


def _phase_ref(one: Obj, item: Item) -> Ref:
    name = one["spec"]["phases"][item.phase]["name"]
    return meta.ref(one)._replace(kind="ObjectSetPhase", name=f"{meta.name(one)}-{name}")


def _is_superseded(objects: Objects, one: Obj) -> bool:
    holders = [controller(objects, objects.get(ref)) for ref in contents(objects, one)]
    newer = [each for each in holders if each is not None and is_live(each) and number(each) > number(one)]
    related = {meta.uid(each) for each in lineage(objects, one)} if newer else set()
    return any(meta.uid(each) in related for each in newer)


def is_healthy(obj: Obj) -> bool:
    """Say whether an object passes the probes of the stories."""
    if meta.is_deleting(obj):
        return False
    if obj["kind"] == "ConfigMap":
        return meta.annotations(obj).get("name") == meta.name(obj)
    status = obj.get("status") or {}
    return status.get("observedGeneration") == meta.generation(obj) and conditions.is_true(
        conditions.of(obj), "Ready"
    )


# ── records ──


def what_is_archived_stays_so(write: Write) -> None:
    """A set that has been archived is a record: nothing of it changes any more but its finalizers and owners."""
    before, after = write.before.get(write.action.ref), write.cluster.objects.get(write.action.ref)
    if (
        write.action.ref.kind == "ObjectSet"
        and before is not None
        and after is not None
        and is_archived(before)
    ):
        for part in ("spec", "status"):
            assert before.get(part) == after.get(part), (
                f"{_named(after)} is archived, and its {part} is written"
            )


LIFECYCLE = {
    ("Pending", "Available"), ("Pending", "Not Ready"), ("Pending", "Archived"),
    ("Available", "Not Ready"), ("Not Ready", "Available"),
    ("Available", "Archiving"), ("Not Ready", "Archiving"), ("Archiving", "Archived"),
    ("Archiving", "Not Ready"),
    ("Available", "gone"), ("Not Ready", "gone"), ("Archived", "gone"),
}  # fmt: skip
"""The transitions of a revision; its archival may be taken back as long as it is in progress."""


_FURTHER = {
    ("Archiving", "Available"), ("Pending", "Archiving"), ("Available", "Archived"), ("Not Ready", "Archived"),
}  # fmt: skip
"""Transitions that are legal, too: a revision that has nothing to delete is archived at once, for example."""


def lifecycle(one: Obj) -> str:
    """The state of a revision, as its conditions have it."""
    found = {each["type"]: each["status"] for each in conditions.of(one)}
    if "Archived" in found:
        return "Archived" if found["Archived"] == "True" else "Archiving"
    return {"True": "Available", "False": "Not Ready"}.get(found.get("Available", ""), "Pending")


def the_lifecycle_is_followed(write: Write) -> None:
    """A revision passes from one state only to those that may follow it, and to none once it is archived."""
    before, after = write.before.get(write.action.ref), write.cluster.objects.get(write.action.ref)
    if write.action.ref.kind != "ObjectSet" or before is None or after is None:
        return
    was, now = lifecycle(before), lifecycle(after)
    assert was == now or (was, now) in LIFECYCLE | _FURTHER, f"{_named(after)} passes from {was} to {now}"


def success_is_never_taken_back(write: Write) -> None:
    before, after = write.before.get(write.action.ref), write.cluster.objects.get(write.action.ref)
    if write.action.ref.kind != "ObjectSet" or before is None or after is None:
        return
    if conditions.is_true(conditions.of(before), "Succeeded"):
        assert conditions.is_true(conditions.of(after), "Succeeded"), (
            f"{_named(after)} has not succeeded any more"
        )


def only_the_lifecycle_of_a_set_is_written(write: Write) -> None:
    """What a set contains never changes, and neither does the spec of a deployment."""
    ref = write.action.ref
    before, after = write.before.get(ref), write.cluster.objects.get(ref)
    if before is None or after is None or ref.kind not in OWN:
        return
    mutable = _MUTABLE if ref.kind == "ObjectSet" else ("paused",) if ref.kind == "ObjectSetPhase" else ()
    was, now = (
        {name: value for name, value in (one.get("spec") or {}).items() if name not in mutable}
        for one in (before, after)
    )
    assert was == now, f"the spec of {ref} is written"


def numbers_grow(write: Write) -> None:
    """A revision of a deployment gets a number that no other has or had."""
    ref = write.action.ref
    if not isinstance(write.action, Create) or ref.kind != "ObjectSet":
        return
    one = write.cluster.objects[ref]
    others = [each for each in lineage(write.cluster.objects, one) if meta.uid(each) != meta.uid(one)]
    assert all(number(each) < number(one) for each in others), (
        f"{_named(one)} is not newer than {_listed(map(_named, others))}"
    )


PROMISES: Sequence[Invariant] = (
    deletes_nothing_that_is_needed,
    archives_nothing_that_is_needed,
    prunes_only_what_is_archived,
    has_one_controller,
    control_moves_forward,
    control_comes_with_the_content,
    only_live_revisions_gain_control,
    superseded_failures_gain_nothing,
    only_active_revisions_write,
    phases_come_in_order,
    what_is_archived_stays_so,
    the_lifecycle_is_followed,
    success_is_never_taken_back,
    only_the_lifecycle_of_a_set_is_written,
    numbers_grow,
)


def check(write: Write) -> None:
    """Check all of them."""
    if not isinstance(write.action, Emit):
        for promise in PROMISES:
            promise(write)


def _named(one: Obj | None) -> str:
    return f"{meta.name(one)} (revision {number(one)})" if one is not None else "no set"


def _listed(values: Iterable[object]) -> str:
    return ", ".join(sorted(map(str, values)))
