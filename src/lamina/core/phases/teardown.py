"""
Teardown: what becomes of the objects of an owner that is archived or deleted.

    the owner controls it          it is deleted, at the version that was seen
    a live revision still has to   it is left for that revision to take over, and waited for; where the
      take it over                   garbage collector has removed the reference, not for a paused one
    deletion policy Orphan,        every trace of the owner is removed, and the object stays
      or the finalizer orphan
    the owner is an owner only     its reference is removed, and nothing else
    nothing controls it            the reference of the owner is removed, where the garbage collector
                                     has not done so, and with the last one all that names a revision
    another owner has it           it is left alone

The label and the annotation link an object without a controller to the owners that remain, of which
a paused one may take it over much later.

An object that is gone, or does not refer to its owner, is read live before that counts: what a
stale cache does not have would never be deleted by anything else once its owner is archived.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from msgspec import Struct

from lamina.core.model.plan import Action, Delete, Patch, change
from lamina.core.model.queries import Answers, Found, Query, Read
from lamina.core.phases.manifest import Manifest, ObjectKey
from lamina.core.phases.owner import PhaseOwner, is_handed_over
from lamina.objects import meta
from lamina.objects.types import Obj


class Teardown(Struct, frozen=True, kw_only=True):
    """What is done about the objects of one phase; it is over once there is nothing to do and nothing to wait for."""

    actions: tuple[Action, ...] = ()
    queries: tuple[Query, ...] = ()
    waiting: tuple[str, ...] = ()
    """The objects that are not gone yet, with the reason."""

    @property
    def is_over(self) -> bool:
        return not (self.actions or self.queries or self.waiting)


def tear_down(
    owner: PhaseOwner,
    wanted: Sequence[Manifest],
    lives: Mapping[ObjectKey, Obj],
    answers: Answers,
    *,
    protected: Collection[ObjectKey] = (),
    orphans: bool = False,
) -> Teardown:
    """
    Return what is done about the objects of one phase.

    `protected` objects stay as they are: the spec of a live revision contains them.
    """
    actions: list[Action] = []
    queries: list[Query] = []
    waiting: list[str] = []
    for one in wanted:
        if one.kind is None or not one.key.name:
            # It is not served any more, so there is no such object.
            continue
        live = lives.get(one.key)
        if live is None or not (_has_trace(owner, live) or is_handed_over(owner, live)):
            # What a newer revision has is not the owner's again.
            read = Read(one.ref(owner.cluster))
            match answers.get(read):
                case None:
                    queries.append(read)
                case Found(obj=found) if _has_trace(owner, found):
                    waiting.append(f"{one.key} is not in the cache yet as it is")
                case _:
                    pass
        elif one.key in protected and may_give_up(owner, live) and not orphans:
            waiting.append(f"{one.key} is kept for another revision, which contains it")
        elif owner.controls(live) and not orphans and not one.is_orphaned:
            if meta.is_deleting(live):
                waiting.append(f"{one.key} is being deleted{_held(live)}")
            else:
                actions.append(
                    Delete(
                        ref=one.ref(owner.cluster), uid=meta.uid(live), version=meta.resource_version(live)
                    )
                )
        elif _has_trace(owner, live) and (released := _released(owner, live)) is not None:
            actions.append(released)
    return Teardown(actions=tuple(actions), queries=tuple(queries), waiting=tuple(waiting))


def may_give_up(owner: PhaseOwner, live: Obj) -> bool:
    """Say whether an owner would delete an object, or is what links one without a controller to its lineage."""
    is_linked = owner.record.has(live, owner.uid) or (_has_trace(owner, live) and owner.is_shared(live))
    is_free = owner.controller(live) is None and owner.conventions.is_marked(live)
    return owner.controls(live) or (is_linked and is_free)


def given_up(owner: PhaseOwner, lives: Mapping[ObjectKey, Obj]) -> frozenset[ObjectKey]:
    """Return the objects from which the garbage collector has removed the reference of an owner."""
    return frozenset(key for key, live in lives.items() if not owner.record.has(live, owner.uid))


def _has_trace(owner: PhaseOwner, live: Obj) -> bool:
    """
    Say whether an object refers to an owner, or did when the owner was deleted.

    The garbage collector removes the owner references of orphans, too, and may be the first to do so.
    It leaves the label and the annotation, which are those of the revision that wrote the object last.
    That one may have been orphaned before, and has left them to the owners that remained then.
    """
    if owner.record.has(live, owner.uid):
        return True
    is_free = owner.controller(live) is None and owner.conventions.is_marked(live)
    is_own = owner.conventions.written_by(live) in (0, owner.revision) or not _has_other_owner(owner, live)
    return is_free and is_own and meta.is_deleting(owner.obj)


def _held(live: Obj) -> str:
    finalizers = ", ".join(meta.finalizers(live))
    return f", and waits for finalizers: {finalizers}" if finalizers else ""


def _released(owner: PhaseOwner, live: Obj) -> Patch | None:
    """
    Return the patch that removes every trace of an owner, so that another one can adopt the object, or a sibling.

    As long as another revision is an owner, the label and the annotation are what links the object to that
    one, and the last owner to release it removes them. None where the reference alone is to be removed, and
    the garbage collector has done so.
    """
    is_owner, uid = owner.record.has(live, owner.uid), owner.uid
    metadata = owner.record.released(live, uid) if is_owner else {}
    controller = owner.controller(live)
    if (controller is None or controller["uid"] == uid) and not _has_other_owner(owner, live):
        annotations = {**(metadata.get("annotations") or {}), owner.conventions.revision: None}
        metadata = {**metadata, "annotations": annotations, "labels": {owner.conventions.mark: None}}
    return change(live, {"metadata": metadata}, cluster=owner.cluster) if metadata else None


def _has_other_owner(owner: PhaseOwner, live: Obj) -> bool:
    """Say whether another revision, or what reconciles a phase of one, is an owner of an object."""
    # Where the set of a phase is not known, neither are its siblings; all have kinds of one group.
    group = meta.group_kind(owner.obj).group
    return any(
        one["uid"] != owner.uid and meta.group_kind(one).group == group for one in owner.record.owners(live)
    )
