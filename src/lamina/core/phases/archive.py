"""
Which revisions are archived: any one of these rules archives a revision that is not the latest.

    finished     the latest revision is available and controls all of its objects
    replaced     a newer revision is available, and the spec of a newer live one contains
                 nothing that the old one still controls
    empty        it controls no object any more; nothing is deleted
    failed       it never succeeded, is not available, and the latest revision contains
                 nothing that it still controls

Over all rules: no object is deleted that the latest revision contains, or the newest one
that is available or has succeeded. One that has succeeded counts, too, after it was archived
because it had handed everything over: as long as nothing newer works, its objects are what
works. What a revision controls is known only once its status is about its current generation;
that it is available holds until its next report, so that pausing one takes nothing from it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import TypeVar

from msgspec import Struct

from lamina.core.phases.contents import Contents
from lamina.core.phases.manifest import ObjectKey
from lamina.objects import meta
from lamina.objects.types import Obj


class RevisionFacts(Struct, frozen=True, kw_only=True):
    """What decides about one of several revisions that are live at the same time."""

    obj: Obj
    number: int
    contents: Contents
    controlled: frozenset[ObjectKey]
    """The objects that it reports as controlled."""
    is_live: bool
    """Whether it still is to have objects: it is neither archived, nor about to be, nor being deleted."""
    is_available: bool
    """Whether it is available, by a status about the current generation: what it replaces may be archived."""
    was_available: bool
    """Whether it was by its last report, of whatever generation: what it contains is needed."""
    has_succeeded: bool
    is_in_transition: bool
    """Whether it reports that it does not control all of its objects."""
    is_reported: bool
    """Whether the status is about the current generation, so that what it does not list is not controlled."""
    takes_over: bool = True
    """Whether it takes objects over: it is not paused."""


Facts = TypeVar("Facts", bound=RevisionFacts)


def archivable(revisions: Sequence[Facts]) -> Iterator[tuple[Facts, str]]:
    """Yield the revisions to archive with the reason; `revisions` are oldest first, and the last is the latest."""
    live = [one for one in revisions if one.is_live]
    if not live or live[-1] is not revisions[-1]:
        # The latest revision is archived or being deleted: nothing replaces the others.
        return
    # Where the newest that has succeeded is archived, one before it may be available all the same.
    latest, needed = live[-1], [*essential(live), working(revisions)]
    for one in live[:-1]:
        if one.number < latest.number and (reason := _reason(one, latest, live, needed)):
            yield one, reason


def working(revisions: Sequence[Facts]) -> Facts | None:
    """Return the newest revision that is available or has succeeded, archived or not."""
    found = (one for one in reversed(revisions) if one.has_succeeded or (one.is_live and one.was_available))
    return next(found, None)


def essential(live: Sequence[Facts]) -> list[Facts]:
    """
    Return which live revisions, oldest first, must not lose an object: the latest, and the newest that works.

    One that has no number yet may be the latest, too.
    """
    numbered = [one for one in live if one.number]
    latest = [*numbered[-1:], *(one for one in live if not one.number)]
    return [one for one in (*latest, working(live)) if one is not None]


def protected(
    own: Iterable[tuple[ObjectKey, str]],
    revisions: Sequence[RevisionFacts],
    uid: str,
    given_up: Collection[ObjectKey] = (),
) -> frozenset[ObjectKey]:
    """
    Return which of its own objects, each with its place, the ended revision of that uid must not delete.

    `revisions` are all of its lineage, oldest first, without those that are being deleted. As long as
    one of them is live, the newest that works counts, too, where it is archived and another one. What
    it has `given_up` it cannot delete, and is protected only for a revision that takes it over now.
    """
    live = [one for one in revisions if one.is_live]
    needed, newest = essential(live), working(revisions)
    if live and newest is not None and meta.uid(newest.obj) != uid:
        needed.append(newest)
    return frozenset(
        key
        for key, place in own
        if any(
            one.contents.may_contain(key, place, one.controlled)
            for one in needed
            if one.takes_over or key not in given_up
        )
    )


def _reason(
    one: RevisionFacts,
    latest: RevisionFacts,
    live: Sequence[RevisionFacts],
    needed: Iterable[RevisionFacts | None],
) -> str:
    if latest.is_available and not latest.is_in_transition and not _shares(one, latest):
        return f"revision {latest.number} is available and controls all of its objects"
    if not one.is_reported or any(_shares(one, other) for other in needed if other is not None):
        return ""
    if not one.controlled:
        return "it controls no object any more"
    if (newer := _replacement(one, live)) is not None:
        return f"revision {newer.number} is available, and no newer revision contains what it still controls"
    if not one.has_succeeded and not one.was_available:
        return f"it failed, and revision {latest.number} contains nothing of what it still controls"
    return ""


def _shares(one: RevisionFacts, other: RevisionFacts) -> bool:
    """Say whether a revision still controls an object that another one contains."""
    return one is not other and any(
        other.contents.may_contain(key, one.contents.place(key) or "", other.controlled)
        for key in one.controlled
    )


def _replacement(one: RevisionFacts, live: Sequence[RevisionFacts]) -> RevisionFacts | None:
    """Return the newest available revision that replaces this one, if one does."""
    newer = [other for other in live if other.number > one.number]
    available = next((other for other in reversed(newer) if other.is_available), None)
    if available is None or any(_shares(one, other) for other in newer):
        return None
    return available
