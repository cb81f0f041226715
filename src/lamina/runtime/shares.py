"""
How many hands are busy with each cluster.

A cluster that does not answer keeps whoever asks it waiting. Where one worker
looks at many, none of them may keep all hands: each has a share, and a key whose
cluster has used up its own waits until one of those hands is free.
"""

from __future__ import annotations

from lamina.objects.types import Ref


class Shares:
    """Counts the hands that are busy with each cluster; `most` may be with one."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._busy: dict[str, int] = {}
        self._waiting: dict[str, dict[Ref, None]] = {}

    def take(self, ref: Ref) -> bool:
        """Say whether there is a hand for a key; if not, it is remembered until there is."""
        busy = self._busy.get(ref.cluster, 0)
        if busy >= self._most:
            self._waiting.setdefault(ref.cluster, {})[ref] = None
            return False
        self._busy[ref.cluster] = busy + 1
        return True

    def give_back(self, ref: Ref) -> Ref | None:
        """Take note that a hand is free again, and return the key that has waited longest for it."""
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
