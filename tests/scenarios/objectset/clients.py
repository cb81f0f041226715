"""Clients of the controllers under test: one that records requests, and one that crashes."""

import asyncio
from collections.abc import Mapping
from typing import Any, NamedTuple

from lamina.client.client import Client
from lamina.errors import ApiError
from lamina.objects import meta
from lamina.objects.types import Made, Obj, Ref

_WRITES = ("create", "update", "patch", "post", "delete", "apply")


class Request(NamedTuple):
    """A request that writes, or would without a dry run."""

    verb: str
    ref: Ref
    is_dry_run: bool
    body: Obj = {}  # noqa: RUF012  # never written
    """The object or the patch; empty where it deletes."""


class Journal:
    """A client that forwards to another, and records the requests that write."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self.requests: list[Request] = []
        self.refused: list[Request] = []
        """Those of them that the server refused."""

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._client, name)
        if name not in _WRITES:
            return found

        async def write(what: Obj | Ref, *args: Any, **more: Any) -> Made:
            ref = what if isinstance(what, Ref) else meta.ref(what)
            body = next((one for one in (what, *args) if isinstance(one, Mapping)), {})
            request = Request(name, ref, bool(more.get("dry_run")), body)
            await self.before(request)
            self.requests.append(request)
            try:
                done: Made = await found(what, *args, **more)
            except ApiError:
                self.refused.append(request)
                raise
            return done

        return write

    async def before(self, request: Request) -> None:
        """Let it be sent, or not."""

    def written(self, kind: str = "") -> list[Request]:
        """Return the requests without dry runs, those about one kind or all."""
        return [one for one in self.requests if not one.is_dry_run and kind in ("", one.ref.kind)]


class Crashing(Journal):
    """A client that hangs before the write after so many; events and dry runs do not count."""

    def __init__(self, client: Client, writes: int) -> None:
        super().__init__(client)
        self._left = writes
        self.crashed = asyncio.Event()

    async def before(self, request: Request) -> None:
        if request.is_dry_run or request.ref.kind == "Event":
            return
        if self._left == 0:
            self.crashed.set()
            await asyncio.Event().wait()
        self._left -= 1
