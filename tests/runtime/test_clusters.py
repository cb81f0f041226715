"""One controller, one worker, several clusters."""

import asyncio
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import datetime
from typing import Any

import pytest
import structlog

from lamina.client.client import Client
from lamina.client.inprocess import InProcessTransport
from lamina.client.transport import Query, Response
from lamina.clock import WallClock
from lamina.core.controller import EVERYWHERE, AnyController, Controller, Watch, itself, nobody, only
from lamina.core.plan import NOTHING, Apply, Create, Plan, change, delete, one_stage
from lamina.core.questions import Answer, Answers, Follow, Listed, Question
from lamina.core.world import Change, World
from lamina.embedded import EmbeddedCluster
from lamina.errors import LaminaError, NotFound
from lamina.objects import meta
from lamina.objects.types import GroupKind, Made, Obj, Ref
from lamina.runtime.manager import Manager
from lamina.server.request import ADMIN
from lamina.settings import Settings
from tests.runtime.cluster import at, config_map, until, until_gone, until_there

SETTINGS = Settings(ephemeral=True, simulate="off", families="none")
CONFIG_MAPS = only("", "ConfigMap")
CONFIG_MAP = GroupKind("", "ConfigMap")
SPREAD = {"spread": "yes"}


class Line:
    """A way to a cluster that can be cut: then nobody answers, and nobody says so."""

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
    ) -> Response:
        self.tried.set()
        await self._open.wait()
        return await self._inner.request(
            method, path, query=query, headers=headers, body=body, streams=streams
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
    watches=(Watch(selects=CONFIG_MAPS, concerns=_spread, cluster=EVERYWHERE),),
    gather=_gather,
    plan=_plan,
)


def says(data: str) -> Any:
    return lambda obj: obj is not None and obj["data"] == {"colour": data}


async def test_one_worker_keeps_five_clusters_alike_while_one_leaves_and_one_comes() -> None:
    async with clusters("home", "a", "b", "c", "d", "e", "late") as reach:
        home, late = reach.pop("home"), reach.pop("late")
        await home.create(config_map("settings", labels=SPREAD) | {"data": {"colour": "red"}})

        async with running(home, reach, SPREADING) as manager:
            for client in reach.values():
                await until(client, at("settings"), says("red"))

            await reach["c"].delete(at("settings"))
            await until(reach["c"], at("settings"), says("red"))

            manager.unbind("b")
            manager.bind("late", late)
            await until(late, at("settings"), says("red"))

            await home.patch(at("settings"), {"data": {"colour": "blue"}})
            for name in ("a", "c", "d", "e"):
                await until(reach[name], at("settings"), says("blue"))
            await until(late, at("settings"), says("blue"))
            assert says("red")(await reach["b"].get(at("settings")))

            manager.bind("b", reach["b"])
            await until(reach["b"], at("settings"), says("blue"))

            await home.delete(at("settings"))
            for client in (*reach.values(), late):
                await until_gone(client, at("settings"))
            assert manager.names == ("spreading",)


async def test_a_cluster_that_says_nothing_holds_up_no_other_until_it_is_back() -> None:
    async with clusters("home", "a") as reach, EmbeddedCluster(SETTINGS) as silent:
        home, line = reach.pop("home"), Line(silent)
        line.cut()

        async with running(home, reach, SPREADING) as manager:
            manager.bind("silent", Client(line))
            await line.tried.wait()
            await home.create(config_map("settings", labels=SPREAD) | {"data": {"colour": "red"}})
            await until(reach["a"], at("settings"), says("red"))

            line.mend()
            await until(silent.client(), at("settings"), says("red"))


# ── a controller that works on each object where it is ──


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

    watch = Watch(selects=CONFIG_MAPS, concerns=itself, cluster=EVERYWHERE)
    return Controller(name="marking", watches=(watch,), gather=gather, plan=plan, at_once=at_once)


def is_marked(obj: Obj | None) -> bool:
    return obj is not None and meta.labels(obj).get("has") == "mark"


async def test_objects_of_one_name_on_several_clusters_are_several_objects() -> None:
    async with clusters("home", "a", "b") as reach:
        home = reach.pop("home")
        async with running(home, reach, marking()):
            for client in (home, reach["b"]):
                await client.create(config_map("x", labels={"wants": "mark"}))
            await reach["a"].create(config_map("x"))

            for client in (home, reach["b"]):
                await until(client, at("x"), is_marked)
            assert not is_marked(await reach["a"].get(at("x")))


async def test_a_cluster_that_falls_silent_keeps_no_hand_from_the_others() -> None:
    async with clusters("home", "a") as reach, EmbeddedCluster(SETTINGS) as falling:
        home, line = reach.pop("home"), Line(falling)
        others = {**reach, "falling": Client(line)}
        direct = falling.client()

        async with running(home, others, marking(at_once=1)):
            # Its watches are open and tell what happens; a write gets no answer.
            line.cut()
            for name in ("x", "y", "z"):
                await direct.create(config_map(name, labels={"wants": "mark"}))
            await line.tried.wait()

            for client in (home, reach["a"]):
                await client.create(config_map("x", labels={"wants": "mark"}))
                await until(client, at("x"), is_marked)
            assert not is_marked(await direct.get(at("x")))

            line.mend()
            for name in ("x", "y", "z"):
                await until(direct, at(name), is_marked)


