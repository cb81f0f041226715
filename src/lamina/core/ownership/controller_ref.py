"""
Controller references: which objects an owner holds, adopts and releases.

    controlled by    labels        the owner      the object
    another          any           any            is not its own
    the owner        match         any            is held
    the owner        do not match  lives          is released
    the owner        do not match  is being deleted   is not its own any more
    no controller    match         lives          is adopted, unless it is being deleted
    no controller    any           otherwise      is left alone

Before an adoption the owner is read from the server: the cached one may be gone,
and an object that is adopted by an owner that is gone is garbage collected.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

from msgspec import Struct

from lamina.core.model.controller import Enqueue
from lamina.core.model.plan import Patch, change_metadata
from lamina.core.model.queries import Answers, Found, Query, Read
from lamina.core.model.world import Change, World
from lamina.core.ownership.selector_index import orphans
from lamina.objects import meta
from lamina.objects.kinds import Kind
from lamina.objects.selectors import LabelSelector
from lamina.objects.types import GroupKind, Obj, OwnerRef, Ref


class Claim(Struct, frozen=True, kw_only=True):
    """The objects that an owner holds, may adopt, and has to release."""

    owner: Obj
    held: tuple[Obj, ...] = ()
    adoptable: tuple[Obj, ...] = ()
    releasable: tuple[Obj, ...] = ()


def _anything(obj: Obj) -> bool:
    return True


def claim(
    world: World,
    owner: Obj,
    kind: GroupKind,
    selector: LabelSelector,
    *,
    counts: Callable[[Obj], bool] = _anything,
) -> Claim:
    """Return the claim of an owner on the objects of a kind; one that does not count is neither held nor adopted."""
    uid = meta.uid(owner)
    held: list[Obj] = []
    releasable: list[Obj] = []
    for one in world.owned_by(uid, kind):
        if counts(one) and controls(uid, one):
            matches = selector.matches(one["metadata"].get("labels"))
            (held if matches else releasable).append(one)
    return complete_claim(world, owner, kind, selector, held, releasable, counts)


def complete_claim(
    world: World,
    owner: Obj,
    kind: GroupKind,
    selector: LabelSelector,
    held: Sequence[Obj],
    releasable: Sequence[Obj],
    counts: Callable[[Obj], bool] = _anything,
) -> Claim:
    """Return a claim with what may be adopted, given which objects the owner controls and whether they match."""
    if meta.is_deleting(owner):
        return Claim(owner=owner, held=tuple(held))
    adoptable = tuple(one for one in orphans(world, kind, meta.namespace(owner), selector) if counts(one))
    return Claim(owner=owner, held=tuple(held), adoptable=adoptable, releasable=tuple(releasable))


def controls(uid: str, obj: Obj) -> bool:
    """Say whether the owner of that uid controls an object; cheaper than to find its controller."""
    for reference in obj["metadata"].get("ownerReferences") or ():
        if reference["uid"] == uid:
            return bool(reference.get("controller"))
    return False


def queries(answers: Answers, *claims: Claim) -> tuple[Query, ...]:
    """Return the live read of the owner of these claims, where there is something to adopt."""
    asked = Read(meta.ref(claims[0].owner))
    return (asked,) if any(one.adoptable for one in claims) and asked not in answers else ()


def members(claimed: Claim, answers: Answers) -> tuple[Obj, ...]:
    """Return what the owner holds once `changes` are written."""
    return claimed.held + claimed.adoptable if _may_adopt(claimed, answers) else claimed.held


def changes(claimed: Claim, answers: Answers) -> tuple[Patch, ...]:
    """Return the writes of a claim: releases, and adoptions where the owner was found alive."""
    released = tuple(release(one, meta.uid(claimed.owner)) for one in claimed.releasable)
    if not _may_adopt(claimed, answers):
        return released
    return released + tuple(adopt(one, claimed.owner) for one in claimed.adoptable)


def _may_adopt(claimed: Claim, answers: Answers) -> bool:
    if not claimed.adoptable:
        return False
    match answers.get(Read(meta.ref(claimed.owner))):
        case Found(live):
            return meta.uid(live) == meta.uid(claimed.owner) and not meta.is_deleting(live)
        case _:
            return False


def controlled(references: Iterable[OwnerRef], owner: Obj) -> list[OwnerRef]:
    """
    Return owner references with `owner` as the controller; every other stays an owner and controls no more.

    A handover writes them together with the new content, so that there is no
    instant without a controller and none with the new controller and the old content.
    """
    ours = meta.owner_ref(owner, controller=True, blocks=True)
    others: list[OwnerRef] = []
    for one in references:
        if one["uid"] != ours["uid"]:
            others.append({**one, "controller": False} if one.get("controller") else one)
    return [*others, ours]


def adopt(obj: Obj, owner: Obj) -> Patch:
    """Return the patch that makes an owner the controller of an object."""
    return change_metadata(obj, ownerReferences=controlled(meta.owner_refs(obj), owner))


def release(obj: Obj, uid: str) -> Patch:
    """Return the patch that takes an owner's reference off an object, which is left as an orphan if it was the last."""
    return change_metadata(obj, ownerReferences=[one for one in meta.owner_refs(obj) if one["uid"] != uid])


