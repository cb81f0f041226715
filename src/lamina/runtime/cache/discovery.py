"""
The kinds that a cluster serves, kept current.

Discovery has no watch, but CRDs have one: when a CRD changes, discovery is
requested again, with backoff until both agree, since a server may take a moment
to serve a CRD that it accepted. Other kinds, as those of an aggregated API, are
noticed at the next periodic request.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Protocol

from lamina.core.crd.kinds import is_established, kinds_of
from lamina.core.model.world import Change
from lamina.errors import LaminaError
from lamina.logs import Logger
from lamina.objects import meta
from lamina.objects.kinds import Kind, Kinds
from lamina.objects.types import Obj

DISCOVERY_PERIOD = 30.0
"""Seconds between two periodic requests."""
_MIN_DELAY, _MAX_DELAY = 0.05, 5.0


class Discoverer(Protocol):
    async def discover(self) -> Kinds: ...


class DiscoveryCache:
    """The kinds that a cluster served at the last request."""

    def __init__(self, discoverer: Discoverer, log: Logger, *, period: float = DISCOVERY_PERIOD) -> None:
        self.kinds = Kinds()
        self._discoverer, self._log, self._period = discoverer, log, period
        self._expected: dict[str, tuple[Kind, ...]] = {}
        self._removed: dict[str, tuple[Kind, ...]] = {}
        self._crd_changed = asyncio.Event()

    async def refresh(self) -> bool:
        """Request discovery, and say whether the kinds changed."""
        kinds = await self._discoverer.discover()
        if kinds == self.kinds:
            return False
        self.kinds = kinds
        return True

    def handle_crd(self, change: Change) -> None:
        """Note a CRD whose served kinds changed."""
        before, after = _kinds_of_crd(change.before), _kinds_of_crd(change.after)
        if before == after:
            return
        name = meta.name(change.obj)
        self._expected[name] = after
        self._removed[name] = tuple(kind for kind in before if kind not in after)
        if change.before is None and all(map(self._is_served, after)):
            # Listed for the first time, and its kinds are known already.
            return
        self._crd_changed.set()

    async def follow(self, changed: Callable[[], None]) -> None:
        """Follow discovery until cancelled, and call `changed` whenever the kinds change."""
        delay = self._period
        while True:
            try:
                async with asyncio.timeout(delay):
                    await self._crd_changed.wait()
                delay = _MIN_DELAY
            except TimeoutError:
                pass
            self._crd_changed.clear()
            try:
                is_changed = await self.refresh()
            except Exception as error:
                if isinstance(error, LaminaError):
                    self._log.warning("discovery failed", because=str(error))
                else:
                    # A malformed response: the next one may be valid.
                    self._log.exception("discovery could not be parsed")
                delay = max(_MIN_DELAY, min(delay * 2, _MAX_DELAY))
                continue
            if is_changed:
                changed()
            if self._agrees():
                delay = self._period
            elif delay < _MAX_DELAY:
                delay *= 2
            else:
                # A kind that is not served by now is noticed at the next periodic request.
                delay = self._period

    def _agrees(self) -> bool:
        for kinds in self._expected.values():
            if not all(map(self._is_served, kinds)):
                return False
        for name, kinds in list(self._removed.items()):
            if any(map(self._is_served, kinds)):
                return False
            del self._removed[name]
            if not self._expected.get(name):
                self._expected.pop(name, None)
        return True

    def _is_served(self, expected: Kind) -> bool:
        """Say whether a kind is served as its CRD declares it, with exactly these subresources."""
        found = self.kinds.find(expected.api_version, expected.kind)
        return found is not None and found.subresources == expected.subresources


def _kinds_of_crd(definition: Obj | None) -> tuple[Kind, ...]:
    """Return the kinds that a CRD has the server serve."""
    return kinds_of(definition) if definition is not None and is_established(definition) else ()
