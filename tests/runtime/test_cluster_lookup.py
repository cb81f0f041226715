"""Controllers that watch, query and write another cluster by the name it is bound to."""

import asyncio
from collections.abc import Iterable
from datetime import datetime

import pytest
import structlog

from lamina.clock import WallClock
from lamina.core.model.controller import AnyController, Controller, Source, Watch, itself, no_keys
from lamina.core.model.plan import NOTHING, Apply, Create, Plan, change, delete, one_stage
from lamina.core.model.queries import Answer, Answers, Follow, Listed, Query
from lamina.core.model.world import Change, World
from lamina.errors import LaminaError, NotFound
from lamina.objects import meta
from lamina.objects.types import Made, Obj, Ref
from lamina.runtime.controller.manager import Manager
from lamina.testing.waiting import eventually
from tests.runtime.cluster import at, config_map, reader, wait_created, wait_deleted
from tests.runtime.fleet import (
    CONFIG_MAPS,
    SPREAD,
    SPREADING,
    clusters,
    is_marked,
    running,
    says,
)


def copying() -> AnyController:
    """Copy the config maps of one namespace of the hub to the primary cluster."""

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
            Watch(selects=CONFIG_MAPS, enqueue=itself, cluster="hub", namespace="mine"),
            Watch(selects=CONFIG_MAPS, enqueue=original),
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
            await wait_created(reach["home"], at("a"))
            with pytest.raises(NotFound):
                await reach["home"].get(at("b"))

            await hub.delete(at("a", "mine"))
            await wait_deleted(reach["home"], at("a"))


async def test_without_the_cluster_it_names_a_controller_does_nothing_and_says_why() -> None:
    complaints: asyncio.Queue[LaminaError] = asyncio.Queue()

    def complain(world: World, ref: Ref, error: LaminaError, now: datetime) -> Plan:
        complaints.put_nowait(error)
        return NOTHING

    controller = Controller(
        name="lonely",
        watches=(
            Watch(selects=CONFIG_MAPS, enqueue=no_keys, cluster="hub"),
            Watch(selects=CONFIG_MAPS, enqueue=itself),
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
            assert str(error) == "cluster 'hub' is not bound: the bound clusters are none but its own"

            manager.bind("hub", hub)
            await eventually(reader(home, at("x")), is_marked)


async def test_an_action_on_an_unbound_cluster_is_refused_by_name() -> None:
    heard: asyncio.Queue[str] = asyncio.Queue()

    def complain(world: World, ref: Ref, error: LaminaError, now: datetime) -> Plan:
        heard.put_nowait(str(error))
        return NOTHING

    controller = Controller(
        name="lost",
        watches=(Watch(selects=CONFIG_MAPS, enqueue=itself),),
        gather=lambda world, ref: world.get(ref),
        plan=lambda obj, answers, now: one_stage(
            "write it", [Create(obj=config_map("y"), cluster="moon")], because="it is there"
        ),
        complain=complain,
    )
    async with clusters("home") as reach:
        await reach["home"].create(config_map("x"))
        async with running(reach["home"], {}, controller):
            assert "cluster 'moon' is not bound" in await heard.get()


async def test_a_change_followed_on_another_cluster_requeues_the_key() -> None:
    seen: asyncio.Queue[Answer | None] = asyncio.Queue()

    def queries(obj: Obj, answers: Answers) -> tuple[Query, ...]:
        asked = Follow(kind=kind, names=("sign",), cluster="hub")
        return () if asked in answers else (asked,)

    def plan(obj: Obj, answers: Answers, now: datetime) -> Plan:
        for answer in answers.known.values():
            seen.put_nowait(answer)
        return NOTHING

    controller = Controller(
        name="reading",
        watches=(Watch(selects=CONFIG_MAPS, enqueue=itself, named="x"),),
        gather=lambda world, ref: world.get(ref),
        queries=queries,
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


async def test_a_source_may_look_at_another_cluster_for_the_controllers_there_should_be() -> None:
    def wanted(world: World) -> tuple[AnyController, ...]:
        return (SPREADING,) if world.get(at("sign")._replace(cluster="hub")) is not None else ()

    source = Source(
        name="signs",
        watches=(Watch(selects=CONFIG_MAPS, enqueue=no_keys, cluster="hub", named="sign"),),
        controllers=wanted,
    )
    async with clusters("home", "hub", "a") as reach:
        home, hub, other = reach.values()
        await home.create(config_map("settings", labels=SPREAD) | {"data": {"colour": "red"}})
        manager = Manager(home, (), WallClock(), structlog.get_logger(), (source,))
        async with asyncio.TaskGroup() as group:
            task = group.create_task(manager.run())
            await manager.ready()
            manager.bind("hub", hub)
            manager.bind("a", other)
            assert not manager.names

            await hub.create(config_map("sign"))

            await eventually(reader(other, at("settings")), says("red"))
            assert "spreading" in manager.names
            task.cancel()