def owner_of(world: World, obj: Obj, kind: GroupKind) -> Obj | None:
    """Return the object of that kind that controls this one, if that very one is cached."""
    controller = meta.controller_of(obj)
    if controller is None or controller["kind"] != kind.kind:
        return None
    served = world.kinds.preferred(kind)
    return _controller(world, obj, controller, {kind: served}) if served is not None else None


def controllers_of(kinds: Collection[GroupKind], change: Change) -> Iterator[Ref]:
    """Yield the owners of these kinds that control a changed object, or did."""
    for obj in change.versions:
        found = meta.controller_of(obj)
        if found is not None and meta.group_kind(found) in kinds:
            yield Ref(found["apiVersion"], found["kind"], meta.namespace(obj), found["name"], change.cluster)


def owner_among(world: World, obj: Obj, kinds: Mapping[GroupKind, Kind]) -> Obj | None:
    """Return the object of one of these kinds that controls this one, if that very one is cached."""
    controller = meta.controller_of(obj)
    return _controller(world, obj, controller, kinds) if controller is not None else None


def _controller(world: World, obj: Obj, controller: OwnerRef, kinds: Mapping[GroupKind, Kind]) -> Obj | None:
    kind = kinds.get(GroupKind(controller["apiVersion"].rpartition("/")[0], controller["kind"]))
    owner = world.get(kind.ref(meta.namespace(obj), controller["name"])) if kind is not None else None
    return owner if owner is not None and meta.uid(owner) == controller["uid"] else None


def claimants(
    kind: GroupKind,
    selects: Callable[[Obj], LabelSelector],
    *,
    matters: Callable[[Obj, Obj], bool] = lambda before, after: True,
) -> Enqueue:
    """
    Return which owners of a kind are enqueued by a change to a dependent.

    The one that controls it, and the one that did. An object without controller
    enqueues every owner whose selector matches it, when it appears, is released
    or gets other labels. `matters` says whether an owner depends on a change;
    it always depends on labels and owners.
    """

    def enqueue(world: World, change: Change) -> Iterable[Ref]:
        before, after = change.before, change.after
        if _is_anothers(before, kind.kind) and _is_anothers(after, kind.kind):
            return ()
        if before is not None and after is not None:
            if meta.uid(before) != meta.uid(after):
                # A deletion and a creation under one name, merged by the watch.
                deleted = enqueue(world, Change(change.kind, before, None))
                return [*deleted, *enqueue(world, Change(change.kind, None, after))]
            if not (
                meta.labels(before) != meta.labels(after)
                or meta.owner_refs(before) != meta.owner_refs(after)
                or matters(before, after)
            ):
                return ()
        return _claimants(world, kind, selects, before, after)

    return enqueue


def _is_anothers(obj: Obj | None, kind: str) -> bool:
    """Say whether there is no object, or it has one owner, which controls it and is of another kind."""
    if obj is None:
        return True
    owners = obj["metadata"].get("ownerReferences")
    return bool(owners and len(owners) == 1 and owners[0].get("controller") and owners[0]["kind"] != kind)


def _claimants(
    world: World,
    kind: GroupKind,
    selects: Callable[[Obj], LabelSelector],
    before: Obj | None,
    after: Obj | None,
) -> list[Ref]:
    keys: dict[Ref, None] = {}
    for obj in (before, after):
        owner = owner_of(world, obj, kind) if obj is not None else None
        if owner is not None:
            keys[meta.ref(owner)] = None
    if after is None or meta.controller_of(after) is not None or meta.is_deleting(after):
        return list(keys)
    is_freed = before is None or meta.controller_of(before) is not None
    if is_freed or meta.labels(before or {}) != meta.labels(after):
        labels = meta.labels(after)
        for owner in world.every(kind, meta.namespace(after)):
            if selects(owner).matches(labels):
                keys[meta.ref(owner)] = None
    return list(keys)
