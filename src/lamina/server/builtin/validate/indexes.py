"""Sets of a Job's indexes, written as `1,3-5,7`."""

from __future__ import annotations

import re

from lamina.objects.printing import quoted


class _Wrong(ValueError):
    """What is wrong with a set of indexes."""


def indexed(text: str, completions: int) -> tuple[int, str]:
    """Return how many indexes a text names, and what is wrong with it, if anything is."""
    if not text:
        return 0, ""
    total, last = 0, -1
    try:
        for piece in text.split(","):
            start, end = _interval(piece, completions)
            if last >= start:
                return 0, f"non-increasing order, previous: {last}, current: {start}"
            total += end - start + 1
            last = end
    except _Wrong as wrong:
        return 0, str(wrong)
    return total, ""


def overlap(first: str, second: str, completions: int) -> int | None:
    """Return the lowest index that is in both sets."""
    if not first or not second:
        return None
    try:
        ours, theirs = (
            [_interval(piece, completions) for piece in one.split(",")] for one in (first, second)
        )
    except _Wrong:
        return None
    shared = [
        max(start, begin) for start, end in ours for begin, stop in theirs if start <= stop and begin <= end
    ]
    return min(shared, default=None)


def _interval(piece: str, completions: int) -> tuple[int, int]:
    ends = piece.split("-")
    if len(ends) > 2:
        rule = "violates the requirement that an index interval can have at most two parts separated by '-'"
        raise _Wrong(f"the fragment {quoted(piece)} {rule}")
    numbers = [_index(end, completions) for end in ends]
    if len(numbers) == 2 and numbers[0] >= numbers[1]:
        raise _Wrong(f"non-increasing order, previous: {numbers[0]}, current: {numbers[1]}")
    return numbers[0], numbers[-1]


def _index(text: str, completions: int) -> int:
    if not re.fullmatch("[+]?[0-9]{1,18}", text):
        raise _Wrong(f"cannot convert string to integer for index: {quoted(text)}")
    number = int(text)
    if number >= completions:
        raise _Wrong(f"too large index: {quoted(text)}")
    return number
