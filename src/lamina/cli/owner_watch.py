"""
Watches the status of owners: controllers that plan nothing report it at each change.

They have the keys and the watches of the controllers of the families, so that a change
is noticed here whenever it is noticed there.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from datetime import datetime

from msgspec.structs import replace

from lamina.cli.output.rollout_status import elsewhere
from lamina.client.client import Client
from lamina.clock import WallClock
from lamina.core.model.controller import AnyController, Controller, Source, Watch, no_keys
from lamina.core.model.family import Family
from lamina.core.model.plan import NOTHING, Plan
from lamina.core.model.queries import Answers, Query, Refused
from lamina.core.model.refused_reads import Refusals
from lamina.core.model.world import Change, World
from lamina.core.rollout.owner_status import OwnerStatus
from lamina.core.rollout.readable_status import readable_status, reported_status
from lamina.families.registry import chosen
from lamina.objects.kinds import Kinds
from lamina.objects.types import Ref
from lamina.runtime.controller.manager import Manager

Report = Callable[[Family, Ref, OwnerStatus | None], None]
"""
Called with a family, an object and the status that it has in this family.

The status is None where the object does not exist: it was deleted, if this family reported a status of it before.
"""
Synced = Callable[[], Awaitable[None]]
"""Called once all caches have synced: what did not exist before that is in none of them."""


Narrow = Callable[[Watch], Watch]


async def report_owners(
    client: Client, report: Report, done: asyncio.Event, namespace: str = "", *, synced: Synced | None = None
) -> None:
    """
    Report the status of each owner, at first and at each change, until `done` is set.

    With a namespace, objects of other namespaces are watched only where they belong to owners there.
    """
    families, narrow = chosen("all"), _narrowed(await client.discover(), namespace)
    sources = [_observed(family, source, report, narrow) for family in families for source in family.sources]
    fixed = [one for family in families for one in _observers(family, family.controllers, (), report, narrow)]
    manager = Manager(client, fixed, clock=WallClock(), sources=sources)
    watching, ending = asyncio.create_task(manager.run()), asyncio.create_task(_until(done, manager, synced))
    try:
        await asyncio.wait((watching, ending), return_when=asyncio.FIRST_COMPLETED)
        for task in (watching, ending):
            if task.done():
                await task
    finally:
        for task in (watching, ending):
            task.cancel()
        await asyncio.gather(watching, ending, return_exceptions=True)


async def _until(done: asyncio.Event, manager: Manager, synced: Synced | None) -> None:
    """Wait until `done` is set."""
    if synced is not None:
        await manager.ready()
        await synced()
    await done.wait()


def _narrowed(kinds: Kinds, namespace: str) -> Narrow:
    """Return the function that narrows a watch to a namespace, unless it is of what is elsewhere."""
    away = frozenset(elsewhere())
    others = [kind for kind in kinds if kind.group_kind in away]

    def narrow(watch: Watch) -> Watch:
        if not namespace or watch.namespace or any(map(watch.selects, others)):
            return watch
        return replace(watch, namespace=namespace)

    return narrow


def _observed(family: Family, source: Source, report: Report, narrow: Narrow) -> Source:
    """Return a source of observers: one for each controller of the source."""
    return replace(
        source,
        watches=tuple(map(narrow, source.watches)),
        controllers=lambda world: _observers(
            family, source.controllers(world), source.watches, report, narrow
        ),
    )


def _with_itself(watch: Watch) -> Watch:
    """Return a watch that enqueues the changed object, too: its controller may skip what it wrote itself."""

    def enqueue(world: World, change: Change) -> Iterable[Ref]:
        return dict.fromkeys((*watch.enqueue(world, change), change.ref))

    return replace(watch, enqueue=enqueue)


def _observers(
    family: Family, running: Sequence[AnyController], more: Sequence[Watch], report: Report, narrow: Narrow
) -> tuple[AnyController, ...]:
    """Return controllers with the same keys as those that run, the watches of all of them, and an empty plan."""
    watches = [*more, *(watch for controller in running for watch in controller.watches)]
    cached = tuple(replace(narrow(watch), enqueue=no_keys) for watch in watches)

    def status_of(seen: tuple[World, Ref], answers: Answers) -> OwnerStatus | tuple[Query, ...] | None:
        world, ref = seen
        is_refused = any(isinstance(answer, Refused) for answer in answers.known.values())
        # Objects in all namespaces are followed: a user of one namespace sees what revisions report of them.
        return (reported_status if is_refused else readable_status)(family, world, ref, answers, Refusals())

    def queries(seen: tuple[World, Ref], answers: Answers) -> tuple[Query, ...]:
        found = status_of(seen, answers)
        return found if isinstance(found, tuple) else ()

    def plan(seen: tuple[World, Ref], answers: Answers, now: datetime) -> Plan:
        found = status_of(seen, answers)
        assert not isinstance(found, tuple), "all queries are answered"
        # A child that the controllers of a family watch is no owner of it, and exists.
        if found is not None or seen[0].get(seen[1]) is None:
            report(family, seen[1], found)
        return NOTHING

    return tuple(
        Controller(
            name=controller.name,
            watches=(*(_with_itself(narrow(watch)) for watch in controller.watches), *cached),
            gather=lambda world, ref: (world, ref),
            queries=queries,
            plan=plan,
            config_hash=" ".join(one.config_hash for one in running),
        )
        for controller in running
    )
