"""
The revisions of one replica set: the one its template asks for, the one everybody was well on, and the rest.

Every pass begins here. The revision of the present template is found by what it
holds, or taken; it has the highest number, whatever number it had before. Where
several hold the same, the newest stays. A name that somebody else has leads to
another mark, which is counted in the status so that everybody comes to the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec import Struct

from lamina.core.history import History, history, prune
from lamina.core.plan import Action, change, delete
from lamina.core.questions import Answers, Found, Read
from lamina.families.manifestwork.names import GENERATION, REPLICA_SET_VERSION
from lamina.families.manifestwork.revision import Kept, revision_ref, take
from lamina.families.manifestwork.template import identity, mark, revision_name, template_of
from lamina.families.manifestwork.view import View
from lamina.families.manifestwork.work import Work, work_ref
from lamina.objects import meta
from lamina.objects.types import Made, Obj


class Picture(Struct, frozen=True, kw_only=True):
    """A template that clusters may be on: its mark, its name, and what tells it from every other."""

    tag: str
    name: str
    holds: str
    """Empty where nobody knows any more what it held."""
    template: Obj
    number: int = 0

    def is_on(self, work: Work) -> bool:
        """Say whether a work is this, whatever mark it has; where that is not known, its mark is believed."""
        return work.holds == self.holds if self.holds else work.tag == self.tag


class Album(Struct, frozen=True, kw_only=True):
    """All revisions that matter now."""

    wanted: Picture
    current: str
    """The mark of the last revision that reached everybody, under the name it goes by now."""
    stable: Picture | None
    """That revision, unless nobody knows any more what it held."""
    is_new: bool
    """Whether the wanted one was taken for the spec as it is, and not found in the past."""
    is_kept: bool
    kept: tuple[Kept, ...]
    duplicates: tuple[Kept, ...]
    records: tuple[Action, ...] = ()
    """What is written down about revisions before anything is done."""
    collides: bool = False

    @property
    def past(self) -> History:
        return history(one.revision for one in self.kept)


def questions(view: View) -> tuple[Read, ...]:
    """Return which works have to be read whole: those that may still hold a revision that was lost."""
    if not view.current or any(one.tag == view.current and one.holds for one in view.revisions):
        return ()
    holders = {work.holds: work for work in view.works if work.tag == view.current}
    wanted = identity(template_of(view.obj))
    return tuple(
        Read(work_ref(work.cluster, work.name), whole=True)
        for holds, work in sorted(holders.items())
        if holds != wanted
    )


def album(view: View, answers: Answers) -> Album:
    """Return the revisions of a replica set, the wanted one included, whether or not it is kept yet."""
    template = template_of(view.obj)
    holds = identity(template)
    every = sorted(view.revisions, key=lambda one: (one.number, one.revision.born, one.name))
    same = [one for one in every if one.holds == holds]
    highest = every[-1].number if every else 0
    if not same:
        tag = _new_mark(view, template)
        # The last copy of a revision to return to may be in works that are about to be rewritten.
        lost = list(_recovery(view, view.current, every, answers, highest + 1)) if tag != view.current else []
        wanted = _picture(view.obj, tag, holds, template, highest + 1 + len(lost))
        collides = view.world.get(revision_ref(view.obj, wanted.tag)) is not None
        records: list[Action] = [*lost, take(view.obj, template, wanted.tag, wanted.number)]
        return Album(
            wanted=wanted,
            current=view.current,
            stable=wanted if view.current == wanted.tag else _stable(view, view.current, every, answers),
            is_new=True,
            is_kept=False,
            kept=tuple(every),
            duplicates=(),
            records=(*_corrections(view.obj, every, None, 0), *records),
            collides=collides,
        )
    chosen, others = same[-1], [one for one in every if one is not same[-1]]
    is_highest = all(one.number < chosen.number for one in others)
    number = chosen.number if is_highest else highest + 1
    wanted = _picture(view.obj, chosen.tag, holds, template, number)
    duplicates = tuple(same[:-1])
    current = wanted.tag if view.current in {one.tag for one in duplicates} else view.current
    return Album(
        wanted=wanted,
        current=current,
        stable=wanted if current == wanted.tag else _stable(view, current, every, answers),
        is_new=meta.annotations(chosen.obj).get(GENERATION) == str(meta.generation(view.obj)),
        is_kept=True,
        kept=tuple(every),
        duplicates=duplicates,
        records=(
            *_corrections(view.obj, every, chosen, number),
            *_recovery(view, current, every, answers, number + 1),
        ),
    )


def _picture(owner: Obj, tag: str, holds: str, template: Obj, number: int = 0) -> Picture:
    name = revision_name(meta.name(owner), tag)
    return Picture(tag=tag, name=name, holds=holds, template=template, number=number)


def _new_mark(view: View, template: Obj) -> str:
    """Return the mark of a template that no revision holds: the one it had before, if it was looked at before."""
    known = view.update and view.world.get(revision_ref(view.obj, view.update)) is None
    if known and _is_mark_of(view, template):
        return view.update
    return mark(template, view.collisions)


def _is_mark_of(view: View, template: Obj) -> bool:
    """Say whether the mark that was last looked at is one of this template's."""
    return any(mark(template, collisions) == view.update for collisions in range(view.collisions + 1))


