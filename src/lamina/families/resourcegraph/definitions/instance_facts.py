"""What is known of the instances of a definition: their revisions, and whether they follow new ones."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from operator import attrgetter

from msgspec import Struct, structs

from lamina.core.model.memo import Memo
from lamina.core.model.object_map import ObjectMap, object_map
from lamina.families.resourcegraph.api import UpdatePolicy
from lamina.families.resourcegraph.labels import (
    INPUT_REVISION_LABEL,
    PIN,
    RGD_REVISION_LABEL,
    UPDATE_POLICY,
    is_suspended,
)
from lamina.objects import conditions, meta
from lamina.objects.numbers import positive, whole
from lamina.objects.types import Obj


class InstanceFacts(Struct, frozen=True, kw_only=True, eq=False):
    """
    One instance.

    `current` is the revision that it was admitted to, `observed` the last one that it
    completed, 0 where it has none. `held` says why it follows no new revision.
    """

    obj: Obj
    uid: str
    age: tuple[str, str, str]
    """When it was created, its namespace and its name: instances are ordered by it."""
    current: int
    observed: int
    pin: int
    """The revision that it is pinned to; 0 without a pin, or with one that is no number."""
    is_pinned: bool
    held: str
    is_ready: bool
    is_deleting: bool

    @property
    def key(self) -> str:
        _, namespace, name = self.age
        return f"{namespace}/{name}" if namespace else name

    @property
    def is_following(self) -> bool:
        """Say whether it takes part in the propagation of a revision."""
        return not self.held and not self.is_deleting


def facts(obj: Obj) -> InstanceFacts:
    """Return what is known of an instance."""
    status, annotations, metadata = obj.get("status") or {}, meta.annotations(obj), meta.metadata(obj)
    pin = annotations.get(PIN)
    return InstanceFacts(
        obj=obj,
        uid=meta.uid(obj),
        age=(metadata.get("creationTimestamp") or "", meta.namespace(obj), meta.name(obj)),
        current=whole(status.get("currentRGDRevision")),
        observed=whole(status.get("observedRGDRevision")),
        pin=positive(pin or ""),
        is_pinned=pin is not None,
        held=_held(annotations),
        is_ready=_is_ready(obj),
        is_deleting=meta.is_deleting(obj),
    )


def all_facts(memo: Memo, objects: Collection[Obj]) -> Sequence[InstanceFacts]:
    """Return what is known of instances, oldest first; only what has changed since the last pass is computed."""
    return sorted(memo.update(_entries, "instances", objects).entries.values(), key=attrgetter("age"))


def _entries(
    last: ObjectMap[str, InstanceFacts] | None, objects: Collection[Obj]
) -> ObjectMap[str, InstanceFacts]:
    return object_map(last, objects, lambda obj: (meta.uid(obj), facts(obj)))


def affected(before: Obj, after: Obj) -> tuple[str, ...] | None:
    """Return no subscriber where a change of an instance leaves its facts as they are, else all."""
    old, new = (structs.asdict(facts(one)) | {"obj": None} for one in (before, after))
    return () if old == new else None


def _held(annotations: Mapping[str, str]) -> str:
    if not annotations:
        return ""
    if (pin := annotations.get(PIN)) is not None:
        return f"pinned to revision {pin}"
    if is_suspended(annotations):
        return "suspended"
    policy = annotations.get(UPDATE_POLICY) or UpdatePolicy.AUTO
    return "" if policy == UpdatePolicy.AUTO else f"its update policy is {policy}"


def _is_ready(obj: Obj) -> bool:
    found = conditions.find(conditions.of(obj), "Ready")
    if found is None:
        # Where the author declares conditions, the built-in ones are not written.
        return (obj.get("status") or {}).get("state") == "ACTIVE"
    return found.get("status") == "True" and (found.get("observedGeneration") or 0) == meta.generation(obj)


def counts(instances: Iterable[InstanceFacts]) -> Counter[int]:
    """Return how many instances that are not being deleted are on each revision."""
    return Counter(one.current for one in instances if one.current and not one.is_deleting)


def referenced(instances: Iterable[InstanceFacts]) -> frozenset[int]:
    """Return the revisions that instances need, those that are being deleted included."""
    found = {number for one in instances for number in (one.pin, one.current, one.observed)}
    return frozenset(found - {0})


def newest_recorded(inputs: Iterable[Obj], instances: Iterable[Obj]) -> frozenset[int]:
    """Return the revisions that the newest input revision of each instance names, given metadata of input revisions."""
    owners = {meta.uid(one) for one in instances}
    newest: dict[str, tuple[int, int]] = {}
    for one in inputs:
        controller, labels = meta.controller_of(one), meta.labels(one)
        if controller is not None and (uid := controller["uid"]) in owners:
            number, revision = (
                positive(labels.get(name) or "") for name in (INPUT_REVISION_LABEL, RGD_REVISION_LABEL)
            )
            newest[uid] = max(newest.get(uid, (0, 0)), (number, revision))
    return frozenset(revision for _, revision in newest.values())


def population(instances: Sequence[InstanceFacts]) -> Sequence[InstanceFacts]:
    """Return those of some instances that take part in a propagation."""
    return [one for one in instances if one.is_following]
