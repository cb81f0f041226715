"""A recorder of all events of the objects of some kinds, in order."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import NamedTuple

from lamina.objects import meta
from lamina.objects.types import Made
from tests.scenarios.metacontroller.stage import TIMEOUT, Stage


class Seen(NamedTuple):
    """One thing that happened: ADDED, MODIFIED or DELETED."""

    what: str
    obj: Made

    @property
    def version(self) -> int:
        return int(meta.resource_version(self.obj))

    @property
    def name(self) -> str:
        return meta.name(self.obj)


class Witness:
    """What was seen of some kinds, from when it began to look."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self._seen: list[Seen] = []
        self._news = asyncio.Condition()

    @property
    def history(self) -> list[Seen]:
        """Return everything seen so far, of all kinds, in the order of the server."""
        return sorted(self._seen, key=lambda one: one.version)

    def of(self, kind: str) -> list[Seen]:
        return [one for one in self.history if one.obj["kind"] == kind]

    async def follow(self, kind: tuple[str, str], version: str) -> None:
        async for event in self._stage.client.watch(kind, self._stage.namespace, version=version):
            if event["type"] != "BOOKMARK":
                self._seen.append(Seen(event["type"], dict(event["object"])))
                async with self._news:
                    self._news.notify_all()

    async def has_seen(self, *objects: Made) -> None:
        """Wait until it has seen these objects in these very versions."""
        wanted = {(meta.uid(one), meta.resource_version(one)) for one in objects}

        def all_seen() -> bool:
            return wanted <= {(meta.uid(one.obj), meta.resource_version(one.obj)) for one in self._seen}

        async with asyncio.timeout(TIMEOUT), self._news:
            await self._news.wait_for(all_seen)


@asynccontextmanager
async def witness(stage: Stage, *kinds: tuple[str, str]) -> AsyncIterator[Witness]:
    """Look on until the end of the block."""
    looking = Witness(stage)
    versions = [(await stage.client.list(kind, stage.namespace)).version for kind in kinds]
    tasks = [asyncio.create_task(looking.follow(*one)) for one in zip(kinds, versions, strict=True)]
    try:
        yield looking
    finally:
        for task in tasks:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