def is_renamed(view: View, revisions: Album) -> bool:
    """Say whether the template is the one that was last looked at, under another mark."""
    if not view.update:
        return False
    same = {one.tag for one in revisions.duplicates}
    return view.update in same or _is_mark_of(view, revisions.wanted.template)


def _corrections(owner: Obj, every: Sequence[Kept], wanted: Kept | None, number: int) -> Iterator[Action]:
    """Yield what makes revisions that nobody controls ours, and gives the wanted one its number."""
    for one in every:
        patch: Made = {}
        if not one.is_controlled:
            ours = {**meta.owner_ref(owner, controller=True, blocks=True), "apiVersion": REPLICA_SET_VERSION}
            patch["metadata"] = {"ownerReferences": [*meta.owner_refs(one.obj), ours]}
        if one is wanted and one.number != number:
            patch["revision"] = number
        if patch:
            yield change(one.obj, patch)


def _stable(view: View, tag: str, every: Sequence[Kept], answers: Answers) -> Picture | None:
    if not tag:
        return None
    for one in reversed(every):
        if one.tag == tag and one.holds:
            return _picture(view.obj, tag, one.holds, one.revision.snapshot, one.number)
    found = _recovered(view, tag, answers)
    return _picture(view.obj, tag, identity(found), found) if found is not None else None


def _recovered(view: View, tag: str, answers: Answers) -> Obj | None:
    """Return what a lost revision held, if a work still holds it and its mark is the proof."""
    for question in questions(view):
        answer = answers.get(question)
        spec: Obj = (answer.obj.get("spec") or {}) if isinstance(answer, Found) else {}
        if spec and any(mark(spec, collisions) == tag for collisions in range(view.collisions + 1)):
            return spec
    return None


def _recovery(view: View, tag: str, every: Sequence[Kept], answers: Answers, number: int) -> Iterator[Action]:
    """Yield what keeps a lost revision again. What is wanted is given the highest number after that."""
    if not tag or any(one.tag == tag and one.holds for one in every):
        return
    found = _recovered(view, tag, answers)
    if found is not None and view.world.get(revision_ref(view.obj, tag)) is None:
        yield take(view.obj, found, tag, number)


def forget(view: View, revisions: Album) -> tuple[Action, ...]:
    """Return the deletion of revisions that nobody needs: duplicates, and the oldest of those nobody is on."""
    carried = {work.tag for work in view.works}
    live = {view.current, view.update, revisions.current, revisions.wanted.tag, *carried}
    doubled = {one.name for one in revisions.duplicates}
    past = history(one.revision for one in revisions.kept if one.name not in doubled)
    keep = {one.name for one in past.revisions if one.tag in live}
    gone = {one.name for one in prune(past, limit=view.limits.revision_history_limit, keep=keep)}
    gone |= {
        one.name for one in revisions.duplicates if one.tag not in carried or one.tag == revisions.wanted.tag
    }
    return tuple(delete(one.obj) for one in revisions.kept if one.name in gone)
