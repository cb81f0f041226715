"""
Which controllers run, and what they see.

What should be followed is a function of the controllers and of the kinds there
are; whenever kinds come or go it is worked out anew and compared with what is
followed already.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from lamina.client.client import Client
from lamina.clock import Clock
from lamina.core.controller import AnyController, only
from lamina.core.definitions import DEFINITION, names_only
from lamina.logs import Logger
from lamina.logs import log as default_log
from lamina.objects.kinds import Kinds
from lamina.objects.types import GroupKind
from lamina.runtime.asker import Asker
from lamina.runtime.catalogue import Catalogue
from lamina.runtime.executor import Executor
from lamina.runtime.informer import Informer, Subscription
from lamina.runtime.informers import Hear, Informers
from lamina.runtime.sight import Sight
from lamina.runtime.worker import Worker


class Manager:
    """Runs controllers against one cluster."""

    def __init__(
        self,
        client: Client,
        controllers: Sequence[AnyController],
        clock: Clock,
        log: Logger | None = None,
    ) -> None:
        self._client, self._controllers, self._clock = client, controllers, clock
        self._log: Logger = log if log is not None else default_log
        self._ready = asyncio.Event()
        self._failure: BaseException | None = None
        self._workers: list[tuple[Worker[object], tuple[Hear, ...]]] = []

    async def ready(self) -> None:
        """Wait until every controller has seen what there is; raises what kept them from it."""
        await self._ready.wait()
        if self._failure is not None:
            raise self._failure

    @property
    def is_idle(self) -> bool:
        """Say whether every controller has nothing to do but wait."""
        return self._ready.is_set() and all(worker.queue.is_idle for worker, _ in self._workers)

    async def run(self) -> None:
        """Run until cancelled."""
        try:
            await self._run()
        except BaseException as failure:
            self._failure = failure
            self._ready.set()
            raise

    async def _run(self) -> None:
        catalogue = Catalogue(self._client, self._log)
        await catalogue.refresh()
        async with asyncio.TaskGroup() as group:
            informers = Informers(self._client, group, self._log)
            for controller in self._controllers:
                worker = Worker(
                    controller,
                    sight=Sight(self._client, informers.gone),
                    asker=Asker(self._client),
                    executor=Executor(self._client, manager=controller.manager),
                    clock=self._clock,
                    log=self._log,
                )
                self._workers.append((worker, tuple(map(worker.listener, controller.watches))))
            self._arrange(informers, catalogue)
            group.create_task(catalogue.follow(lambda: self._arrange(informers, catalogue)))
            for worker, _ in self._workers:
                for _ in range(worker.controller.at_once):
                    group.create_task(worker.run())
            await informers.settled()
            self._ready.set()

    def _arrange(self, informers: Informers, catalogue: Catalogue) -> None:
        """Have every kind that somebody watches followed, and nothing else."""
        kinds = catalogue.kinds
        wanted: dict[Subscription, list[Hear]] = {}
        for subscription in _definitions(kinds):
            wanted.setdefault(subscription, []).append(catalogue.hear)
        seen: list[dict[GroupKind, Subscription]] = []
        for worker, listeners in self._workers:
            sees: dict[GroupKind, Subscription] = {}
            for watch, hear in zip(worker.controller.watches, listeners, strict=True):
                for kind in kinds:
                    if kind.can("list", "watch") and watch.selects(kind):
                        what = Subscription(kind, watch.keep, watch.metadata_only, watch.named)
                        wanted.setdefault(what, []).append(hear)
                        sees.setdefault(kind.group_kind, what)
            seen.append(sees)
        following = informers.arrange(wanted)
        for (worker, _), sees in zip(self._workers, seen, strict=True):
            through: dict[GroupKind, Informer] = {kind: following[what] for kind, what in sees.items()}
            worker.sight.arrange(kinds, through)


def _definitions(kinds: Kinds) -> Sequence[Subscription]:
    """Return what the catalogue itself has to follow."""
    selects = only(*DEFINITION)
    return [Subscription(kind, names_only, False, "") for kind in kinds if selects(kind)]
