"""
The garbage collector: deletes objects whose owners are absent.

An owner is identified by its group, kind, name, namespace and uid. It is in the
namespace of its dependent, or cluster-scoped.

1.  An object is deleted when all its owners are absent. One with a solid owner
    only loses the references to absent ones.
2.  An owner that waits for its dependents (foreground deletion) is neither
    solid nor absent: an object without solid owners is deleted, in the
    foreground too if it has dependents itself.
3.  That owner loses its finalizer when no dependent with blockOwnerDeletion is
    left. Dependents that wait for the owner themselves, in a cycle, do not
    block it.
4.  An owner that orphans its dependents loses its finalizer once none of them
    refers to it.
5.  An owner that is not in the cache is not absent for that. It is if its
    deletion was observed, or if a live read does not find its name and uid.
6.  Nothing is deleted for an owner whose kind is not served, nor is a
    cluster-scoped object that refers to a namespaced owner.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from enum import Enum, auto
from typing import TypeAlias, assert_never

from msgspec import Struct

from lamina.actors.field_manager import MANAGER
from lamina.core.model.controller import Controller, Watch, only
from lamina.core.model.events import name_of, warning
from lamina.core.model.plan import (
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
from lamina.core.model.queries import Absent, Answers, Found, Query, Read
from lamina.core.model.world import Change, World, identity_only, whole
from lamina.objects import meta
from lamina.objects.kinds import Kind
from lamina.objects.types import GroupKind, Obj, OwnerRef, Ref

_POD = GroupKind("", "Pod")
ORPHAN = "orphan"
FOREGROUND = "foregroundDeletion"

_BY = "garbage-collector-controller"
_MISPLACED = "OwnerRefInvalidNamespace"
_UNSERVED_AGAIN = timedelta(minutes=1)


class OwnerState(Enum):
    """The state of an owner, as its dependent refers to it."""

    SOLID = auto()
    WAITING = auto()
    """It is being deleted in the foreground, and waits for its dependents to be deleted."""
    ABSENT = auto()
    UNKNOWN = auto()
    """Not in the cache: a live read decides."""
    UNSERVED = auto()
    MISPLACED = auto()
    """Of a namespaced kind, while the dependent is cluster-scoped."""


class Owner(Struct, frozen=True, kw_only=True):
    """One owner reference, resolved; `elsewhere` says whether the owner is in another namespace."""

    reference: OwnerRef
    ref: Ref
    state: OwnerState
    elsewhere: bool = False


class Owned(Struct, frozen=True, kw_only=True):
    """An object with owner references that is not being deleted."""

    obj: Obj
    owners: tuple[Owner, ...]
    has_dependents: bool


class Orphaning(Struct, frozen=True, kw_only=True):
    """An owner that is being deleted and orphans its dependents."""

    obj: Obj
    dependents: tuple[Obj, ...]


class Waiting(Struct, frozen=True, kw_only=True):
    """An owner that is being deleted after the dependents that block it."""

    obj: Obj
    blockers: int


View: TypeAlias = Owned | Orphaning | Waiting


def gather(world: World, ref: Ref) -> View | None:
    """Return the view of an object with owners, or of an owner that waits for or orphans its dependents."""
    obj = world.get(ref)
    if obj is None:
        return None
    if meta.is_deleting(obj):
        if ORPHAN in meta.finalizers(obj):
            return Orphaning(obj=obj, dependents=tuple(world.owned_by(meta.uid(obj))))
        if FOREGROUND in meta.finalizers(obj):
            blockers = [one for one in _blockers(world, meta.uid(obj)) if not _is_circular(world, obj, one)]
            return Waiting(obj=obj, blockers=len(blockers))
        # Other finalizers keep it; its dependents are collected after it.
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
        state = OwnerState.ABSENT if world.is_gone(uid) else OwnerState.UNSERVED
        return Owner(reference=reference, ref=nowhere, state=state)
    ref = kind.ref(meta.namespace(obj), reference["name"])
    if kind.namespaced and not meta.namespace(obj):
        state = OwnerState.MISPLACED
        return Owner(reference=reference, ref=ref, state=state, elsewhere=_exists(world, kind, uid))
    seen = world.get(ref)
    if seen is not None and meta.uid(seen) == uid:
        return Owner(reference=reference, ref=ref, state=_state(seen))
    if world.is_gone(uid):
        return Owner(reference=reference, ref=ref, state=OwnerState.ABSENT)
    if world.kinds.find(reference["apiVersion"], reference["kind"]) is None:
        # The kind is served, but not in this version, which does not prove that the owner is absent.
        return Owner(reference=reference, ref=ref, state=OwnerState.UNSERVED)
    elsewhere = kind.namespaced and _exists(world, kind, uid)
    return Owner(reference=reference, ref=ref, state=OwnerState.UNKNOWN, elsewhere=elsewhere)


def _state(owner: Obj) -> OwnerState:
    return OwnerState.WAITING if _waits(owner) else OwnerState.SOLID


def _waits(obj: Obj) -> bool:
    return meta.is_deleting(obj) and FOREGROUND in meta.finalizers(obj)


def _exists(world: World, kind: Kind, uid: str) -> bool:
    return any(meta.uid(obj) == uid for obj in world.every(kind.group_kind))


def _blockers(world: World, uid: str) -> Iterator[Obj]:
    for dependent in world.owned_by(uid):
        if any(ref["uid"] == uid and ref.get("blockOwnerDeletion") for ref in meta.owner_refs(dependent)):
            yield dependent


def _is_circular(world: World, obj: Obj, blocker: Obj) -> bool:
    """Say whether a blocker waits, directly or through others, for the object it blocks."""
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


def queries(view: View, answers: Answers) -> tuple[Query, ...]:
    """Ask for live reads of owners that are not in the cache, and of warning events."""
    if not isinstance(view, Owned):
        return ()
    asked = [Read(owner.ref) for owner in view.owners if owner.state is OwnerState.UNKNOWN]
    asked += [Read(_warning_ref(view.obj, owner)) for owner in view.owners if owner.elsewhere]
    return tuple(question for question in asked if question not in answers)


def plan(view: View, answers: Answers, now: datetime) -> Plan:
    match view:
        case Orphaning(obj=obj, dependents=dependents):
            # The finalizer is removed last: if the owner were deleted first, its
            # dependents would be collected.
            disowned = tuple(_without(dependent, {meta.uid(obj)}) for dependent in dependents)
            return Plan(
                stages=(
                    Stage("orphan dependents", disowned),
                    Stage("remove finalizer", (remove_finalizer(obj, ORPHAN),)),
                ),
                because=f"{len(dependents)} dependents are orphaned",
            )
        case Waiting(obj=obj, blockers=0):
            return one_stage(
                "remove finalizer",
                [remove_finalizer(obj, FOREGROUND)],
                because="no dependent blocks its deletion",
            )
        case Waiting(blockers=blockers):
            return Plan(because=f"waiting for {blockers} dependents that block its deletion")
        case Owned():
            return _collect(view, answers, now)
        case _:
            assert_never(view)


def _collect(view: Owned, answers: Answers, now: datetime) -> Plan:
    obj = view.obj
    states = {owner.reference["uid"]: _resolved(owner, answers) for owner in view.owners}
    known = set(states.values())
    warnings = tuple(
        Emit(event=warning(obj, _MISPLACED, _invalid_namespace_message(obj, owner), by=_BY, now=now))
        for owner in view.owners
        if owner.elsewhere and isinstance(answers.get(Read(_warning_ref(obj, owner))), Absent)
    )
    if OwnerState.MISPLACED in known:
        return one_stage(
            "record events", warnings, because="it is cluster-scoped, and its owner is namespaced"
        )
    if OwnerState.UNSERVED in known:
        return Plan(requeue_after=_UNSERVED_AGAIN, because="the kind of an owner is not served")
    lost = {uid for uid, one in states.items() if one is not OwnerState.SOLID}
    if not lost:
        return NOTHING
    if len(lost) < len(states):
        patch, because = _without(obj, lost), "some of its owners are absent, and others are not"
        return Plan(stages=(*_warn(warnings), Stage("remove owner references", (patch,))), because=because)
    if OwnerState.WAITING in known and view.has_dependents:
        how, because = Propagation.FOREGROUND, "its owner waits for its deletion"
    else:
        how, because = _policy(obj), "all its owners are absent"
    return Plan(
        stages=(*_warn(warnings), Stage("delete", (delete(obj, how),))),
        because=because,
    )


def _warn(warnings: tuple[Emit, ...]) -> tuple[Stage, ...]:
    return (Stage("record events", warnings),) if warnings else ()


def _resolved(owner: Owner, answers: Answers) -> OwnerState:
    """Return the state of an owner, by a live read where it was unknown."""
    if owner.state is not OwnerState.UNKNOWN:
        return owner.state
    match answers.get(Read(owner.ref)):
        case Found(obj) if meta.uid(obj) == owner.reference["uid"]:
            return _state(obj)
        case Found() | Absent():
            return OwnerState.ABSENT
        case _:
            return OwnerState.UNSERVED


def _policy(obj: Obj) -> Propagation:
    """Return the propagation policy for the deletion of an object, by its finalizers."""
    if ORPHAN in meta.finalizers(obj):
        return Propagation.ORPHAN
    if FOREGROUND in meta.finalizers(obj):
        return Propagation.FOREGROUND
    return Propagation.BACKGROUND


def _without(obj: Obj, owners: set[str]) -> Patch:
    kept = [reference for reference in meta.owner_refs(obj) if reference["uid"] not in owners]
    return change_metadata(obj, ownerReferences=kept)


def _invalid_namespace_message(obj: Obj, owner: Owner) -> str:
    named, namespace = owner.reference, meta.namespace(obj)
    shown = (
        f"[{named['apiVersion']}/{named['kind']}, namespace: {namespace}, "
        f"name: {named['name']}, uid: {named['uid']}]"
    )
    return f'ownerRef {shown} does not exist in namespace "{namespace}"'


def _warning_ref(obj: Obj, owner: Owner) -> Ref:
    return name_of(obj, _MISPLACED, _invalid_namespace_message(obj, owner))


def enqueue(world: World, change: Change) -> Iterable[Ref]:
    """
    Return the objects that a change enqueues.

    The object itself, when its owners, finalizers or deletion changed, unless
    all its owners are solid; its dependents, when it is deleted or waits for
    them; owners that wait, when they lose a dependent.
    """
    before, after = change.before, change.after
    if after is not None:
        changed = _is_in_graph(after) and (before is None or _relevant(before) != _relevant(after))
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


def _relevant(obj: Obj) -> object:
    return meta.uid(obj), meta.owner_refs(obj), meta.is_deleting(obj), meta.finalizers(obj)


def _is_in_graph(obj: Obj) -> bool:
    """Say whether an object has owners, or is being deleted and waits for or orphans its dependents."""
    if meta.owner_refs(obj):
        return True
    return meta.is_deleting(obj) and any(one in (ORPHAN, FOREGROUND) for one in meta.finalizers(obj))


def _is_kept(world: World, obj: Obj) -> bool:
    """Say whether an object and all its owners stay; the deletion of an owner enqueues the object."""
    return not meta.is_deleting(obj) and all(
        _owner(world, obj, reference).state is OwnerState.SOLID for reference in meta.owner_refs(obj)
    )


def _waiting_owners(world: World, obj: Obj) -> Iterator[Ref]:
    for reference in meta.owner_refs(obj):
        group = reference["apiVersion"].rpartition("/")[0]
        kind = world.kinds.preferred(GroupKind(group, reference["kind"]))
        owner = world.get(kind.ref(meta.namespace(obj), reference["name"])) if kind is not None else None
        if owner is not None and _waits(owner):
            yield meta.ref(owner)


def _is_collected(kind: Kind) -> bool:
    # Events are many and short-lived, and own nothing.
    return kind.can("delete") and kind.group_kind not in (
        _POD,
        GroupKind("", "Event"),
        GroupKind("events.k8s.io", "Event"),
    )


GARBAGE: Controller[View] = Controller(
    name="garbage",
    watches=(
        Watch(selects=_is_collected, enqueue=enqueue, keep=identity_only, metadata_only=True),
        # Whole, as the other controllers watch pods: all share one informer.
        Watch(selects=only(*_POD), enqueue=enqueue, keep=whole),
    ),
    gather=gather,
    queries=queries,
    plan=plan,
    manager=MANAGER,
    at_once=16,
)
