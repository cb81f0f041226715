"""
A still picture of a cluster, fetched when somebody asks: what the watches name, listed once.

What a controller would do next is found out with the very functions it runs
with, on such a picture; nothing is written.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

from msgspec import Struct

from lamina.client.client import Client
from lamina.core.controller import AnyController, Source, Watch, decide
from lamina.core.plan import Plan
from lamina.core.questions import Answer, Answers, Follow, Listed, Question
from lamina.errors import Forbidden, MethodNotAllowed, NotFound
from lamina.objects.kinds import Kind, Kinds
from lamina.objects.types import GroupKind, Ref
from lamina.runtime.asker import Asker, Caller
from lamina.runtime.memory import Gone, Memory, Shelf
from lamina.runtime.subscriptions import is_about
from lamina.runtime.together import side_by_side

_ROUNDS = 32


class Outlook(Struct, frozen=True):
    """What one controller would do about one object now."""

    controller: AnyController
    plan: Plan


class Picture:
    """What a cluster looked like when it was asked for."""

    def __init__(self, client: Client, kinds: Kinds) -> None:
        self._client, self.kinds = client, kinds
        self._shelves: dict[tuple[str, str], Shelf] = {}

    @classmethod
    async def of(cls, client: Client) -> Picture:
        return cls(client, await client.discover())

    async def world(self, watches: Iterable[Watch]) -> Memory:
        """Return the world that these watches see."""
        through: dict[GroupKind, Kind] = {}
        for watch in watches:
            if not is_about(watch, ""):
                # A picture is of one cluster; whoever looks at others besides sees nothing of them here.
                continue
            among = self.kinds.versions() if watch.api_version else iter(self.kinds)
            for kind in among:
                fits = not watch.api_version or kind.api_version == watch.api_version
                if fits and kind.can("list") and watch.selects(kind):
                    through.setdefault(kind.group_kind, kind)
        await side_by_side(tuple(through.values()), self._fetch, at_once=8)
        memory = Memory(Gone())
        shelves = {name: self._shelves[kind.api_version, kind.kind] for name, kind in through.items()}
        memory.arrange(self.kinds, shelves)
        return memory

    async def _fetch(self, kind: Kind) -> Shelf:
        """Return the objects of a kind, listed once however many ask; what may not be seen is not there."""
        key = kind.api_version, kind.kind
        if key not in self._shelves:
            shelf = Shelf(kind)
            try:
                for obj in (await self._client.list(kind)).items:
                    shelf.put(obj)
            except (Forbidden, NotFound, MethodNotAllowed):
                pass
            self._shelves[key] = shelf
        return self._shelves[key]

    async def controllers(
        self, fixed: Sequence[AnyController], sources: Sequence[Source]
    ) -> tuple[AnyController, ...]:
        """Return the controllers that would run on this cluster."""
        found = list(fixed)
        for source in sources:
            found += source.controllers(await self.world(source.watches))
        return tuple(found)

    async def outlook(
        self, controller: AnyController, ref: Ref, now: datetime, caller: Caller | None = None
    ) -> Outlook | None:
        """Return what a controller would do about an object now, or None if it is none of its business."""
        world = await self.world(controller.watches)
        view = controller.gather(world, ref)
        if view is None:
            return None
        asker, answers = Asker(self._client, caller), Answers()
        for _ in range(_ROUNDS):
            decided = decide(controller, view, answers, now)
            if isinstance(decided, Plan):
                return Outlook(controller, decided)
            answers = answers | await self._answered(asker, decided)
        raise AssertionError(f"{controller.name} never stops asking about {ref}")

    async def _answered(self, asker: Asker, asked: Sequence[Question]) -> Mapping[Question, Answer]:
        seen: dict[Question, Answer] = {}
        for follow in asked:
            if isinstance(follow, Follow):
                shelf = await self._fetch(follow.kind)
                seen[follow] = Listed(tuple(obj for obj in shelf.every() if follow.matches(obj)))
        others = [question for question in asked if not isinstance(question, Follow)]
        return {**seen, **(await asker.ask(others) if others else {})}
