"""The conditions of one object while they are written anew."""

from __future__ import annotations

from datetime import datetime, timedelta

from lamina.objects import conditions, meta
from lamina.objects.times import moment
from lamina.objects.types import Condition, Obj

_LONGEST = 32768


class ConditionList:
    """The conditions of one object while they are written anew; all are about its current generation."""

    def __init__(self, obj: Obj, now: datetime) -> None:
        self._generation, self._now = meta.generation(obj), now
        self.found: list[Condition] = list(conditions.of(obj))

    def set(self, name: str, status: str, reason: str, message: str = "") -> None:
        self.found = conditions.with_condition(
            self.found,
            name,
            status,
            now=self._now,
            # A member of an enumeration is no plain string to every encoder.
            reason=str(reason),
            message=_shortened(message),
            generation=self._generation,
        )

    def set_while(self, holds: bool, name: str, message: str) -> None:
        """Set a condition to true, with its type as the reason, as long as it holds; without that it is absent."""
        if holds:
            self.set(name, "True", name, message)
        else:
            self.remove(name)

    def remove(self, *names: str) -> None:
        for name in names:
            self.found = conditions.without_condition(self.found, name)

    def get(self, name: str) -> Condition | None:
        return conditions.find(self.found, name)

    def is_true(self, name: str) -> bool:
        return conditions.is_true(self.found, name)

    def time_left(self, name: str, delay: timedelta) -> timedelta | None:
        """Return how long a condition still has to stay as it is to have done so for a while; None where it has."""
        found = self.get(name)
        if found is None:
            return None
        left = (moment(found.get("lastTransitionTime")) or self._now) + delay - self._now
        return left if left > timedelta(0) else None


def _shortened(message: str) -> str:
    """Return a message that is as long as the schema of a condition allows: hundreds of objects may fail at once."""
    return message if len(message) <= _LONGEST else f"{message[: _LONGEST - 3]}..."
