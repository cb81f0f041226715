"""What commands need of a hub: the status of a replica set, its rollback, a preview of an edit, the health of a work."""

from __future__ import annotations

from datetime import datetime

from lamina.core.health.kstatus import Health
from lamina.core.model.plan import Plan
from lamina.core.model.queries import Answers, Query
from lamina.core.model.world import World
from lamina.core.rollout.owner_status import OwnerStatus
from lamina.core.rollout.preview import Preview
from lamina.errors import LaminaError
from lamina.families.manifestwork.hub.controller import Options, hub
from lamina.families.manifestwork.hub.owner_status import owner_status
from lamina.families.manifestwork.hub.preview import plan
from lamina.families.manifestwork.hub.rollback import rollback
from lamina.families.manifestwork.hub.view import gather
from lamina.families.manifestwork.hub.work_status import work_health
from lamina.families.manifestwork.labels import REPLICA_SET, SCORE, WORK
from lamina.objects import meta
from lamina.objects.types import GroupKind, Obj, Ref

ELSEWHERE = (WORK, SCORE)
"""The kinds of what belongs to a replica set, and is in the namespaces of clusters."""


def replica_sets(world: World) -> tuple[Obj, ...]:
    return tuple(world.every(REPLICA_SET))


def status_of(world: World, ref: Ref) -> OwnerStatus | None:
    view = gather(world, ref)
    return owner_status(view) if view is not None else None


def roll_back(world: World, ref: Ref, to: int | None) -> Plan:
    view = gather(world, ref)
    if view is None:
        raise LaminaError(f"{ref} does not exist")
    return rollback(view, to)


def preview_edit(
    options: Options, world: World, owner: Obj, answers: Answers, now: datetime
) -> Preview | tuple[Query, ...] | None:
    return plan(hub(options), world, owner, answers, now)


def health_of(obj: Obj) -> Health | None:
    ref = meta.ref(obj)
    return work_health(obj) if GroupKind(ref.group, ref.kind) == WORK else None
