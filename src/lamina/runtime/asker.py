"""Webhooks and real look-ups, on a planner's behalf."""

from __future__ import annotations

from collections.abc import Awaitable, Mapping, Sequence
from copy import copy
from typing import Protocol, assert_never

from lamina.client.client import Listing, What
from lamina.core.questions import (
    Absent,
    Answer,
    Call,
    Follow,
    Found,
    Listed,
    Question,
    Read,
    ReadAll,
    Refused,
    Rehearse,
    Review,
    Said,
    Unserved,
)
from lamina.errors import (
    AlreadyExists,
    BadRequest,
    Conflict,
    Forbidden,
    InternalError,
    Invalid,
    LaminaError,
    MethodNotAllowed,
    NotFound,
    NotSeenYet,
    UnknownKind,
)
from lamina.objects.types import Made, Obj, Ref
from lamina.runtime.bindings import bound
from lamina.runtime.together import side_by_side

_REMEMBERED = 2048


class Reader(Protocol):
    """What asking takes: the client's reading half, and what a server does without keeping anything of it."""

    async def get(self, ref: Ref, *, metadata_only: bool = False) -> Made: ...

    async def list(self, what: What, namespace: str = "", *, metadata_only: bool = False) -> Listing: ...

    async def create(self, obj: Obj, *, manager: str | None = None, dry_run: bool = False) -> Made: ...

    async def update(self, obj: Obj, *, manager: str | None = None, dry_run: bool = False) -> Made: ...

    async def apply(
        self, obj: Obj, *, manager: str | None = None, force: bool = False, dry_run: bool = False
    ) -> Made: ...

    def acting_as(self, user: str) -> Reader: ...


class Caller(Protocol):
    """Who calls webhooks."""

    async def call(self, call: Call) -> Said: ...


class Asker:
    """Puts questions to the server itself, not to anybody's memory of it, and to webhooks."""

    def __init__(
        self,
        reader: Reader,
        caller: Caller | None = None,
        *,
        others: Mapping[str, Reader] | None = None,
        at_once: int = 16,
    ) -> None:
        self._reader, self._caller, self._at_once = reader, caller, at_once
        self._others: Mapping[str, Reader] = others if others is not None else {}
        self._rehearsed: dict[tuple[Reader, Rehearse], Answer] = {}

    def as_of_now(self) -> Asker:
        """Return one who asks the clusters that have their names now, and none that comes to have one later."""
        asker = copy(self)
        asker._others = dict(self._others)
        return asker

    async def ask(self, questions: Sequence[Question]) -> Mapping[Question, Answer]:
        """Return an answer to each question, or raise the first error that leaves one open."""
        answers: dict[Question, Answer] = {}
        results = await side_by_side(questions, self._answer, at_once=self._at_once)
        for question, result in zip(questions, results, strict=True):
            if isinstance(result, LaminaError):
                raise result
            answers[question] = result
        return answers

    async def _answer(self, question: Question) -> Answer:
        try:
            match question:
                case Read(ref, whole, refusable):
                    try:
                        return Found(await self._on(ref.cluster).get(ref, metadata_only=not whole))
                    except Forbidden as refused:
                        if not refusable:
                            raise
                        return Refused(refused.code, str(refused))
                    except NotFound as error:
                        # A kind that is not served answers 404 too, but names no object.
                        return Absent() if error.details.get("name") else Unserved()
                case ReadAll(kind, namespace, cluster):
                    listing = await self._on(cluster).list(kind, namespace, metadata_only=True)
                    return Listed(listing.items)
                case Call():
                    assert self._caller is not None, "whoever runs this controller lets it call nobody"
                    return await self._caller.call(question)
                case Rehearse():
                    return await self._rehearsal(question)
                case Review(body=body, cluster=cluster, user=user):
                    return await _judged(self._on(cluster, user).create(body))
                case Follow():
                    raise AssertionError("what is followed is seen by the worker")
                case _:
                    assert_never(question)
        except (UnknownKind, NotFound, MethodNotAllowed):
            return Unserved()

    def _on(self, cluster: str, user: str = "") -> Reader:
        reader = bound(cluster, self._reader, self._others)
        return reader.acting_as(user) if user else reader

    async def _rehearsal(self, asked: Rehearse) -> Answer:
        """Have the server pretend, once for each key: what is asked again would end the same."""
        # A cluster that takes the place of another may see things differently.
        whom = self._on(asked.cluster), asked
        known = self._rehearsed.get(whom)
        if known is not None:
            return known
        try:
            answer = await _judged(_pretended(self._on(asked.cluster, asked.user), asked))
        except InternalError as broken:
            if asked.force and not asked.replaces:
                raise
            # A webhook that is down, say. Whoever only wants to know what to do next finds out by doing it.
            return Refused(broken.code, str(broken))
        if not asked.user:
            self._rehearsed[whom] = answer
            if len(self._rehearsed) > _REMEMBERED:
                del self._rehearsed[next(iter(self._rehearsed))]
        return answer


async def _judged(asking: Awaitable[Made]) -> Answer:
    """Return what the server made of it, or why it would not."""
    try:
        return Found(await asking)
    except (AlreadyExists, BadRequest, Conflict, Forbidden, Invalid) as refused:
        return Refused(refused.code, str(refused))


async def _pretended(server: Reader, asked: Rehearse) -> Made:
    """Have a server do as if."""
    if asked.creates:
        return await server.create(asked.obj, manager=asked.manager, dry_run=True)
    if not asked.replaces:
        return await server.apply(asked.obj, manager=asked.manager, force=asked.force, dry_run=True)
    try:
        return await server.update(asked.obj, manager=asked.manager, dry_run=True)
    except Conflict as moved_on:
        # It was to take the place of another one: that says nothing about this.
        raise NotSeenYet(str(moved_on)) from None
