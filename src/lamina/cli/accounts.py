"""How owners stand, fetched from a cluster: what several commands show."""

from __future__ import annotations

from lamina.cli.reaching import nobodys
from lamina.client.client import Client
from lamina.core.family import Account, Family
from lamina.families.every import chosen
from lamina.objects.types import Ref
from lamina.runtime.memory import Memory
from lamina.runtime.picture import Picture


async def pictured(client: Client, family: Family, picture: Picture | None = None) -> Memory:
    """Return the world of a family: what its sources and all of its controllers watch."""
    picture = picture or await Picture.of(client)
    running = await picture.controllers(family.controllers, family.sources)
    watches = [watch for source in family.sources for watch in source.watches]
    watches += [watch for controller in running for watch in controller.watches]
    return await picture.world(watches)


async def account_of(client: Client, ref: Ref) -> tuple[Family, Memory, Account]:
    """Return how an owner stands, and which family says so."""
    for family in chosen("all"):
        world = await pictured(client, family)
        account = family.account(world, ref)
        if account is not None:
            return family, world, account
    raise nobodys(ref)
