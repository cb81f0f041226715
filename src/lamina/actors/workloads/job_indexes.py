"""The completion indexes of pods, and the indexes without a pod."""

from __future__ import annotations

from collections.abc import Collection

from lamina.objects import meta
from lamina.objects.types import Obj

INDEX = "batch.kubernetes.io/job-completion-index"


def index_of(pod: Obj) -> int | None:
    """Return the completion index that a pod is annotated with."""
    text = meta.annotations(pod).get(INDEX) or ""
    return int(text) if text.isascii() and text.isdigit() else None


def valid_index(pod: Obj, completions: int) -> int | None:
    """Return the completion index of a pod if it is below the Job's completions."""
    index = index_of(pod)
    return index if index is not None and index < completions else None


def first_free(count: int, completions: int, taken: Collection[int]) -> list[int]:
    """Return the lowest indexes that are not in `taken`, at most `count`."""
    free: list[int] = []
    for index in range(completions):
        if len(free) >= count:
            break
        if index not in taken:
            free.append(index)
    return free
