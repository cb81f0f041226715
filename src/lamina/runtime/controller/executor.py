"""
Performs the actions of plans: the one place that writes what controllers plan.

What follows from a refusal is decided in `core.model.reconcile`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Protocol, assert_never

from lamina.client.client import KindOrName
from lamina.client.write_guard import WriteGuard
from lamina.core.model.effects import Outcome, Performed, Written
from lamina.core.model.plan import Action, Apply, Create, Delete, DeleteAll, Emit, Patch, Plan, Post, Replace
from lamina.core.model.reconcile import performing
from lamina.errors import AlreadyExists, ApiError, Conflict, NotLeading
from lamina.objects import meta
from lamina.objects.types import Made, Obj, Ref
from lamina.ratelimit import TokenBuckets
from lamina.runtime.cluster.lookup import resolve
from lamina.runtime.controller.concurrency import run_concurrently
from lamina.runtime.controller.driver import drive
from lamina.runtime.controller.event_broadcaster import EventBroadcaster
from lamina.runtime.metrics.recorder import Recorder

_MAX_CACHED = 4096
_COUNT_TRIES = 5
"""How often the count of an event is read again after another write of it."""


class Writer(Protocol):
    """The part of a client that an executor uses."""

    async def get(self, ref: Ref, *, metadata_only: bool = False) -> Made: ...

    async def create(
        self, obj: Obj, *, manager: str | None = None, guard: WriteGuard | None = None
    ) -> Made: ...

    async def update(
        self, obj: Obj, *, subresource: str = "", manager: str | None = None, guard: WriteGuard | None = None
    ) -> Made: ...

    async def patch(
        self,
        ref: Ref,
        patch: Obj,
        *,
        subresource: str = "",
        manager: str | None = None,
        guard: WriteGuard | None = None,
    ) -> Made: ...

    async def apply(
        self,
        obj: Obj,
        *,
        manager: str | None = None,
        force: bool = False,
        subresource: str = "",
        guard: WriteGuard | None = None,
    ) -> Made: ...

    async def post(
        self,
        ref: Ref,
        body: Obj,
        *,
        subresource: str,
        manager: str | None = None,
        guard: WriteGuard | None = None,
    ) -> Made: ...

    async def delete(
        self,
        ref: Ref,
        *,
        uid: str = "",
        version: str = "",
        propagation: str = "",
        grace: int | None = None,
        guard: WriteGuard | None = None,
    ) -> Made: ...

    async def delete_collection(
        self, what: KindOrName, namespace: str = "", *, propagation: str = "", guard: WriteGuard | None = None
    ) -> Made: ...


class Executor:
    """Performs plans, stage by stage, as a field manager."""

    def __init__(
        self,
        writer: Writer,
        *,
        manager: str,
        others: Mapping[str, Writer] | None = None,
        at_once: int = 32,
        meter: Recorder | None = None,
        events: TokenBuckets | None = None,
        broadcaster: EventBroadcaster | None = None,
    ) -> None:
        self._broadcaster = broadcaster
        """Sends events when controllers are idle; without it they are sent at once."""
        self._writer, self._manager, self._at_once = writer, manager, at_once
        self._others: Mapping[str, Writer] = others if others is not None else {}
        """The writers of clusters other than the primary one."""
        self._meter, self._events = meter or Recorder(), events
        self._ineffective: dict[tuple[Ref, str], Patch] = {}
        """Patches that a server accepted without a change: it prunes their fields, or defaults them again."""
        self._emitted: dict[Ref, None] = {}

    async def run(self, plan: Plan, *, allowed: WriteGuard = lambda: True) -> Outcome:
        """Perform a plan stage by stage, and return its outcome."""
        return await drive(performing(plan), lambda stage: self.perform(stage.actions, allowed=allowed))

    async def perform(
        self, actions: Sequence[Action], *, allowed: WriteGuard = lambda: True
    ) -> Sequence[Performed]:
        """
        Perform actions side by side, all of them, and return for each its writes or the error.

        `allowed` is checked before each, and again when its request is sent.
        """

        async def perform(action: Action) -> Sequence[Written]:
            if not allowed():
                raise NotLeading(
                    f"{action.ref} is not written: this replica no longer leads the owner, or the cluster was unbound"
                )
            if self._broadcaster is not None and isinstance(action, Emit):
                await self._broadcaster.send(partial(self._emit_if, allowed, action), action.ref.cluster)
                return ()
            return await self._record(action, allowed)

        return await run_concurrently(actions, perform, at_once=self._at_once)

    async def _record(self, action: Action, guard: WriteGuard) -> Sequence[Written]:
        """Perform an action, and report to the recorder what became of it."""
        try:
            written = await self._perform(action, guard)
        except ApiError as error:
            self._meter.refused(action, error)
            raise
        self._meter.wrote(action, written)
        return written

    async def _perform(self, action: Action, guard: WriteGuard) -> Sequence[Written]:
        manager, ref = self._manager, action.ref
        writer = resolve(ref.cluster, self._writer, self._others)
        match action:
            case Create(obj=obj):
                return _result(ref, await writer.create(obj, manager=manager, guard=guard))
            case Patch(uid=uid, version=version, patch=patch, subresource=subresource):
                if self._ineffective.get((ref, subresource)) == action:
                    return ()
                preconditions = {"uid": uid, "resourceVersion": version} if version else {"uid": uid}
                body = {**patch, "metadata": {**(patch.get("metadata") or {}), **preconditions}}
                answer = await writer.patch(ref, body, subresource=subresource, manager=manager, guard=guard)
                if version and meta.resource_version(answer) == version:
                    self._note_ineffective(action)
                return _result(ref, answer)
            case Replace(obj=obj, subresource=subresource):
                answer = await writer.update(obj, subresource=subresource, manager=manager, guard=guard)
                return _result(ref, answer)
            case Apply(obj=obj, force=force, manager=name, subresource=subresource):
                answer = await writer.apply(
                    obj, manager=name or manager, force=force, subresource=subresource, guard=guard
                )
                return _result(ref, answer)
            case Post(body=body, subresource=subresource):
                # The body is not the object: the informer brings the object when it changes.
                await writer.post(ref, body, subresource=subresource, manager=manager, guard=guard)
                return ()
            case Delete(uid=uid, version=version, propagation=propagation, grace=grace):
                answer = await writer.delete(
                    ref, uid=uid, version=version, propagation=propagation, grace=grace, guard=guard
                )
                return _deleted(ref, uid, answer)
            case DeleteAll(kind=kind, namespace=namespace, propagation=propagation):
                answer = await writer.delete_collection(kind, namespace, propagation=propagation, guard=guard)
                return [
                    Written(
                        kind.ref(meta.namespace(item), meta.name(item), ref.cluster), meta.uid(item), None
                    )
                    for item in answer.get("items") or ()
                ]
            case Emit(event=event, counts=counts):
                return await self._emit(writer, ref, event, guard, counts=counts)
            case _:
                assert_never(action)

    async def _emit_if(self, allowed: WriteGuard, action: Emit) -> None:
        if not allowed():
            return
        with suppress(ApiError):
            await self._record(action, allowed)

    async def _emit(
        self, writer: Writer, ref: Ref, event: Obj, guard: WriteGuard, *, counts: bool
    ) -> Sequence[Written]:
        if ref in self._emitted and not counts:
            return ()
        involved = event.get("involvedObject") or {}
        # The rate limit of events about one object. Warnings have their own: after many normal events the one
        # Warning that follows is what matters.
        limited = self._manager, involved.get("uid"), event.get("type")
        if self._events is not None and not self._events.take(limited):
            return ()
        answer: Obj | None = None
        try:
            answer = await writer.create(event, manager=self._manager, guard=guard)
        except AlreadyExists:
            if counts:
                answer = await self._increment(writer, ref, event, guard)
        self._emitted[ref] = None
        if len(self._emitted) > _MAX_CACHED:
            del self._emitted[next(iter(self._emitted))]
        return _result(ref, answer) if answer is not None else ()

    async def _increment(self, writer: Writer, ref: Ref, event: Obj, guard: WriteGuard) -> Obj:
        """Add one to the count of an event, on the version that was read: a stale read would lose a count."""
        for _ in range(_COUNT_TRIES):
            known = await writer.get(ref)
            again = {
                "metadata": {"resourceVersion": meta.resource_version(known)},
                "count": (known.get("count") or 1) + 1,
                "lastTimestamp": event.get("lastTimestamp"),
            }
            with suppress(Conflict):
                return await writer.patch(ref, again, manager=self._manager, guard=guard)
        raise Conflict(f"{ref} is not counted: it was changed at each of {_COUNT_TRIES} tries")

    def _note_ineffective(self, patch: Patch) -> None:
        self._ineffective[patch.ref, patch.subresource] = patch
        if len(self._ineffective) > _MAX_CACHED:
            del self._ineffective[next(iter(self._ineffective))]


def _result(ref: Ref, answer: Obj) -> Sequence[Written]:
    version = meta.resource_version(answer)
    name = meta.name(answer) or ref.name
    return (Written(ref._replace(name=name), meta.uid(answer), int(version)),) if version.isdigit() else ()


def _deleted(ref: Ref, uid: str, answer: Obj) -> Sequence[Written]:
    """Return the write of a deletion: a new version if finalizers or grace hold the object, otherwise its removal."""
    if answer.get("kind") == ref.kind and meta.uid(answer):
        return _result(ref, answer)
    return (Written(ref, uid, None),)
