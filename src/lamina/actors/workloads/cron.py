"""
When something is due, as cron writes it.

The dialect is the one Kubernetes reads: five fields with ranges, steps, lists
and names, the shorthands, and `@every` with a duration. A schedule is due at
every whole minute at which the clock on its wall shows what the fields ask for:
an hour that a change of clocks leaves out is left out, one that it repeats
comes twice. (The library that Kubernetes uses loses a whole day where midnight
is what is left out. Nobody asks for that, and we do not do it.) Whether both day
fields have to match or either will do depends, as it has since the first cron,
on whether one of them is a star.
"""

from __future__ import annotations

import re
import zoneinfo
from datetime import UTC, datetime, time, timedelta, tzinfo
from typing import Protocol

from msgspec import Struct

_MINUTE = timedelta(minutes=1)
_YEARS = 5
"""How far ahead anything is looked for; what is not due by then (30 February) never is."""

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_DAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_SHORTHANDS = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
_UNITS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "μs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
_LONGEST = 2**63 / 1e9
"""In seconds: Go counts nanoseconds, in 64 bits."""
_PIECE = re.compile(r"([0-9]+\.?[0-9]*|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h)")


class Unreadable(ValueError):
    """This is no schedule; the message says why."""


class UnknownZone(ValueError):
    """Nobody keeps time in a zone of that name."""


class Schedule(Protocol):
    """Something that is due again and again."""

    def after(self, moment: datetime) -> datetime | None:
        """Return when it is next due, strictly later than a moment; None if it never is."""
        ...


class _Field(Struct, frozen=True):
    """The numbers one field asks for; `star` where it asks for none in particular."""

    numbers: frozenset[int]
    star: bool

    def __contains__(self, number: int) -> bool:
        return number in self.numbers


class Calendar(Struct, frozen=True, kw_only=True):
    """Due whenever the clock on a wall somewhere shows certain numbers."""

    minute: _Field
    hour: _Field
    day: _Field
    month: _Field
    weekday: _Field
    zone: tzinfo = UTC

    def after(self, moment: datetime) -> datetime | None:
        instant = moment.astimezone(UTC).replace(second=0, microsecond=0) + _MINUTE
        last_year = instant.year + _YEARS
        while instant.year <= last_year:
            wall = instant.astimezone(self.zone)
            if wall.month not in self.month:
                first = (wall.date().replace(day=1) + timedelta(days=32)).replace(day=1)
                instant = self._midnight(datetime.combine(first, time()))
            elif not self._is_day(wall):
                instant = self._midnight(datetime.combine(wall.date() + timedelta(days=1), time()))
            elif wall.hour not in self.hour:
                instant += timedelta(minutes=60 - wall.minute)
            elif wall.minute not in self.minute:
                instant += _MINUTE
            else:
                return instant
        return None

    def _is_day(self, wall: datetime) -> bool:
        by_day, by_weekday = wall.day in self.day, wall.isoweekday() % 7 in self.weekday
        if self.day.star or self.weekday.star:
            return by_day and by_weekday
        return by_day or by_weekday

    def _midnight(self, wall: datetime) -> datetime:
        """Return the first instant of a day; where midnight is left out, the instant that takes its place."""
        return wall.replace(tzinfo=self.zone).astimezone(UTC)


class Every(Struct, frozen=True):
    """Due again and again after the same time."""

    period: timedelta

    def after(self, moment: datetime) -> datetime | None:
        return moment.astimezone(UTC).replace(microsecond=0) + self.period


def read(text: str, zone: str = "") -> Schedule:
    """
    Return the schedule a text stands for, by the clocks of a zone; UTC without one.

    Raises Unreadable if it is none, and UnknownZone if there is no such zone. A
    zone in front of the text itself, which is not supported officially, counts
    too.
    """
    zoned = re.match(r"(?:CRON_)?TZ=(\S*)\s+(.*)", text, re.DOTALL)
    if zoned:
        zone, text = zoned.groups()
    clocks = zone_named(zone)
    text = text.strip()
    if text.startswith("@every "):
        return Every(_period(text.removeprefix("@every ")))
    fields = _SHORTHANDS.get(text, text).split()
    if len(fields) != 5:
        raise Unreadable(f"expected exactly 5 fields, found {len(fields)}: [{' '.join(fields)}]")
    minute, hour, day, month, weekday = fields
    return Calendar(
        minute=_field(minute, 0, 59, {}),
        hour=_field(hour, 0, 23, {}),
        day=_field(day, 1, 31, {}),
        month=_field(month, 1, 12, {name: number for number, name in enumerate(_MONTHS, 1)}),
        weekday=_field(weekday, 0, 6, {name: number for number, name in enumerate(_DAYS)}),
        zone=clocks,
    )


def zone_named(name: str) -> tzinfo:
    """Return the zone of that name, UTC without one; raises UnknownZone."""
    if name in ("", "UTC"):
        return UTC
    try:
        return zoneinfo.ZoneInfo(name)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise UnknownZone(f"unknown time zone {name}") from error


def _period(text: str) -> timedelta:
    """Return a duration as Go writes it; none is shorter than a second, those that go backwards included."""
    rest = text[1:] if text.startswith(("+", "-")) else text
    seconds, end = 0.0, len(rest) if rest == "0" else 0
    while (piece := _PIECE.match(rest, end)) is not None:
        seconds += float(piece[1]) * _UNITS[piece[2]]
        end = piece.end()
    if not rest or end < len(rest) or seconds >= _LONGEST:
        raise Unreadable(f'failed to parse duration @every {text}: time: invalid duration "{text}"')
    return timedelta(seconds=1 if text.startswith("-") else max(1, int(seconds)))


def _field(text: str, low: int, high: int, words: dict[str, int]) -> _Field:
    numbers: set[int] = set()
    star = False
    for part in filter(None, text.split(",")):
        span, _, pace = part.partition("/")
        first, _, last = span.partition("-")
        open_ended = first in ("*", "?")
        start, end = (low, high) if open_ended else (_number(first, words), _number(last or first, words))
        step = _number(pace, {}) if pace else 1
        if pace and not last:
            end = high
        if not low <= start <= end <= high or not step:
            raise Unreadable(f"out of range: {part}")
        numbers.update(range(start, end + 1, step))
        star = star or (open_ended and step == 1)
    return _Field(frozenset(numbers), star)


def _number(text: str, words: dict[str, int]) -> int:
    known = words.get(text.lower())
    if known is not None:
        return known
    if not text.isascii() or not text.isdigit():
        raise Unreadable(f"failed to parse int from {text}")
    return int(text)
