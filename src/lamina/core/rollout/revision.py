"""
A numbered snapshot of the fields that an owner rolls out.

The numbers are chosen in `history`, which also finds, renumbers and prunes revisions.
"""

from __future__ import annotations

from msgspec import Struct

from lamina.objects import meta
from lamina.objects.diff import is_same
from lamina.objects.types import Obj

CHANGE_CAUSE = "kubernetes.io/change-cause"
"""The annotation in which users note why they change an object, as `kubectl rollout history` shows it."""


class Revision(Struct, frozen=True, kw_only=True):
    """
    A numbered, immutable snapshot of the fields that an owner rolls out.

    `number` orders the revisions of one owner; 0 means that it has none yet.
    `name` is that of the object that stores the revision, `created` its
    creation timestamp, and `obj` the object itself, None until it is stored.
    `hash` labels what is made of the revision and proves nothing, because
    hashes collide. `digest` identifies the content where the family normalizes
    it first; without digests, snapshots are compared.
    """

    number: int
    name: str
    snapshot: Obj
    hash: str = ""
    digest: str = ""
    created: str = ""
    obj: Obj | None = None

    @property
    def change_cause(self) -> str:
        """Return why the revision was made, as its user noted it; empty where that is not known."""
        return meta.annotations(self.obj).get(CHANGE_CAUSE) or "" if self.obj is not None else ""

    def holds(self, snapshot: Obj) -> bool:
        """Say whether this is a revision of that snapshot."""
        return is_same(self.snapshot, snapshot)

    def equals(self, other: Revision) -> bool:
        """Say whether two revisions have equal content; one whose content cannot be read equals none that has a digest."""
        if self.digest or other.digest:
            return self.digest == other.digest
        return is_same(self.snapshot, other.snapshot)
