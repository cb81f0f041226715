"""Token bucket rate limiting."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from time import monotonic


class TokenBucket:
    """
    A token bucket: tokens are added at a rate, up to the burst.

    `reserve` takes a token that is not there yet and returns how long to wait for
    it; later callers wait longer.
    """

    def __init__(self, rate: float, burst: int, now: Callable[[], float] = monotonic) -> None:
        self._rate, self._burst, self._now = rate, max(1, burst), now
        self._left, self._at = float(self._burst), now()

    def take(self) -> bool:
        """Take a token if there is one; return whether there was."""
        self._fill()
        if self._left < 1:
            return False
        self._left -= 1
        return True

    def reserve(self) -> float:
        """Take a token, and return after how many seconds it may be used."""
        self._fill()
        self._left -= 1
        return max(0.0, -self._left / self._rate)

    def _fill(self) -> None:
        now = self._now()
        self._left = min(float(self._burst), self._left + max(0.0, now - self._at) * self._rate)
        self._at = now


class TokenBuckets:
    """A token bucket per key, for the last `remembered` keys."""

    def __init__(
        self, rate: float, burst: int, *, remembered: int = 4096, now: Callable[[], float] = monotonic
    ) -> None:
        self._rate, self._burst, self._remembered, self._now = rate, burst, remembered, now
        self._buckets: dict[Hashable, TokenBucket] = {}

    def take(self, key: Hashable) -> bool:
        """Take a token of a key if there is one; return whether there was."""
        return self._bucket(key).take()

    def reserve(self, key: Hashable) -> float:
        """Take a token of a key, and return after how many seconds it may be used."""
        return self._bucket(key).reserve()

    def _bucket(self, key: Hashable) -> TokenBucket:
        bucket = self._buckets.pop(key, None) or TokenBucket(self._rate, self._burst, self._now)
        self._buckets[key] = bucket
        if len(self._buckets) > self._remembered:
            del self._buckets[next(iter(self._buckets))]
        return bucket
