"""
The clusters that an abort moves back to the stable revision, and whether their agents confirm that.

A work that has the content of the stable revision says what its cluster is to run. Only
its agent knows what the cluster does run: it is restored once the work is Applied at its
current generation.

A work that was created since the abort, on its first generation, was never on another revision.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from msgspec import Struct

from lamina.core.rollout.revision import Revision
from lamina.families.manifestwork.hub.placement_progress import Progress
from lamina.families.manifestwork.hub.work import Work

NOT_RESTORED = "not restored yet: "
"""What the message of an abort says before the clusters that are not back, if there are any."""


class Restored(Struct, frozen=True, kw_only=True):
    """The clusters that had left the stable revision: those that are restored, and the others with a reason."""

    confirmed: tuple[str, ...]
    others: tuple[str, ...]

    @property
    def total(self) -> int:
        return len(self.confirmed) + len(self.others)


def restored(progress: Iterable[Progress], stable: Revision, aborted_at: datetime) -> Restored:
    """Return which clusters of an aborted rollout are restored."""
    confirmed: list[str] = []
    others: list[str] = []
    for one in progress:
        for cluster in one.clusters:
            work = one.placement.works.get(cluster)
            if work is None or not had_left(work, stable, aborted_at):
                continue
            if is_confirmed(work, stable):
                confirmed.append(cluster)
            else:
                status = one.on_goal.get(cluster)
                others.append(f"{cluster} ({status.message})" if status and status.message else cluster)
    return Restored(confirmed=tuple(confirmed), others=tuple(others))


def had_left(work: Work, stable: Revision, aborted_at: datetime) -> bool:
    """Say whether a work is not on the stable revision, or was moved back to it since the abort."""
    if not work.has(stable):
        return True
    return work.generation > 1 and work.dispatched is not None and work.dispatched >= aborted_at


def is_confirmed(work: Work, stable: Revision) -> bool:
    """Say whether the agent of a work has applied the stable revision."""
    applied = work.applied
    return work.has(stable) and applied is not None and applied.is_true_at(work.generation)
