"""The one place that writes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Protocol, assert_never

from msgspec import Struct

from lamina.client.client import What
from lamina.client.leave import only_while
from lamina.core.plan import Action, Apply, Create, Delete, DeleteAll, Emit, Patch, Plan, Post, Replace
from lamina.errors import AlreadyExists, ApiError, LaminaError, NotLeading
from lamina.objects import meta
from lamina.objects.types import Made, Obj, Ref
from lamina.rates import Buckets
from lamina.runtime.bindings import bound
from lamina.runtime.meter import Meter
from lamina.runtime.telling import Teller
from lamina.runtime.together import side_by_side

_REMEMBERED = 4096


class Writer(Protocol):
    """What carrying out plans takes: the client's writing half, and a look at what is there already."""

    async def get(self, ref: Ref, *, metadata_only: bool = False) -> Made: ...

    async def create(self, obj: Obj, *, manager: str | None = None) -> Made: ...

    async def update(self, obj: Obj, *, subresource: str = "", manager: str | None = None) -> Made: ...

    async def patch(
        self, ref: Ref, patch: Obj, *, subresource: str = "", manager: str | None = None
    ) -> Made: ...

    async def apply(
        self, obj: Obj, *, manager: str | None = None, force: bool = False, subresource: str = ""
    ) -> Made: ...

    async def post(self, ref: Ref, body: Obj, *, subresource: str, manager: str | None = None) -> Made: ...

    async def delete(
        self,
        ref: Ref,
        *,
        uid: str = "",
        version: str = "",
        propagation: str = "",
        grace: int | None = None,
    ) -> Made: ...

    async def delete_collection(self, what: What, namespace: str = "", *, propagation: str = "") -> Made: ...


class Written(Struct, frozen=True):
    """A write that the server took: the version it made, or none where the object was to go."""

    ref: Ref
    uid: str
    version: int | None


class Refused(Struct, frozen=True):
    """An action that the server did not take, and why."""

    action: Action
    error: LaminaError


class Outcome(Struct, frozen=True):
    """What became of a plan."""

    written: tuple[Written, ...]
    refused: tuple[Refused, ...]


