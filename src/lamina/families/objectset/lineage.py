"""
Lineage: which sets are revisions of the same thing, and in which order.

Two sets are of one lineage where one names the other in `spec.previous`, where both carry
the label of the same deployment, or where others link them in these ways. A set without a
number gets the one after the highest of its previous sets, once all of these have one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from lamina.core.model.world import World
from lamina.core.ownership.controller_ref import controls
from lamina.core.ownership.selector_index import by_label, labelled
from lamina.core.phases.live_revisions import linked_to
from lamina.families.objectset.labels import CLUSTER_PHASE, CLUSTER_SET, OWNING_DEPLOYMENT, PHASE, SET
from lamina.objects import conditions, meta
from lamina.objects.types import Obj

PHASE_OF = {SET.kind: PHASE, CLUSTER_SET.kind: CLUSTER_PHASE}
"""The kind of the ObjectSetPhases of a kind of sets."""


def number(obj: Obj) -> int:
    """Return the number of a set, from its spec or from the status that earlier releases of upstream wrote; 0 for none."""
    for part in ("spec", "status"):
        found = (obj.get(part) or {}).get("revision")
        if isinstance(found, int) and found > 0:
            return found
    return 0


def previous_names(obj: Obj) -> list[str]:
    """Return the names of the sets from which a set may take objects over."""
    previous = (obj.get("spec") or {}).get("previous") or ()
    return [one["name"] for one in previous if one.get("name")]


def by_previous(obj: Obj) -> Iterator[str]:
    """Index a set by each set that it names as previous."""
    for name in previous_names(obj):
        yield f"{meta.namespace(obj)}/{name}"


def siblings(world: World, obj: Obj) -> tuple[Obj, ...]:
    """Return the other sets of the lineage of a set, oldest first."""
    namespace, kind = meta.namespace(obj), meta.group_kind(obj)
    labels: set[str] = set()

    def linked(this: Obj) -> Iterator[Obj]:
        earlier = (world.get(meta.ref(this)._replace(name=name)) for name in previous_names(this))
        yield from (one for one in earlier if one is not None)
        yield from world.by_index(kind, by_previous, f"{namespace}/{meta.name(this)}")
        deployment = meta.labels(this).get(OWNING_DEPLOYMENT)
        if deployment and deployment not in labels:
            labels.add(deployment)
            yield from world.by_index(kind, by_label, labelled(namespace, OWNING_DEPLOYMENT, deployment))

    return tuple(sorted(linked_to(obj, linked), key=in_order))


def are_linked(one: Obj, other: Obj) -> bool:
    """Say whether two sets of one kind and namespace are linked directly."""
    deployment = meta.labels(one).get(OWNING_DEPLOYMENT)
    return (
        bool(deployment and deployment == meta.labels(other).get(OWNING_DEPLOYMENT))
        or meta.name(other) in previous_names(one)
        or meta.name(one) in previous_names(other)
    )


def in_order(obj: Obj) -> tuple[int, str, str]:
    """Return the place of a set among the revisions of its lineage."""
    return number(obj), meta.metadata(obj).get("creationTimestamp") or "", meta.name(obj)


def controller_numbers(world: World, sets: Iterable[Obj]) -> dict[str, int]:
    """Return the numbers of sets by the uids under which they control objects: their own, and those of their ObjectSetPhases."""
    numbers: dict[str, int] = {}
    for one in sets:
        uid = meta.uid(one)
        phases = (each for each in world.owned_by(uid, PHASE_OF[one["kind"]]) if controls(uid, each))
        recorded = (one.get("status") or {}).get("remotePhases") or ()
        uids = (uid, *map(meta.uid, phases), *(each.get("uid") for each in recorded))
        numbers |= dict.fromkeys(filter(None, uids), number(one))
    return numbers


def derived_number(obj: Obj, earlier: Sequence[Obj]) -> int:
    """Return the number that a set without one gets; 0 as long as one of its previous sets has none, but may get one."""
    names = previous_names(obj)
    found = [one for one in earlier if meta.name(one) in names]
    numbers = [number(one) for one in found if number(one) or not is_archived(one)]
    if not all(numbers):
        return 0
    return max(numbers, default=0) + 1


# What a set reports


def is_archived(obj: Obj) -> bool:
    """Say whether a set has been archived, which is final."""
    return conditions.is_true(conditions.of(obj), "Archived")


def is_live(obj: Obj) -> bool:
    """Say whether a set still is to have objects: it is neither archived, nor about to be, nor being deleted."""
    state = (obj.get("spec") or {}).get("lifecycleState")
    return state != "Archived" and not is_archived(obj) and not meta.is_deleting(obj)


def has_succeeded(obj: Obj) -> bool:
    return conditions.is_true(conditions.of(obj), "Succeeded")


def is_available(obj: Obj) -> bool:
    """Say whether a set reports that it is available, in its current generation."""
    return conditions.is_true_now(obj, "Available")


def was_available(obj: Obj) -> bool:
    """Say whether a set was available by its last report, which holds until the next one."""
    return conditions.is_true(conditions.of(obj), "Available")
