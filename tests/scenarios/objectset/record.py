"""A record of every change of the objects of some kinds, in the order of the server."""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from types import TracebackType
from typing import NamedTuple, Self

from lamina.client.client import Client
from lamina.objects import meta
from lamina.objects.types import Made, Obj
from lamina.testing.waiting import eventually


class Change(NamedTuple):
    """ADDED, MODIFIED or DELETED, and the object at that version."""

    what: str
    obj: Made

    @property
    def version(self) -> int:
        return int(meta.resource_version(self.obj))

    @property
    def name(self) -> str:
        return meta.name(self.obj)


class Record:
    """What changed since the record was begun; a version is comparable with those of other kinds."""

    def __init__(
        self, client: Client, kinds: Sequence[tuple[str, str]], is_mine: Callable[[Obj], bool]
    ) -> None:
        self._client, self._kinds, self._is_mine = client, kinds, is_mine
        self._changes: list[Change] = []
        self._started: dict[tuple[str, str], dict[str, Made]] = {}
        self._tasks: list[asyncio.Task[None]] = []

    @property
    def changes(self) -> list[Change]:
        """Return all changes so far, of all kinds."""
        return sorted(self._changes, key=lambda one: one.version)

    def of(self, name: str) -> list[Change]:
        """Return the changes of the objects of one name."""
        return [one for one in self.changes if one.name == name]

    def leave_out(self, *changes: Change) -> None:
        """Drop changes that the scenario made itself."""
        self._changes = [one for one in self._changes if one not in changes]

    async def caught_up(self) -> None:
        """Wait until the record has what the server has now."""
        for kind in self._kinds:
            now = {meta.uid(one): one for one in (await self._client.list(kind)).items if self._is_mine(one)}

            def has_all(kind: tuple[str, str] = kind, now: dict[str, Made] = now) -> bool:
                known = dict(self._started[kind])
                for change in self._changes:
                    if (change.obj["apiVersion"], change.obj["kind"]) != kind:
                        continue
                    if change.what == "DELETED":
                        known.pop(meta.uid(change.obj), None)
                    else:
                        known[meta.uid(change.obj)] = change.obj
                return known.keys() == now.keys() and all(
                    int(meta.resource_version(known[uid])) >= int(meta.resource_version(one))
                    for uid, one in now.items()
                )

            await eventually(has_all)

    async def __aenter__(self) -> Self:
        for kind in self._kinds:
            listing = await self._client.list(kind)
            self._started[kind] = {meta.uid(one): one for one in listing.items if self._is_mine(one)}
            self._tasks.append(asyncio.create_task(self._follow(kind, listing.version)))
        return self

    async def _follow(self, kind: tuple[str, str], version: str) -> None:
        async for event in self._client.watch(kind, version=version):
            if event["type"] != "BOOKMARK" and self._is_mine(event["object"]):
                self._changes.append(Change(event["type"], dict(event["object"])))

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for task in self._tasks:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
