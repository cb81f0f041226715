"""
What a ManifestWorkReplicaSet says of how it goes out, parsed once.

The template is not taken apart: it is copied as it stands. What goes into the
strategy of one placement is read by itself, so that a mistake in one holds up
no other.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

from msgspec import Struct

from lamina.core.reading import read
from lamina.objects.types import Obj

Amount: TypeAlias = int | str
Manner: TypeAlias = Literal["All", "Progressive", "ProgressivePerGroup"]


class _Part(Struct, frozen=True, rename="camel", kw_only=True):
    """Something a spec is made of."""


class MandatoryGroup(_Part, frozen=True, kw_only=True):
    """A group that goes first: by name, or, where it has none, by index."""

    group_name: str = ""
    group_index: int = 0


class Block(_Part, frozen=True, kw_only=True):
    """The settings of one manner of going out. Not every manner has all of them."""

    min_success_time: str = "0"
    progress_deadline: str = "None"
    max_failures: Amount = 0
    mandatory_decision_groups: tuple[MandatoryGroup, ...] = ()
    max_concurrency: Amount | None = None


class RolloutStrategy(_Part, frozen=True, kw_only=True):
    type: Manner = "All"
    all: Block = Block()
    progressive: Block = Block()
    progressive_per_group: Block = Block()
    failure_strategy: Literal["AbortAll", ""] = ""

    @property
    def block(self) -> Block:
        """Return the block that counts."""
        match self.type:
            case "All":
                return self.all
            case "Progressive":
                return self.progressive
            case "ProgressivePerGroup":
                return self.progressive_per_group


class PlacementRef(_Part, frozen=True, kw_only=True):
    name: str
    rollout_strategy: RolloutStrategy = RolloutStrategy()


class Limits(_Part, frozen=True, kw_only=True):
    """What else a replica set says, beside its placements and its template."""

    cascade_deletion_policy: Literal["Background", "Foreground"] = "Background"
    revision_history_limit: int = 10


def placement_ref(value: Obj, place: int) -> PlacementRef:
    """Return what is said of one placement; SpecError, with the field, where that is not understood."""
    return read(value, PlacementRef, f"spec.placementRefs[{place}]")


def limits(obj: Obj) -> Limits:
    return read(obj.get("spec"), Limits)
