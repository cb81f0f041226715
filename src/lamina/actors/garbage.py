"""
Garbage collection: what becomes of objects whose owners go.

An owner is known by its group, kind, name, namespace and uid. The object that
names it is either in its namespace, or the owner is in none.

1.  An object all of whose owners are gone goes too. One that has a living
    owner left only loses the references to the dead.
2.  An owner that waits for its dependents (deleted in the foreground) counts
    neither as living nor as gone: an object with nobody else left is deleted,
    in the foreground in turn if it has dependents itself.
3.  That owner goes when no dependent is left that says it blocks its deletion.
    Dependents that wait for the owner in their turn, round a circle, do not
    block it.
4.  An owner that orphans its dependents goes once none of them names it.
5.  That an owner is not in memory proves nothing. It is gone if its end was
    seen, or if the server itself says that nobody of that name and uid is there.
6.  Nothing is decided about an owner whose kind is not served, nor about a
    cluster-scoped object that names an owner inside a namespace.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from enum import Enum, auto
from typing import TypeAlias, assert_never

from msgspec import Struct

from lamina.actors.names import MANAGER
from lamina.core.controller import Controller, Watch, only
from lamina.core.events import name_of, warning
from lamina.core.plan import (
    NOTHING,
    Emit,
    Patch,
    Plan,
    Propagation,
    Stage,
    change_metadata,
    delete,
    one_stage,
    remove_finalizer,
)
from lamina.core.questions import Absent, Answers, Found, Question, Read
from lamina.core.world import Change, World, card, whole
from lamina.objects import meta
from lamina.objects.kinds import Kind
from lamina.objects.types import GroupKind, Obj, OwnerRef, Ref

_POD = GroupKind("", "Pod")
ORPHAN = "orphan"
FOREGROUND = "foregroundDeletion"

_BY = "garbage-collector-controller"
_MISPLACED = "OwnerRefInvalidNamespace"
_UNSERVED_AGAIN = timedelta(minutes=1)


class Standing(Enum):
    """What an owner is to the object that names it."""

    LIVING = auto()
    WAITING = auto()
    """It is being deleted in the foreground, and waits for its dependents."""
    GONE = auto()
    UNKNOWN = auto()
    """Not in memory: only the server can say."""
    UNSERVED = auto()
    MISPLACED = auto()
    """Of a kind that lives in namespaces, while the object does not."""


class Owner(Struct, frozen=True, kw_only=True):
    """One owner that an object names: where it should be, and whether it was seen in another namespace instead."""

    reference: OwnerRef
    ref: Ref
    standing: Standing
    elsewhere: bool = False


class Owned(Struct, frozen=True, kw_only=True):
    """An object that names owners, and is not on its way out."""

    obj: Obj
    owners: tuple[Owner, ...]
    has_dependents: bool


class Orphaning(Struct, frozen=True, kw_only=True):
    """An owner that is to leave its dependents behind."""

    obj: Obj
    dependents: tuple[Obj, ...]


class Waiting(Struct, frozen=True, kw_only=True):
    """An owner that is to go after the dependents that block it."""

    obj: Obj
    blockers: int


View: TypeAlias = Owned | Orphaning | Waiting


def gather(world: World, ref: Ref) -> View | None:
    """Return what there is to know about one object, if its owners or dependents are anything to decide about."""
    obj = world.get(ref)
    if obj is None:
        return None
    if meta.is_deleting(obj):
        if ORPHAN in meta.finalizers(obj):
            return Orphaning(obj=obj, dependents=tuple(world.owned_by(meta.uid(obj))))
        if FOREGROUND in meta.finalizers(obj):
            blockers = [one for one in _blockers(world, meta.uid(obj)) if not _is_circular(world, obj, one)]
            return Waiting(obj=obj, blockers=len(blockers))
        # On its way out by somebody else's leave; its dependents come after it.
        return None
    references = meta.owner_refs(obj)
    if not references:
        return None
    return Owned(
        obj=obj,
        owners=tuple(_owner(world, obj, reference) for reference in references),
        has_dependents=any(True for _ in world.owned_by(meta.uid(obj))),
    )


def _owner(world: World, obj: Obj, reference: OwnerRef) -> Owner:
    uid = reference["uid"]
    group_kind = GroupKind(reference["apiVersion"].rpartition("/")[0], reference["kind"])
    kind = world.kinds.preferred(group_kind)
    if kind is None:
        nowhere = Ref(reference["apiVersion"], reference["kind"], meta.namespace(obj), reference["name"])
        standing = Standing.GONE if world.is_gone(uid) else Standing.UNSERVED
        return Owner(reference=reference, ref=nowhere, standing=standing)
    ref = kind.ref(meta.namespace(obj), reference["name"])
    if kind.namespaced and not meta.namespace(obj):
        standing = Standing.MISPLACED
        return Owner(reference=reference, ref=ref, standing=standing, elsewhere=_lives(world, kind, uid))
    seen = world.get(ref)
    if seen is not None and meta.uid(seen) == uid:
        return Owner(reference=reference, ref=ref, standing=_standing(seen))
    if world.is_gone(uid):
        return Owner(reference=reference, ref=ref, standing=Standing.GONE)
    if world.kinds.find(reference["apiVersion"], reference["kind"]) is None:
        # Served, but not in the version it was named in. To be sure of an end takes more than that.
        return Owner(reference=reference, ref=ref, standing=Standing.UNSERVED)
    elsewhere = kind.namespaced and _lives(world, kind, uid)
    return Owner(reference=reference, ref=ref, standing=Standing.UNKNOWN, elsewhere=elsewhere)


def _standing(owner: Obj) -> Standing:
    return Standing.WAITING if _waits(owner) else Standing.LIVING


def _waits(obj: Obj) -> bool:
    return meta.is_deleting(obj) and FOREGROUND in meta.finalizers(obj)


def _lives(world: World, kind: Kind, uid: str) -> bool:
    return any(meta.uid(obj) == uid for obj in world.every(kind.group_kind))


def _blockers(world: World, uid: str) -> Iterator[Obj]:
    for dependent in world.owned_by(uid):
        if any(ref["uid"] == uid and ref.get("blockOwnerDeletion") for ref in meta.owner_refs(dependent)):
            yield dependent


def _is_circular(world: World, obj: Obj, blocker: Obj) -> bool:
    """Say whether a blocker waits, by way of whomever, for the very object it blocks."""
    waited_for, ahead = set[str](), [blocker]
    while ahead:
        one = ahead.pop()
        uid = meta.uid(one)
        if uid == meta.uid(obj):
            return True
        if uid not in waited_for and _waits(one):
            waited_for.add(uid)
            ahead.extend(_blockers(world, uid))
    return False


def questions(view: View, answers: Answers) -> tuple[Question, ...]:
    """Ask the server about owners that are not in memory, and whether a warning has been given already."""
    if not isinstance(view, Owned):
        return ()
    asked = [Read(owner.ref) for owner in view.owners if owner.standing is Standing.UNKNOWN]
    asked += [Read(_warned(view.obj, owner)) for owner in view.owners if owner.elsewhere]
    return tuple(question for question in asked if question not in answers)


def plan(view: View, answers: Answers, now: datetime) -> Plan:
    match view:
        case Orphaning(obj=obj, dependents=dependents):
            # The owner goes last. Were it to go first, its dependents would be
            # found with an owner that is gone, and collected.
            disowned = tuple(_without(dependent, {meta.uid(obj)}) for dependent in dependents)
            return Plan(
                stages=(
                    Stage("leave the dependents behind", disowned),
                    Stage("let it go", (remove_finalizer(obj, ORPHAN),)),
                ),
                because=f"{len(dependents)} dependents stay without it",
            )
        case Waiting(obj=obj, blockers=0):
            return one_stage(
                "let it go", [remove_finalizer(obj, FOREGROUND)], because="no dependent blocks its deletion"
            )
        case Waiting(blockers=blockers):
            return Plan(because=f"waiting for {blockers} dependents that block its deletion")
        case Owned():
            return _collect(view, answers, now)
        case _:
            assert_never(view)


def _collect(view: Owned, answers: Answers, now: datetime) -> Plan:
    obj = view.obj
    standing = {owner.reference["uid"]: _found(owner, answers) for owner in view.owners}
    known = set(standing.values())
    say = tuple(
        Emit(event=warning(obj, _MISPLACED, _misplaced(obj, owner), by=_BY, now=now))
        for owner in view.owners
        if owner.elsewhere and isinstance(answers.get(Read(_warned(obj, owner))), Absent)
    )
    if Standing.MISPLACED in known:
        return one_stage("say so", say, because="it is in no namespace, and names an owner that is in one")
    if Standing.UNSERVED in known:
        return Plan(look_again=_UNSERVED_AGAIN, because="it names an owner of a kind that is not served")
    lost = {uid for uid, one in standing.items() if one is not Standing.LIVING}
    if not lost:
        return NOTHING
    if len(lost) < len(standing):
        deed, because = _without(obj, lost), "some of its owners are gone, and others are not"
        return Plan(stages=(*_stage("say so", say), Stage("drop the dead", (deed,))), because=because)
    if Standing.WAITING in known and view.has_dependents:
        how, because = Propagation.FOREGROUND, "its owner waits for it to go"
    else:
        how, because = _inherited(obj), "all its owners are gone"
    return Plan(
        stages=(*_stage("say so", say), Stage("collect it", (delete(obj, how),))),
        because=because,
    )


def _stage(name: str, actions: tuple[Emit, ...]) -> tuple[Stage, ...]:
    return (Stage(name, actions),) if actions else ()


def _found(owner: Owner, answers: Answers) -> Standing:
    """Return what an owner is, now that the server has been asked about it."""
    if owner.standing is not Standing.UNKNOWN:
        return owner.standing
    match answers.get(Read(owner.ref)):
        case Found(obj) if meta.uid(obj) == owner.reference["uid"]:
            return _standing(obj)
        case Found() | Absent():
            return Standing.GONE
        case _:
            return Standing.UNSERVED


def _inherited(obj: Obj) -> Propagation:
    """Return how to delete an object, honouring what it says about its own dependents."""
    if ORPHAN in meta.finalizers(obj):
        return Propagation.ORPHAN
    if FOREGROUND in meta.finalizers(obj):
        return Propagation.FOREGROUND
    return Propagation.BACKGROUND


def _without(obj: Obj, owners: set[str]) -> Patch:
    kept = [reference for reference in meta.owner_refs(obj) if reference["uid"] not in owners]
    return change_metadata(obj, ownerReferences=kept)


def _misplaced(obj: Obj, owner: Owner) -> str:
    named, namespace = owner.reference, meta.namespace(obj)
    shown = (
        f"[{named['apiVersion']}/{named['kind']}, namespace: {namespace}, "
        f"name: {named['name']}, uid: {named['uid']}]"
    )
    return f'ownerRef {shown} does not exist in namespace "{namespace}"'


def _warned(obj: Obj, owner: Owner) -> Ref:
    return name_of(obj, _MISPLACED, _misplaced(obj, owner))


def concerns(world: World, change: Change) -> Iterable[Ref]:
    """
    Whom a change sets thinking.

    The object itself, once whose it is or whether it goes has changed, unless
    all its owners are seen to live; its dependents, once it is gone or waits
    for them; the owners that wait, once they have one dependent less.
    """
    before, after = change.before, change.after
    if after is not None:
        changed = _is_bound(after) and (before is None or _bearing(before) != _bearing(after))
        if changed and not _is_kept(world, after):
            yield change.ref
        if _waits(after) and not (before is not None and _waits(before)):
            yield from map(meta.ref, world.owned_by(meta.uid(after)))
    if before is not None:
        ended = after is None or meta.uid(after) != meta.uid(before)
        if ended:
            yield from map(meta.ref, world.owned_by(meta.uid(before)))
        if ended or (after is not None and meta.owner_refs(after) != meta.owner_refs(before)):
            yield from _waiting_owners(world, before)


def _bearing(obj: Obj) -> object:
    return meta.uid(obj), meta.owner_refs(obj), meta.is_deleting(obj), meta.finalizers(obj)


def _is_bound(obj: Obj) -> bool:
    """Say whether an object has owners, or goes in a way that concerns its dependents."""
    if meta.owner_refs(obj):
        return True
    return meta.is_deleting(obj) and any(one in (ORPHAN, FOREGROUND) for one in meta.finalizers(obj))


def _is_kept(world: World, obj: Obj) -> bool:
    """Say whether there is nothing to decide: it stays, and so do its owners. When one goes, that is a change too."""
    return not meta.is_deleting(obj) and all(
        _owner(world, obj, reference).standing is Standing.LIVING for reference in meta.owner_refs(obj)
    )


def _waiting_owners(world: World, obj: Obj) -> Iterator[Ref]:
    for reference in meta.owner_refs(obj):
        group = reference["apiVersion"].rpartition("/")[0]
        kind = world.kinds.preferred(GroupKind(group, reference["kind"]))
        owner = world.get(kind.ref(meta.namespace(obj), reference["name"])) if kind is not None else None
        if owner is not None and _waits(owner):
            yield meta.ref(owner)


def _is_collected(kind: Kind) -> bool:
    # Events come and go in their thousands and own nothing.
    return kind.can("delete") and kind.group_kind not in (
        _POD,
        GroupKind("", "Event"),
        GroupKind("events.k8s.io", "Event"),
    )


GARBAGE: Controller[View] = Controller(
    name="garbage",
    watches=(
        Watch(selects=_is_collected, concerns=concerns, keep=card, metadata_only=True),
        # Followed as those follow them who run them: one stream of pods serves everybody.
        Watch(selects=only(*_POD), concerns=concerns, keep=whole),
    ),
    gather=gather,
    questions=questions,
    plan=plan,
    manager=MANAGER,
    at_once=16,
)
