"""
One remembered state of an owner.

A revision is a photograph: taken once, never retouched. Going back does not
alter the album either; it adds a newer picture of the older scene.
"""

from __future__ import annotations

from msgspec import Struct

from lamina.objects.diff import is_same
from lamina.objects.types import Obj


class Revision(Struct, frozen=True, kw_only=True):
    """
    A numbered snapshot of the fields an owner rolls out.

    `number` orders the revisions of one owner and only ever grows. `name` is
    that of the object it is kept as, `born` when that was made. `tag` is the
    short mark left on whatever the revision produces. Two revisions are the same when their snapshots are
    equal; equal tags prove nothing.
    """

    number: int
    name: str
    snapshot: Obj
    tag: str = ""
    born: str = ""

    def holds(self, snapshot: Obj) -> bool:
        """Say whether this is a picture of that state."""
        return is_same(self.snapshot, snapshot)
