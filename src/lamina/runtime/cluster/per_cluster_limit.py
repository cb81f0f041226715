"""
Caps concurrent reconciles per cluster, so that one unresponsive cluster cannot take every worker.

A key whose cluster has reached its limit waits until a reconcile of that cluster ends.
"""

from __future__ import annotations

from lamina.objects.types import Ref


class PerClusterLimit:
    """Counts the reconciles in progress per cluster; each cluster may have `limit`."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._busy: dict[str, int] = {}
        self._waiting: dict[str, dict[Ref, None]] = {}

    def acquire(self, ref: Ref) -> bool:
        """Say whether a key may be reconciled now; if not, it waits for `release`."""
        busy = self._busy.get(ref.cluster, 0)
        if busy >= self._limit:
            self._waiting.setdefault(ref.cluster, {})[ref] = None
            return False
        self._busy[ref.cluster] = busy + 1
        return True

    def release(self, ref: Ref) -> Ref | None:
        """End a reconcile, and return the key of that cluster that has waited longest."""
        busy = self._busy[ref.cluster] - 1
        if busy:
            self._busy[ref.cluster] = busy
        else:
            del self._busy[ref.cluster]
        waiting = self._waiting.get(ref.cluster)
        if not waiting:
            return None
        longest = next(iter(waiting))
        del waiting[longest]
        if not waiting:
            del self._waiting[ref.cluster]
        return longest