# ── a controller that knows another cluster by name ──


def copying() -> AnyController:
    """Copy the config maps of one namespace of the hub to the cluster at home."""

    def gather(world: World, ref: Ref) -> tuple[Obj | None, Obj | None]:
        return world.get(ref), world.get(ref._replace(cluster="", namespace="default"))

    def plan(view: tuple[Obj | None, Obj | None], answers: Answers, now: datetime) -> Plan:
        wanted, there = view
        if wanted is None:
            return one_stage("remove it", [delete(there)] if there is not None else [], because="it is gone")
        if there is not None:
            return NOTHING
        made = config_map(meta.name(wanted), labels={"from": "hub"})
        return one_stage("copy it", [Apply(obj=made)], because="the hub has it")

    def original(world: World, change: Change) -> Iterable[Ref]:
        if meta.labels(change.obj).get("from"):
            yield change.ref._replace(cluster="hub", namespace="mine")

    return Controller(
        name="copying",
        watches=(
            Watch(selects=CONFIG_MAPS, concerns=itself, cluster="hub", namespace="mine"),
            Watch(selects=CONFIG_MAPS, concerns=original),
        ),
        gather=gather,
        plan=plan,
    )


def namespace(name: str) -> Made:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}


async def test_a_watch_of_one_namespace_on_another_cluster_sees_nothing_else() -> None:
    async with clusters("home", "hub") as reach:
        hub = reach["hub"]
        for name in ("mine", "yours"):
            await hub.create(namespace(name))
        await hub.create(config_map("b", "yours"))
        await hub.create(config_map("a", "mine"))

        async with running(reach["home"], {"hub": hub}, copying()):
            await until_there(reach["home"], at("a"))
            with pytest.raises(NotFound):
                await reach["home"].get(at("b"))

            await hub.delete(at("a", "mine"))
            await until_gone(reach["home"], at("a"))


async def test_without_the_cluster_it_names_a_controller_does_nothing_and_says_why() -> None:
    complaints: asyncio.Queue[LaminaError] = asyncio.Queue()

    def complain(world: World, ref: Ref, error: LaminaError, now: datetime) -> Plan:
        complaints.put_nowait(error)
        return NOTHING

    controller = Controller(
        name="lonely",
        watches=(
            Watch(selects=CONFIG_MAPS, concerns=nobody, cluster="hub"),
            Watch(selects=CONFIG_MAPS, concerns=itself),
        ),
        gather=lambda world, ref: world.on("hub").get(at("sign")) and world.get(ref),
        plan=lambda obj, answers, now: one_stage(
            "say so",
            [] if is_marked(obj) else [change(obj, {"metadata": {"labels": {"has": "mark"}}})],
            because="",
        ),
        complain=complain,
    )
    async with clusters("home", "hub") as reach:
        home, hub = reach["home"], reach["hub"]
        await home.create(config_map("x"))
        await hub.create(config_map("sign"))

        async with running(home, {}, controller) as manager:
            error = await complaints.get()
            assert (
                str(error) == "nobody said which cluster 'hub' is: the clusters bound are none beside its own"
            )

            manager.bind("hub", hub)
            await until(home, at("x"), is_marked)


async def test_an_action_on_a_cluster_that_nobody_bound_is_refused_by_name() -> None:
    heard: asyncio.Queue[str] = asyncio.Queue()

    def complain(world: World, ref: Ref, error: LaminaError, now: datetime) -> Plan:
        heard.put_nowait(str(error))
        return NOTHING

    controller = Controller(
        name="lost",
        watches=(Watch(selects=CONFIG_MAPS, concerns=itself),),
        gather=lambda world, ref: world.get(ref),
        plan=lambda obj, answers, now: one_stage(
            "write it", [Create(obj=config_map("y"), cluster="moon")], because="it is there"
        ),
        complain=complain,
    )
    async with clusters("home") as reach:
        await reach["home"].create(config_map("x"))
        async with running(reach["home"], {}, controller):
            assert "nobody said which cluster 'moon' is" in await heard.get()


async def test_what_a_key_follows_on_another_cluster_brings_it_round_again() -> None:
    seen: asyncio.Queue[Answer | None] = asyncio.Queue()

    def questions(obj: Obj, answers: Answers) -> tuple[Question, ...]:
        asked = Follow(kind=kind, names=("sign",), cluster="hub")
        return () if asked in answers else (asked,)

    def plan(obj: Obj, answers: Answers, now: datetime) -> Plan:
        for answer in answers.known.values():
            seen.put_nowait(answer)
        return NOTHING

    controller = Controller(
        name="reading",
        watches=(Watch(selects=CONFIG_MAPS, concerns=itself, named="x"),),
        gather=lambda world, ref: world.get(ref),
        questions=questions,
        plan=plan,
    )
    async with clusters("home", "hub") as reach:
        home, hub = reach["home"], reach["hub"]
        kind = await hub.kind("v1", "ConfigMap")
        await home.create(config_map("x"))
        await home.create(config_map("sign"))

        async with running(home, {"hub": hub}, controller):
            assert await seen.get() == Listed(())

            await hub.create(config_map("sign"))
            found = await seen.get()
            assert isinstance(found, Listed)
            assert len(found.objects) == 1
