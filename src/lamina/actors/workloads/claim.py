"""
Which objects an owner counts as its own, and how that comes about.

An owner holds what it controls and its selector matches. It lets go of what it
controls and the selector no longer matches, and takes in what matches and
nobody controls. One that is being deleted does neither, and nothing that is
being deleted is taken in. Before anything is taken in the server is asked
whether the owner is still who it was: memory may be of one that is gone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from msgspec import Struct

from lamina.core.controller import Concerns
from lamina.core.plan import Patch, change_metadata
from lamina.core.questions import Answers, Found, Question, Read
from lamina.core.world import Change, World
from lamina.objects import meta
from lamina.objects.selectors import LabelSelector
from lamina.objects.types import GroupKind, Obj, Ref


class Claim(Struct, frozen=True, kw_only=True):
    """What an owner holds, could take in, and has to let go of."""

    owner: Obj
    held: tuple[Obj, ...] = ()
    adoptable: tuple[Obj, ...] = ()
    strays: tuple[Obj, ...] = ()


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
    """Return how an owner stands to the objects of a kind; one that does not count is neither held nor taken in."""
    uid = meta.uid(owner)
    held: list[Obj] = []
    strays: list[Obj] = []
    for one in world.owned_by(uid, kind):
        if counts(one) and controls(uid, one):
            matches = selector.matches(one["metadata"].get("labels"))
            (held if matches else strays).append(one)
    return sorted_out(world, owner, kind, selector, held, strays, counts)


def controls(uid: str, obj: Obj) -> bool:
    """Say whether the object of that uid controls this one; quicker than to look for who does."""
    for reference in obj["metadata"].get("ownerReferences") or ():
        if reference["uid"] == uid:
            return bool(reference.get("controller"))
    return False


def sorted_out(
    world: World,
    owner: Obj,
    kind: GroupKind,
    selector: LabelSelector,
    held: Sequence[Obj],
    strays: Sequence[Obj],
    counts: Callable[[Obj], bool] = _anything,
) -> Claim:
    """Return how an owner stands to the objects of a kind, given which of those it controls match and which do not."""
    if meta.is_deleting(owner):
        return Claim(owner=owner, held=tuple(held))
    adoptable = [
        one
        for one in world.unclaimed(kind, meta.namespace(owner))
        if not meta.is_deleting(one) and selector.matches(meta.labels(one)) and counts(one)
    ]
    return Claim(owner=owner, held=tuple(held), adoptable=tuple(adoptable), strays=tuple(strays))


def questions(claimed: Claim, answers: Answers) -> tuple[Question, ...]:
    """Ask whether the owner is still who it was, where there is something to take in."""
    asked = Read(meta.ref(claimed.owner))
    return (asked,) if claimed.adoptable and asked not in answers else ()


def members(claimed: Claim, answers: Answers) -> tuple[Obj, ...]:
    """Return what counts as the owner's once `changes` are made."""
    return claimed.held + claimed.adoptable if _may_adopt(claimed, answers) else claimed.held


def changes(claimed: Claim, answers: Answers) -> tuple[Patch, ...]:
    """Return what makes the claim good: strays let go of, and others taken in."""
    released = tuple(_released(one, meta.uid(claimed.owner)) for one in claimed.strays)
    if not _may_adopt(claimed, answers):
        return released
    return released + tuple(_adopted(one, claimed.owner) for one in claimed.adoptable)


def _may_adopt(claimed: Claim, answers: Answers) -> bool:
    if not claimed.adoptable:
        return False
    match answers.get(Read(meta.ref(claimed.owner))):
        case Found(live):
            return meta.uid(live) == meta.uid(claimed.owner) and not meta.is_deleting(live)
        case _:
            return False


def _adopted(obj: Obj, owner: Obj) -> Patch:
    taken = meta.with_owner(obj, meta.owner_ref(owner, controller=True, blocks=True))
    return change_metadata(obj, ownerReferences=meta.owner_refs(taken))


def _released(obj: Obj, uid: str) -> Patch:
    return change_metadata(obj, ownerReferences=meta.owner_refs(meta.without_owner(obj, uid)))


def owner_of(world: World, obj: Obj, kind: GroupKind) -> Obj | None:
    """Return the object of that kind that controls this one, if that very one is known."""
    controller = meta.controller_of(obj)
    if controller is None or controller["kind"] != kind.kind:
        return None
    served = world.kinds.preferred(kind)
    if served is None or controller["apiVersion"].rpartition("/")[0] != kind.group:
        return None
    owner = world.get(served.ref(meta.namespace(obj), controller["name"]))
    return owner if owner is not None and meta.uid(owner) == controller["uid"] else None


def claimants(
    kind: GroupKind,
    selects: Callable[[Obj], LabelSelector],
    *,
    matters: Callable[[Obj, Obj], bool] = lambda before, after: True,
) -> Concerns:
    """
    Return whom of a kind of owners a change to a dependent concerns.

    The one that controls it, and the one that did. What nobody controls
    concerns every owner whose selector matches it, when it appears, is let go
    of or gets other labels. `matters` says whether a change is one that the
    owner looks at; labels and owners always are.
    """

    def concerns(world: World, change: Change) -> Iterable[Ref]:
        before, after = change.before, change.after
        if _is_anothers(before, kind.kind) and _is_anothers(after, kind.kind):
            return ()
        if before is not None and after is not None and meta.uid(before) != meta.uid(after):
            # Another of the same name: one has gone and one has come.
            before_keys = list(concerns(world, Change(change.kind, before, None)))
            return [*before_keys, *concerns(world, Change(change.kind, None, after))]
        if (
            before is not None
            and after is not None
            and not (
                meta.labels(before) != meta.labels(after)
                or meta.owner_refs(before) != meta.owner_refs(after)
                or matters(before, after)
            )
        ):
            return ()
        return _concerned(world, kind, selects, before, after)

    return concerns


def _is_anothers(obj: Obj | None, kind: str) -> bool:
    """Say whether an object is not there, or has one owner, who controls it and is of another kind."""
    if obj is None:
        return True
    owners = obj["metadata"].get("ownerReferences")
    return bool(owners and len(owners) == 1 and owners[0].get("controller") and owners[0]["kind"] != kind)


def _concerned(
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
    freed = before is None or meta.controller_of(before) is not None
    if freed or meta.labels(before or {}) != meta.labels(after):
        labels = meta.labels(after)
        for owner in world.every(kind, meta.namespace(after)):
            if selects(owner).matches(labels):
                keys[meta.ref(owner)] = None
    return list(keys)
