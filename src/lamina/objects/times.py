"""Timestamps of objects: RFC 3339 in UTC, with whole seconds or microseconds."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import lru_cache


@lru_cache(maxsize=256)
def stamp(moment: datetime) -> str:
    """Return a moment as a `Time`: whole seconds, truncated."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def micro_stamp(moment: datetime) -> str:
    """Return a moment as a `MicroTime`, always with six fraction digits."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def moment(text: str | None) -> datetime | None:
    """Return the moment of a timestamp; None where the text is not one."""
    if not text:
        return None
    try:
        read = datetime.fromisoformat(text)
    except ValueError:
        return None
    return read if read.tzinfo else None
