"""Schedules as cron writes them, and what is wrong with those it would not."""

from __future__ import annotations

import re
import zoneinfo

from lamina.objects.printing import quoted

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_DAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_FIELDS: tuple[tuple[int, int, dict[str, int]], ...] = (
    (0, 59, {}),
    (0, 23, {}),
    (1, 31, {}),
    (1, 12, {name: number for number, name in enumerate(_MONTHS, start=1)}),
    (0, 6, {name: number for number, name in enumerate(_DAYS)}),
)
_SHORTHANDS = frozenset({"@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly"})
_UNITS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "μs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
_LONGEST = 2**63 / 1e9
"""In seconds: Go counts nanoseconds, in 64 bits."""
_PIECE = re.compile(r"([0-9]+\.?[0-9]*|\.[0-9]+)([^0-9.]*)")


def complaint(schedule: str) -> str | None:
    """Return what is wrong with a schedule, if anything is."""
    if zoned := re.match(r"(?:CRON_)?TZ=([^ ]*) (.*)", schedule, re.DOTALL):
        zone, schedule = zoned.groups()
        if zone not in zoneinfo.available_timezones():
            return f"provided bad location {zone}: unknown time zone {zone}"
        schedule = schedule.strip()
    if schedule.startswith("@"):
        return _shorthand(schedule)
    fields = schedule.split()
    if len(fields) != 5:
        return f"expected exactly 5 fields, found {len(fields)}: [{' '.join(fields)}]"
    try:
        for field, (low, high, words) in zip(fields, _FIELDS, strict=True):
            for part in filter(None, field.split(",")):
                _check(part, low, high, words)
    except ValueError as wrong:
        return str(wrong)
    return None


def _shorthand(schedule: str) -> str | None:
    if schedule in _SHORTHANDS:
        return None
    if schedule.startswith("@every "):
        wrong = _duration_complaint(schedule.removeprefix("@every "))
        return f"failed to parse duration {schedule}: time: {wrong}" if wrong else None
    return f"unrecognized descriptor: {schedule}"


def _duration_complaint(duration: str) -> str | None:
    """Return what Go has against a duration."""
    rest = duration[1:] if duration[:1] in {"+", "-"} else duration
    if rest == "0":
        return None
    seconds = 0.0
    while rest:
        piece = _PIECE.match(rest)
        if piece is None:
            break
        if not piece.group(2):
            return f"missing unit in duration {quoted(duration)}"
        if piece.group(2) not in _UNITS:
            return f"unknown unit {quoted(piece.group(2))} in duration {quoted(duration)}"
        seconds += float(piece.group(1)) * _UNITS[piece.group(2)]
        rest = rest[piece.end() :]
        if not rest and seconds < _LONGEST:
            return None
    return f"invalid duration {quoted(duration)}"


def _check(part: str, low: int, high: int, words: dict[str, int]) -> None:
    span, *steps = part.split("/")
    first, *rest = span.split("-")
    if first in {"*", "?"}:
        start, end = low, high
    else:
        start = end = _number(first, words)
        if len(rest) > 1:
            raise ValueError(f"too many hyphens: {part}")
        if rest:
            end = _number(rest[0], words)
    if len(steps) > 1:
        raise ValueError(f"too many slashes: {part}")
    step = _number(steps[0], {}) if steps else 1
    if steps and not rest:
        end = high
    if start < low:
        raise ValueError(f"beginning of range ({start}) below minimum ({low}): {part}")
    if end > high:
        raise ValueError(f"end of range ({end}) above maximum ({high}): {part}")
    if start > end:
        raise ValueError(f"beginning of range ({start}) beyond end of range ({end}): {part}")
    if step == 0:
        raise ValueError(f"step of range should be a positive number: {part}")


def _number(text: str, words: dict[str, int]) -> int:
    if (known := words.get(text.lower())) is not None:
        return known
    if not re.fullmatch(r"[-+]?[0-9]+", text) or len(text) > 18:
        reason = "value out of range" if re.fullmatch(r"[-+]?[0-9]+", text) else "invalid syntax"
        raise ValueError(f'failed to parse int from {text}: strconv.Atoi: parsing "{text}": {reason}')
    number = int(text)
    if number < 0:
        raise ValueError(f"negative number ({number}) not allowed: {text}")
    return number
