"""Keep webhooks registered: write their configurations again if they were changed or deleted."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable

from lamina.client.client import Client
from lamina.errors import LaminaError, NotFound
from lamina.logs import Logger
from lamina.objects import meta
from lamina.objects.types import Obj

_MANAGER = "lamina"
_RESYNC = 30.0


class Registered:
    """Applies webhook configurations and remembers the resourceVersions that it wrote."""

    def __init__(self, client: Client, log: Logger) -> None:
        self._client, self._log = client, log
        self._applied: dict[str, tuple[Obj, str]] = {}

    async def ensure(self, configurations: Iterable[Obj]) -> None:
        """Apply each configuration, unless the server still holds the version that was last written."""
        for configuration in configurations:
            await self._ensure(configuration)

    async def _ensure(self, configuration: Obj) -> None:
        name, version = meta.name(configuration), await self._found(configuration)
        applied, written = self._applied.get(name, ({}, ""))
        if version and version == written and configuration == applied:
            return
        made = meta.resource_version(await self._client.apply(configuration, manager=_MANAGER, force=True))
        if written and made != version:
            was = "changed" if version else "deleted"
            self._log.warning("restored the webhook configuration", was=was, name=name)
        self._applied[name] = configuration, made

    async def _found(self, configuration: Obj) -> str:
        try:
            return meta.resource_version(await self._client.get(meta.ref(configuration)))
        except NotFound:
            return ""


async def keep(ensure: Callable[[], Awaitable[None]], log: Logger, pause: float = _RESYNC) -> None:
    """Call `ensure` every `pause` seconds; an error is logged and the next call tries again."""
    while True:
        await asyncio.sleep(pause)
        try:
            await ensure()
        except (LaminaError, OSError) as error:
            log.error("cannot ensure the webhook configuration", because=str(error))
