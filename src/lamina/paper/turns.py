"""
Whose turn it is, in wound time.

The same promises as those of the queue that workers take from: a key that is
added twice before anybody takes it comes round once, the sooner of two moments
counts, an appointment stands whatever happens before it, and who fails waits
longer each time.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from itertools import count
from typing import Generic, TypeAlias, TypeVar

Key = TypeVar("Key")

Choose: TypeAlias = Callable[[Sequence[Key]], Key]

_SOONEST = timedelta(milliseconds=5)
_LATEST = timedelta(seconds=1000)
_NONE = timedelta(0)


def first(keys: Sequence[Key]) -> Key:
    """Choose whoever came first."""
    return keys[0]


class Turns(Generic[Key]):
    """Keys that wait to be worked on. With `hurried`, nobody waits for a while: it is as good as over."""

    def __init__(self, *, hurried: bool = False) -> None:
        self._hurried = hurried
        self._ready: dict[Key, None] = {}
        self._due: dict[Key, datetime] = {}
        self._appointed: dict[Key, datetime] = {}
        self._later: list[tuple[datetime, int, Key]] = []
        self._failures: dict[Key, int] = {}
        self._numbers = count()

    def __bool__(self) -> bool:
        """Say whether somebody waits who has nothing to wait for."""
        return bool(self._ready)

    @property
    def waiting(self) -> tuple[Key, ...]:
        """Return who waits for nothing but their turn."""
        return tuple(self._ready)

    @property
    def next(self) -> datetime | None:
        """Return the next moment that somebody waits for."""
        while self._later and self._due.get(self._later[0][2]) != self._later[0][0]:
            heapq.heappop(self._later)
        return self._later[0][0] if self._later else None

    def add(self, key: Key) -> None:
        self._ready.setdefault(key)

    def add_later(self, key: Key, now: datetime, delay: timedelta) -> None:
        """Have a key's turn come after a while; the sooner of two such wishes counts."""
        if delay <= _NONE:
            self.add(key)
            return
        when = now + delay
        known = self._due.get(key)
        if known is None or known > when:
            self._wait_for(key, when)

    def soon(self, key: Key, now: datetime, delay: timedelta) -> None:
        """Have a key's turn come after a while that is no more than a courtesy."""
        self.add_later(key, now, _NONE if self._hurried else delay)

    def appoint(self, key: Key, now: datetime, delay: timedelta) -> None:
        """Have a key's turn come after a while, even if it has one before then."""
        when = now + delay
        self._appointed[key] = min(when, self._appointed.get(key, when))
        self.add_later(key, now, delay)

    def retry(
        self, key: Key, now: datetime, soonest: timedelta = _SOONEST, latest: timedelta = _LATEST
    ) -> None:
        """Have a key's turn come again, later each time."""
        failures = self._failures.get(key, 0)
        self._failures[key] = failures + 1
        self.soon(key, now, min(soonest * (1 << min(failures, 32)), latest))

    def forgive(self, key: Key) -> None:
        """Let the next failure of a key count as its first."""
        self._failures.pop(key, None)

    def take(self, choose: Choose[Key] = first) -> Key:
        """Return whose turn it is; somebody has to be waiting."""
        key = next(iter(self._ready)) if choose is first else choose(tuple(self._ready))
        del self._ready[key]
        # Whatever it was to have a turn later for, it has one now; appointments stand.
        self._due.pop(key, None)
        if (appointed := self._appointed.get(key)) is not None:
            self._wait_for(key, appointed)
        return key

    def ring(self, now: datetime) -> None:
        """Have everybody's turn come whose moment has."""
        while (moment := self.next) is not None and moment <= now:
            key = heapq.heappop(self._later)[2]
            del self._due[key]
            if self._appointed.get(key, now) <= now:
                self._appointed.pop(key, None)
            self.add(key)

    def forget(self, is_so: Callable[[Key], bool]) -> None:
        """Have no turn come of these keys any more."""
        for kept in (self._ready, self._due, self._appointed, self._failures):
            for key in [one for one in kept if is_so(one)]:
                del kept[key]

    def _wait_for(self, key: Key, when: datetime) -> None:
        self._due[key] = when
        heapq.heappush(self._later, (when, next(self._numbers), key))
