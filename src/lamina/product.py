"""What Lamina itself runs, wherever it runs: the chosen families, against whoever a client reaches."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from lamina.client.client import Client
from lamina.clock import Clock
from lamina.core.definitions import is_established
from lamina.core.family import Family
from lamina.errors import NotFound, Unavailable
from lamina.logs import log
from lamina.objects import meta
from lamina.runtime.asker import Caller
from lamina.runtime.manager import Manager
from lamina.runtime.worker import Lead

MANAGER = "lamina"
_TRIES = 200


def product(
    client: Client, families: Sequence[Family], clock: Clock, caller: Caller, lead: Lead | None = None
) -> Manager:
    """Return what runs these families, ready to be run."""
    controllers = [controller for family in families for controller in family.controllers]
    sources = [source for family in families for source in family.sources]
    return Manager(client, controllers, clock, log, sources, caller, lead)


async def install(client: Client, families: Sequence[Family]) -> None:
    """Have the kinds of these families served; a definition that is there is brought up to date."""
    for family in families:
        for definition in family.definitions():
            await client.apply(definition, manager=MANAGER, force=True)
    for family in families:
        for definition in family.definitions():
            for _ in range(_TRIES):
                try:
                    if is_established(await client.get(meta.ref(definition))):
                        break
                except NotFound:
                    pass
                await asyncio.sleep(0.05)
            else:
                raise Unavailable(f"{meta.name(definition)} was not established in time")
    await client.discover()
