"""
What one controller sees: its world, and whether that world is up to date with its own deeds.

A worker sees its own writes. Before it looks, it waits until its informers have
seen every version it wrote; after a while it stops waiting and reads for itself.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Protocol

from lamina.errors import NotFound, UnknownKind
from lamina.objects import meta
from lamina.objects.kinds import Kinds
from lamina.objects.types import GroupKind, Made, Ref
from lamina.runtime.executor import Written
from lamina.runtime.informer import Informer
from lamina.runtime.informers import covering
from lamina.runtime.memory import Gone, Memory

_PATIENCE = 2.0


class Looker(Protocol):
    """What looking for real takes."""

    async def get(self, ref: Ref, *, metadata_only: bool = False) -> Made: ...


class Sight:
    """The world of one controller, and how to bring it up to date."""

    def __init__(self, looker: Looker, gone: Gone, *, patience: float = _PATIENCE) -> None:
        self.world = Memory(gone)
        self._looker, self._patience = looker, patience
        self._informers: Mapping[GroupKind, Informer] = {}
        self._unsettled: list[Informer] = []

    def arrange(self, kinds: Kinds, informers: Mapping[GroupKind, Informer]) -> None:
        """See through these informers from now on."""
        self._informers = informers
        self._unsettled = [one for one in informers.values() if not one.settled.is_set()]
        self.world.arrange(kinds, {kind: informer.shelf for kind, informer in informers.items()})

    def know(self, kinds: Kinds) -> None:
        """Know of these kinds from now on, and see what was seen before."""
        self.world.arrange(kinds, {kind: informer.shelf for kind, informer in self._informers.items()})

    @property
    def is_settled(self) -> bool:
        """Say whether every kind that is watched has been seen once."""
        return bool(self._informers) and all(one.settled.is_set() for one in self._informers.values())

    async def settled(self) -> None:
        """Wait until every kind that is watched has been seen once."""
        while self._unsettled:
            await self._unsettled[-1].settled.wait()
            self._unsettled = [one for one in self._unsettled if not one.settled.is_set()]

    async def caught_up(self, written: Sequence[Written]) -> None:
        """Wait until what was written can be seen, and look for it on the server if that takes too long."""
        try:
            async with asyncio.timeout(self._patience):
                for write in written:
                    informer = covering(self._informers, write.ref)
                    if informer is not None:
                        await informer.wait_until(partial(_is_seen, informer, write))
        except TimeoutError:
            await self.look(write.ref for write in written if self._is_missed(write))

    def has_seen(self, written: Sequence[Written]) -> bool:
        """Say whether everything that was written can be seen already."""
        return not any(map(self._is_missed, written))

    def _is_missed(self, write: Written) -> bool:
        informer = covering(self._informers, write.ref)
        return informer is not None and not _is_seen(informer, write)

    async def look(self, refs: Iterable[Ref]) -> None:
        """Read these objects from the server, and remember what was found."""
        for ref in refs:
            informer = covering(self._informers, ref)
            if informer is None or not ref.name:
                continue
            try:
                found = await self._looker.get(ref, metadata_only=informer.what.metadata_only)
            except NotFound:
                informer.learn(ref.namespace, ref.name, None)
            except UnknownKind:
                continue
            else:
                informer.learn(ref.namespace, ref.name, found)


def _is_seen(informer: Informer, write: Written) -> bool:
    if write.version is not None:
        return informer.seen >= write.version
    there = informer.shelf.get(write.ref.namespace, write.ref.name)
    return there is None or meta.uid(there) != write.uid or meta.is_deleting(there)
