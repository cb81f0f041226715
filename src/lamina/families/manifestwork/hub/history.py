"""
The revisions of one ManifestWorkReplicaSet: the wanted one, the stable one and the rest.

The revision of the current template is found by its content, or created; it has
the highest number. A name that another object has leads to another hash, and the
collision is counted in the status, so that every pass arrives at the same one.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count

from msgspec import Struct
from msgspec.structs import replace

from lamina.core.model.plan import Action, Delete, delete
from lamina.core.model.queries import Answers, Read
from lamina.core.rollout import recovery
from lamina.core.rollout.history import History, Lookup, look_up, prune
from lamina.core.rollout.recovery import Copy, readable
from lamina.core.rollout.revision import Revision
from lamina.core.rollout.revision_object import adopt_and_renumber, revision_name
from lamina.families.manifestwork.hub.revision import (
    content_digest,
    content_hash,
    create,
    owner_reference,
    template_of,
)
from lamina.families.manifestwork.hub.view import View
from lamina.families.manifestwork.hub.work import work_ref
from lamina.families.manifestwork.labels import GENERATION
from lamina.objects import meta
from lamina.objects.types import Obj


class Revisions(Struct, frozen=True, kw_only=True):
    """The revisions that a rollout is between, and what is written about them before anything else."""

    found: Lookup
    current: str
    """The hash of the last revision that reached all clusters, as that revision has it now."""
    stable: Revision | None
    """That revision; None where there is none, or its content is lost."""
    is_new: bool
    """Whether the wanted revision was created for the current generation."""
    records: tuple[Action, ...] = ()
    collides: bool = False
    """Whether another object has the name of the wanted revision."""

    @property
    def wanted(self) -> Revision:
        return self.found.wanted


def queries(view: View) -> tuple[Read, ...]:
    """Return the works that have to be read whole, because they may have the content of a lost revision."""
    if not view.current or readable(view.history, view.current) is not None:
        return ()
    copies = (
        Copy(work.digest, work_ref(work.cluster, work.name))
        for work in view.works
        if work.hash == view.current
    )
    return recovery.reads(copies, content_digest(template_of(view.obj)))


def revisions(view: View, answers: Answers) -> Revisions:
    """Return the revisions of a replica set, the wanted one included, whether it is stored yet or not."""
    template = template_of(view.obj)
    wanted = Revision(number=0, name="", snapshot=template, digest=content_digest(template))
    found = look_up(view.history, wanted)
    if found.stored is None:
        return _new(view, found, answers)
    duplicates = {one.hash for one in found.duplicates}
    current = found.wanted.hash if view.current in duplicates else view.current
    restored = _restore(view, current, answers, found.wanted.number + 1)
    return Revisions(
        found=found,
        current=current,
        stable=found.wanted if current == found.wanted.hash else _stable(view, current, answers),
        is_new=_generation(found.stored) == str(meta.generation(view.obj)),
        records=(*adopt_and_renumber(found, owner_reference(view.obj)), *restored),
    )


def _new(view: View, found: Lookup, answers: Answers) -> Revisions:
    hash = _new_hash(view, found.wanted.snapshot)
    number = found.wanted.number
    # Works that are about to be replaced may have the last copy of the revision to roll back to.
    restored = list(_restore(view, view.current, answers, number)) if hash != view.current else []
    name = revision_name(meta.name(view.obj), hash)
    wanted = replace(found.wanted, name=name, hash=hash, number=number + len(restored))
    found = replace(found, wanted=wanted)
    adopted = adopt_and_renumber(found, owner_reference(view.obj))
    return Revisions(
        found=found,
        current=view.current,
        stable=wanted if view.current == hash else _stable(view, view.current, answers),
        is_new=True,
        records=(*adopted, *restored, create(view.obj, wanted)),
        collides=name in view.revision_names,
    )


def _generation(revision: Revision) -> str:
    return meta.annotations(revision.obj).get(GENERATION, "") if revision.obj is not None else ""


def _new_hash(view: View, template: Obj) -> str:
    """Return the hash of a template that no revision has: the recorded one, if that is one of its hashes and free."""
    if view.unrecorded:
        # Collisions cannot be counted: the first hash whose name is free stays the first once it is stored.
        hashes = (content_hash(template, collisions) for collisions in count())
        return next(
            one for one in hashes if revision_name(meta.name(view.obj), one) not in view.revision_names
        )
    name = revision_name(meta.name(view.obj), view.update)
    if view.update and name not in view.revision_names and _has_hash(view, template, view.update):
        return view.update
    return content_hash(template, view.collisions)


def _has_hash(view: View, template: Obj, hash: str) -> bool:
    return any(content_hash(template, collisions) == hash for collisions in range(view.collisions + 1))


def is_renamed(view: View, known: Revisions) -> bool:
    """Say whether the template is the one that was last recorded, under another hash."""
    if not view.update:
        return False
    duplicates = {one.hash for one in known.found.duplicates}
    return view.update in duplicates or _has_hash(view, known.wanted.snapshot, view.update)


def _stable(view: View, hash: str, answers: Answers) -> Revision | None:
    if not hash:
        return None
    return readable(view.history, hash) or _recovered(view, hash, answers)


def _recovered(view: View, hash: str, answers: Answers) -> Revision | None:
    """Return a lost revision with the content of a work, if a work has content with its hash."""
    content = recovery.recover(
        queries(view),
        answers,
        content=lambda work: work.get("spec") or {},
        has_hash=lambda template: _has_hash(view, template, hash),
    )
    if content is None:
        return None
    name = revision_name(meta.name(view.obj), hash)
    return Revision(number=0, name=name, snapshot=content, hash=hash, digest=content_digest(content))


def _restore(view: View, hash: str, answers: Answers, number: int) -> Iterator[Action]:
    """Yield the creation of a lost revision under a number; the wanted one gets a higher one after that."""
    if not hash or readable(view.history, hash) is not None:
        return
    lost = _recovered(view, hash, answers)
    if lost is not None and lost.name not in view.revision_names:
        yield create(view.obj, replace(lost, number=number))


def prunable(view: View, known: Revisions) -> tuple[Delete, ...]:
    """Return the deletion of duplicates, and of the oldest revisions that no work has."""
    used = {work.hash for work in view.works}
    live = {view.current, view.update, known.current, known.wanted.hash, *used}
    duplicates = {one.name for one in known.found.duplicates}
    past = History(revisions=tuple(one for one in view.history.revisions if one.name not in duplicates))
    keep = {one.name for one in past.revisions if one.hash in live}
    gone = {one.name for one in prune(past, limit=view.limits.revision_history_limit, keep=keep)}
    gone |= {
        one.name for one in known.found.duplicates if one.hash not in used or one.hash == known.wanted.hash
    }
    return tuple(
        delete(one.obj) for one in view.history.revisions if one.name in gone and one.obj is not None
    )
