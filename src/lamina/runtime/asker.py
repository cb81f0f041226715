"""Webhooks and real look-ups, on a planner's behalf."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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
    Said,
    Unserved,
)
from lamina.errors import (
    BadRequest,
    Forbidden,
    Invalid,
    LaminaError,
    MethodNotAllowed,
    NotFound,
    UnknownKind,
)
from lamina.objects.types import Made, Obj, Ref
from lamina.runtime.together import side_by_side

_REMEMBERED = 2048


class Reader(Protocol):
    """What asking takes: the client's reading half."""

    async def get(self, ref: Ref, *, metadata_only: bool = False) -> Made: ...

    async def list(self, what: What, namespace: str = "", *, metadata_only: bool = False) -> Listing: ...

    async def apply(
        self, obj: Obj, *, manager: str | None = None, force: bool = False, dry_run: bool = False
    ) -> Made: ...


class Caller(Protocol):
    """Who calls webhooks."""

    async def call(self, call: Call) -> Said: ...


class Asker:
    """Puts questions to the server itself, not to anybody's memory of it, and to webhooks."""

    def __init__(self, reader: Reader, caller: Caller | None = None, *, at_once: int = 16) -> None:
        self._reader, self._caller, self._at_once = reader, caller, at_once
        self._rehearsed: dict[str, Answer] = {}

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
                case Read(ref, whole):
                    try:
                        return Found(await self._reader.get(ref, metadata_only=not whole))
                    except NotFound as error:
                        # A kind that is not served answers 404 too, but names no object.
                        return Absent() if error.details.get("name") else Unserved()
                case ReadAll(kind, namespace):
                    return Listed((await self._reader.list(kind, namespace, metadata_only=True)).items)
                case Call():
                    assert self._caller is not None, "whoever runs this controller lets it call nobody"
                    return await self._caller.call(question)
                case Rehearse(obj=obj, manager=manager, key=key):
                    known = self._rehearsed.get(key)
                    return known if known is not None else await self._rehearse(key, obj, manager)
                case Follow():
                    raise AssertionError("what is followed is seen by the worker")
                case _:
                    assert_never(question)
        except (UnknownKind, NotFound, MethodNotAllowed):
            return Unserved()

    async def _rehearse(self, key: str, obj: Obj, manager: str) -> Answer:
        """Have the server pretend, once for each key: what is asked again would end the same."""
        answer: Answer
        try:
            answer = Found(await self._reader.apply(obj, manager=manager, force=True, dry_run=True))
        except (BadRequest, Forbidden, Invalid) as refused:
            answer = Refused(refused.code, str(refused))
        self._rehearsed[key] = answer
        if len(self._rehearsed) > _REMEMBERED:
            del self._rehearsed[next(iter(self._rehearsed))]
        return answer
