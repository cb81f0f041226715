"""
One cluster: its discovery and its informers, shared by all controllers of the process.

It is what controller-runtime calls a Cluster: a cache and the kinds behind it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence

from lamina.client.client import Client
from lamina.core.crd.kinds import kinds_of
from lamina.core.model.world import Change
from lamina.errors import LaminaError
from lamina.logs import Logger
from lamina.objects import meta
from lamina.objects.kinds import Kinds
from lamina.runtime.cache.discovery import DiscoveryCache
from lamina.runtime.cache.informer import Informer
from lamina.runtime.cache.informer_factory import InformerFactory
from lamina.runtime.cache.watch_spec import ChangeHandler, WatchSpec, crd_watches

_MIN_DELAY, _MAX_DELAY = 0.05, 30.0


class Cluster:
    """
    Discovery and informers of one cluster; their tasks run in the given group.

    `discovered` is set after the first discovery, and `synced` once the informers
    of that time have synced. Both are also set when the cluster is stopped.
    """

    def __init__(
        self, name: str, client: Client, discovery: DiscoveryCache, group: asyncio.TaskGroup, log: Logger
    ) -> None:
        self.name = name
        self._discovery, self._group, self._log = discovery, group, log
        self.informers = InformerFactory(client, group, log, name)
        self.discovered, self.synced = asyncio.Event(), asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []

    @property
    def kinds(self) -> Kinds:
        return self._discovery.kinds

    @property
    def is_discovered(self) -> bool:
        return self.discovered.is_set()

    def follow_discovery(self, on_discovery: Callable[[], None]) -> None:
        """Call back whenever the served kinds change."""
        self.discovered.set()
        self._tasks.append(self._group.create_task(self._discovery.follow(on_discovery)))

    def connect(self, on_discovery: Callable[[], None], on_synced: Callable[[], None]) -> None:
        """Connect to a cluster that may not respond yet, with retries, in the background."""
        self._tasks.append(self._group.create_task(self._connect(on_discovery, on_synced)))

    async def _connect(self, on_discovery: Callable[[], None], on_synced: Callable[[], None]) -> None:
        delay = _MIN_DELAY
        while True:
            try:
                await self._discovery.refresh()
                break
            except LaminaError as error:
                self._log.warning("the cluster does not respond yet", because=str(error))
            except Exception:
                # A malformed response of one cluster must not stop the others.
                self._log.exception("the cluster sent a malformed response")
            await asyncio.sleep(delay)
            delay = min(delay * 2, _MAX_DELAY)
        self.follow_discovery(on_discovery)
        on_discovery()
        await self.informers.wait_synced()
        self.synced.set()
        on_synced()

    def set_watches(
        self, wanted: Mapping[WatchSpec, Sequence[ChangeHandler]]
    ) -> Mapping[WatchSpec, Informer]:
        """Run exactly the wanted informers and those of CRDs, and return them by spec."""
        handle = [self._discovery.handle_crd, self._handle_schema]
        crds = dict.fromkeys(crd_watches(self.kinds), handle)
        merged = {what: [*crds.get(what, ()), *handlers] for what, handlers in wanted.items()}
        return self.informers.set_watches({**crds, **merged}, self.kinds)

    def _handle_schema(self, change: Change) -> None:
        """List the objects of a custom resource again whose definition has another spec."""
        if change.before is None or change.after is None or change.preserves(meta.generation):
            return
        for kind in kinds_of(change.after)[:1]:
            self.informers.list_again(kind.group_kind)

    def stop(self) -> None:
        """Stop discovery and all informers."""
        for task in self._tasks:
            task.cancel()
        self.informers.set_watches({})
        self.discovered.set()
        self.synced.set()

    def clear(self) -> None:
        """Drop all references, once every task has ended."""
        self._tasks = []
        self.informers.clear()
