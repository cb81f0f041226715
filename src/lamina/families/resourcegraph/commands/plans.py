"""Rollbacks and pins as plans, for the commands that all families share."""

from __future__ import annotations

from collections.abc import Collection

from lamina.core.model.plan import Plan, change, one_stage
from lamina.core.model.world import World
from lamina.core.rollout.history import history, rollback_target
from lamina.core.rollout.revision import Revision
from lamina.errors import RevisionNotFound, SettingsError
from lamina.families.resourcegraph.api import generated_kind
from lamina.families.resourcegraph.commands.facts import Facts, is_definition, number
from lamina.families.resourcegraph.commands.rows import current_revision
from lamina.families.resourcegraph.labels import (
    DEFINITION,
    DEFINITION_REVISION,
    INPUT_REVISION,
    PIN,
    ROLLBACK,
    ROLLBACK_INPUT,
)
from lamina.objects import meta
from lamina.objects.types import GroupKind, Obj, Ref


def roll_back(world: World, ref: Ref, to: int | None) -> Plan:
    """
    Return the plan that asks for a rollback: of a definition to a revision, of an instance to an input revision.

    Without a number, it is the one before the current. Raises RevisionNotFound for one that is not kept.
    """
    owner = _owner(world, ref)
    kept = _revisions(world, owner)
    current = current_revision(Facts(ref=ref, owner=owner, revisions=tuple(kept)))
    past = history(Revision(number=number(one), name=meta.name(one), snapshot={}) for one in kept)
    wanted = str(rollback_target(ref, past, current, to).number)
    key, what = (ROLLBACK, "revision") if is_definition(owner) else (ROLLBACK_INPUT, "input revision")
    return _annotate(owner, key, wanted, f"rolling back {ref} to {what} {wanted}")


def pin(world: World, ref: Ref, to: int | None) -> Plan:
    """Return the plan that pins an instance to a revision of its definition, or without a number unpins it."""
    owner = _owner(world, ref)
    if is_definition(owner):
        raise SettingsError(f"{ref} has no pins: its instances have them")
    if to is None:
        return _annotate(owner, PIN, None, f"unpinning {ref}")
    kind = GroupKind(ref.group, ref.kind)
    definition = next((one for one in world.every(DEFINITION) if generated_kind(one) == kind), None)
    kept = [number(one) for one in _revisions(world, definition)] if definition is not None else []
    if to not in kept:
        raise RevisionNotFound(meta.ref(definition) if definition is not None else ref, to, kept)
    return _annotate(owner, PIN, str(to), f"pinning {ref} to RGD revision {to}")


def _owner(world: World, ref: Ref) -> Obj:
    owner = world.get(ref)
    if owner is None:
        raise SettingsError(f"{ref} does not exist")
    return owner


def _revisions(world: World, owner: Obj) -> Collection[Obj]:
    kind = DEFINITION_REVISION if is_definition(owner) else INPUT_REVISION
    return sorted(world.owned_by(meta.uid(owner), kind), key=number)


def _annotate(owner: Obj, key: str, value: str | None, because: str) -> Plan:
    if meta.annotations(owner).get(key) == value:
        return Plan(because=because)
    edit = change(owner, {"metadata": {"annotations": {key: value}}})
    return one_stage("annotate", [edit], because=because)
