"""
The order and the times at which keys are reconciled, without a clock.

    add            ready at once; a key that is ready already is not added twice
    add_after      ready after a delay; the earlier of two such times stands, and
                   a reconcile before then cancels it
    appoint        ready after a delay, whether it is reconciled before then or
                   not; the earlier of two appointments stands
    retry          ready after a backoff that doubles with each failure

A key is reconciled by one worker at a time: one that is added meanwhile becomes
ready again when that worker is done. Time is an argument, so the workqueue of
the runtime and the simulator keep the same schedule.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable, Hashable, Sequence
from datetime import datetime, timedelta
from itertools import count
from typing import Generic, TypeAlias, TypeVar

Key = TypeVar("Key", bound=Hashable)

Choose: TypeAlias = Callable[[Sequence[Key]], Key]
"""Picks the next key of those that are ready."""

BASE_DELAY = timedelta(milliseconds=5)
MAX_DELAY = timedelta(seconds=1000)
_NONE = timedelta(0)


def first(keys: Sequence[Key]) -> Key:
    """Pick the key that has been ready for longest."""
    return keys[0]


class RetryRate:
    """
    Spreads the retries of keys that fail for the same reason: so many a second in a group, after a burst.

    It is a token bucket, kept as the time at which the bucket of a group is full again.
    """

    def __init__(self, *, interval: timedelta = timedelta(milliseconds=100), burst: int = 100) -> None:
        self._interval, self._allowance = interval, interval * burst
        self._full: dict[Hashable, datetime] = {}

    def reserve(self, group: Hashable, now: datetime) -> timedelta:
        """Take a token of a group, and return after which delay it may be used."""
        full = max(self._full.pop(group, now), now) + self._interval
        self._full[group] = full
        if len(self._full) > _GROUPS:
            del self._full[next(iter(self._full))]
        return max(_NONE, full - now - self._allowance)


_GROUPS = 4096
"""How many groups a rate remembers."""


class Schedule(Generic[Key]):
    """
    Keys in the order in which they become ready.

    `group` names what keys fail together with, as those of one cluster do: the
    failures of one group do not delay another. With `immediate`, the delays of
    retries and of watches are skipped, for a simulation in which no time passes.
    """

    def __init__(
        self,
        *,
        base_delay: timedelta = BASE_DELAY,
        max_delay: timedelta = MAX_DELAY,
        group: Callable[[Key], Hashable] = lambda key: "",
        immediate: bool = False,
    ) -> None:
        self._base_delay, self._max_delay = base_delay, max_delay
        self._group, self._immediate, self._rate = group, immediate, RetryRate()
        self._ready: deque[Key] = deque()
        self._wanted: set[Key] = set()
        """Keys that are ready, or will be when the worker that has them is done."""
        self._in_progress: set[Key] = set()
        self._due: dict[Key, datetime] = {}
        self._appointed: dict[Key, datetime] = {}
        self._delayed: list[tuple[datetime, int, Key]] = []
        self._numbers = count()
        self._failures: dict[Key, int] = {}

    @property
    def depth(self) -> int:
        """Return how many keys are ready."""
        return len(self._ready)

    @property
    def ready(self) -> tuple[Key, ...]:
        """Return the keys that are ready, oldest first."""
        return tuple(self._ready)

    @property
    def is_idle(self) -> bool:
        """Say whether no key is ready or in progress; keys that are delayed do not count."""
        return not self._wanted and not self._in_progress

    @property
    def next_due(self) -> datetime | None:
        """Return the next time at which a delayed key becomes ready."""
        while self._delayed and self._due.get(self._delayed[0][2]) != self._delayed[0][0]:
            heapq.heappop(self._delayed)
        return self._delayed[0][0] if self._delayed else None

    def due(self, key: Key) -> datetime | None:
        """Return when a key becomes ready if nothing adds it before."""
        return self._due.get(key)

    def add(self, key: Key) -> bool:
        """Make a key ready, now or when its worker is done, and say whether it was not to be ready yet."""
        if key in self._wanted:
            return False
        self._wanted.add(key)
        if key not in self._in_progress:
            self._ready.append(key)
        return True

    def add_after(self, key: Key, now: datetime, delay: timedelta) -> bool:
        """Make a key ready after a delay, and say whether it is ready now because there is none."""
        if delay <= _NONE:
            return self.add(key)
        when = now + delay
        known = self._due.get(key)
        if known is None or known > when:
            self._delay(key, when)
        return False

    def add_batched(self, key: Key, now: datetime, delay: timedelta) -> bool:
        """Make a key ready after a delay that only gathers changes into one reconcile."""
        return self.add_after(key, now, _NONE if self._immediate else delay)

    def appoint(self, key: Key, now: datetime, delay: timedelta) -> bool:
        """Make a key ready after a delay, even if it is reconciled before then."""
        when = now + delay
        self._appointed[key] = min(when, self._appointed.get(key, when))
        return self.add_after(key, now, delay)

    def retry(
        self,
        key: Key,
        now: datetime,
        *,
        base_delay: timedelta | None = None,
        max_delay: timedelta | None = None,
        spread: bool = False,
    ) -> timedelta:
        """
        Make a key ready after its backoff, and return that delay.

        With `spread`, keys of one group that fail together become ready one after another.
        """
        failures = self._failures.get(key, 0)
        self._failures[key] = failures + 1
        delay = min((base_delay or self._base_delay) * (1 << min(failures, 32)), max_delay or self._max_delay)
        if spread:
            delay = max(delay, self._rate.reserve(self._group(key), now))
        self.add_batched(key, now, delay)
        return delay

    def reset_backoff(self, key: Key) -> None:
        """Count the next failure of a key as its first."""
        self._failures.pop(key, None)

    def take(self, now: datetime, choose: Choose[Key] = first) -> Key:
        """Return the next key and mark it as in progress; one has to be ready."""
        if choose is first:
            key = self._ready.popleft()
        else:
            key = choose(tuple(self._ready))
            self._ready.remove(key)
        self._wanted.discard(key)
        self._in_progress.add(key)
        # This reconcile takes the place of a delayed one. An appointment stands, unless this reconcile keeps it:
        # one that is past would be merged with the next appointment, which would be lost.
        self._due.pop(key, None)
        if (appointed := self._appointed.get(key)) is not None:
            if appointed > now:
                self._delay(key, appointed)
            else:
                del self._appointed[key]
        return key

    def done(self, key: Key) -> bool:
        """Mark a key as no longer in progress, and say whether it is ready again."""
        self._in_progress.discard(key)
        if key not in self._wanted:
            return False
        self._ready.append(key)
        return True

    def promote(self, now: datetime) -> list[Key]:
        """Make the keys ready whose time has come, and return those that were not to be ready yet."""
        added = []
        while (moment := self.next_due) is not None and moment <= now:
            key = heapq.heappop(self._delayed)[2]
            del self._due[key]
            if self._appointed.get(key, now) <= now:
                self._appointed.pop(key, None)
            if self.add(key):
                added.append(key)
        return added

    def forget(self, matches: Callable[[Key], bool]) -> None:
        """Drop everything that is known of some keys."""
        for known in (self._due, self._appointed, self._failures):
            for key in [one for one in known if matches(one)]:
                del known[key]
        self._wanted = {key for key in self._wanted if not matches(key)}
        self._ready = deque(key for key in self._ready if not matches(key))

    def cancel_delayed(self) -> None:
        """Drop every delayed key."""
        self._delayed.clear()
        self._due.clear()

    def _delay(self, key: Key, when: datetime) -> None:
        self._due[key] = when
        heapq.heappush(self._delayed, (when, next(self._numbers), key))
