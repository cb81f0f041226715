"""
Which kinds there are, followed as they come and go.

Discovery has no watch. Definitions of custom kinds do: whenever one says
something new, discovery is asked again, and again a little later as long as the
two do not agree, since a server may take a moment to serve what it accepted.
Kinds that come from elsewhere are noticed at the next regular look.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Protocol

from lamina.core.definitions import is_established, kinds_of
from lamina.core.world import Change
from lamina.errors import LaminaError
from lamina.logs import Logger
from lamina.objects import meta
from lamina.objects.kinds import Kind, Kinds
from lamina.objects.types import Obj

DISCOVERS = 30.0
"""How often is looked, in seconds, what is served."""
_SOONEST, _LATEST = 0.05, 5.0


class Discoverer(Protocol):
    async def discover(self) -> Kinds: ...


class Catalogue:
    """The kinds a cluster serves, as far as is known."""

    def __init__(self, discoverer: Discoverer, log: Logger, *, period: float = DISCOVERS) -> None:
        self.kinds = Kinds()
        self._discoverer, self._log, self._period = discoverer, log, period
        self._coming: dict[str, tuple[Kind, ...]] = {}
        self._going: dict[str, tuple[Kind, ...]] = {}
        self._news = asyncio.Event()

    async def refresh(self) -> bool:
        """Ask what is served, and say whether that is news."""
        kinds = await self._discoverer.discover()
        if kinds == self.kinds:
            return False
        self.kinds = kinds
        return True

    def hear(self, change: Change) -> None:
        """Take note of a definition that says something new."""
        before, after = _promised(change.before), _promised(change.after)
        if before == after:
            return
        name = meta.name(change.obj)
        self._coming[name] = after
        self._going[name] = tuple(kind for kind in before if kind not in after)
        if change.before is None and all(map(self._is_served, after)):
            # It was there all along, and what it promises is known.
            return
        self._news.set()

    async def follow(self, changed: Callable[[], None]) -> None:
        """Keep up for ever, calling back whenever the kinds are not what they were."""
        delay = self._period
        while True:
            try:
                async with asyncio.timeout(delay):
                    await self._news.wait()
                delay = _SOONEST
            except TimeoutError:
                pass
            self._news.clear()
            try:
                is_news = await self.refresh()
            except Exception as trouble:
                if isinstance(trouble, LaminaError):
                    self._log.warning("discovery failed", because=str(trouble))
                else:
                    # An answer that nobody could have meant: the next may be better.
                    self._log.exception("discovery was not understood")
                delay = max(_SOONEST, min(delay * 2, _LATEST))
                continue
            if is_news:
                changed()
            if self._agrees():
                delay = self._period
            elif delay < _LATEST:
                delay *= 2
            else:
                # A promise that is not kept by now is kept at the next regular look, or never.
                delay = self._period

    def _agrees(self) -> bool:
        for kinds in self._coming.values():
            if not all(map(self._is_served, kinds)):
                return False
        for name, kinds in list(self._going.items()):
            if any(map(self._is_served, kinds)):
                return False
            del self._going[name]
            if not self._coming.get(name):
                self._coming.pop(name, None)
        return True

    def _is_served(self, promised: Kind) -> bool:
        """Say whether a kind is served as a definition has it, with what belongs to it and nothing else."""
        found = self.kinds.find(promised.api_version, promised.kind)
        return found is not None and found.subresources == promised.subresources


def _promised(definition: Obj | None) -> tuple[Kind, ...]:
    """Return the kinds that a definition makes the server serve."""
    return kinds_of(definition) if definition is not None and is_established(definition) else ()
