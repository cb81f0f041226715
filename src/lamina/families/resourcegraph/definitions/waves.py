"""In which waves the instances of a definition would move to a new revision, if each of them completes it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from lamina.core.rollout.preview import ChangeKind, TargetChange
from lamina.families.resourcegraph.definitions.instance_facts import InstanceFacts, population
from lamina.families.resourcegraph.definitions.propagate_when import let_through
from lamina.families.resourcegraph.definitions.view import Revision, View


def waves(view: View, published: Revision, instances: Sequence[InstanceFacts]) -> Iterator[TargetChange]:
    """Yield what becomes of each instance; raises GateError where propagateWhen cannot be evaluated."""
    following = population(instances)
    moved: dict[str, int] = {}
    while opened := _opened(view, published, following, moved):
        wave = max(moved.values(), default=0) + 1
        moved |= dict.fromkeys(opened, wave)
    for one in instances:
        if not one.is_deleting:
            step = moved.get(one.uid, 0)
            held = one.held or ("" if step else "propagateWhen holds it back")
            yield TargetChange(
                target=one.key, kind=ChangeKind.UPDATE, revision=one.current, step=step, message=held
            )


def _opened(
    view: View, published: Revision, following: Sequence[InstanceFacts], moved: dict[str, int]
) -> tuple[str, ...]:
    if not view.stated.propagate_when:
        return tuple(one.uid for one in following if one.uid not in moved)
    seen = [
        replace(one, observed=published.number, is_ready=True) if one.uid in moved else one
        for one in following
    ]
    return tuple(one.uid for one in let_through(view, published, seen, lambda one: one.uid not in moved))
