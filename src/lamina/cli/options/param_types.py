"""Durations and shares on the command line: parsing and formatting."""

from __future__ import annotations

from lamina.errors import SettingsError
from lamina.objects.durations import seconds_with_days

_LONGEST = 1e9
"""In seconds; the sum with the current time is still a valid date."""


def parse_seconds(text: str, name: str, *, allow_zero: bool = False) -> float:
    """Return the seconds of `90s`, `1h30m`, `2d`, `1d12h` or a bare number; `name` is the parameter, for the error."""
    try:
        seconds = seconds_with_days(text)
    except ValueError:
        seconds = -1.0
    if not (0 < seconds < _LONGEST or (allow_zero and seconds == 0)):
        raise SettingsError(f"{name}: expected a duration such as 30s, 10m or 1d, got {text!r}")
    return seconds


def parse_share(text: str, name: str) -> float:
    """Return the fraction of `20%` or `0.2`; `name` is the parameter, for the error."""
    try:
        share = float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
    except ValueError:
        share = 0.0
    if not 0 < share <= 1:
        raise SettingsError(f"{name}: expected a share such as 20% or 0.2, got {text!r}")
    return share


def format_seconds(seconds: float) -> str:
    """Return a duration as `1d2h`, `1m30s` or `200ms`."""
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


def format_share(share: float) -> str:
    """Return a share as a percentage."""
    return f"{share * 100:g}%"
