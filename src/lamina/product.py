"""What Lamina itself runs, wherever it runs: the chosen families, against whoever a client reaches."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Protocol

from lamina.client.client import Client
from lamina.clock import Clock
from lamina.core.definitions import is_established
from lamina.core.family import Family
from lamina.core.foreign import Foreign, foreign
from lamina.core.installing import is_there, marked
from lamina.errors import LaminaError, NotFound, SettingsError, Unauthorized, Unavailable
from lamina.hooks.files import Hooks
from lamina.logs import log
from lamina.objects import meta
from lamina.objects.types import Obj, Ref
from lamina.rates import Buckets
from lamina.runtime.asker import Caller
from lamina.runtime.calls import Calls
from lamina.runtime.catalogue import DISCOVERS
from lamina.runtime.manager import Manager
from lamina.runtime.meter import Meter
from lamina.runtime.worker import Lead

MANAGER = "lamina"
_TRIES = 200
_STARTS, _STARTING = 6, 5.0
"""How often a server that does not answer is tried at the start, and how long each try and each pause lasts."""
_SILENT = f"the API server said nothing for {_STARTING:.0f}s"


class Brings(Protocol):
    """Who has kinds served: their definitions, and, by the name of one, the fields it keeps its records in."""

    @property
    def definitions(self) -> Callable[[], Sequence[Obj]]: ...

    @property
    def records(self) -> Mapping[str, Sequence[str]]: ...


def product(
    client: Client,
    families: Sequence[Family],
    clock: Clock,
    caller: Caller,
    lead: Lead | None = None,
    meters: Callable[[str], Meter] = lambda name: Meter(),
    *,
    events: Buckets | None = None,
    discovers: float = DISCOVERS,
) -> Manager:
    """Return what runs these families, ready to be run."""
    controllers = [controller for family in families for controller in family.controllers]
    sources = [source for family in families for source in family.sources]
    return Manager(
        client,
        controllers,
        clock,
        log,
        sources,
        caller,
        lead,
        meters,
        events=events,
        discovers=discovers,
    )


async def reached(client: Client) -> None:
    """Wait until the server answers; Unreachable once it has been given time enough."""
    for tries_left in reversed(range(_STARTS)):
        try:
            async with asyncio.timeout(_STARTING):
                await client.discover()
            return
        except (LaminaError, TimeoutError) as trouble:
            if not tries_left or isinstance(trouble, Unauthorized):
                raise trouble if isinstance(trouble, LaminaError) else Unavailable(_SILENT) from None
            log.warning("the API server does not answer yet", because=str(trouble) or _SILENT)
        await asyncio.sleep(_STARTING)


async def install(client: Client, families: Sequence[Brings]) -> None:
    """
    Have the kinds of these families served.

    A definition of ours that is there is brought up to date; somebody else's is
    left alone. SettingsError where a family could not keep its records in one.
    """
    wanted = [
        (marked(definition), family.records.get(meta.name(definition), ()))
        for family in families
        for definition in family.definitions()
    ]
    # Side by side: a server may write what comes together at once.
    news = await asyncio.gather(*(_state(client, *one) for one in wanted))
    if any(news):
        await client.discover()


async def _state(client: Client, definition: Obj, records: Sequence[str]) -> bool:
    """Have one definition on the server, and say whether that was news to it."""
    ref = meta.ref(definition)
    with suppress(NotFound):
        found = await client.get(ref)
        if is_established(found) and is_there(found, definition):
            return False
        if (theirs := foreign(found, definition, MANAGER)) is not None:
            _leave(theirs, records)
            return False
    made = await client.apply(definition, manager=MANAGER, force=True)
    if not is_established(made):
        await _established(client, ref)
    return True


def _leave(theirs: Foreign, records: Sequence[str]) -> None:
    """Say that a definition of somebody else's is left alone; SettingsError where nobody could run on it."""
    if missing := theirs.misses(records):
        raise SettingsError(
            f"{theirs.name} was made by {theirs.by} and has no {', '.join(missing)}: "
            "what is written there would be lost",
            hint="take it over with `lamina crds | kubectl apply --server-side --force-conflicts -f -`",
        )
    tell = log.warning if theirs.lacks else log.info
    tell("definition left alone", because=theirs.because)


async def _established(client: Client, definition: Ref) -> None:
    """Wait until a server that takes its time serves a definition's kinds."""
    for _ in range(_TRIES):
        try:
            if is_established(await client.get(definition)):
                return
        except NotFound:
            pass
        await asyncio.sleep(0.05)
    raise Unavailable(f"{definition.name} was not established in time")


async def declare(client: Client, controllers: Sequence[Obj], before: Sequence[Obj] = ()) -> None:
    """Have the controllers of hooks files on the cluster, and take away those that are declared no more."""
    for controller in controllers:
        await client.apply(controller, manager=MANAGER, force=True)
    kept = {meta.ref(controller) for controller in controllers}
    for gone in before:
        if meta.ref(gone) not in kept:
            with suppress(NotFound):
                await client.delete(meta.ref(gone))


async def follow(hooks: Hooks, client: Client, calls: Calls, manager: Manager) -> None:
    """Keep up with the hooks files: whatever was asked of their functions is asked again when they change."""
    async for before, now in hooks.changes():
        try:
            await declare(client, now, before)
        except LaminaError as refused:
            log.error("controllers of hooks not declared", because=str(refused))
        calls.forget()
        manager.look_at_everything()
