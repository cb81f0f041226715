"""
The instances that a change enqueues.

A child enqueues the instance whose ApplySet it is in. The definition and its revisions enqueue
all instances only where what they decide has changed: their statuses are written often.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from lamina.core.crd.kinds import is_established
from lamina.core.model.world import Change, World, derived
from lamina.core.ownership.selector_index import by_uid
from lamina.families.resourcegraph.definitions.admission import admitted
from lamina.families.resourcegraph.definitions.crd_cache import schema_mark
from lamina.families.resourcegraph.hashes import label_value
from lamina.families.resourcegraph.instances.applyset import is_intact, is_inventory
from lamina.families.resourcegraph.instances.gather import by_applyset
from lamina.families.resourcegraph.instances.view import CURRENT_RGD, Setup, current_revision
from lamina.families.resourcegraph.labels import PART_OF, PIN, RGD_NAME
from lamina.objects import conditions, meta
from lamina.objects.types import GroupKind, Obj, Ref

_ROLLED_BACK = "RollbackSucceeded"


def instance_changed(world: World, change: Change) -> Iterable[Ref]:
    """Enqueue an instance, unless only its status has changed, or its inventory as the controller records it."""
    return () if change.preserves(_facts) else (change.ref,)


def deletion_changed(world: World, change: Change) -> Iterable[Ref]:
    """Enqueue an instance that is being deleted."""
    return (change.ref,) if meta.is_deleting(change.obj) and not change.preserves(_facts) else ()


def _facts(instance: Obj) -> Any:
    """Return what of an instance a plan for it depends on."""
    annotations = meta.annotations(instance)
    if not meta.is_deleting(instance):
        annotations = {key: value for key, value in annotations.items() if not is_inventory(key)}
    rolled_back = conditions.find(conditions.of(instance), _ROLLED_BACK)
    return (
        meta.uid(instance),
        meta.generation(instance),
        # After a change of its schema a server shows the same generation with other fields.
        instance.get("spec"),
        meta.is_deleting(instance),
        list(meta.finalizers(instance)),
        dict(meta.labels(instance)),
        dict(annotations),
        is_intact(instance),
        rolled_back and (rolled_back["status"], rolled_back.get("reason"), rolled_back.get("message")),
    )


def child_changed(setup: Setup, world: World, change: Change) -> Iterator[Ref]:
    """Yield the instances whose ApplySet an object is in, or was."""
    for id in {meta.labels(one).get(PART_OF) for one in change.versions}:
        if id:
            yield from map(meta.ref, world.by_index(setup.kind, by_applyset, id))


def input_changed(setup: Setup, world: World, change: Change) -> Iterator[Ref]:
    """Yield the instance of an input revision that appeared or is gone; its content never changes."""
    if change.before is not None and change.after is not None:
        return
    owner = meta.controller_of(change.obj)
    if owner is not None and owner["kind"] == setup.kind.kind:
        yield from map(meta.ref, world.by_index(setup.kind, by_uid, owner["uid"]))


def definition_changed(setup: Setup, world: World, change: Change) -> Iterator[Ref]:
    """Yield all instances where the definition has another current revision, or another kind of gate."""

    def facts(definition: Obj) -> Any:
        is_gated = bool((definition.get("spec") or {}).get("propagateWhen"))
        return meta.uid(definition), current_revision(definition), is_gated

    if meta.name(change.obj) == setup.definition and not change.preserves(facts):
        yield from _instances(setup, world)


def revision_changed(setup: Setup, world: World, change: Change) -> Iterator[Ref]:
    """Yield the instances that a revision is for: those that it admits, and those that need it when it appears or goes."""
    if meta.labels(change.obj).get(RGD_NAME) != label_value(setup.definition):
        return
    before, after = change.before, change.after
    if before is not None and after is not None:
        for uid in set(admitted(after)) - set(admitted(before)):
            yield from map(meta.ref, world.by_index(setup.kind, by_uid, uid))
        return
    number = (change.obj.get("spec") or {}).get("revision")

    is_current = number == current_revision(world.get(setup.definition_ref))

    def needs(instance: Obj) -> bool:
        known = (instance.get("status") or {}).get(CURRENT_RGD)
        return number == known or meta.annotations(instance).get(PIN) == str(number) or is_current

    yield from _instances(setup, world, needs)


def schema_changed(setup: Setup, world: World, change: Change) -> Iterator[Ref]:
    """Yield all instances where the schema of the kind of a child has changed."""
    spec = change.obj.get("spec") or {}
    kind = GroupKind(str(spec.get("group") or ""), str((spec.get("names") or {}).get("kind") or ""))
    if kind in setup.needed_kinds and not change.preserves(_schema):
        yield from _instances(setup, world)


def _schema(crd: Obj) -> Any:
    return derived(schema_mark, crd), is_established(crd)


def _instances(
    setup: Setup, world: World, wanted: Callable[[Obj], bool] = lambda instance: True
) -> Iterator[Ref]:
    return (meta.ref(one) for one in world.every(setup.kind) if wanted(one))
