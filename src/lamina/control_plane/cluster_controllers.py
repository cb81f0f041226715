"""
Controllers that run on a hub for each other cluster, and create objects on that cluster.

A family defines them as its `ClusterControllers` value. Each cluster has a manager of its
own, whose primary cluster is the hub: a cluster that does not respond delays no other one,
and once its manager has stopped, nothing holds an object on the hub any more.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from itertools import chain
from typing import TYPE_CHECKING, Final

from lamina.client.client import Client
from lamina.clock import Clock
from lamina.core.model.controller import AnyController
from lamina.core.model.family import ClusterControllers, Family
from lamina.errors import LaminaError, NotFound, UnknownKind
from lamina.logs import log
from lamina.objects import meta
from lamina.objects.types import Obj
from lamina.ratelimit import TokenBuckets
from lamina.runtime.cache.discovery import DISCOVERY_PERIOD
from lamina.runtime.controller.executor import Executor
from lamina.runtime.controller.manager import Manager
from lamina.runtime.controller.worker import Leadership
from lamina.runtime.metrics.recorder import Recorder
from lamina.server.identity import LOOPBACK

if TYPE_CHECKING:
    from lamina.control_plane.cluster import EmbeddedCluster

_RARE_DISCOVERY: Final = 3600.0
"""The period of discovery, in seconds, where definitions are watched."""
_MIN_DELAY, _MAX_DELAY = 0.5, 30.0
"""Backoff while the hub does not respond, in seconds."""


def controllers_for(families: Iterable[Family], cluster: str) -> tuple[AnyController, ...]:
    """Return the controllers of families that run on a hub for the cluster of that name."""
    return tuple(chain.from_iterable(one.controllers(cluster) for one in _of(families)))


def _of(families: Iterable[Family]) -> list[ClusterControllers]:
    return [one.cluster_controllers for one in families if one.cluster_controllers is not None]


def manager_for(
    cluster: str,
    client: Client,
    hub: Client,
    controllers: Sequence[AnyController],
    clock: Clock,
    lead: Leadership | None = None,
    meters: Callable[[str], Recorder] = lambda name: Recorder(),
    *,
    events: TokenBuckets | None = None,
    discovery_period: float = DISCOVERY_PERIOD,
) -> Manager:
    """Return the manager of these controllers for one cluster, ready to be run."""
    return _Manager(
        hub,
        controllers,
        clock,
        log.bind(serves=cluster),
        lead=lead,
        meters=meters,
        events=events,
        discovery_period=discovery_period,
        others={cluster: client},
    )


class _Manager(Manager):
    """A manager whose primary cluster may not respond yet: it would fail, and the cluster would never be served."""

    async def run(self) -> None:
        """Run until cancelled, from when the hub responds."""
        delay = _MIN_DELAY
        while True:
            try:
                await self._client.discover()
                break
            except LaminaError as error:
                self._log.warning("the hub does not respond yet", because=str(error))
            await asyncio.sleep(delay)
            delay = min(delay * 2, _MAX_DELAY)
        await super().run()


class EmbeddedClusterControllers:
    """
    These controllers in a server of several clusters, whose first cluster is the hub.

    `families` run. A cluster that is removed is left by every family: one that does not run
    now may have held objects at an earlier start.
    """

    def __init__(
        self, families: Sequence[Family], every_family: Sequence[Family], first: EmbeddedCluster
    ) -> None:
        self._families, self._every, self._first = families, every_family, first

    def has_controllers(self, name: str) -> bool:
        """Say whether there are controllers for a cluster."""
        return bool(controllers_for(self._families, name))

    def manager(self, name: str, cluster: EmbeddedCluster) -> Manager:
        """Return the manager for a cluster, ready to be run."""
        return manager_for(
            name,
            cluster.client(),
            self._first.client(),
            controllers_for(self._families, name),
            cluster.clock,
            discovery_period=_RARE_DISCOVERY,
        )

    async def join(self, name: str) -> None:
        """Do nothing: a cluster is served as long as its manager runs."""

    async def leave(self, name: str) -> None:
        """Release the objects on the hub that controllers held for a cluster that no longer exists."""
        hub = self._first.client(LOOPBACK)
        for one in _of(self._every):
            for version, kind in one.held:
                with suppress(UnknownKind, NotFound):
                    for obj in (await hub.list((version, kind))).items:
                        await _release(hub, one, name, obj)


async def _release(hub: Client, controllers: ClusterControllers, name: str, obj: Obj) -> None:
    """Take all steps that release one object, each at the version it has now."""
    executor = Executor(hub, manager="lamina")
    while (plan := controllers.release(name, obj)).stages:
        outcome = await executor.run(plan)
        for refused in outcome.refused:
            if not refused.is_outdated:
                raise refused.error
        try:
            obj = await hub.get(meta.ref(obj))
        except NotFound:
            return
