"""Lengths of time and shares, as people type them."""

from __future__ import annotations

from lamina.errors import SettingsError
from lamina.objects.durations import parse_duration
from lamina.settings import duration

_LONGEST = 1e9
"""Longer than anybody waits, in seconds, and short enough to be added to any date of today."""


def length(text: str, name: str, *, or_none: bool = False) -> float:
    """
    Return the seconds of `90s`, `1h30m`, `2d`, `1d12h` or a bare number of seconds; `name` is what it is for.

    With `or_none`, no time at all is a length, too.
    """
    days, day, rest = text.partition("d")
    try:
        if day and rest[:1].isdigit():
            seconds = duration(f"{days}d") + parse_duration(rest).total_seconds()
        else:
            seconds = parse_duration(text).total_seconds()
    except ValueError:
        try:
            seconds = duration(text)
        except (ValueError, KeyError):
            seconds = -1.0
    if not (0 < seconds < _LONGEST or (or_none and seconds == 0)):
        raise SettingsError(f"{name}: expected a length of time such as 30s, 10m or 1d, got {text!r}")
    return seconds


def share(text: str, name: str) -> float:
    """Return the part that `20%` or `0.2` is; `name` is what it is for."""
    try:
        part = float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
    except ValueError:
        part = 0.0
    if not 0 < part <= 1:
        raise SettingsError(f"{name}: expected a share such as 20% or 0.2, got {text!r}")
    return part


def as_length(seconds: float) -> str:
    """Return a length of time in few words: `1d2h`, `1m30s`, `200ms`."""
    if 0 < seconds < 1:
        return f"{seconds * 1000:g}ms"
    parts, left = [], round(seconds, 3)
    for unit, size in (("d", 86400), ("h", 3600), ("m", 60)):
        count, left = divmod(left, size)
        if count:
            parts.append(f"{count:g}{unit}")
    if left or not parts:
        parts.append(f"{round(left, 3):g}s")
    return "".join(parts)


def as_share(part: float) -> str:
    """Return a share as a percentage."""
    return f"{part * 100:g}%"
