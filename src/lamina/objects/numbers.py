"""Numbers as labels, annotations and statuses state them, which any user may write."""

from __future__ import annotations

_MOST_DIGITS = 18
"""A number of more digits is larger than what the server stores, and Python refuses to read a very long one."""


def positive(text: str) -> int:
    """Return a positive integer that is written in decimal digits alone; 0 for any other text."""
    is_number = text.isascii() and text.isdigit() and not text.startswith("0")
    return int(text) if is_number and len(text) <= _MOST_DIGITS else 0


def whole(value: object) -> int:
    """Return an integer of an object; 0 for any other value."""
    return value if isinstance(value, int) and not isinstance(value, bool) else 0
