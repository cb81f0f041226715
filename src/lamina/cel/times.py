"""
Durations and timestamps in nanoseconds, parsed and formatted as in Go.

Those of the standard library have microseconds; a timestamp here also keeps the UTC
offset it was parsed with.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from functools import lru_cache
from typing import Final
from zoneinfo import ZoneInfo

from lamina.cel.errors import EvaluationError
from lamina.cel.numbers import checked_int, shortest
from lamina.objects.durations import SECOND, nanoseconds

_EARLIEST: Final = -62135596800
_LATEST: Final = 253402300799
_DAY: Final = 86400
_CYCLE: Final = 146097 * _DAY
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_WRITTEN: Final = re.compile(
    r"([0-9]{4})-([0-9]{2})-([0-9]{2})T([0-9]{1,2}):([0-9]{2}):([0-9]{2})(?:[.,]([0-9]+))?(?:Z|([+-])([0-9]{2}):([0-9]{2}))",
    re.ASCII,
)
_OFFSET: Final = re.compile(r"([+-]?[0-9]+):([+-]?[0-9]+)", re.ASCII)


@dataclass(frozen=True, slots=True, order=True)
class Duration:
    """A duration in nanoseconds."""

    nanoseconds: int

    def __str__(self) -> str:
        return f"{shortest(self.seconds)}s" if self.nanoseconds else "0s"

    @property
    def seconds(self) -> float:
        # Whole seconds and the rest are converted apart, as in Go; together they would round differently.
        whole, rest = divmod(abs(self.nanoseconds), SECOND)
        value = float(whole) + float(rest) / 1e9
        return -value if self.nanoseconds < 0 else value


@dataclass(frozen=True, slots=True, order=True)
class Timestamp:
    """A time in nanoseconds since 1970, and the UTC offset in seconds that it is formatted with."""

    nanoseconds: int
    offset: int = field(default=0, compare=False)

    def __str__(self) -> str:
        seconds, rest = divmod(self.nanoseconds, SECOND)
        shown, years = _within(seconds + self.offset)
        fraction = f".{rest:09d}".rstrip("0") if rest else ""
        return f"{shown.year + years:04d}{shown:-%m-%dT%H:%M:%S}{fraction}{_written_offset(self.offset)}"

    def utc(self) -> Timestamp:
        """Return the same time with the offset 0."""
        return Timestamp(self.nanoseconds)

    def local(self, zone: tzinfo) -> tuple[datetime, int]:
        """
        Return the date and time in a zone, and the years to add to its year.

        Fractions of a second are left out.
        """
        shown, years = _within(self.nanoseconds // SECOND)
        return shown.astimezone(zone), years


def _within(seconds: int) -> tuple[datetime, int]:
    """Return a time far enough from both ends of the calendar to be shifted, and its difference in years."""
    # The calendar repeats after 400 years, which are a whole number of weeks.
    years = 400 if seconds > _LATEST - _DAY * 400 else -400 if seconds < _EARLIEST + _DAY * 400 else 0
    return _EPOCH + timedelta(seconds=seconds - years // 400 * _CYCLE), years


def duration(length: int) -> Duration:
    """Return a duration of nanoseconds, which must fit 64 bits."""
    return Duration(checked_int(length))


def timestamp(since: int, offset: int = 0) -> Timestamp:
    """Return a timestamp, which must be in the years 1 to 9999."""
    if _EARLIEST <= since // SECOND <= _LATEST:
        return Timestamp(since, offset)
    raise EvaluationError("timestamp overflow")


def parse_duration(text: str) -> Duration | None:
    """Return the duration of a text such as `1h30m` or `-1.5s`; None for an invalid one."""
    try:
        return Duration(nanoseconds(text))
    except ValueError:
        return None


def parse_timestamp(text: str) -> Timestamp | None:
    """Return the timestamp of an RFC 3339 text; None for an invalid one, an error for one out of range."""
    found = _WRITTEN.fullmatch(text)
    if found is None:
        return None
    year, month, day, hour, minute, second = (int(part) for part in found.groups()[:6])
    fraction = int((found[7] or "0")[:9].ljust(9, "0"))
    offset = 0
    if found[8]:
        if int(found[9]) > 24 or int(found[10]) > 60:
            return None
        offset = (int(found[9]) * 3600 + int(found[10]) * 60) * (-1 if found[8] == "-" else 1)
    try:
        # The year 0 is valid syntax, and in range if the offset leads out of it.
        moment = datetime(year or 400, month, day, hour, minute, second, tzinfo=UTC)
    except ValueError:
        return None
    seconds = int((moment - _EPOCH).total_seconds()) - offset - (0 if year else _CYCLE)
    if not _EARLIEST <= seconds <= _LATEST:
        raise EvaluationError("timestamp overflow")
    return Timestamp(seconds * SECOND + fraction, offset)


def zone(name: str) -> tzinfo:
    """Return a time zone by its name in the IANA database, or by its offset, such as `-08:00`."""
    if ":" not in name:
        return _named(name)
    found = _OFFSET.fullmatch(name)
    if found is None or len(name) > 16:
        raise EvaluationError(f'strconv.Atoi: parsing "{name.partition(":")[0]}": invalid syntax')
    hours, minutes = int(found[1]), int(found[2])
    offset = hours * 60 - minutes if name.startswith("-") else hours * 60 + minutes
    if abs(offset) >= 24 * 60:
        raise EvaluationError(f"unknown time zone {name}")
    return timezone(timedelta(minutes=offset))


@lru_cache(maxsize=256)
def _named(name: str) -> tzinfo:
    if name in {"", "UTC"}:
        return UTC
    try:
        return ZoneInfo(name)
    except (OSError, ValueError, LookupError, UnicodeError):
        raise EvaluationError(f"unknown time zone {name}") from None


def _written_offset(offset: int) -> str:
    if not offset:
        return "Z"
    hours, minutes = divmod(abs(offset) // 60, 60)
    return f"{'-' if offset < 0 else '+'}{hours:02d}:{minutes:02d}"
