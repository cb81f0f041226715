"""Lengths of time as Kubernetes' own programs write them: `1m30s`, `500ms`."""

from __future__ import annotations

import re
from datetime import timedelta

_PART = re.compile(r"(\d+\.?\d*|\.\d+)(ns|us|µs|μs|ms|s|m|h)", re.ASCII)
_MICROSECONDS = {
    "ns": 0.001,
    "us": 1,
    "µs": 1,
    "μs": 1,
    "ms": 1_000,
    "s": 1_000_000,
    "m": 60_000_000,
    "h": 3_600_000_000,
}


def parse_duration(text: str) -> timedelta:
    """Return the length of time a text names; ValueError where it names none."""
    unsigned = text[1:] if text[:1] in ("+", "-") else text
    if unsigned == "0":
        return timedelta(0)
    parts = _PART.findall(unsigned)
    if not parts or "".join(number + unit for number, unit in parts) != unsigned:
        raise ValueError(f'expected a duration such as "10s" or "1m30s", got "{text}"')
    try:
        length = timedelta(microseconds=sum(float(number) * _MICROSECONDS[unit] for number, unit in parts))
    except OverflowError:
        raise ValueError(f'"{text}" is longer than anybody can wait') from None
    return -length if text.startswith("-") else length
