"""
All revisions of one owner: find by content, number, renumber, prune.

A spec that returns to earlier content gets the revision that holds it, under a
new number, so that the highest number is always the one that is wanted. A
number is issued once: the largest one issued is kept apart from the revisions,
because the revision that had it may have been deleted.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from itertools import count

from msgspec import Struct
from msgspec.structs import replace

from lamina.core.rollout.revision import Revision
from lamina.errors import RevisionNotFound
from lamina.objects.types import Ref


class History(Struct, frozen=True, kw_only=True):
    """The revisions of one owner, oldest first; `high_water` is the largest number ever issued."""

    revisions: tuple[Revision, ...] = ()
    high_water: int = 0

    @property
    def newest(self) -> Revision | None:
        return self.revisions[-1] if self.revisions else None

    @property
    def next_number(self) -> int:
        """Return the number of the next revision: one that was never issued before."""
        newest = self.revisions[-1].number if self.revisions else 0
        return max(newest, self.high_water) + 1

    def numbered(self, number: int) -> Revision | None:
        return next((one for one in self.revisions if one.number == number), None)

    def named(self, name: str) -> Revision | None:
        return next((one for one in self.revisions if one.name == name), None)

    def hashed(self, hash: str) -> Revision | None:
        """Return the newest revision with this hash."""
        return next((one for one in reversed(self.revisions) if one.hash == hash), None)

    def before(self, number: int) -> Revision | None:
        """Return the newest revision older than that number."""
        return next((one for one in reversed(self.revisions) if one.number < number), None)


def history(revisions: Iterable[Revision], high_water: int = 0) -> History:
    """Return revisions as a history; equal numbers are ordered by creation, then by name."""
    ordered = tuple(sorted(revisions, key=lambda one: (one.number, one.created, one.name)))
    return History(revisions=ordered, high_water=high_water)


class Lookup(Struct, frozen=True, kw_only=True):
    """
    The revision of an owner's current content, found in its history or new.

    `wanted` has the number it is to have; `stored` is the same revision as it is
    stored, None where it is new. `duplicates` are older revisions of the same
    content, `others` those of other content, both oldest first.
    """

    wanted: Revision
    stored: Revision | None
    duplicates: tuple[Revision, ...]
    others: tuple[Revision, ...]

    @property
    def is_new(self) -> bool:
        return self.stored is None

    @property
    def is_renumbered(self) -> bool:
        return self.stored is not None and self.stored.number != self.wanted.number

    @property
    def with_wanted(self) -> History:
        """Return all revisions, with the wanted one under the number it is to have."""
        return history((*self.others, *self.duplicates, self.wanted))


def look_up(past: History, wanted: Revision, *, ties: bool = False) -> Lookup:
    """
    Return the newest revision that equals `wanted`, or `wanted` under the next number.

    One that is found gets the next number unless its own is the highest, and
    with `ties` unless it is the newest, whatever other revision has it too.
    """
    same, others = list[Revision](), list[Revision]()
    for one in past.revisions:
        (same if one.equals(wanted) else others).append(one)
    if not same:
        new = replace(wanted, number=past.next_number)
        return Lookup(wanted=new, stored=None, duplicates=(), others=tuple(others))
    *duplicates, stored = same
    number = stored.number if _is_highest(past, stored, ties=ties) else past.next_number
    # Equal digests may stand for snapshots that differ in what the digest ignores: the current one is rolled out.
    found = replace(stored, number=number, snapshot=wanted.snapshot)
    return Lookup(wanted=found, stored=stored, duplicates=tuple(duplicates), others=tuple(others))


def _is_highest(past: History, revision: Revision, *, ties: bool) -> bool:
    if ties:
        return revision is past.newest
    return revision.number > 0 and all(
        one is revision or one.number < revision.number for one in past.revisions
    )


def next_collision(is_taken: Callable[[int], bool], collisions: int = 0) -> int:
    """Return the first count of collisions, from the one given, whose name is not taken."""
    return next(one for one in count(collisions) if not is_taken(one))


def prune(
    past: History, *, limit: int, keep: Collection[str], counted: Collection[str] = ()
) -> tuple[Revision, ...]:
    """
    Return the revisions to delete, oldest first.

    Those named in `keep` stay: they are current, in use, pinned, or not archived
    yet. Of the others the newest `limit` stay; those in `keep` that are
    `counted` use up that limit too.
    """
    idle = [one for one in past.revisions if one.name not in keep]
    used = sum(1 for one in past.revisions if one.name in keep and one.name in counted) if counted else 0
    return tuple(idle[: max(0, len(idle) + used - limit)])


def rollback_target(owner: Ref, past: History, current: int, wanted: int | None) -> Revision:
    """
    Return the revision to roll back to: the one with the wanted number, or the one before the current.

    Raises RevisionNotFound, which names those that exist.
    """
    found = past.numbered(wanted) if wanted else past.before(current)
    if found is None:
        raise RevisionNotFound(owner, wanted, [one.number for one in past.revisions])
    return found
