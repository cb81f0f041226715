"""Writing decisions down: whoever gains a cluster does so before another gives it up."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from lamina.core.plan import Action, Create, Patch, Stage, change, delete
from lamina.families.manifestwork.names import (
    DECISION,
    GROUP_INDEX,
    GROUP_NAME,
    PLACEMENT_LABEL,
    PLACEMENT_VERSION,
)
from lamina.families.manifestwork.placement.groups import MOST_IN_ONE, Slice
from lamina.objects import meta
from lamina.objects.types import Made, Obj

_NUMBER = re.compile(r"[1-9][0-9]{0,8}", re.ASCII)


def by_number(placement: Obj, decisions: Iterable[Obj]) -> dict[int, Obj]:
    """Return the decisions of a placement by the number in their name; those named otherwise have none."""
    prefix = f"{meta.name(placement)}-decision-"
    found: dict[int, Obj] = {}
    for one in decisions:
        number = meta.name(one).removeprefix(prefix)
        if number != meta.name(one) and _NUMBER.fullmatch(number) and not meta.is_deleting(one):
            found[int(number)] = one
    return found


def decision_name(placement: Obj, number: int) -> str:
    return f"{meta.name(placement)}-decision-{number}"


def stages(
    placement: Obj, wanted: Sequence[Slice], there: Mapping[int, Obj], decisions: Iterable[Obj]
) -> tuple[Stage, ...]:
    """Return what makes the decisions be these."""
    selected = {name for one in wanted for name in one.clusters}
    made: list[Action] = []
    gained: list[Action] = []
    given_up: list[Action] = []
    for one in wanted:
        found = there.get(one.number)
        if found is None:
            made.append(Create(obj=_decision(placement, one)))
            continue
        if _wrong_labels(placement, found, one):
            made.append(change(found, {"metadata": {"labels": _labels(placement, one)}}))
        held = [own["clusterName"] for own in (found.get("status") or {}).get("decisions") or ()]
        both = [*one.clusters, *(name for name in held if name in selected and name not in one.clusters)]
        first = tuple(sorted(both[:MOST_IN_ONE]))
        if first != tuple(held) or "decisions" not in (found.get("status") or {}):
            gained.append(_state(found, first))
        if first != one.clusters:
            given_up.append(_state(found, one.clusters))
    keep = {decision_name(placement, one.number) for one in wanted}
    ended = [delete(one) for one in decisions if meta.name(one) not in keep and not meta.is_deleting(one)]
    if any(isinstance(one, Create) for one in made):
        # Those that are made hold nobody yet: until they do, nobody is given up for them.
        given_up, ended = [], []
    found_stages = (
        Stage("make decisions", tuple(made)),
        Stage("say who is chosen", tuple(gained)),
        Stage("say who is no longer chosen", tuple(given_up)),
        Stage("end decisions", tuple(ended)),
    )
    return tuple(stage for stage in found_stages if stage.actions)


def _state(decision: Obj, clusters: Sequence[str]) -> Patch:
    decisions = [{"clusterName": name, "reason": ""} for name in clusters]
    # Nobody else writes these, and the second of two would name a version that the first has ended.
    return Patch(
        ref=meta.ref(decision),
        uid=meta.uid(decision),
        version="",
        patch={"status": {"decisions": decisions}},
        subresource="status",
    )


def _labels(placement: Obj, one: Slice) -> Made:
    return {
        PLACEMENT_LABEL: meta.name(placement),
        GROUP_INDEX: str(one.group.index),
        GROUP_NAME: one.group.name,
    }


def _wrong_labels(placement: Obj, found: Obj, one: Slice) -> bool:
    has = meta.labels(found)
    return any(has.get(key) != value for key, value in _labels(placement, one).items())


def _decision(placement: Obj, one: Slice) -> Made:
    owner = {**meta.owner_ref(placement, controller=True, blocks=True), "apiVersion": PLACEMENT_VERSION}
    return {
        "apiVersion": PLACEMENT_VERSION,
        "kind": DECISION.kind,
        "metadata": {
            "name": decision_name(placement, one.number),
            "namespace": meta.namespace(placement),
            "labels": _labels(placement, one),
            "ownerReferences": [owner],
        },
    }
