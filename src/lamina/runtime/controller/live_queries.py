"""Answers the queries of a plan: live reads, dry runs, access reviews and webhook calls."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from typing import Protocol, assert_never

from lamina.client.client import KindOrName, Listing
from lamina.core.model.queries import (
    Answer,
    Call,
    DryRun,
    Follow,
    Found,
    HookResponse,
    Listed,
    Query,
    Read,
    ReadAll,
    ReadSchema,
    Review,
    Unserved,
)
from lamina.core.model.query_refusal import answer_of
from lamina.errors import InternalError, LaminaError
from lamina.objects.types import Made, Obj, Ref
from lamina.runtime.cache.published_schemas import PublishedSchemas, SchemaReader
from lamina.runtime.cluster.lookup import resolve
from lamina.runtime.controller.concurrency import run_concurrently

_MAX_CACHED = 2048


class Reader(SchemaReader, Protocol):
    """The part of a client that queries use: reads, and writes that are dry runs."""

    async def get(self, ref: Ref, *, metadata_only: bool = False) -> Made: ...

    async def list(
        self, what: KindOrName, namespace: str = "", *, labels: str = "", metadata_only: bool = False
    ) -> Listing: ...

    async def create(self, obj: Obj, *, manager: str | None = None, dry_run: bool = False) -> Made: ...

    async def update(self, obj: Obj, *, manager: str | None = None, dry_run: bool = False) -> Made: ...

    async def apply(
        self, obj: Obj, *, manager: str | None = None, force: bool = False, dry_run: bool = False
    ) -> Made: ...

    def impersonating(self, user: str) -> Reader: ...


class Caller(Protocol):
    """The part of a hook client that queries use."""

    async def call(self, call: Call) -> HookResponse: ...


class LiveQueries:
    """Sends queries to servers, bypassing every cache but that of `schemas`, and to webhooks."""

    def __init__(
        self,
        reader: Reader,
        caller: Caller | None = None,
        *,
        others: Mapping[str, Reader] | None = None,
        schemas: PublishedSchemas | None = None,
        at_once: int = 16,
    ) -> None:
        self._reader, self._caller, self._at_once = reader, caller, at_once
        self._schemas = schemas or PublishedSchemas()
        self._others: Mapping[str, Reader] = others if others is not None else {}
        self._dry_runs: dict[tuple[Reader, DryRun], Answer] = {}

    def with_current_bindings(self) -> LiveQueries:
        """Return a copy for which names stay bound to the clusters that have them now."""
        bound = copy(self)
        bound._others = dict(self._others)
        return bound

    async def ask(self, queries: Sequence[Query]) -> Mapping[Query, Answer]:
        """Return an answer to each query, or raise the first error that leaves one open."""
        answers: dict[Query, Answer] = {}
        results = await run_concurrently(queries, self._answer, at_once=self._at_once)
        for query, result in zip(queries, results, strict=True):
            if isinstance(result, LaminaError):
                raise result
            answers[query] = result
        return answers

    async def _answer(self, query: Query) -> Answer:
        try:
            return await self._send(query)
        except LaminaError as error:
            return answer_of(query, error)

    async def _send(self, query: Query) -> Answer:
        match query:
            case Read(ref, whole):
                return Found(await self._on(ref.cluster).get(ref, metadata_only=not whole))
            case ReadAll(kind, namespace, cluster, whole, labels):
                there = self._on(cluster)
                listing = await there.list(kind, namespace, labels=str(labels), metadata_only=not whole)
                return Listed(listing.items)
            case Call():
                assert self._caller is not None, "a process whose controllers call webhooks has a caller"
                return await self._caller.call(query)
            case DryRun():
                return await self._dry_run(query)
            case Review(body=body, cluster=cluster, user=user):
                return Found(await self._on(cluster, user).create(body))
            case ReadSchema(kind, cluster):
                schema = await self._schemas.schema(self._on(cluster), kind)
                return Found({"schema": schema}) if schema is not None else Unserved()
            case Follow():
                raise AssertionError("the worker answers Follow queries from its caches")
            case _:
                assert_never(query)

    def _on(self, cluster: str, user: str = "") -> Reader:
        reader = resolve(cluster, self._reader, self._others)
        return reader.impersonating(user) if user else reader

    async def _dry_run(self, dry_run: DryRun) -> Answer:
        """Send a dry run, once for each key: a repetition would have the same result."""
        # Keyed by client too: another cluster that takes the name may answer differently.
        key = self._on(dry_run.cluster), dry_run
        cached = self._dry_runs.get(key)
        if cached is not None:
            return cached
        answer: Answer
        try:
            answer = Found(await _send_dry_run(self._on(dry_run.cluster, dry_run.user), dry_run))
        except LaminaError as error:
            answer = answer_of(dry_run, error)
            if isinstance(error, InternalError) or isinstance(answer, Unserved):
                return answer
        if not (dry_run.user or dry_run.fresh):
            self._dry_runs[key] = answer
            if len(self._dry_runs) > _MAX_CACHED:
                del self._dry_runs[next(iter(self._dry_runs))]
        return answer


async def _send_dry_run(server: Reader, dry_run: DryRun) -> Made:
    """Send a dry run to a server."""
    if dry_run.creates:
        return await server.create(dry_run.obj, manager=dry_run.manager, dry_run=True)
    if not dry_run.replaces:
        return await server.apply(dry_run.obj, manager=dry_run.manager, force=dry_run.force, dry_run=True)
    return await server.update(dry_run.obj, manager=dry_run.manager, dry_run=True)
