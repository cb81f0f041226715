"""Several clusters in this process, a transport to one that can be cut, and a controller that watches all of them."""

import asyncio
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import datetime
from typing import Any

import structlog

from lamina.client.client import Client
from lamina.client.transport.base import Query, Response
from lamina.client.transport.inprocess import InProcessTransport
from lamina.client.write_guard import WriteGuard
from lamina.clock import WallClock
from lamina.control_plane.cluster import EmbeddedCluster
from lamina.core.model.controller import EVERYWHERE, AnyController, Controller, Watch, itself, only
from lamina.core.model.plan import NOTHING, Create, Plan, change, delete, one_stage
from lamina.core.model.queries import Answers
from lamina.core.model.world import Change, World
from lamina.objects import meta
from lamina.objects.types import Obj, Ref
from lamina.runtime.controller.manager import Manager
from lamina.server.identity import ADMIN
from lamina.settings import Settings
from tests.runtime.cluster import config_map

SETTINGS = Settings(ephemeral=True, simulate="off", families="none")
CONFIG_MAPS = only("", "ConfigMap")
SPREAD = {"spread": "yes"}


class Line:
    """A transport to a cluster that can be cut: requests then get no answer and no error."""

    def __init__(self, cluster: EmbeddedCluster) -> None:
        async def handle(method: str, path: str, query: str, headers: Mapping[str, str], body: bytes) -> Any:
            return await cluster.request(method, path, query, headers, body, ADMIN)

        self._inner = InProcessTransport(handle)
        self._open = asyncio.Event()
        self._open.set()
        self.tried = asyncio.Event()

    def cut(self) -> None:
        self._open.clear()
        self.tried.clear()

    def mend(self) -> None:
        self._open.set()

    async def request(
        self,
        method: str,
        path: str,
        *,
        query: Query = (),
        headers: Mapping[str, str],
        body: bytes | None = None,
        streams: bool = False,
        guard: WriteGuard | None = None,
    ) -> Response:
        self.tried.set()
        await self._open.wait()
        return await self._inner.request(
            method, path, query=query, headers=headers, body=body, streams=streams, guard=guard
        )

    async def close(self) -> None:
        pass


@asynccontextmanager
async def clusters(*names: str) -> AsyncIterator[dict[str, Client]]:
    """Yield clients of as many embedded clusters; the first is home."""
    async with AsyncExitStack() as stack:
        yield {
            name: (await stack.enter_async_context(EmbeddedCluster(SETTINGS, name=name))).client()
            for name in names
        }


@asynccontextmanager
async def running(
    home: Client, others: Mapping[str, Client], *controllers: AnyController, ready: bool = True
) -> AsyncIterator[Manager]:
    manager = Manager(home, controllers, WallClock(), structlog.get_logger(), others=others)
    async with asyncio.TaskGroup() as group:
        task = group.create_task(manager.run())
        if ready:
            await manager.ready()
        yield manager
        task.cancel()


# ── a controller that spreads what is at home over all clusters ──


def _spread(world: World, change: Change) -> Iterable[Ref]:
    if meta.labels(change.obj).get("spread"):
        yield change.ref._replace(cluster="")


def _gather(world: World, ref: Ref) -> tuple[Obj | None, dict[str, Obj | None]]:
    return world.get(ref), {cluster: world.on(cluster).get(ref) for cluster in sorted(world.clusters)}


def _plan(view: tuple[Obj | None, dict[str, Obj | None]], answers: Answers, now: datetime) -> Plan:
    source, copies = view
    actions: list[Create | Any] = []
    for cluster, copy in copies.items():
        if source is None:
            actions += [delete(copy, cluster=cluster)] if copy is not None else []
        elif copy is None:
            ref = meta.ref(source)
            made = config_map(ref.name, ref.namespace, labels=SPREAD) | {"data": source.get("data")}
            actions.append(Create(obj=made, cluster=cluster))
        elif copy.get("data") != source.get("data"):
            actions.append(change(copy, {"data": source.get("data")}, cluster=cluster))
    return one_stage("spread it", actions, because=f"on {', '.join(copies)}")


SPREADING = Controller(
    name="spreading",
    watches=(Watch(selects=CONFIG_MAPS, enqueue=_spread, cluster=EVERYWHERE),),
    gather=_gather,
    plan=_plan,
)


def says(data: str) -> Any:
    return lambda obj: obj is not None and obj["data"] == {"colour": data}


def is_marked(obj: Obj | None) -> bool:
    return obj is not None and meta.labels(obj).get("has") == "mark"


def marking(at_once: int = 1) -> AnyController:
    """Mark every config map that wants it, on whatever cluster it is."""

    def gather(world: World, ref: Ref) -> tuple[Ref, Obj] | None:
        found = world.get(ref)
        return (ref, found) if found is not None else None

    def plan(view: tuple[Ref, Obj], answers: Answers, now: datetime) -> Plan:
        ref, obj = view
        if not meta.labels(obj).get("wants") or meta.labels(obj).get("has"):
            return NOTHING
        marked = change(obj, {"metadata": {"labels": {"has": "mark"}}}, cluster=ref.cluster)
        return one_stage("mark it", [marked], because="it wants one")

    watch = Watch(selects=CONFIG_MAPS, enqueue=itself, cluster=EVERYWHERE)
    return Controller(name="marking", watches=(watch,), gather=gather, plan=plan, at_once=at_once)
