"""Asks the families for previews of edits of a cluster, and answers their queries."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime

from lamina.cli.output.rollout_status import not_readable
from lamina.client.client import Client
from lamina.core.model.controller import Watch, no_keys, only
from lamina.core.model.edited_world import EditedWorld
from lamina.core.model.effects import Ask
from lamina.core.model.family import Family
from lamina.core.model.queries import Answer, Follow, Found, Listed, Query, Read, ReadAll
from lamina.core.model.query_rounds import decided
from lamina.core.model.refused_reads import RecordingWorld, Refusals
from lamina.core.rollout.preview import Preview
from lamina.objects import meta
from lamina.objects.types import Obj, Ref
from lamina.runtime.controller.driver import drive
from lamina.runtime.controller.live_queries import Caller, LiveQueries
from lamina.runtime.controller.snapshot import Snapshot


class Previewer:
    """
    A cluster as it would be after edits, for previews of the owners among them.

    Families plan in this world, and their queries are answered by it: an edited
    object is not read live, because the server still has it without the edit.
    """

    def __init__(
        self, client: Client, snapshot: Snapshot, edits: Iterable[Obj], caller: Caller, now: datetime
    ) -> None:
        self._snapshot, self._now = snapshot, now
        self._edits = {meta.ref(obj): obj for obj in edits}
        self._live = LiveQueries(client, caller)
        self._worlds: dict[str, EditedWorld] = {}
        self.limits: list[str] = []
        """What the previews were made without, because only one namespace may be listed."""

    async def preview(self, family: Family, owner: Ref, refused: Refusals) -> Preview | None:
        """
        Return what a family would do about an edited owner; None if the object is no owner of the family.

        Raises an error if what the preview is made from may not be read. `refused` gets the refusals.
        """
        if family.name not in self._worlds:
            self._worlds[family.name] = await self._world(family)
        unread = Refusals()
        world, edited = RecordingWorld(self._worlds[family.name], unread), self._edits[owner]
        previewing = decided(lambda answers: family.plan(world, edited, answers, self._now), family.name)
        found = await drive(previewing, self._answers)
        if found is not None and unread:
            raise not_readable(f"what the edit of {owner} would change is not known", unread)
        refused |= unread
        if found is not None:
            self.limits += self._snapshot.limits(world)
        return found

    async def _world(self, family: Family) -> EditedWorld:
        """Return the world of a family; an edited controller brings the watches that it would have."""
        watches = [watch for source in family.sources for watch in source.watches]
        running = list(family.controllers)
        for source in family.sources:
            running += source.controllers(await self._edited(source.watches))
        return await self._edited([*watches, *(watch for one in running for watch in one.watches)])

    async def _edited(self, watches: Iterable[Watch]) -> EditedWorld:
        return EditedWorld(await self._snapshot.world(watches), self._edits.values())

    async def _answers(self, ask: Ask) -> Mapping[Query, Answer]:
        answers: dict[Query, Answer] = {}
        for query in ask.queries:
            match query:
                case Follow():
                    answers[query] = await self._followed(query)
                case Read(ref) if ref in self._edits:
                    answers[query] = Found(self._edits[ref])
                case _:
                    pass
        answers |= await self._live.ask([query for query in ask.queries if query not in answers])
        return {query: self._with_edits(query, answer) for query, answer in answers.items()}

    async def _followed(self, follow: Follow) -> Answer:
        kind = follow.kind
        watch = Watch(selects=only(*kind.group_kind), api_version=kind.api_version, enqueue=no_keys)
        found = (await self._edited((watch,))).every(kind.group_kind)
        refused = self._snapshot.refusal(follow)
        return refused or Listed(tuple(obj for obj in found if follow.matches(obj)))

    def _with_edits(self, query: Query, answer: Answer) -> Answer:
        """Return the answer of a live list with the edited objects in place of the listed ones."""
        if not isinstance(query, ReadAll) or not isinstance(answer, Listed) or query.cluster:
            return answer
        edited = {
            ref: obj
            for ref, obj in self._edits.items()
            if (ref.api_version, ref.kind) == (query.kind.api_version, query.kind.kind)
            and query.namespace in ("", ref.namespace)
            and query.labels.matches(meta.labels(obj))
        }
        others = [obj for obj in answer.objects if meta.ref(obj) not in edited]
        return Listed((*others, *edited.values()))
