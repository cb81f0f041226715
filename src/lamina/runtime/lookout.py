"""
One cluster as it is seen from here: which kinds it serves, and what there is of those that somebody watches.

All controllers of a process look at a cluster through the same lookout.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence

from lamina.client.client import Client
from lamina.errors import LaminaError
from lamina.logs import Logger
from lamina.objects.kinds import Kinds
from lamina.runtime.catalogue import Catalogue
from lamina.runtime.informer import Informer
from lamina.runtime.informers import Informers
from lamina.runtime.subscriptions import Hear, Subscription, definitions

_SOONEST, _LATEST = 0.05, 30.0


class Lookout:
    """
    Sees one cluster, with everything it takes running in the group it was given.

    `known` is set once it is clear what the cluster serves, and `seen` once all
    has been seen that somebody watched then; both are set, too, when nobody
    looks any more.
    """

    def __init__(
        self, cluster: str, client: Client, catalogue: Catalogue, group: asyncio.TaskGroup, log: Logger
    ) -> None:
        self.cluster = cluster
        self._catalogue, self._group, self._log = catalogue, group, log
        self.informers = Informers(client, group, log, cluster)
        self.known, self.seen = asyncio.Event(), asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []

    @property
    def kinds(self) -> Kinds:
        return self._catalogue.kinds

    @property
    def is_known(self) -> bool:
        return self.known.is_set()

    def keep_up(self, changed: Callable[[], None]) -> None:
        """Call back whenever other kinds are served than those that are known."""
        self.known.set()
        self._tasks.append(self._group.create_task(self._catalogue.follow(changed)))

    def attend(self, changed: Callable[[], None], seen: Callable[[], None]) -> None:
        """Look at a cluster that may not answer yet: tried until it does, and nobody has to wait for that."""
        self._tasks.append(self._group.create_task(self._attend(changed, seen)))

    async def _attend(self, changed: Callable[[], None], seen: Callable[[], None]) -> None:
        delay = _SOONEST
        while True:
            try:
                await self._catalogue.refresh()
                break
            except LaminaError as trouble:
                self._log.warning("the cluster does not answer yet", because=str(trouble))
            except Exception:
                # One cluster's odd answer is no end to all others.
                self._log.exception("the cluster does not answer as it should")
            await asyncio.sleep(delay)
            delay = min(delay * 2, _LATEST)
        self.keep_up(changed)
        changed()
        await self.informers.settled()
        self.seen.set()
        seen()

    def arrange(self, wanted: Mapping[Subscription, Sequence[Hear]]) -> Mapping[Subscription, Informer]:
        """Follow exactly what is wanted, and what it takes to know the kinds; return who follows what."""
        own = {what: [self._catalogue.hear] for what in definitions(self.kinds)}
        also = {what: [*own.get(what, ()), *hear] for what, hear in wanted.items()}
        return self.informers.arrange({**own, **also}, self.kinds)

    def end(self) -> None:
        """Look no more."""
        for task in self._tasks:
            task.cancel()
        self.informers.arrange({})
        self.known.set()
        self.seen.set()

    def forget(self) -> None:
        """Know nobody any more, once all that ran has ended."""
        self._tasks = []
        self.informers.forget()
