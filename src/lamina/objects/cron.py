"""
Cron schedules in the dialect and with the error texts of Kubernetes (robfig/cron).

Five fields with ranges, steps, lists and names, the descriptors, and `@every`
with a Go duration. A schedule is due at every whole minute whose local time
matches the fields: an hour that a change of clocks skips is not due, one that it
repeats is due twice. Where midnight is skipped, robfig/cron loses the whole day;
this module does not. If neither day field is a star, one of them has to match;
otherwise both.
"""

from __future__ import annotations

import re
import zoneinfo
from datetime import UTC, datetime, time, timedelta, tzinfo
from typing import Final, Protocol

from msgspec import Struct

from lamina.objects.durations import SECOND, nanoseconds

_MINUTE: Final = timedelta(minutes=1)
_YEARS: Final = 5
"""The search for the next time ends after five years: 30 February is never due."""

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_DAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_FIELDS: Final[tuple[tuple[int, int, dict[str, int]], ...]] = (
    (0, 59, {}),
    (0, 23, {}),
    (1, 31, {}),
    (1, 12, {name: number for number, name in enumerate(_MONTHS, start=1)}),
    (0, 6, {name: number for number, name in enumerate(_DAYS)}),
)
_DESCRIPTORS: Final = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}


class BadSchedule(ValueError):
    """A text is not a schedule; the message is robfig/cron's."""


class UnknownTimeZone(ValueError):
    """The time zone database has no zone of that name."""


class Schedule(Protocol):
    """A recurring time."""

    def after(self, moment: datetime) -> datetime | None:
        """Return when it is next due, strictly later than a moment; None if it never is."""
        ...


class _Field(Struct, frozen=True):
    """The numbers that match one field; `star` if it was written as one."""

    numbers: frozenset[int]
    star: bool

    def __contains__(self, number: int) -> bool:
        return number in self.numbers


class Calendar(Struct, frozen=True, kw_only=True):
    """Due at every minute whose local time matches the five fields."""

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
            local = instant.astimezone(self.zone)
            if local.month not in self.month:
                first = (local.date().replace(day=1) + timedelta(days=32)).replace(day=1)
                instant = self._midnight(datetime.combine(first, time()))
            elif not self._is_day(local):
                instant = self._midnight(datetime.combine(local.date() + timedelta(days=1), time()))
            elif local.hour not in self.hour:
                instant += timedelta(minutes=60 - local.minute)
            elif local.minute not in self.minute:
                instant += _MINUTE
            else:
                return instant
        return None

    def _is_day(self, local: datetime) -> bool:
        by_day, by_weekday = local.day in self.day, local.isoweekday() % 7 in self.weekday
        if self.day.star or self.weekday.star:
            return by_day and by_weekday
        return by_day or by_weekday

    def _midnight(self, local: datetime) -> datetime:
        """Return the first instant of a day; where midnight is skipped, the instant in its place."""
        return local.replace(tzinfo=self.zone).astimezone(UTC)


class Every(Struct, frozen=True):
    """Due at a constant distance from the previous time."""

    period: timedelta

    def after(self, moment: datetime) -> datetime | None:
        return moment.astimezone(UTC).replace(microsecond=0) + self.period


def parse(text: str, zone: str = "") -> Schedule:
    """
    Return the schedule of a text in a time zone, by default UTC.

    A `TZ=` prefix, which Kubernetes accepts in old objects, takes precedence.
    Raises BadSchedule and UnknownTimeZone.
    """
    if prefixed := re.match(r"(?:CRON_)?TZ=([^ ]*) (.*)", text, re.DOTALL):
        zone, text = prefixed[1], prefixed[2].strip()
        try:
            local = time_zone(zone)
        except UnknownTimeZone as unknown:
            raise BadSchedule(f"provided bad location {zone}: {unknown}") from None
    else:
        local = time_zone(zone)
    if text.startswith("@every "):
        return Every(_period(text))
    if text.startswith("@") and text not in _DESCRIPTORS:
        raise BadSchedule(f"unrecognized descriptor: {text}")
    fields = _DESCRIPTORS.get(text, text).split()
    if len(fields) != 5:
        raise BadSchedule(f"expected exactly 5 fields, found {len(fields)}: [{' '.join(fields)}]")
    minute, hour, day, month, weekday = (
        _field(field, *bounds) for field, bounds in zip(fields, _FIELDS, strict=True)
    )
    return Calendar(minute=minute, hour=hour, day=day, month=month, weekday=weekday, zone=local)


def time_zone(name: str) -> tzinfo:
    """Return the zone of that name, UTC without one; raises UnknownTimeZone."""
    if name in ("", "UTC"):
        return UTC
    try:
        return zoneinfo.ZoneInfo(name)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise UnknownTimeZone(f"unknown time zone {name}") from error


def _period(text: str) -> timedelta:
    """Return the period of `@every`, in whole seconds and at least one, also if it is negative."""
    try:
        return timedelta(seconds=max(1, nanoseconds(text.removeprefix("@every ")) // SECOND))
    except ValueError as wrong:
        raise BadSchedule(f"failed to parse duration {text}: {wrong}") from None


def _field(text: str, low: int, high: int, names: dict[str, int]) -> _Field:
    numbers: set[int] = set()
    star = False
    for part in filter(None, text.split(",")):
        found, is_star = _range(part, low, high, names)
        numbers.update(found)
        star = star or is_star
    return _Field(frozenset(numbers), star)


def _range(part: str, low: int, high: int, names: dict[str, int]) -> tuple[range, bool]:
    """Return the numbers that match a part of a field, and whether it is a star without a step."""
    span, *steps = part.split("/")
    first, *rest = span.split("-")
    open_ended = first in ("*", "?")
    if open_ended:
        start, end = low, high
    else:
        start = end = _number(first, names)
        if len(rest) > 1:
            raise BadSchedule(f"too many hyphens: {part}")
        if rest:
            end = _number(rest[0], names)
    if len(steps) > 1:
        raise BadSchedule(f"too many slashes: {part}")
    step = _number(steps[0], {}) if steps else 1
    if steps and not rest:
        end = high
    if start < low:
        raise BadSchedule(f"beginning of range ({start}) below minimum ({low}): {part}")
    if end > high:
        raise BadSchedule(f"end of range ({end}) above maximum ({high}): {part}")
    if start > end:
        raise BadSchedule(f"beginning of range ({start}) beyond end of range ({end}): {part}")
    if step == 0:
        raise BadSchedule(f"step of range should be a positive number: {part}")
    return range(start, end + 1, step), open_ended and step == 1


def _number(text: str, names: dict[str, int]) -> int:
    if (named := names.get(text.lower())) is not None:
        return named
    if not re.fullmatch(r"[-+]?[0-9]+", text) or len(text) > 18:
        reason = "value out of range" if re.fullmatch(r"[-+]?[0-9]+", text) else "invalid syntax"
        raise BadSchedule(f'failed to parse int from {text}: strconv.Atoi: parsing "{text}": {reason}')
    number = int(text)
    if number < 0:
        raise BadSchedule(f"negative number ({number}) not allowed: {text}")
    return number
