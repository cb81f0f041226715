"""
All revisions of one owner: find, number, prune.

Numbers are given once. The largest ever given is remembered apart from the
revisions, because the one that had it may be gone.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from msgspec import Struct

from lamina.core.revision import Revision
from lamina.errors import RevisionNotFound
from lamina.objects.types import Obj, Ref


class History(Struct, frozen=True, kw_only=True):
    """The revisions of one owner, oldest first; `high_water` is the largest number ever given."""

    revisions: tuple[Revision, ...] = ()
    high_water: int = 0

    @property
    def newest(self) -> Revision | None:
        return self.revisions[-1] if self.revisions else None

    @property
    def next_number(self) -> int:
        """Return the number of the next revision: never one that was given before."""
        newest = self.revisions[-1].number if self.revisions else 0
        return max(newest, self.high_water) + 1

    def numbered(self, number: int) -> Revision | None:
        return next((one for one in self.revisions if one.number == number), None)

    def named(self, name: str) -> Revision | None:
        return next((one for one in self.revisions if one.name == name), None)

    def tagged(self, tag: str) -> Revision | None:
        """Return the newest revision whose mark this is."""
        return next((one for one in reversed(self.revisions) if one.tag == tag), None)

    def like(self, snapshot: Obj) -> Revision | None:
        """Return the newest revision that holds this snapshot."""
        return next((one for one in reversed(self.revisions) if one.holds(snapshot)), None)

    def before(self, number: int) -> Revision | None:
        """Return the newest revision older than that number."""
        return next((one for one in reversed(self.revisions) if one.number < number), None)


def history(revisions: Iterable[Revision], high_water: int = 0) -> History:
    """Return the history these revisions make. Of two with one number, birth and then the name say which is older."""
    ordered = tuple(sorted(revisions, key=lambda one: (one.number, one.born, one.name)))
    return History(revisions=ordered, high_water=high_water)


def prune(past: History, *, limit: int, keep: Collection[str]) -> tuple[Revision, ...]:
    """
    Return the revisions to forget, oldest first.

    Those named in `keep` stay and do not count: they are current, claimed or
    pinned. Of the others the newest `limit` stay.
    """
    idle = [one for one in past.revisions if one.name not in keep]
    return tuple(idle[: max(0, len(idle) - limit)])


def to_return_to(owner: Ref, past: History, current: int, wanted: int | None) -> Revision:
    """
    Return the revision somebody asks to go back to: the one with that number, or the one before the current.

    Raises RevisionNotFound, which names those there are.
    """
    found = past.numbered(wanted) if wanted else past.before(current)
    if found is None:
        have = [one.number for one in past.revisions]
        raise RevisionNotFound(owner, wanted, have)
    return found
