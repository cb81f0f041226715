"""Clients of the hub with faults or counters: one that crashes, misses events, is refused, is counted."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from typing import Any

from lamina.client.client import Client
from lamina.errors import Forbidden
from lamina.objects import meta
from lamina.objects.types import Made, Obj, Ref

_WRITES = ("create", "update", "patch", "delete", "apply")


class Watched:
    """A client that forwards to another, and counts writes before and after."""

    def __init__(self, client: Client) -> None:
        self._client = client

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._client, name)
        if name not in _WRITES:
            return found

        async def write(what: Obj | Ref, *args: Any, **more: Any) -> Made:
            ref = what if isinstance(what, Ref) else meta.ref(what)
            await self.before(name, ref)
            done: Made = await found(what, *args, **more)
            self.after(name, ref)
            return done

        return write

    async def before(self, verb: str, ref: Ref) -> None:
        """Let it be written, or not."""

    def after(self, verb: str, ref: Ref) -> None:
        """Take note of what was written."""


class Crashing(Watched):
    """A client that crashes after so many writes; events do not count."""

    def __init__(self, client: Client, writes: int) -> None:
        super().__init__(client)
        self._left = writes
        self.crashed = asyncio.Event()

    async def before(self, verb: str, ref: Ref) -> None:
        if ref.kind == "Event":
            return
        if self._left == 0:
            self.crashed.set()
            await asyncio.Event().wait()
        self._left -= 1


class Pausable(Watched):
    """A client that receives events of works only while the test allows it, and all others."""

    def __init__(self, client: Client) -> None:
        super().__init__(client)
        self.receives = asyncio.Event()
        self.receives.set()

    async def watch(self, what: Any, *args: Any, hear: object = None, **more: Any) -> AsyncIterator[Any]:
        async for event in self._client.watch(what, *args, **more):
            if event["object"].get("kind") == "ManifestWork":
                await self.receives.wait()
            yield event


class Refused(Watched):
    """A client that may not write in some namespaces."""

    def __init__(self, client: Client, *namespaces: str) -> None:
        super().__init__(client)
        self.namespaces = set(namespaces)

    async def before(self, verb: str, ref: Ref) -> None:
        if ref.namespace in self.namespaces:
            raise Forbidden(f'manifestworks "{ref.name}" is forbidden: not in {ref.namespace}')


class Counted(Watched):
    """A client whose writes are counted, by kind."""

    def __init__(self, client: Client) -> None:
        super().__init__(client)
        self.writes: Counter[str] = Counter()
        self.works: Counter[str] = Counter()
        """How often the work of each cluster was written."""

    def after(self, verb: str, ref: Ref) -> None:
        self.writes[ref.kind] += 1
        if ref.kind == "ManifestWork":
            self.works[ref.namespace] += 1
