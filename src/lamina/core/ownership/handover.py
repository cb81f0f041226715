"""
Handover: whether a revision takes control of an object that it wants.

    controller   of the object that is there         NEVER    ORPHANS  ANY
    absent       there is no such object             create   create   create
    self         this revision                       keep     keep     keep
    sibling      an older revision of our owner      take     take     take
    sibling      a newer one                         yield    yield    yield
    sibling      one with our own number             collide  collide  collide
    none         there is no controller              collide  take     take
    other        anything else                       collide  collide  take

Control only moves forward. A revision number on the object counts only where its
controller is a sibling: one that was orphaned, or restored from a backup, may
carry a higher number than any revision there is.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from enum import StrEnum

from lamina.objects import meta
from lamina.objects.types import Obj


class Holder(StrEnum):
    """Which controller an object has, relative to the revision that wants it."""

    ABSENT = "absent"
    SELF = "self"
    SIBLING = "sibling"
    NONE = "none"
    OTHER = "other"


class Adoption(StrEnum):
    """What a revision may take over that no revision of its owner controls."""

    NEVER = "never"
    ORPHANS = "orphans"
    ANY = "any"


class Handover(StrEnum):
    """What a revision does with an object."""

    CREATE = "create"
    KEEP = "keep"
    TAKE = "take"
    YIELD = "yield"
    COLLIDE = "collide"


def _controller_uid(obj: Obj) -> str:
    found = meta.controller_of(obj)
    return found["uid"] if found is not None else ""


def holder(
    obj: Obj | None,
    uid: str,
    siblings: Collection[str],
    *,
    controller: Callable[[Obj], str] = _controller_uid,
) -> Holder:
    """
    Return which controller an object has, for the revision of that uid; `siblings` are the uids of the others.

    `controller` returns the uid of an object's controller, where that is not an owner reference.
    """
    if obj is None:
        return Holder.ABSENT
    found = controller(obj)
    if not found:
        return Holder.NONE
    if found == uid:
        return Holder.SELF
    return Holder.SIBLING if found in siblings else Holder.OTHER


def hand_over(found: Holder, *, theirs: int = 0, ours: int, adoption: Adoption) -> Handover:
    """Decide what revision `ours` does with an object that revision `theirs` wrote last."""
    match found:
        case Holder.ABSENT:
            return Handover.CREATE
        case Holder.SELF:
            return Handover.KEEP
        case Holder.SIBLING if theirs > ours:
            return Handover.YIELD
        case Holder.SIBLING:
            # Of two that took an object from each other, none would ever end.
            return Handover.TAKE if theirs < ours else Handover.COLLIDE
        case Holder.NONE if adoption is Adoption.ORPHANS:
            return Handover.TAKE
        case _:
            return Handover.TAKE if adoption is Adoption.ANY else Handover.COLLIDE
