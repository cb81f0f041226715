"""
Invariants of instances, checked after each write, whatever has failed before it.

They know the objects and nothing of how the controllers decide.
"""

from collections.abc import Mapping, Sequence

from lamina.core.model.plan import Apply, Create, Delete
from lamina.families.resourcegraph.instances.applyset import applyset_id, recorded, what_is_wrong
from lamina.families.resourcegraph.labels import OWNED
from lamina.objects import meta
from lamina.objects.types import GroupKind, Made, Obj, Ref
from lamina.testing.crash_explorer import Invariant, Write

Objects = Mapping[Ref, Made]
INPUT, PART_OF = "ResourceGraphInputRevision", "applyset.kubernetes.io/part-of"


def _is_child(ref: Ref, obj: Obj | None) -> bool:
    return ref.kind == "ConfigMap" and obj is not None and PART_OF in meta.labels(obj)


def instance_of(objects: Objects, child: Obj) -> Made | None:
    id = meta.labels(child).get(PART_OF)
    return next((one for ref, one in objects.items() if ref.kind == "App" and applyset_id(one) == id), None)


def inputs_of(objects: Objects, owner: Obj) -> dict[int, Made]:
    found = [
        one
        for ref, one in objects.items()
        if ref.kind == INPUT and meta.is_controlled_by(one, meta.uid(owner))
    ]
    return {one["spec"]["inputRevision"]: one for one in found}


def numbers_have_no_gap_and_no_double(write: Write) -> None:
    """An input revision has the number after the highest of its instance."""
    if not isinstance(write.action, Create) or write.action.ref.kind != INPUT:
        return
    made = write.cluster.objects[write.action.ref]
    owner = next(one for one in write.before.values() if meta.uid(one) == meta.owner_refs(made)[0]["uid"])
    before = inputs_of(write.before, owner)
    assert made["spec"]["inputRevision"] == max(before, default=0) + 1, (
        f"{write.action.ref} follows {sorted(before)}"
    )


def is_new(write: Write) -> None:
    """An input revision differs from the one before it."""
    if not isinstance(write.action, Create) or write.action.ref.kind != INPUT:
        return
    made = write.cluster.objects[write.action.ref]["spec"]
    owner = meta.owner_refs(write.cluster.objects[write.action.ref])[0]["uid"]
    before = [
        one["spec"]
        for ref, one in write.before.items()
        if ref.kind == INPUT and meta.is_controlled_by(one, owner)
    ]
    newest = max(before, key=lambda one: one["inputRevision"], default=None)
    if newest is not None:
        assert (made["rgdRevision"], made["instanceSpec"]) != (
            newest["rgdRevision"],
            newest["instanceSpec"],
        ), f"{write.action.ref} is the one before it"


def children_follow_what_is_recorded(write: Write) -> None:
    """A child is written with the stamp of an input revision that exists, and never with an older one than it has."""
    ref = write.action.ref
    after, before = write.cluster.objects.get(ref), write.before.get(ref)
    if not isinstance(write.action, Apply) or not _is_child(ref, after) or after is None:
        return
    owner = instance_of(write.before, after)
    assert owner is not None, f"{ref} is written for an instance that is gone"
    assert before is not None or not meta.is_deleting(owner), (
        f"{ref} is created for an instance that is deleted"
    )
    number = int(meta.annotations(after)["kro.run/input-revision"])
    there = inputs_of(write.before, owner)
    assert number in there, f"{ref} is made from input revision {number}, which is not recorded"
    assert meta.annotations(after)["kro.run/rgd-revision"] == str(there[number]["spec"]["rgdRevision"])
    if before is not None:
        had = int(meta.annotations(before).get("kro.run/input-revision", "0"))
        assert number >= had, f"{ref} moves from input revision {had} back to {number}"


def children_are_in_the_inventory(write: Write) -> None:
    """A child is written when its kind and its namespace are in the inventory, and its instance has the finalizer."""
    ref = write.action.ref
    after = write.cluster.objects.get(ref)
    if not isinstance(write.action, Apply) or not _is_child(ref, after) or after is None:
        return
    owner = instance_of(write.before, after)
    assert owner is not None and "kro.run/finalizer" in meta.finalizers(owner)
    if what_is_wrong(owner):
        raise AssertionError(f"the inventory of {meta.name(owner)} is not valid")
    found = recorded(owner)
    assert GroupKind("", "ConfigMap") in found.kinds
    assert ref.namespace in (meta.namespace(owner), *found.namespaces)


def the_finalizer_is_removed_last(write: Write) -> None:
    """An instance is let go when none of its children is left."""
    before, after = write.before.get(write.action.ref), write.cluster.objects.get(write.action.ref)
    if write.action.ref.kind != "App" or before is None or after is not None:
        return
    left = [ref for ref, one in write.before.items() if meta.labels(one).get(PART_OF) == applyset_id(before)]
    assert not left, f"{write.action.ref} is let go, and {left} are left"


def deletions_come_in_waves(write: Write) -> None:
    """When an instance is deleted, no child is while one of a later wave is left."""
    ref = write.action.ref
    child = write.before.get(ref)
    if not isinstance(write.action, Delete) or not _is_child(ref, child) or child is None:
        return
    owner = instance_of(write.before, child)
    if owner is None or not meta.is_deleting(owner):
        return
    members = [
        one for one in write.before.values() if meta.labels(one).get(PART_OF) == meta.labels(child)[PART_OF]
    ]
    assert _order(child) == max(map(_order, members)), f"{ref} is deleted before those that depend on it"


def _order(child: Obj) -> int:
    return int(meta.annotations(child).get("internal.kro.run/apply-order", "0"))


def nothing_that_is_wanted_is_pruned(write: Write) -> None:
    """A child that is deleted while its instance lives was made from an older input revision than the newest."""
    ref = write.action.ref
    child = write.before.get(ref)
    if not isinstance(write.action, Delete) or not _is_child(ref, child) or child is None:
        return
    owner = instance_of(write.before, child)
    if owner is None or meta.is_deleting(owner):
        return
    newest = max(inputs_of(write.before, owner))
    assert int(meta.annotations(child)["kro.run/input-revision"]) < newest, f"{ref} is pruned, and is wanted"


def pinned_instances_stay(write: Write) -> None:
    """No child of a pinned instance is made from another revision than its pin."""
    ref = write.action.ref
    after = write.cluster.objects.get(ref)
    if not isinstance(write.action, Apply) or not _is_child(ref, after) or after is None:
        return
    owner = instance_of(write.before, after)
    pin = meta.annotations(owner).get("kro.run/rgd-revision") if owner is not None else None
    if pin is None:
        return
    assert meta.annotations(after)["kro.run/rgd-revision"] == pin, f"{ref} leaves the pin {pin}"


def only_known_objects_are_owned(write: Write) -> None:
    """An object of another ApplySet is never taken over."""
    before, after = write.before.get(write.action.ref), write.cluster.objects.get(write.action.ref)
    if before is None or after is None or write.action.ref.kind != "ConfigMap":
        return
    had = meta.labels(before).get(PART_OF)
    assert not had or had == meta.labels(after).get(PART_OF), f"{write.action.ref} changes its ApplySet"
    assert not had or OWNED in meta.labels(after)


PROMISES: Sequence[Invariant] = (
    numbers_have_no_gap_and_no_double,
    is_new,
    children_follow_what_is_recorded,
    children_are_in_the_inventory,
    the_finalizer_is_removed_last,
    deletions_come_in_waves,
    nothing_that_is_wanted_is_pruned,
    pinned_instances_stay,
    only_known_objects_are_owned,
)
