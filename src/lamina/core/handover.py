"""
Who controls an object that two revisions both want.

    holder      what is known of it                     never    orphans  anything
    absent      nobody has it, it is not there          create   create   create
    us          this revision has it                    keep     keep     keep
    sibling     an older revision of our owner has it   take     take     take
    sibling     a newer one has it                      yield    yield    yield
    sibling     one with our own number has it          collide  collide  collide
    nobody      it is there, and nobody controls it     collide  take     take
    stranger    somebody else controls it               collide  collide  take
"""

from __future__ import annotations

from enum import StrEnum


class Holder(StrEnum):
    """Who has the object now, seen from the revision that wants it."""

    ABSENT = "absent"
    US = "us"
    SIBLING = "sibling"
    NOBODY = "nobody"
    STRANGER = "stranger"


class Adoption(StrEnum):
    """What a revision may take that no revision of its owner made."""

    NEVER = "never"
    ORPHANS = "orphans"
    ANYTHING = "anything"


class Handover(StrEnum):
    """What becomes of it."""

    CREATE = "create"
    KEEP = "keep"
    TAKE = "take"
    YIELD = "yield"
    COLLIDE = "collide"


def hand_over(holder: Holder, *, theirs: int = 0, ours: int, adoption: Adoption) -> Handover:
    """
    Decide what revision `ours` does with an object held at revision `theirs`.

    Control only ever moves forward. A sibling with a newer number keeps the
    object; one with an older number loses it; one with the *same* number means
    two revisions were numbered alike, which nobody should paper over.
    """
    match holder:
        case Holder.ABSENT:
            return Handover.CREATE
        case Holder.US:
            return Handover.KEEP
        case Holder.SIBLING if theirs < ours:
            return Handover.TAKE
        case Holder.SIBLING if theirs > ours:
            return Handover.YIELD
        case Holder.NOBODY if adoption is not Adoption.NEVER:
            return Handover.TAKE
        case Holder.STRANGER if adoption is Adoption.ANYTHING:
            return Handover.TAKE
        case _:
            return Handover.COLLIDE
