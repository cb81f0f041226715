"""How often something may happen: so many times a second on average, and so many at once."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from time import monotonic


class Bucket:
    """
    A bucket of permits that fills up again at a rate.

    Whoever reserves a permit that is not there yet is told how long to wait for
    it; whoever comes later waits longer.
    """

    def __init__(self, rate: float, burst: int, now: Callable[[], float] = monotonic) -> None:
        self._rate, self._burst, self._now = rate, max(1, burst), now
        self._left, self._at = float(self._burst), now()

    def take(self) -> bool:
        """Take a permit if there is one, and say whether there was."""
        self._fill()
        if self._left < 1:
            return False
        self._left -= 1
        return True

    def reserve(self) -> float:
        """Take a permit, and return after how many seconds it may be used."""
        self._fill()
        self._left -= 1
        return max(0.0, -self._left / self._rate)

    def _fill(self) -> None:
        now = self._now()
        self._left = min(float(self._burst), self._left + max(0.0, now - self._at) * self._rate)
        self._at = now


class Buckets:
    """A bucket for each of many, of whom the last `remembered` are remembered."""

    def __init__(
        self, rate: float, burst: int, *, remembered: int = 4096, now: Callable[[], float] = monotonic
    ) -> None:
        self._rate, self._burst, self._remembered, self._now = rate, burst, remembered, now
        self._buckets: dict[Hashable, Bucket] = {}

    def take(self, whose: Hashable) -> bool:
        """Take one of somebody's permits if there is one, and say whether there was."""
        return self._of(whose).take()

    def reserve(self, whose: Hashable) -> float:
        """Take one of somebody's permits, and return after how many seconds it may be used."""
        return self._of(whose).reserve()

    def _of(self, whose: Hashable) -> Bucket:
        bucket = self._buckets.pop(whose, None) or Bucket(self._rate, self._burst, self._now)
        self._buckets[whose] = bucket
        if len(self._buckets) > self._remembered:
            del self._buckets[next(iter(self._buckets))]
        return bucket
