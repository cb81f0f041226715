"""
How long a key waits whose writes conflict.

Of several writers of one object some succeed in each round, so none of them has to
wait as long as where something is broken. One that never succeeds has to.
"""

from __future__ import annotations

from collections.abc import Collection
from datetime import timedelta

from lamina.errors import Conflict, LaminaError, PlanFailed
from lamina.objects.types import Ref

_SHORT, _LONG = timedelta(seconds=1), timedelta(minutes=5)
_ROUNDS = 20
"""After how many conflicts in a row the delay grows beyond the short one."""
_DOUBLINGS = 16


class ConflictBackoff:
    """Counts how many reconciles of a key in a row ended with nothing but conflicts."""

    def __init__(self) -> None:
        self._conflicts: dict[Ref, int] = {}

    @property
    def keys(self) -> Collection[Ref]:
        return self._conflicts.keys()

    def count(self, ref: Ref, error: LaminaError | None) -> int:
        """Count a reconcile that ended with this error or none, and return how many conflicts in a row there are."""
        if isinstance(error, PlanFailed) and all(isinstance(one, Conflict) for one in error.failures):
            self._conflicts[ref] = self._conflicts.get(ref, 0) + 1
        else:
            self._conflicts.pop(ref, None)
        return self._conflicts.get(ref, 0)

    def max_delay(self, ref: Ref) -> timedelta | None:
        """Return the maximum delay of a key after its conflicts; None if something else failed."""
        conflicts = self._conflicts.get(ref, 0)
        if not conflicts:
            return None
        return min(_SHORT * (1 << min(max(0, conflicts - _ROUNDS), _DOUBLINGS)), _LONG)

    def forget(self, ref: Ref) -> None:
        self._conflicts.pop(ref, None)
