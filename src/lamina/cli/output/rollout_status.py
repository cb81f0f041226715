"""Reads the rollout status of owners from a cluster, for the commands that show it."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from lamina.cli.options.cluster_flags import not_rolled_out
from lamina.client.client import Client
from lamina.core.model.effects import Ask
from lamina.core.model.family import Family
from lamina.core.model.queries import Answer, Query
from lamina.core.model.query_rounds import decided
from lamina.core.rollout.owner_status import OwnerStatus
from lamina.families.registry import chosen
from lamina.objects.types import Ref
from lamina.runtime.cache.lister import Lister
from lamina.runtime.controller.driver import drive
from lamina.runtime.controller.snapshot import Snapshot


async def family_world(client: Client, family: Family, snapshot: Snapshot | None = None) -> Lister:
    """Return the world of a family: everything that its sources and controllers watch."""
    snapshot = snapshot or await Snapshot.of(client)
    running = await snapshot.controllers(family.controllers, family.sources)
    watches = [watch for source in family.sources for watch in source.watches]
    watches += [watch for controller in running for watch in controller.watches]
    return await snapshot.world(watches)


async def live_owner_status(
    snapshot: Snapshot, family: Family, world: Lister, ref: Ref
) -> OwnerStatus | None:
    """Return the rollout status of an owner of a family, from its objects as they are now."""
    if family.live_status is None:
        return family.owner_status(world, ref)

    async def answer(ask: Ask) -> Mapping[Query, Answer]:
        return await snapshot.ask(ask.queries)

    return await drive(decided(partial(family.live_status, world, ref), family.name), answer)


async def owner_status_of(client: Client, ref: Ref) -> tuple[Family, Lister, OwnerStatus]:
    """Return the rollout status of an owner, with the family that reports it and that family's world."""
    snapshot = await Snapshot.of(client)
    for family in chosen("all"):
        world = await family_world(client, family, snapshot)
        owner_status = await live_owner_status(snapshot, family, world, ref)
        if owner_status is not None:
            return family, world, owner_status
    raise not_rolled_out(ref)
