"""
List, watch, go on.

A stream follows what a subscription is about, for whoever wants to remember it.
It asks for what exists and for what happens from then on at once, where the
server offers that, and lists first and watches afterwards where it does not. A
watch that ends is taken up where it ended; one that has fallen too far behind
starts over, and what has gone in between is noticed then.

Whoever wants less of the same objects is carried along: their metadata, or one
of them by name. What a server tells once it need not tell again. Who may not see
all may still see some: those who want fewer objects part ways with a stream that
is forbidden.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Collection, Sequence
from time import monotonic
from typing import Protocol

from lamina.client.client import Listing
from lamina.errors import (
    BadRequest,
    Forbidden,
    Gone,
    Invalid,
    LaminaError,
    MethodNotAllowed,
    NotFound,
    UnknownKind,
    Unreachable,
)
from lamina.logs import Logger
from lamina.objects import meta
from lamina.objects.kinds import Kind
from lamina.objects.types import Obj, WatchEvent
from lamina.runtime.informer import Informer
from lamina.runtime.subscriptions import Subscription

_INITIAL_END = "k8s.io/initial-events-end"
_SOONEST, _LATEST = 0.05, 30.0
_LASTING = 5.0
_DICE = random.Random()
"""Our own: whoever seeds or checks the one that everybody shares may do so in another thread."""
_SHORTEST, _LONGEST, _APART = 300, 600, 15
"""How many seconds a watch lasts: not all end together, and requests that are alike are read once."""


class Watcher(Protocol):
    """What following takes: the client's lists and watches."""

    async def list(
        self, what: Kind, namespace: str = "", *, fields: str = "", metadata_only: bool = False
    ) -> Listing: ...

    async def follow(
        self,
        what: Kind,
        hear: Callable[[WatchEvent], None],
        namespace: str = "",
        *,
        version: str = "",
        initial: bool = False,
        fields: str = "",
        metadata_only: bool = False,
        seconds: int | None = None,
    ) -> None: ...