class Executor:
    """Carries out plans, stage by stage, in the name of a manager."""

    def __init__(
        self,
        writer: Writer,
        *,
        manager: str,
        others: Mapping[str, Writer] | None = None,
        at_once: int = 32,
        meter: Meter | None = None,
        events: Buckets | None = None,
        teller: Teller | None = None,
    ) -> None:
        self._teller = teller
        """Who tells events when there is time; without one they are told at once, however many there are."""
        self._writer, self._manager, self._at_once = writer, manager, at_once
        self._others: Mapping[str, Writer] = others if others is not None else {}
        """Who writes on clusters other than the one at home."""
        self._meter, self._events = meter or Meter(), events
        self._futile: dict[tuple[Ref, str], Patch] = {}
        """Patches that a server took and made nothing of: it drops what is in them, or fills it in again."""
        self._told: dict[Ref, None] = {}

    async def run(self, plan: Plan, *, allowed: Callable[[], bool] = lambda: True) -> Outcome:
        """
        Perform the actions of a stage side by side, all of them, whatever fails.

        `allowed` is asked before each, and again when it is sent: whoever is no
        longer to write does not.

        The next stage starts only if none failed, unless it is marked
        `even_after_failure`. Nothing is retried here: a failed write usually
        means the plan was made from an old view, and the cure for that is a
        new plan.
        """

        async def perform(action: Action) -> Sequence[Written]:
            if not allowed():
                raise NotLeading(f"{action.ref} is somebody else's to write")
            if self._teller is not None and isinstance(action, Emit):
                await self._teller.tell(partial(self._tell_if, allowed, action), action.ref.cluster)
                return ()
            with only_while(allowed):
                done = await self._perform(action)
            self._meter.wrote(action)
            return done

        written: list[Written] = []
        refused: list[Refused] = []
        for stage in plan.stages:
            if refused and not stage.even_after_failure:
                continue
            results = await side_by_side(stage.actions, perform, at_once=self._at_once)
            for action, result in zip(stage.actions, results, strict=True):
                if isinstance(result, LaminaError):
                    refused.append(Refused(action, result))
                else:
                    written += result
        return Outcome(tuple(written), tuple(refused))

    async def _perform(self, action: Action) -> Sequence[Written]:
        manager, ref = self._manager, action.ref
        writer = bound(ref.cluster, self._writer, self._others)
        match action:
            case Create(obj=obj):
                return _result(ref, await writer.create(obj, manager=manager))
            case Patch(uid=uid, version=version, patch=patch, subresource=subresource):
                if self._futile.get((ref, subresource)) == action:
                    return ()
                seen = {"uid": uid, "resourceVersion": version} if version else {"uid": uid}
                body = {**patch, "metadata": {**(patch.get("metadata") or {}), **seen}}
                answer = await writer.patch(ref, body, subresource=subresource, manager=manager)
                if version and meta.resource_version(answer) == version:
                    self._give_up(action)
                return _result(ref, answer)
            case Replace(obj=obj, subresource=subresource):
                answer = await writer.update(obj, subresource=subresource, manager=manager)
                return _result(ref, answer)
            case Apply(obj=obj, force=force, manager=name, subresource=subresource, optional=optional):
                try:
                    answer = await writer.apply(
                        obj, manager=name or manager, force=force, subresource=subresource
                    )
                except ApiError:
                    if optional:
                        return ()
                    raise
                return _result(ref, answer)
            case Post(body=body, subresource=subresource):
                # What was posted is not the object; what becomes of the object is seen when it comes.
                await writer.post(ref, body, subresource=subresource, manager=manager)
                return ()
            case Delete(uid=uid, version=version, propagation=propagation, grace=grace):
                answer = await writer.delete(
                    ref, uid=uid, version=version, propagation=propagation, grace=grace
                )
                return _ended(ref, uid, answer)
            case DeleteAll(kind=kind, namespace=namespace, propagation=propagation):
                answer = await writer.delete_collection(kind, namespace, propagation=propagation)
                return [
                    Written(
                        kind.ref(meta.namespace(item), meta.name(item), ref.cluster), meta.uid(item), None
                    )
                    for item in answer.get("items") or ()
                ]
            case Emit(event=event, counts=counts):
                try:
                    await self._tell(writer, ref, event, counts=counts)
                except ApiError:
                    # Not to be told: no reason to hold up a plan.
                    return ()
                return ()
            case _:
                assert_never(action)

    async def _tell_if(self, allowed: Callable[[], bool], action: Emit) -> None:
        if allowed():
            with only_while(allowed):
                await self._perform(action)
            self._meter.wrote(action)

    async def _tell(self, writer: Writer, ref: Ref, event: Obj, *, counts: bool) -> None:
        if ref in self._told and not counts:
            return
        about = event.get("involvedObject") or {}
        if self._events is not None and not self._events.take((self._manager, about.get("uid"))):
            # Whoever talks too much about one object is not listened to for a while.
            return
        try:
            await writer.create(event, manager=self._manager)
        except AlreadyExists:
            if counts:
                told = await writer.get(ref)
                again = {"count": (told.get("count") or 1) + 1, "lastTimestamp": event.get("lastTimestamp")}
                await writer.patch(ref, again, manager=self._manager)
        self._told[ref] = None
        if len(self._told) > _REMEMBERED:
            del self._told[next(iter(self._told))]

    def _give_up(self, patch: Patch) -> None:
        self._futile[patch.ref, patch.subresource] = patch
        if len(self._futile) > _REMEMBERED:
            del self._futile[next(iter(self._futile))]


def _result(ref: Ref, answer: Obj) -> Sequence[Written]:
    version = meta.resource_version(answer)
    name = meta.name(answer) or ref.name
    return (Written(ref._replace(name=name), meta.uid(answer), int(version)),) if version.isdigit() else ()


def _ended(ref: Ref, uid: str, answer: Obj) -> Sequence[Written]:
    """Return what a deletion leaves to be seen: a new version if something still holds the object, or its end."""
    if answer.get("kind") == ref.kind and meta.uid(answer):
        return _result(ref, answer)
    return (Written(ref, uid, None),)
