"""
A snapshot of a cluster: what the watches of controllers name, listed once.

The plan that a controller would make is computed from it by the functions that
the controller runs with; nothing is written.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

from msgspec import Struct

from lamina.client.client import Client
from lamina.core.model.controller import AnyController, Source, Watch
from lamina.core.model.effects import Ask
from lamina.core.model.plan import Plan
from lamina.core.model.queries import Answer, Follow, Listed, Query
from lamina.core.model.query_refusal import answer_of
from lamina.core.model.reconcile import planning
from lamina.errors import Forbidden, MethodNotAllowed, NotFound
from lamina.objects.kinds import Kind, Kinds
from lamina.objects.types import GroupKind, Ref
from lamina.runtime.cache.indexer import DeletedUids, Indexer
from lamina.runtime.cache.lister import Lister
from lamina.runtime.cache.watch_spec import watches_cluster
from lamina.runtime.controller.concurrency import run_concurrently
from lamina.runtime.controller.driver import drive
from lamina.runtime.controller.live_queries import Caller, LiveQueries


class PlannedStep(Struct, frozen=True):
    """The plan that one controller would make for one object now."""

    controller: AnyController
    plan: Plan


class Snapshot:
    """A cluster as it was listed, kind by kind, when each was first needed."""

    def __init__(self, client: Client, kinds: Kinds) -> None:
        self._client, self.kinds = client, kinds
        self._indexers: dict[tuple[str, str], Indexer] = {}
        self._refused: dict[tuple[str, str], Forbidden] = {}

    @classmethod
    async def of(cls, client: Client) -> Snapshot:
        return cls(client, await client.discover())

    async def world(self, watches: Iterable[Watch]) -> Lister:
        """Return the world of these watches."""
        served: dict[GroupKind, Kind] = {}
        for watch in watches:
            if not watches_cluster(watch, ""):
                # A snapshot covers one cluster; watches of others find nothing in it.
                continue
            candidates = self.kinds.versions() if watch.api_version else iter(self.kinds)
            for kind in candidates:
                matches = not watch.api_version or kind.api_version == watch.api_version
                if matches and kind.can("list") and watch.selects(kind):
                    served.setdefault(kind.group_kind, kind)
        await run_concurrently(tuple(served.values()), self._fetch, at_once=8)
        lister = Lister(DeletedUids())
        indexers = {name: self._indexers[kind.api_version, kind.kind] for name, kind in served.items()}
        lister.set_indexers(self.kinds, indexers)
        return lister

    async def _fetch(self, kind: Kind) -> Indexer:
        """Return the objects of a kind, listed once; a kind that may not be listed has none."""
        key = kind.api_version, kind.kind
        if key not in self._indexers:
            indexer = Indexer(kind)
            try:
                for obj in (await self._client.list(kind)).items:
                    indexer.put(obj)
            except Forbidden as error:
                self._refused[key] = error
            except (NotFound, MethodNotAllowed):
                pass
            self._indexers[key] = indexer
        return self._indexers[key]

    async def controllers(
        self, fixed: Sequence[AnyController], sources: Sequence[Source]
    ) -> tuple[AnyController, ...]:
        """Return the controllers that would run on this cluster."""
        found = list(fixed)
        for source in sources:
            found += source.controllers(await self.world(source.watches))
        return tuple(found)

    async def plan_for(
        self, controller: AnyController, ref: Ref, now: datetime, caller: Caller | None = None
    ) -> PlannedStep | None:
        """Return the plan a controller would make for an object now, or None if it does not concern the object."""
        world = await self.world(controller.watches)
        view = controller.gather(world, ref)
        if view is None:
            return None

        async def answer(ask: Ask) -> Mapping[Query, Answer]:
            return await self.ask(ask.queries, caller)

        return PlannedStep(controller, await drive(planning(controller, view, lambda: now), answer))

    async def ask(self, queries: Sequence[Query], caller: Caller | None = None) -> Mapping[Query, Answer]:
        """Return an answer to each query: of what is followed from the snapshot, of all else live."""
        answers: dict[Query, Answer] = {
            query: await self._listed(query) for query in queries if isinstance(query, Follow)
        }
        others = [query for query in queries if query not in answers]
        live = LiveQueries(self._client, caller)
        return {**answers, **(await live.ask(others) if others else {})}

    async def _listed(self, follow: Follow) -> Answer:
        indexer = await self._fetch(follow.kind)
        return self.refusal(follow) or Listed(tuple(obj for obj in indexer.every() if follow.matches(obj)))

    def refusal(self, follow: Follow) -> Answer | None:
        """Return the refusal of a query that can be refused, once its kind was to be listed; None for any other."""
        error = self._refused.get((follow.kind.api_version, follow.kind.kind))
        return answer_of(follow, error) if error is not None and follow.refusable else None
