"""
Remember what a stream tells of the objects of one kind, and say what changed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeAlias

from lamina.core.world import Change
from lamina.logs import Logger
from lamina.logs import log as default_log
from lamina.objects import meta
from lamina.objects.types import Obj
from lamina.runtime.memory import Shelf
from lamina.runtime.subscriptions import Subscription

_Fresh: TypeAlias = dict[tuple[str, str], Obj | None]
"""What a server says that exists, by its place; itself, too, where it is not what is known."""


class Informer:
    """
    Remembers what one subscription is about, and tells whoever listens what changes.

    `settled` is set once everything that existed has been seen, or once it is
    clear that it cannot be seen, or that nobody looks any more. `seen` is the version up to which everything
    that happened is on the shelf. An object of which it is not understood what to keep stays as it was known.
    """

    def __init__(
        self,
        what: Subscription,
        tell: Callable[[Change], None],
        cluster: str = "",
        log: Logger = default_log,
    ) -> None:
        self.what, self._cluster, self._log = what, cluster, log
        self.shelf = Shelf(what.kind)
        self.settled = asyncio.Event()
        self.has_ended = False
        self.seen = 0
        self._tell = tell
        self._fresh: _Fresh | None = None
        """Which of those that exist have been told of, as long as that is not all of them."""
        self._waiting: list[tuple[Callable[[], bool], asyncio.Future[None]]] = []

    def inherit(self, shelf: Shelf) -> None:
        """
        Begin with what another informer of the same kind remembered.

        Whatever has gone since is then noticed when everything has been seen.
        """
        for obj in shelf.every():
            self.shelf.put({**obj, "apiVersion": self.what.kind.api_version})

    def end(self) -> None:
        """Take note that nobody follows this any more: whoever waits for it should look for it elsewhere."""
        self.has_ended = True
        self.settled.set()
        for _, happened in self._waiting:
            if not happened.done():
                happened.set_result(None)

    async def wait_until(self, is_so: Callable[[], bool]) -> None:
        """Wait for what is on the shelf to make something true, or for nobody to follow it any more."""
        if self.has_ended or is_so():
            return
        happened: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((is_so, happened))
        try:
            await happened
        finally:
            self._waiting = [(test, future) for test, future in self._waiting if future is not happened]

    def learn(self, namespace: str, name: str, obj: Obj | None, known: Obj | None) -> None:
        """
        Take note of an object as somebody saw it on the server, unless something newer is known.

        `known` is what was known of it when they went to look: that it is not there says nothing about one
        that came meanwhile, and one that was there may have gone since.
        """
        now = self.shelf.get(namespace, name)
        if obj is None:
            if now is known:
                self._drop(namespace, name)
        elif now is not None or _version(obj) > self.seen:
            self._put(obj)

    # ── what a stream tells ──

    def begin(self) -> None:
        """Take note that everything that exists is about to be told."""
        self._fresh = {}

    def see(self, obj: Obj) -> None:
        """Take in an object as it is now."""
        try:
            if self._fresh is None:
                self._put(obj)
            else:
                self._list(obj, self._fresh)
        except Exception:
            self._misunderstood(obj)

    def lose(self, obj: Obj) -> None:
        """Take note that an object has gone; one that came after it and has its name has not."""
        place = _key(obj)
        if self._fresh is not None:
            self._fresh.pop(place, None)
        known = self.shelf.get(*place)
        if known is not None and (meta.uid(known) == meta.uid(obj) or _version(known) <= _version(obj)):
            self._drop(*place)

    def complete(self, version: str) -> None:
        """
        Forget what is there no more, and know that everything that is has been seen.

        What somebody read for himself meanwhile may be newer than that. If all of it is older than what
        was seen before, though, the server has another past than it had, and what was known is worth nothing.
        """
        fresh, self._fresh = self._fresh or {}, None
        then = int(version) if version.isdigit() else 0
        is_another = then < self.seen
        if is_another:
            self.seen = 0
        for place in [one for one in self.shelf.places() if one not in fresh or fresh[one] is not None]:
            known, listed = self.shelf.get(*place), fresh.get(place)
            if known is not None and _version(known) > then and not is_another:
                continue
            if listed is None:
                self._drop(*place)
            else:
                try:
                    self._remember(listed)
                except Exception:
                    self._misunderstood(listed)
        self.reached(version)
        self.settled.set()

    def reached(self, version: str) -> None:
        """Take note that everything up to a version has been told."""
        if version.isdigit() and int(version) > self.seen:
            self.seen = int(version)
            self._look_up()

    # ── remembering ──

    def _list(self, obj: Obj, fresh: _Fresh) -> None:
        """Take in one of those that exist; what contradicts something that seems newer is kept for the end."""
        before = self.shelf.get(*_key(obj))
        differs = before is not None and _identity(before) != _identity(obj)
        # It exists, whether or not it is understood.
        fresh[_key(obj)] = None
        self._put(obj)
        fresh[_key(obj)] = obj if differs and self.shelf.get(*_key(obj)) is before else None

    def _put(self, obj: Obj) -> None:
        before = self.shelf.get(*_key(obj))
        if before is None or _version(before) < _version(obj):
            self._remember(obj)

    def _remember(self, obj: Obj) -> None:
        kept = self.what.keep(obj)
        before = self.shelf.put(kept)
        self._tell(Change(self.what.kind, before, kept, self._cluster))
        self._look_up()

    def _misunderstood(self, obj: Obj) -> None:
        # Others hear of the same objects, and of others after this one: what is wrong with it is its own affair.
        self._log.exception("an object was not understood", kind=self.what.kind.kind, object=meta.name(obj))

    def _drop(self, namespace: str, name: str) -> None:
        before = self.shelf.drop(namespace, name)
        if before is not None:
            self._tell(Change(self.what.kind, before, None, self._cluster))
            self._look_up()

    def _look_up(self) -> None:
        for is_so, happened in self._waiting:
            if not happened.done() and is_so():
                happened.set_result(None)


def _identity(obj: Obj) -> tuple[str, int]:
    return meta.uid(obj), _version(obj)


def _key(obj: Obj) -> tuple[str, str]:
    metadata = obj["metadata"]
    return metadata.get("namespace") or "", metadata["name"]


def _version(obj: Obj) -> int:
    version = meta.resource_version(obj)
    return int(version) if version.isdigit() else 0