class Stream:
    """
    Follows one subscription on behalf of informers: the one that asked for it, and those it carries along.

    It goes on for as long as one of them is left, whoever that is. `part` is told
    of those who have to be followed otherwise.
    """

    def __init__(
        self, watcher: Watcher, what: Subscription, log: Logger, part: Callable[[Sequence[Informer]], None]
    ) -> None:
        self.what = what
        self._sees: list[tuple[Informer, _Sieve | None]] = []
        self._watcher, self._log, self._part = watcher, log, part
        self._streams = True
        self._caught_up = False
        self._resume_from = ""

    def carry(self, informer: Informer) -> None:
        """Have an informer told what it is about; said before anything is followed."""
        self._sees.append((informer, None if informer.what.carries(self.what) else _Sieve(informer.what)))

    def leave_behind(self, whose: Collection[Subscription]) -> None:
        """Tell some of those who are carried along nothing more."""
        self._sees = [(informer, sieve) for informer, sieve in self._sees if informer.what not in whose]

    @property
    def is_needed(self) -> bool:
        """Say whether there is anybody to tell."""
        return bool(self._sees)

    async def run(self) -> None:
        """Follow for as long as there is anybody to tell."""
        delay = _SOONEST
        while self._sees:
            self._want_less()
            heard_of, began = self._seen, monotonic()
            try:
                if self._resume_from:
                    await self._read(version=self._resume_from)
                elif self._streams:
                    await self._start_over()
                else:
                    await self._list_first()
            except Gone:
                self._resume_from = ""
                self._bound.debug("watch starts over", because="the server no longer keeps where it ended")
            except (Forbidden, NotFound, MethodNotAllowed, UnknownKind) as refused:
                if isinstance(refused, Forbidden):
                    self._part_ways()
                # Not to be seen, at least for now. Nobody should wait for it.
                for informer, _ in self._sees:
                    informer.settled.set()
                self._bound.debug("watch refused", because=str(refused))
            except Unreachable as trouble:
                self._bound.debug("watch broke off", because=str(trouble))
            except LaminaError as trouble:
                self._bound.warning("watch failed", because=str(trouble))
            except Exception:
                self._bound.exception("watch failed by a mistake of ours")
            if self._seen > heard_of or monotonic() - began > _LASTING:
                delay = _SOONEST
            # Spread, so that streams that lost their server together do not all come back together.
            await asyncio.sleep(delay * _DICE.uniform(0.5, 1.5))
            delay = min(delay * 2, _LATEST)

    @property
    def _seen(self) -> int:
        return max((informer.seen for informer, _ in self._sees), default=0)

    @property
    def _bound(self) -> Logger:
        return self._log.bind(kind=self.what.kind.kind, api_version=self.what.kind.api_version)

    # ── for whom ──

    def _want_less(self) -> None:
        """Once the one that this stream was for has left, ask for no more than those want who stay."""
        stay = [informer for informer, _ in self._sees]
        if all(informer.what != self.what for informer in stay):
            for one in stay:
                if all(one.what.carries(other.what) for other in stay):
                    self.what, self._sees = one.what, []
                    for informer in stay:
                        self.carry(informer)
                    return

    def _part_ways(self) -> None:
        """Have those who want fewer objects followed on their own: that may be allowed."""
        where = self.what.named, self.what.namespace
        fewer = [one for one, _ in self._sees if (one.what.named, one.what.namespace) != where]
        if fewer:
            self.leave_behind({informer.what for informer in fewer})
            self._part(fewer)

    # ── three ways of following ──

    async def _start_over(self) -> None:
        """Ask for everything that exists, and for what follows, in one stream."""
        self._begin()
        try:
            await self._read(initial=True)
        except (Invalid, BadRequest):
            if self._caught_up:
                raise
            self._streams = False
            await self._list_first()

    async def _list_first(self) -> None:
        what = self.what
        listing = await self._watcher.list(
            what.kind, what.namespace, fields=what.fields, metadata_only=what.metadata_only
        )
        self._begin()
        for obj in listing.items:
            self._see(obj)
        self._complete(listing.version)
        await self._read(version=self._resume_from)

    async def _read(self, *, version: str = "", initial: bool = False) -> None:
        what = self.what
        await self._watcher.follow(
            what.kind,
            self._hear,
            what.namespace,
            version=version,
            initial=initial,
            fields=what.fields,
            metadata_only=what.metadata_only,
            seconds=_DICE.randrange(_SHORTEST, _LONGEST, _APART),
        )

    # ── passing it on ──

    def _hear(self, event: WatchEvent) -> None:
        """Pass on what happened; a server in this process says it without our having to wake up for it."""
        obj = event["object"]
        match event["type"]:
            case "ADDED" | "MODIFIED":
                self._see(obj)
            case "DELETED":
                for informer, sieve in self._sees:
                    if sieve is None or sieve.lets(obj):
                        informer.lose(obj)
            case "BOOKMARK" if not self._caught_up:
                if _INITIAL_END in meta.annotations(obj):
                    self._complete(meta.resource_version(obj))
                return
        if self._caught_up:
            self._resume_from = version = meta.resource_version(obj)
            for informer, _ in self._sees:
                informer.reached(version)

    def _see(self, obj: Obj) -> None:
        for informer, sieve in self._sees:
            if sieve is None:
                informer.see(obj)
            elif sieve.lets(obj):
                informer.see(sieve.cut(obj))

    def _begin(self) -> None:
        self._caught_up = False
        for informer, _ in self._sees:
            informer.begin()

    def _complete(self, version: str) -> None:
        for informer, _ in self._sees:
            informer.complete(version)
        # Not before: if that goes wrong, everybody has to be told all of it again.
        self._caught_up = True
        self._resume_from = version


class _Sieve:
    """What of a stream is for somebody who wants less."""

    __slots__ = ("_metadata_only", "_name", "_namespace")

    def __init__(self, what: Subscription) -> None:
        self._name, self._namespace, self._metadata_only = what.named, what.namespace, what.metadata_only

    def lets(self, obj: Obj) -> bool:
        return (not self._name or meta.name(obj) == self._name) and (
            not self._namespace or meta.namespace(obj) == self._namespace
        )

    def cut(self, obj: Obj) -> Obj:
        if not self._metadata_only:
            return obj
        return {"apiVersion": obj["apiVersion"], "kind": obj["kind"], "metadata": obj["metadata"]}
