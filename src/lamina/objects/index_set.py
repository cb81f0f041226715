"""Sets of a Job's indexes and their text in its status: `1,3-5,7`. Three or more in a row are an interval."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import suppress

from lamina.objects.go_quote import quoted


class BadIndexes(ValueError):
    """A text is not a set of indexes; the message is kube-apiserver's."""


def parse(text: str | None, completions: int) -> frozenset[int]:
    """Return the indexes of a text below the number of completions; intervals that cannot be read are skipped."""
    found: set[int] = set()
    for piece in (text or "").split(","):
        with suppress(BadIndexes):
            ends = _ends(piece)
            found.update(range(ends[0], min(ends[-1], completions - 1) + 1))
    return frozenset(found)


def checked_count(text: str, completions: int) -> tuple[int, str]:
    """Return how many indexes a text has, and kube-apiserver's error if it is not an increasing set."""
    total, last = 0, -1
    try:
        for start, end in _intervals(text, completions):
            if last >= start:
                return 0, f"non-increasing order, previous: {last}, current: {start}"
            total += end - start + 1
            last = end
    except BadIndexes as wrong:
        return 0, str(wrong)
    return total, ""


def overlap(first: str, second: str, completions: int) -> int | None:
    """Return the lowest index that is in both sets; None also for a text that is not a set."""
    try:
        ours, theirs = (list(_intervals(text, completions)) for text in (first, second))
    except BadIndexes:
        return None
    shared = [
        max(start, begin) for start, end in ours for begin, stop in theirs if start <= stop and begin <= end
    ]
    return min(shared, default=None)


def to_text(indexes: Iterable[int]) -> str:
    """Return the text of a set of indexes."""
    return ",".join(_pieces(sorted(indexes)))


def _pieces(indexes: list[int]) -> Iterator[str]:
    position = 0
    while position < len(indexes):
        end = position
        while end + 1 < len(indexes) and indexes[end + 1] == indexes[end] + 1:
            end += 1
        first, last = indexes[position], indexes[end]
        if last - first >= 2:
            yield f"{first}-{last}"
        else:
            yield from map(str, indexes[position : end + 1])
        position = end + 1


def _intervals(text: str, completions: int) -> Iterator[tuple[int, int]]:
    for piece in text.split(",") if text else ():
        ends = _ends(piece, completions)
        if len(ends) == 2 and ends[0] >= ends[1]:
            raise BadIndexes(f"non-increasing order, previous: {ends[0]}, current: {ends[1]}")
        yield ends[0], ends[-1]


def _ends(piece: str, completions: int | None = None) -> list[int]:
    ends = piece.split("-")
    if len(ends) > 2:
        rule = "violates the requirement that an index interval can have at most two parts separated by '-'"
        raise BadIndexes(f"the fragment {quoted(piece)} {rule}")
    return [_index(end, completions) for end in ends]


def _index(text: str, completions: int | None) -> int:
    if not re.fullmatch("[+]?[0-9]{1,18}", text):
        raise BadIndexes(f"cannot convert string to integer for index: {quoted(text)}")
    number = int(text)
    if completions is not None and number >= completions:
        raise BadIndexes(f"too large index: {quoted(text)}")
    return number
