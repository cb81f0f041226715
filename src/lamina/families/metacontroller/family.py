"""Metacontroller, as a family among others."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from msgspec.structs import replace

from lamina.core.model.edited_world import EditedWorld
from lamina.core.model.family import Family, OptionalStatus
from lamina.core.model.plan import Plan
from lamina.core.model.queries import Answers, Query
from lamina.core.model.state import State
from lamina.core.model.upstream_lease import UpstreamLease
from lamina.core.model.world import World
from lamina.core.rollout.history import History
from lamina.core.rollout.owner_status import OwnerStatus
from lamina.core.rollout.preview import Preview
from lamina.errors import LaminaError, SpecError
from lamina.families.metacontroller import preview
from lamina.families.metacontroller.controller import (
    DEFAULTS,
    Options,
    controller,
    setups,
    source,
    status_controller,
)
from lamina.families.metacontroller.crds import definitions
from lamina.families.metacontroller.owner_status import REVISION_KINDS, owner_state, owner_status
from lamina.families.metacontroller.rbac import edits, is_finalizer, rights
from lamina.families.metacontroller.rollback import rollback
from lamina.families.metacontroller.sync.gather import gather_any
from lamina.objects import meta
from lamina.objects.types import Obj, Ref


def family(options: Options = DEFAULTS) -> Family:
    """Return Metacontroller, run with these options."""
    return Family(
        name="metacontroller",
        definitions=definitions,
        controllers=(status_controller(options),),
        sources=(source(options, owner_state),),
        owners=lambda world: tuple(_owners(world, options)),
        owner_status=lambda world, ref: _owner_status(world, ref, options),
        rollback=lambda world, ref, to: _rollback(world, ref, to, options),
        plan=lambda world, owner, answers, now: _plan(world, owner, answers, now, options),
        rights=rights,
        is_finalizer=is_finalizer,
        revision_kinds=REVISION_KINDS,
        edits=edits,
        shared_definitions=(
            "compositecontrollers.metacontroller.k8s.io",
            "decoratorcontrollers.metacontroller.k8s.io",
        ),
        user_definitions=("controllerrevisions.metacontroller.k8s.io",),
        optional_status_fields={
            f"{plural}.metacontroller.k8s.io": OptionalStatus(
                fields=("status.conditions",),
                without="the state of controllers is in the log and in events only",
            )
            for plural in ("compositecontrollers", "decoratorcontrollers")
        },
        without_status=lambda why: family(replace(options, unstored=why)),
        upstream_leases=(
            UpstreamLease(upstream="Metacontroller", namespace="metacontroller", name="metacontroller"),
        ),
    )


def _owners(world: World, options: Options) -> Iterator[Obj]:
    """Yield the parents of all controllers, each once, however many work for it."""
    seen: set[str] = set()
    for setup in setups(world, options):
        for kind, rule in setup.parents.items():
            for obj in world.every(kind):
                if rule.wants(obj) and meta.uid(obj) not in seen:
                    seen.add(meta.uid(obj))
                    yield obj


def _owner_status(world: World, ref: Ref, options: Options) -> OwnerStatus | None:
    view, owner = gather_any(setups(world, options), world, ref), world.get(ref)
    if view is None or owner is None:
        return None
    if isinstance(view, SpecError):
        return OwnerStatus(
            owner=owner,
            history=History(),
            goal=0,
            state=State.DEGRADED,
            message=str(view),
            unrevised="its spec is refused",
            has_ended=True,
        )
    return owner_status(view)


def _rollback(world: World, ref: Ref, to: int | None, options: Options) -> Plan:
    view = gather_any(setups(world, options), world, ref)
    if view is None:
        raise LaminaError(f"{ref} is no parent of any controller")
    if isinstance(view, SpecError):
        raise view
    return rollback(view, to)


def _plan(
    world: World, owner: Obj, answers: Answers, now: datetime, options: Options
) -> Preview | tuple[Query, ...] | None:
    view = gather_any(setups(world, options), EditedWorld(world, [owner]), meta.ref(owner))
    if view is None:
        return None
    if isinstance(view, SpecError):
        raise view
    return preview.plan(controller(view.setup, options), view.setup, world, owner, answers, now)
