"""
Which revisions are kept: the current one, those that are needed, and as many before it as the limit says.

A revision is deleted after a live read of all instances, since a cache may lack one that
needs it. Its finalizer holds it, also where it is deleted by hand, as long as it is needed.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from datetime import datetime

from msgspec import Struct
from msgspec.structs import replace

from lamina.core.model.plan import Stage, delete, remove_finalizer
from lamina.core.model.queries import Answers
from lamina.families.resourcegraph import counters
from lamina.families.resourcegraph.definitions import events
from lamina.families.resourcegraph.definitions.queried import live_needed
from lamina.families.resourcegraph.definitions.view import Revision, View
from lamina.families.resourcegraph.labels import FINALIZER
from lamina.objects import meta


def limit_of(view: View) -> int:
    """Return how many revisions before the current one are kept."""
    stated = view.stated.revision_management.history_limit
    return view.options.history_limit if stated is None else stated


def is_kept(number: int, current: int, limit: int, needed: Collection[int]) -> bool:
    """Say whether a revision is kept; the distance to the current one is that of the numbers."""
    return number in needed or current - number <= limit


class Pruning(Struct, frozen=True):
    """What deletes revisions that are not kept, and releases those that are being deleted already."""

    numbers: frozenset[int] = frozenset()
    stages: tuple[Stage, ...] = ()


def pruning(view: View, needed: Collection[int], answers: Answers, now: datetime) -> Pruning:
    """Return which revisions go, of those that are not needed; raises Unanswered."""
    candidates = tuple(_candidates(view, needed))
    live = live_needed(view, answers) if candidates else None
    confirmed = [one for one in candidates if live is not None and one.number not in live]
    if not confirmed:
        return Pruning()
    actions = tuple(
        remove_finalizer(one.obj, FINALIZER)
        if meta.is_deleting(one.obj)
        else replace(delete(one.obj), counters=(counters.pruned(),))
        for one in confirmed
    )
    news = tuple(
        events.pruned(view.definition, one.name, one.number, now)
        for one in confirmed
        if not meta.is_deleting(one.obj)
    )
    stages = (Stage("prune revisions", actions), Stage("emit events", news))
    return Pruning(frozenset(one.number for one in confirmed), stages)


def _candidates(view: View, needed: Collection[int]) -> Iterator[Revision]:
    limit = limit_of(view)
    current = view.current.number if view.current is not None else 0
    for one in view.revisions:
        if meta.is_deleting(one.obj):
            if one.number not in needed and FINALIZER in meta.finalizers(one.obj):
                yield one
        elif not is_kept(one.number, current, limit, needed):
            yield one
