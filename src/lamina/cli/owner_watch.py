"""
Watches the status of owners: controllers that plan nothing report it at each change.

They have the keys and the watches of the controllers of the families, so that a change
is noticed here whenever it is noticed there.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime

from msgspec.structs import replace

from lamina.client.client import Client
from lamina.clock import WallClock
from lamina.core.model.controller import AnyController, Controller, Source, Watch, no_keys
from lamina.core.model.family import Family
from lamina.core.model.plan import NOTHING, Plan
from lamina.core.model.queries import Answers, Query
from lamina.core.model.world import Change, World
from lamina.core.rollout.owner_status import OwnerStatus
from lamina.families.registry import chosen
from lamina.objects.types import Ref
from lamina.runtime.controller.manager import Manager

Report = Callable[[Ref, OwnerStatus | None], None]
"""Called with an owner and its status; with None once it is deleted."""


async def report_owners(client: Client, report: Report, done: asyncio.Event) -> None:
    """Report the status of each owner, at first and at each change, until `done` is set."""
    families = chosen("all")
    sources = [_observed(family, source, report) for family in families for source in family.sources]
    fixed = [one for family in families for one in _observers(family, family.controllers, (), report)]
    watching = asyncio.create_task(Manager(client, fixed, clock=WallClock(), sources=sources).run())
    ending = asyncio.create_task(done.wait())
    try:
        await asyncio.wait((watching, ending), return_when=asyncio.FIRST_COMPLETED)
        if watching.done():
            await watching
    finally:
        for task in (watching, ending):
            task.cancel()
        await asyncio.gather(watching, ending, return_exceptions=True)


def _observed(family: Family, source: Source, report: Report) -> Source:
    """Return a source of observers: one for each controller of the source."""
    return replace(
        source,
        controllers=lambda world: _observers(family, source.controllers(world), source.watches, report),
    )


def _with_itself(watch: Watch) -> Watch:
    """Return a watch that enqueues the changed object, too: its controller may skip what it wrote itself."""

    def enqueue(world: World, change: Change) -> Iterable[Ref]:
        return dict.fromkeys((*watch.enqueue(world, change), change.ref))

    return replace(watch, enqueue=enqueue)


def _observers(
    family: Family, running: Sequence[AnyController], more: Sequence[Watch], report: Report
) -> tuple[AnyController, ...]:
    """Return controllers with the same keys as those that run, the watches of all of them, and an empty plan."""
    watches = [*more, *(watch for controller in running for watch in controller.watches)]
    cached = tuple(replace(watch, enqueue=no_keys) for watch in watches)

    def status_of(seen: tuple[World, Ref], answers: Answers) -> OwnerStatus | tuple[Query, ...] | None:
        world, ref = seen
        if family.live_status is None:
            return family.owner_status(world, ref)
        return family.live_status(world, ref, answers)

    def queries(seen: tuple[World, Ref], answers: Answers) -> tuple[Query, ...]:
        found = status_of(seen, answers)
        return found if isinstance(found, tuple) else ()

    def plan(seen: tuple[World, Ref], answers: Answers, now: datetime) -> Plan:
        found = status_of(seen, answers)
        assert not isinstance(found, tuple), "all queries are answered"
        report(seen[1], found)
        return NOTHING

    return tuple(
        Controller(
            name=controller.name,
            watches=(*map(_with_itself, controller.watches), *cached),
            gather=lambda world, ref: (world, ref),
            queries=queries,
            plan=plan,
            config_hash=" ".join(one.config_hash for one in running),
        )
        for controller in running
    )
