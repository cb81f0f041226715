"""Installs the definitions of families on a cluster, and builds the manager that runs their controllers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from types import MappingProxyType
from typing import Protocol

from lamina.client.client import Client
from lamina.clock import Clock
from lamina.core.crd.kinds import is_established
from lamina.core.crd.ownership import ForeignDefinition, foreign, lacking, missing
from lamina.core.crd.version import is_there, marked
from lamina.core.model.family import Family
from lamina.errors import LaminaError, NotFound, SettingsError, Unauthorized, Unavailable
from lamina.hooks.supervisor import Hooks
from lamina.logs import log
from lamina.objects import meta
from lamina.objects.types import Obj, Ref
from lamina.ratelimit import TokenBuckets
from lamina.runtime.cache.discovery import DISCOVERY_PERIOD
from lamina.runtime.controller.live_queries import Caller
from lamina.runtime.controller.manager import Manager
from lamina.runtime.controller.worker import Leadership
from lamina.runtime.hooks.client import HookClient
from lamina.runtime.metrics.recorder import Recorder

MANAGER = "lamina"
_ESTABLISH_ATTEMPTS = 200
_ATTEMPTS, _ATTEMPT_SECONDS = 6, 5.0
"""How often an unreachable API server is tried at the start; the timeout of an attempt, and the pause after it."""
_TIMED_OUT = f"no response from the API server within {_ATTEMPT_SECONDS:.0f}s"


class CrdProvider(Protocol):
    """Has CustomResourceDefinitions, and by their name the status fields that it depends on."""

    @property
    def definitions(self) -> Callable[[], Sequence[Obj]]: ...

    @property
    def required_status_fields(self) -> Mapping[str, Sequence[str]]: ...


def build_manager(
    client: Client,
    families: Sequence[Family],
    clock: Clock,
    caller: Caller,
    lead: Leadership | None = None,
    meters: Callable[[str], Recorder] = lambda name: Recorder(),
    *,
    leads: Mapping[str, Leadership] = MappingProxyType({}),
    events: TokenBuckets | None = None,
    discovery_period: float = DISCOVERY_PERIOD,
) -> Manager:
    """
    Return a manager of the controllers of families; `run` starts it.

    `leads` are the leaderships of families, by their names, where they are not `lead`.
    """
    controllers = [controller for family in families for controller in family.controllers]
    sources = [source for family in families for source in family.sources]
    of_parts = {
        id(part): leads[family.name]
        for family in families
        if family.name in leads
        for part in (*family.controllers, *family.sources)
    }
    return Manager(
        client,
        controllers,
        clock,
        log,
        sources,
        caller,
        lead,
        meters,
        lead_of=lambda part: of_parts.get(id(part), lead),
        events=events,
        discovery_period=discovery_period,
    )


async def wait_reachable(client: Client) -> None:
    """Wait until discovery succeeds; raise the last error after several attempts."""
    for attempts_left in reversed(range(_ATTEMPTS)):
        try:
            async with asyncio.timeout(_ATTEMPT_SECONDS):
                await client.discover()
            return
        except (LaminaError, TimeoutError) as error:
            if not attempts_left or isinstance(error, Unauthorized):
                raise error if isinstance(error, LaminaError) else Unavailable(_TIMED_OUT) from None
            log.warning("API server not reachable, retrying", because=str(error) or _TIMED_OUT)
        await asyncio.sleep(_ATTEMPT_SECONDS)


async def install(client: Client, families: Sequence[CrdProvider]) -> None:
    """
    Install the CustomResourceDefinitions of families.

    A definition that Lamina manages is updated; one of another manager is not changed.
    Raises SettingsError if such a definition lacks a field that a family stores its
    state in.
    """
    definitions = [
        (marked(definition), family.required_status_fields.get(meta.name(definition), ()))
        for family in families
        for definition in family.definitions()
    ]
    # Concurrently, so that the server can commit the writes together.
    changed = await asyncio.gather(*(_install_one(client, *one) for one in definitions))
    if any(changed):
        await client.discover()


async def _install_one(client: Client, definition: Obj, required: Sequence[str]) -> bool:
    """Install one definition, and say whether it was written."""
    ref = meta.ref(definition)
    with suppress(NotFound):
        found = await client.get(ref)
        if is_established(found) and is_there(found, definition):
            return False
        if (theirs := foreign(found, definition, MANAGER)) is not None:
            _keep_foreign(theirs, required)
            return False
    applied = await client.apply(definition, manager=MANAGER, force=True)
    if not is_established(applied):
        await _wait_established(client, ref)
    return True


async def without_lost_status(client: Client, families: Sequence[Family]) -> tuple[Family, ...]:
    """
    Return families as they run with the definitions that the cluster has.

    Where another manager's definition lacks optional status fields, which the server
    prunes, the family does without them, and says so on its objects; it is logged once.
    """
    return tuple([await _without_lost_status(client, family) for family in families])


async def _without_lost_status(client: Client, family: Family) -> Family:
    losses: dict[str, list[str]] = {}
    for definition in family.definitions() if family.optional_status_fields else ():
        optional = family.optional_status_fields.get(meta.name(definition))
        if optional is None:
            continue
        try:
            found = await client.get(meta.ref(definition))
        except NotFound:
            continue
        if lost := missing(lacking(found, definition), optional.fields):
            losses.setdefault(optional.without, []).append(f"{meta.name(definition)} lacks {', '.join(lost)}")
    if not losses or family.without_status is None:
        return family
    because = "; ".join(f"{without}, because {' and '.join(lacks)}" for without, lacks in losses.items())
    log.warning("status fields are not stored", family=family.name, because=because)
    return family.without_status(because)


def _keep_foreign(theirs: ForeignDefinition, required: Sequence[str]) -> None:
    """Log that a definition of another manager is kept; SettingsError if it lacks a required field."""
    if missing := theirs.misses(required):
        raise SettingsError(
            f"{theirs.name} was created by {theirs.by} and lacks {', '.join(missing)}: "
            "the server would drop these fields",
            hint="take it over with `lamina crds | kubectl apply --server-side --force-conflicts -f -`",
        )
    write = log.warning if theirs.lacks else log.info
    write("definition of another manager kept", because=theirs.because)


async def _wait_established(client: Client, definition: Ref) -> None:
    """Wait until a definition has the condition Established."""
    for _ in range(_ESTABLISH_ATTEMPTS):
        try:
            if is_established(await client.get(definition)):
                return
        except NotFound:
            pass
        await asyncio.sleep(0.05)
    raise Unavailable(f"{definition.name} was not established in time")


async def apply_controllers(client: Client, controllers: Sequence[Obj], previous: Sequence[Obj] = ()) -> None:
    """Apply the controllers that hooks files declare, and delete previous ones that they no longer declare."""
    for controller in controllers:
        await client.apply(controller, manager=MANAGER, force=True)
    declared = {meta.ref(controller) for controller in controllers}
    for controller in previous:
        if meta.ref(controller) not in declared:
            with suppress(NotFound):
                await client.delete(meta.ref(controller))


async def watch_hooks(hooks: Hooks, client: Client, calls: HookClient, manager: Manager) -> None:
    """At each change of the hooks files, apply their controllers, drop cached responses, and resync all owners."""
    async for previous, current in hooks.changes():
        try:
            await apply_controllers(client, current, previous)
        except LaminaError as error:
            log.error("controllers of hooks files not applied", because=str(error))
        calls.clear_cache()
        manager.resync()
