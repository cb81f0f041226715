"""Durations with the grammar and the error texts of Go's `time.ParseDuration`: `1h30m`, `-1.5s`, `0`."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Final

SECOND: Final = 1_000_000_000
_LONGEST: Final = 2**63 - 1
_DAY: Final = 86400.0
_PART: Final = re.compile(r"([0-9]*)(?:\.([0-9]*))?([^0-9.]*)")
_UNITS: Final = {
    "ns": 1,
    "us": 1_000,
    "µs": 1_000,
    "μs": 1_000,
    "ms": 1_000_000,
    "s": SECOND,
    "m": 60 * SECOND,
    "h": 3600 * SECOND,
}


def nanoseconds(text: str) -> int:
    """Return the nanoseconds of a duration, which fit 64 bits; raises ValueError with Go's message."""
    negative, rest = text.startswith("-"), text[1:] if text[:1] in ("+", "-") else text
    if rest == "0":
        return 0
    total, position = 0, 0
    while position < len(rest):
        part = _PART.match(rest, position)
        if part is None or not (part[1] or part[2]):
            break
        whole, fraction, name = part.groups()
        unit = _UNITS.get(name)
        if unit is None:
            wrong = f"unknown unit {_quoted(name)}" if name else "missing unit"
            raise ValueError(f"time: {wrong} in duration {_quoted(text)}")
        # Longer numbers overflow, whatever follows; Python refuses to convert much longer ones.
        total += int(whole.lstrip("0")[:40] or "0") * unit
        if fraction:
            total += int(fraction[:18]) * unit // 10 ** min(len(fraction), 18)
        if total > _LONGEST + negative:
            break
        position = part.end()
    else:
        if rest:
            return -total if negative else total
    raise ValueError(f"time: invalid duration {_quoted(text)}")


def parse_duration(text: str) -> timedelta:
    """Return a duration, to the microsecond; raises ValueError with a message for users."""
    try:
        return timedelta(microseconds=nanoseconds(text) / 1000)
    except ValueError:
        raise ValueError(f'expected a duration such as "10s" or "1m30s", got "{text}"') from None


def seconds_with_days(text: str) -> float:
    """Return the seconds of a duration that may begin with days (`2d`, `1d12h`), or of a bare number."""
    text = text.strip()
    days, day, rest = text.rpartition("d")
    if day and (not rest or rest[0].isdigit()):
        return float(days) * _DAY + (nanoseconds(rest) / SECOND if rest else 0.0)
    try:
        return nanoseconds(text) / SECOND
    except ValueError:
        return float(text)


def _quoted(text: str) -> str:
    """Quote a text as Go's time package does: every byte outside of ASCII is escaped."""
    shown = "".join(
        f"\\{letter}" if letter in '"\\' else letter if " " <= letter < "\x80" else _escaped(letter)
        for letter in text
    )
    return f'"{shown}"'


def _escaped(letter: str) -> str:
    return "".join(f"\\x{byte:02x}" for byte in letter.encode("utf-8", "replace"))
