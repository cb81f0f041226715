"""Staying registered: somebody may change or delete what has a server ask, and nobody would be judged any more."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from lamina.client.client import Client
from lamina.errors import LaminaError, NotFound
from lamina.logs import Logger
from lamina.objects import meta
from lamina.objects.types import Obj

_MANAGER = "lamina"
_LOOKS_AGAIN = 30.0


class Registered:
    """What a server was told about whom to ask, as it was when somebody last looked."""

    def __init__(self, client: Client, log: Logger) -> None:
        self._client, self._log = client, log
        self._told: Obj = {}
        self._version = ""

    async def see_to(self, configuration: Obj) -> None:
        """Have the server told this: where it is there as it was left, a look is all that takes."""
        version = await self._found(configuration)
        if version and version == self._version and configuration == self._told:
            return
        made = meta.resource_version(await self._client.apply(configuration, manager=_MANAGER, force=True))
        if self._version and made != version:
            was = "changed" if version else "deleted"
            self._log.warning(
                "the registration of a webhook was put right", was=was, name=meta.name(configuration)
            )
        self._told, self._version = configuration, made

    async def _found(self, configuration: Obj) -> str:
        try:
            return meta.resource_version(await self._client.get(meta.ref(configuration)))
        except NotFound:
            return ""


async def keep(look: Callable[[], Awaitable[None]], log: Logger, pause: float = _LOOKS_AGAIN) -> None:
    """Look again and again; what goes wrong is told, and the next look may find it mended."""
    while True:
        await asyncio.sleep(pause)
        try:
            await look()
        except (LaminaError, OSError) as trouble:
            log.error("the webhook was not looked after", because=str(trouble))
