"""
The rollout settings in the spec of a ManifestWorkReplicaSet.

The template is not parsed: works get a copy of it. Each placement is parsed by
itself, so that a mistake in one strategy stops that placement only.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

from msgspec import Struct

from lamina.core.parse import read
from lamina.objects.types import Obj

Amount: TypeAlias = int | str
StrategyType: TypeAlias = Literal["All", "Progressive", "ProgressivePerGroup"]


class _Part(Struct, frozen=True, rename="camel", kw_only=True):
    """A part of a spec."""


class MandatoryGroup(_Part, frozen=True, kw_only=True):
    """A group that moves first, by name, or, where it has none, by index."""

    group_name: str = ""
    group_index: int = 0


class Block(_Part, frozen=True, kw_only=True):
    """The settings of one type of rollout strategy, which not every type has all of."""

    min_success_time: str = "0"
    progress_deadline: str = "None"
    max_failures: Amount = 0
    mandatory_decision_groups: tuple[MandatoryGroup, ...] = ()
    max_concurrency: Amount | None = None


class RolloutStrategy(_Part, frozen=True, kw_only=True):
    type: StrategyType = "All"
    all: Block = Block()
    progressive: Block = Block()
    progressive_per_group: Block = Block()
    failure_strategy: Literal["AbortAll", ""] = ""

    @property
    def block(self) -> Block:
        """Return the settings of the type of the strategy."""
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
    """The spec of a replica set without its placements and its template."""

    cascade_deletion_policy: Literal["Background", "Foreground"] = "Background"
    revision_history_limit: int = 10


def placement_ref(value: Obj, place: int) -> PlacementRef:
    """Return one placement reference; raises SpecError, which names the field."""
    return read(value, PlacementRef, f"spec.placementRefs[{place}]")


def limits(obj: Obj) -> Limits:
    return read(obj.get("spec"), Limits)
