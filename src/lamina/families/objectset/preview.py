"""Preview: which objects a new revision would create, take over and delete, phase by phase, before it is made."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime

from msgspec.structs import replace

from lamina.core.model.edited_world import EditedWorld
from lamina.core.model.queries import Answers, Query
from lamina.core.model.world import World
from lamina.core.phases.live_objects import live_objects, unfollowed
from lamina.core.phases.manifest import Manifest, ObjectKey
from lamina.core.phases.owner import PhaseOwner
from lamina.core.phases.preflight import violations
from lamina.core.phases.preview import given_up, object_change, refusal
from lamina.core.rollout.preview import ChangeKind, Preview, TargetChange
from lamina.errors import SpecError
from lamina.families.objectset import lineage
from lamina.families.objectset.deployments import view as deployment_view
from lamina.families.objectset.deployments.template import find, new_set
from lamina.families.objectset.labels import DEPLOYMENTS, SETS
from lamina.families.objectset.reporting import read_controller_of
from lamina.families.objectset.set_facts import facts, objects_of_sets
from lamina.families.objectset.sets.view import PhaseView, gather, owner_of, what_is_invalid
from lamina.families.objectset.sets.view import View as SetView
from lamina.objects import meta
from lamina.objects.types import Made, Obj

_UNCREATED = "uid of a set that does not exist yet"


def plan(world: World, owner: Obj, answers: Answers, now: datetime) -> Preview | tuple[Query, ...] | None:
    """Return what an edited deployment or a new set would do to objects, or what has to be asked before that is known."""
    kind = meta.group_kind(owner)
    if kind in SETS:
        return _preview(world, owner, owner, answers, "")
    if kind not in DEPLOYMENTS:
        return None
    view = deployment_view.gather(EditedWorld(world, [owner]), meta.ref(owner))
    if view is None:
        return None
    if view.spec is None:
        return Preview(owner=owner, goal=0, changes=(), failure=SpecError(view.error))
    found = find(view)
    if found.current is not None:
        because = f"revision {found.current.number} has this template"
        return _preview(world, owner, found.current.obj, answers, because)
    if not view.spec.template.spec.phases:
        because = "spec.template.spec.phases is empty, so there is nothing to roll out"
        return Preview(owner=owner, goal=0, changes=(), because=because)
    new = _new(view)
    return _preview(world, owner, new, answers, f"a new revision, {meta.name(new)}, would be created")


def _new(view: deployment_view.View) -> Made:
    """Return the set that would be created, under its next free name."""
    made = new_set(view, find(view))
    if made.collisions is not None:
        counted = {
            **view.obj,
            "status": {**(view.obj.get("status") or {}), "collisionCount": made.collisions},
        }
        view = replace(view, obj=counted)
        made = new_set(view, find(view))
    assert made.obj is not None, "a name that is free is not taken"
    return made.obj


def _preview(
    world: World, owner: Obj, obj: Obj, answers: Answers, because: str
) -> Preview | tuple[Query, ...] | None:
    known = obj if meta.uid(obj) else meta.with_metadata(obj, uid=_UNCREATED)
    view = gather(EditedWorld(world, [known]), meta.ref(known))
    assert view is not None, "an edited world has the edited object"
    if wrong := what_is_invalid(view):
        return Preview(owner=owner, goal=0, changes=(), because=because, failure=SpecError(wrong))
    here = [one for phase in view.phases if not phase.place for one in phase.manifests]
    if queries := unfollowed(here, answers):
        return queries
    number = lineage.number(known) or lineage.derived_number(known, view.lineage.others)
    lives = live_objects(here, answers)
    set_owner = replace(owner_of(view), revision=number)
    refused = [
        f'Phase "{one.phase}", {one.key}: {what}' for one in here for what in violations(set_owner, one)
    ]
    refused += [
        f"{phase.name}/{one.key}: {why}"
        for phase in view.phases
        for one in phase.manifests
        if not phase.place and (why := refusal(_owner(set_owner, phase), one, lives.get(one.key)))
    ]
    kept = {one.key for phase in view.phases for one in phase.manifests}
    live, slices = filter(lineage.is_live, view.lineage.others), view.lineage.slices
    older = [one for one in facts(live, slices, view.kinds) if one.number < number]
    left = objects_of_sets(older, slices, view.kinds)
    given = (change for one in left for change in given_up(one, kept, number))
    changes = (*_written(view, set_owner, lives), *given)
    return Preview(
        owner=owner,
        goal=number,
        changes=changes,
        because=because,
        failure=SpecError(", ".join(refused)) if refused else None,
    )


def _written(view: SetView, owner: PhaseOwner, lives: Mapping[ObjectKey, Obj]) -> Iterator[TargetChange]:
    """Yield what becomes of the objects of a revision; those of one phase are one step."""
    for place, phase in enumerate(view.phases, start=1):
        for one in phase.manifests:
            if phase.place:
                change = _elsewhere(view, phase.class_, one)
            else:
                change = object_change(_owner(owner, phase), one, lives.get(one.key))
            if change is not None:
                yield replace(change, target=f"{phase.name}/{one.key}", step=place)


def _elsewhere(view: SetView, class_: str, manifest: Manifest) -> TargetChange | None:
    """Return what becomes of an object that the controller of a class lays, as far as revisions report it."""
    if manifest.key in read_controller_of(view.obj):
        return None
    listed = next(
        (one for one in reversed(view.lineage.others) if manifest.key in read_controller_of(one)), None
    )
    message = f'by the controller of class "{class_}"'
    if listed is None:
        return TargetChange(target=str(manifest.key), kind=ChangeKind.CREATE, message=message)
    return TargetChange(
        target=str(manifest.key),
        kind=ChangeKind.UPDATE,
        revision=lineage.number(listed),
        message=f"taken over from {meta.ref(listed)} {message}",
    )


def _owner(owner: PhaseOwner, phase: PhaseView) -> PhaseOwner:
    return replace(owner, obj=phase.live) if phase.live is not None else owner
