"""
A snapshot of a cluster: what the watches of controllers name, listed once.

The plan that a controller would make is computed from it by the functions that
the controller runs with; nothing is written.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime

from msgspec import Struct

from lamina.client.client import Client
from lamina.core.model.controller import AnyController, Source, Watch
from lamina.core.model.effects import Ask
from lamina.core.model.plan import NOTHING, Plan
from lamina.core.model.queries import Answer, Follow, Listed, Query
from lamina.core.model.query_refusal import answer_of
from lamina.core.model.reconcile import planning
from lamina.core.model.refused_reads import RecordingWorld, Refusals
from lamina.errors import Forbidden, MethodNotAllowed, NotFound
from lamina.objects.kinds import Kind, Kinds
from lamina.objects.types import GroupKind, Obj, Ref
from lamina.runtime.cache.indexer import DeletedUids, Indexer
from lamina.runtime.cache.lister import Lister
from lamina.runtime.cache.watch_spec import watches_cluster
from lamina.runtime.controller.concurrency import run_concurrently
from lamina.runtime.controller.driver import drive
from lamina.runtime.controller.live_queries import Caller, LiveQueries


class PlannedStep(Struct, frozen=True):
    """The plan that one controller would make for one object now; none where what it depends on may not be read."""

    controller: AnyController
    plan: Plan
    refused: tuple[Forbidden, ...] = ()
    limits: tuple[str, ...] = ()
    """What it was made without, because only one namespace may be listed."""


class Snapshot:
    """
    A cluster as it was listed, kind by kind, when each was first needed.

    With a namespace, objects of other namespaces are not listed, except those of the kinds
    that are `elsewhere`. A snapshot that `widens` lists all namespaces, and that one only where
    all of them may not be listed: a plan may depend on objects of any namespace.
    """

    def __init__(
        self,
        client: Client,
        kinds: Kinds,
        namespace: str = "",
        elsewhere: Collection[GroupKind] = (),
        *,
        widens: bool = False,
    ) -> None:
        self._client, self.kinds = client, kinds
        self._namespace, self._elsewhere, self._widens = namespace, frozenset(elsewhere), widens
        self._indexers: dict[tuple[Kind, str], Indexer] = {}
        self._narrowed: dict[Kind, Forbidden] = {}

    @classmethod
    async def of(
        cls,
        client: Client,
        namespace: str = "",
        elsewhere: Collection[GroupKind] = (),
        *,
        widens: bool = False,
    ) -> Snapshot:
        return cls(client, await client.discover(), namespace, elsewhere, widens=widens)

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
        indexers = {name: self._indexers[kind, self._place(kind)] for name, kind in served.items()}
        lister.set_indexers(self.kinds, indexers)
        return lister

    def _place(self, kind: Kind) -> str:
        """Return the namespace in which a kind is listed; empty for all of them."""
        if not kind.namespaced or kind.group_kind in self._elsewhere:
            return ""
        return self._namespace if not self._widens or kind in self._narrowed else ""

    async def _fetch(self, kind: Kind) -> Indexer:
        place = self._place(kind)
        found = await self._fetch_from(kind, place)
        if place or found.refused is None or not self._widens or not self._namespace or not kind.namespaced:
            return found
        if kind.group_kind in self._elsewhere:
            return found
        self._narrowed[kind] = found.refused
        return await self._fetch_from(kind, self._namespace)

    def limits(self, read: RecordingWorld) -> tuple[str, ...]:
        """Return which of the kinds that were read are known in one namespace only, and why."""
        return tuple(
            f"{error.message}; only those in namespace {self._namespace} are known"
            for kind, error in self._narrowed.items()
            if read.reads_any or kind.group_kind in read.read
        )

    async def _fetch_from(self, kind: Kind, namespace: str) -> Indexer:
        """Return the objects of a kind, listed once; one that may not be listed has none, and says why."""
        key = kind, namespace
        if key not in self._indexers:
            indexer = Indexer(kind)
            try:
                for obj in (await self._client.list(kind, namespace)).items:
                    indexer.put(obj)
            except Forbidden as error:
                indexer.refused = refused_list(kind, namespace, error)
            except (NotFound, MethodNotAllowed):
                pass
            self._indexers[key] = indexer
        return self._indexers[key]

    async def controllers(
        self, fixed: Sequence[AnyController], sources: Sequence[Source], refused: Refusals | None = None
    ) -> tuple[AnyController, ...]:
        """Return the controllers that would run on this cluster; `refused` gets what may not be read of them."""
        found = list(fixed)
        for source in sources:
            world = RecordingWorld(await self.world(source.watches), refused if refused is not None else {})
            found += source.controllers(world)
        return tuple(found)

    async def plan_for(
        self,
        controller: AnyController,
        ref: Ref,
        now: datetime,
        caller: Caller | None = None,
        refused: Refusals | None = None,
    ) -> PlannedStep | None:
        """
        Return the plan a controller would make for an object now, or None if it does not concern the object.

        Kinds that it read and that may not be listed are added to `refused`.
        """
        unread = Refusals()
        world = RecordingWorld(await self.world(controller.watches), unread)
        view = controller.gather(world, ref)
        if refused is not None:
            refused |= unread
        if view is None:
            return None
        if unread:
            return PlannedStep(controller, NOTHING, tuple(unread.values()))

        async def answer(ask: Ask) -> Mapping[Query, Answer]:
            return await self.ask(ask.queries, caller)

        plan = await drive(planning(controller, view, lambda: now), answer)
        return PlannedStep(controller, plan, limits=self.limits(world))

    async def ask(self, queries: Sequence[Query], caller: Caller | None = None) -> Mapping[Query, Answer]:
        """Return an answer to each query: of what is followed from the snapshot, of all else live."""
        answers: dict[Query, Answer] = {
            query: await self._listed(query) for query in queries if isinstance(query, Follow)
        }
        others = [query for query in queries if query not in answers]
        live = LiveQueries(self._client, caller)
        return {**answers, **(await live.ask(others) if others else {})}

    async def _listed(self, follow: Follow) -> Answer:
        found: list[Obj] = []
        await self._fetch(follow.kind)
        if self._widens and self._is_beyond(follow) and follow.namespaces is None:
            return answer_of(follow, self._narrowed[follow.kind])
        for place in self._places(follow):
            indexer = await self._fetch_from(follow.kind, place)
            if indexer.refused is not None:
                return answer_of(follow, indexer.refused)
            found += (obj for obj in indexer.every() if follow.matches(obj))
        return Listed(tuple(found))

    def _places(self, follow: Follow) -> tuple[str, ...]:
        """Return the namespaces in which a query is answered: those that it names, where not all are listed."""
        place = self._place(follow.kind)
        return follow.namespaces if place and follow.namespaces is not None else (place,)

    def _is_beyond(self, follow: Follow) -> bool:
        """Say whether a query is about more than the one namespace whose objects of the kind are known."""
        return follow.kind in self._narrowed and follow.namespaces != (self._namespace,)

    def refusal(self, follow: Follow) -> Answer | None:
        """Return the refusal of a query that can be refused, once its kind was to be listed; None for any other."""
        indexer = self._indexers.get((follow.kind, self._place(follow.kind)))
        error = indexer.refused if indexer is not None else None
        if self._is_beyond(follow):
            error = self._narrowed[follow.kind]
        return answer_of(follow, error) if error is not None and follow.refusable else None


def refused_list(kind: Kind, namespace: str, error: Forbidden) -> Forbidden:
    """Return the refusal of a list with verb, resource and namespace, whatever the server says of it."""
    named = f"{kind.plural}.{kind.group}" if kind.group else kind.plural
    where = f" in namespace {namespace}" if namespace else " in all namespaces" if kind.namespaced else ""
    return Forbidden(f"cannot list {named}{where}: {error.message}")
