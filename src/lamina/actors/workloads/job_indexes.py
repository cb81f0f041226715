"""
Which indexes of a job are done, written as people write pages: `0-2,5,7,8`.

Sets of whole numbers, and the text a job's status keeps them in. Two numbers in
a row are written one by one, three or more as a range.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from lamina.objects import meta
from lamina.objects.types import Obj

INDEX = "batch.kubernetes.io/job-completion-index"


def index_of(pod: Obj) -> int | None:
    """Return which part of its job a pod does, if it says so."""
    text = meta.annotations(pod).get(INDEX) or ""
    return int(text) if text.isascii() and text.isdigit() else None


def valid_index(pod: Obj, completions: int) -> int | None:
    """Return which part of its job a pod does, if the job has such a part."""
    index = index_of(pod)
    return index if index is not None and index < completions else None


def read(text: str | None, completions: int) -> frozenset[int]:
    """Return the indexes a text names, below the number of completions; what makes no sense is passed over."""
    found: set[int] = set()
    for span in (text or "").split(","):
        first, dash, last = span.partition("-")
        if not first.isdigit() or (dash and not last.isdigit()):
            continue
        found.update(range(int(first), min(int(last or first), completions - 1) + 1))
    return frozenset(found)


def written(indexes: Iterable[int]) -> str:
    """Return the text for a set of indexes."""
    return ",".join(_spans(sorted(indexes)))


def _spans(indexes: list[int]) -> Iterator[str]:
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


def first_free(count: int, completions: int, taken: Collection[int]) -> list[int]:
    """Return the lowest indexes that nobody has taken, that many at most."""
    free: list[int] = []
    for index in range(completions):
        if len(free) >= count:
            break
        if index not in taken:
            free.append(index)
    return free
