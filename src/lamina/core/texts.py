"""Lists in messages, which are cut where they are long."""

from __future__ import annotations

from collections.abc import Sequence

_MOST = 5


def joined(texts: Sequence[str], by: str = "; ", *, most: int = _MOST) -> str:
    """Return texts in one line: the first ones, and how many more there are."""
    more = f"{by}and {len(texts) - most} more" if len(texts) > most else ""
    return by.join(texts[:most]) + more
