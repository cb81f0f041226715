"""Writes of PlacementDecisions: a cluster is added to one before it is removed from another."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from lamina.core.model.plan import Action, Create, Patch, Stage, change, delete
from lamina.families.manifestwork.labels import (
    DECISION,
    GROUP_INDEX,
    GROUP_NAME,
    PLACEMENT_LABEL,
    PLACEMENT_VERSION,
)
from lamina.families.manifestwork.placement.groups import MOST_IN_ONE, Slice
from lamina.families.manifestwork.placement.view import listed
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
    placement: Obj,
    wanted: Sequence[Slice],
    there: Mapping[int, Obj],
    decisions: Iterable[Obj],
    *,
    as_seen: bool = False,
) -> tuple[Stage, ...]:
    """Return the stages that write the wanted decisions; `as_seen`, only at the versions that were read."""
    made: list[Action] = []
    for one in wanted:
        found = there.get(one.number)
        if found is None:
            made.append(Create(obj=_decision(placement, one)))
        elif _wrong_labels(placement, found, one):
            made.append(change(found, {"metadata": {"labels": _labels(placement, one)}}))
    moves = _moves(wanted, there)
    added = [_state(there[number], names, as_seen) for number, names in moves.first.items()]
    removed = [_state(there[number], names, as_seen) for number, names in moves.then.items()]
    keep = {decision_name(placement, one.number) for one in wanted}
    selected = {name for one in wanted for name in one.clusters}
    ended = [
        delete(one)
        for one in decisions
        if meta.name(one) not in keep
        and not meta.is_deleting(one)
        and not (set(listed(one)) & selected) - moves.present
    ]
    found_stages = (
        Stage("create decisions", tuple(made)),
        Stage("add clusters", tuple(added)),
        Stage("remove clusters", tuple(removed)),
        Stage("delete decisions", tuple(ended)),
    )
    return tuple(stage for stage in found_stages if stage.actions)


class _Moves(NamedTuple):
    """The clusters of each decision after the first and the second write, and those listed after the first."""

    first: dict[int, tuple[str, ...]]
    then: dict[int, tuple[str, ...]]
    present: set[str]


def _moves(wanted: Sequence[Slice], there: Mapping[int, Obj]) -> _Moves:
    """
    Return the writes in which no wanted cluster is ever missing from all decisions.

    A decision first gains clusters, and keeps those that move elsewhere and are not listed
    there yet. One that is too full for both waits for the others, unless all would wait.
    """
    home = {name: one.number for one in wanted for name in one.clusters}
    slices = {one.number: one.clusters for one in wanted if one.number in there}
    held = {number: listed(there[number]) for number in slices}
    known = {number: frozenset(names) for number, names in held.items()}
    first: dict[int, tuple[str, ...]] = {}
    crowded: set[int] = set()
    for number, names in slices.items():
        leaving = [one for one in held[number] if home.get(one, number) != number]
        kept = [one for one in leaving if one not in known.get(home[one], ())]
        if len(names) + len(kept) > MOST_IN_ONE:
            crowded.add(number)
        elif (new := tuple(sorted((*names, *kept)))) != held[number] or not _has_list(there[number]):
            first[number] = new
    if crowded and not first and len(slices) == len(wanted):
        # Two full decisions exchange clusters: both are written at once.
        first, crowded = {number: slices[number] for number in crowded}, set()
    after = {number: frozenset(first.get(number, held[number])) for number in slices}
    then = {
        number: names
        for number, names in slices.items()
        if number not in crowded
        and after[number] != frozenset(names)
        and all(one in after.get(home[one], ()) for one in after[number] if one in home)
    }
    return _Moves(first, then, {name for names in after.values() for name in names})


def _has_list(decision: Obj) -> bool:
    return "decisions" in (decision.get("status") or {})


def _state(decision: Obj, clusters: Sequence[str], as_seen: bool) -> Patch:
    decisions = [{"clusterName": name, "reason": ""} for name in clusters]
    # Without a version by default: the first of two writes changes it, and no other controller writes decisions.
    return Patch(
        ref=meta.ref(decision),
        uid=meta.uid(decision),
        version=meta.resource_version(decision) if as_seen else "",
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
