"""The watches of an agent: works on the hub, and the records of what they created on its cluster."""

from __future__ import annotations

from collections.abc import Iterable

from lamina.core.model.controller import Enqueue, Watch, itself, only
from lamina.core.model.world import Change, World
from lamina.families.manifestwork.agent.applied_manifestwork import read_entries
from lamina.families.manifestwork.agent.labels import HUB, Agent
from lamina.families.manifestwork.agent.rivals import rivals_of, statements
from lamina.families.manifestwork.labels import APPLIED_WORK, WORK, WORK_VERSION
from lamina.objects.types import Ref


def itself_and_rivals(agent: Agent, world: World, change: Change) -> Iterable[Ref]:
    return (*itself(world, change), *rivals_of(agent, world, change))


def watch_records(enqueue: Enqueue) -> Watch:
    """Return the watch on the records; what they list is read once for each version."""
    return Watch(selects=only(*APPLIED_WORK), api_version=WORK_VERSION, derive=read_entries, enqueue=enqueue)


def watch_works(agent: Agent, enqueue: Enqueue) -> Watch:
    """Return the watch on the works of a cluster; both controllers share its cache."""
    return Watch(
        selects=only(*WORK),
        api_version=WORK_VERSION,
        cluster=HUB,
        namespace=agent.cluster,
        derive=statements,
        enqueue=enqueue,
    )
