"""Gathers the view of one instance, by indexes: nothing is looked through."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from lamina.core.model.world import World, derived
from lamina.families.resourcegraph.definitions.crd_cache import has_lost_crd, marks_of
from lamina.families.resourcegraph.definitions.view import parse_revision, revisions_of
from lamina.families.resourcegraph.instances.applyset import applyset_id, membership
from lamina.families.resourcegraph.instances.input_revisions import from_history, from_objects
from lamina.families.resourcegraph.instances.view import HISTORY, Setup, View, current_revision
from lamina.families.resourcegraph.labels import INPUT_REVISION, PART_OF
from lamina.objects import meta
from lamina.objects.types import GroupKind, Obj, Ref


def gather(setup: Setup, world: World, ref: Ref) -> View | None:
    """Return the view of an instance, or None where it does not exist."""
    if GroupKind(ref.group, ref.kind) != setup.kind:
        return None
    obj, kind = world.get(ref), world.kinds.find(setup.api_version, setup.kind.kind)
    if obj is None or kind is None:
        return None
    definition = world.get(setup.definition_ref) if setup.definition else None
    revisions = revisions_of(world, setup.definition, definition)
    authored = _authored(revisions.get(current_revision(definition)))
    # Not where the author has a field of that name.
    inline = setup.is_inline and HISTORY not in authored
    listed = (obj.get("status") or {}).get(HISTORY)
    kinds = {kind for one in revisions.values() for kind in derived(parse_revision, one).kinds}
    uid = meta.uid(obj)
    stored = (one for one in world.owned_by(uid, INPUT_REVISION) if meta.is_controlled_by(one, uid))
    return View(
        setup=setup,
        obj=obj,
        kind=kind,
        kinds=world.kinds,
        definition=definition,
        revisions=revisions,
        inputs=from_history(listed) if inline else from_objects(stored),
        is_inline=inline,
        authored=authored,
        children=tuple(filter(membership(obj), _labelled(world, setup, applyset_id(obj)))),
        marks=marks_of(world, kinds),
        find=world.get,
        has_lost_crd=partial(has_lost_crd, world),
    )


def _authored(revision: Obj | None) -> frozenset[str]:
    """Return the names of the status fields that the author of a revision declares."""
    schema = ((revision or {}).get("spec") or {}).get("schema") or {}
    return frozenset(schema.get("status") or ())


def _labelled(world: World, setup: Setup, id: str) -> Iterator[Obj]:
    for kind in setup.child_kinds:
        yield from world.by_index(kind, by_part_of, id)


def by_part_of(child: Obj) -> tuple[str, ...]:
    """Index an object by the ApplySet that it is a member of."""
    id = meta.labels(child).get(PART_OF)
    return (id,) if id else ()


def by_applyset(instance: Obj) -> tuple[str, ...]:
    """Index an instance by its id as an ApplySet."""
    return (applyset_id(instance),)
