"""A cluster name that is bound to another cluster, or unbound, while reconciles are in progress."""

import asyncio
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from datetime import datetime
from typing import Any

import pytest
import structlog
from structlog.testing import capture_logs

from lamina.client.client import Client
from lamina.clock import WallClock
from lamina.control_plane.cluster import CONTROLLERS, EmbeddedCluster
from lamina.core.model.controller import EVERYWHERE, AnyController, Controller, Source, Watch, itself, no_keys
from lamina.core.model.plan import NOTHING, Create, Plan, Stage, change
from lamina.core.model.queries import Answers, Follow, Query, Read
from lamina.core.model.world import World
from lamina.faults import Refuse
from lamina.objects import meta
from lamina.objects.kinds import Kind
from lamina.objects.types import Obj, Ref
from lamina.runtime.controller.manager import Manager
from lamina.runtime.metrics.recorder import Recorder
from lamina.server.identity import ADMIN
from lamina.testing.waiting import eventually
from tests.runtime.cluster import TIMEOUT, at, config_map, reader, wait_created
from tests.runtime.fleet import (
    CONFIG_MAPS,
    SETTINGS,
    SPREAD,
    SPREADING,
    Line,
    clusters,
    is_marked,
    marking,
    running,
    says,
)
from tests.runtime.scripted import Script, groups

SECRETS = Kind("v1", "Secret", "secrets", True, frozenset({"list", "watch"}))


async def names(client: Client) -> set[str]:
    return {meta.name(one) for one in (await client.list(("v1", "ConfigMap"), "default")).items}


# ── another cluster of the same name ──


def two_steps() -> AnyController:
    """Mark every config map that wants it on its own cluster, and then create another, even if that fails."""

    def gather(world: World, ref: Ref) -> tuple[Ref, Obj] | None:
        found = world.get(ref)
        return (ref, found) if found is not None and meta.labels(found).get("wants") else None

    def plan(view: tuple[Ref, Obj], answers: Answers, now: datetime) -> Plan:
        ref, obj = view
        if meta.labels(obj).get("has"):
            return NOTHING
        mark = change(obj, {"metadata": {"labels": {"has": "mark"}}}, cluster=ref.cluster)
        beside = Create(obj=config_map("beside"), cluster=ref.cluster)
        make = Stage("make", (beside,), run_after_failure=True)
        return Plan(stages=(Stage("mark it", (mark,)), make), because="it wants it")

    watch = Watch(selects=CONFIG_MAPS, enqueue=itself, cluster=EVERYWHERE)
    return Controller(name="two steps", watches=(watch,), gather=gather, plan=plan)


async def test_a_plan_for_a_cluster_is_not_carried_out_on_another_that_takes_its_name() -> None:
    async with clusters("home", "new") as reach, EmbeddedCluster(SETTINGS) as old:
        line = Line(old)
        async with running(reach["home"], {"b": Client(line)}, two_steps()) as manager:
            line.cut()
            await old.client().create(config_map("x", labels={"wants": "mark"}))
            await line.tried.wait()

            manager.bind("b", reach["new"])
            line.mend()
            await reach["new"].create(config_map("y", labels={"wants": "mark", "has": "mark"}))
            await reach["home"].create(config_map("z", labels={"wants": "mark"}))
            await wait_created(reach["home"], at("beside"))
            await eventually(lambda: manager.is_idle)

            assert "beside" not in await names(reach["new"])
            assert "beside" not in await names(old.client())


async def test_a_cluster_that_takes_the_name_of_a_silent_one_does_not_wait_for_its_requests() -> None:
    async with clusters("home", "new") as reach, EmbeddedCluster(SETTINGS) as silent:
        line, home = Line(silent), reach["home"]
        async with running(home, {"b": Client(line)}, marking(), SPREADING) as manager:
            line.cut()
            await silent.client().create(config_map("x", labels={"wants": "mark"}))
            await home.create(config_map("settings", labels=SPREAD) | {"data": {"colour": "red"}})
            await line.tried.wait()

            with capture_logs() as said:
                manager.bind("b", reach["new"])
                for name in ("x", "y"):
                    await reach["new"].create(config_map(name, labels={"wants": "mark"}))
                    await eventually(reader(reach["new"], at(name)), is_marked)
                await eventually(reader(reach["new"], at("settings")), says("red"))

            assert not [one for one in said if one["log_level"] in ("warning", "error")], (
                "no request has failed"
            )
            assert not is_marked(await silent.client().get(at("x")))


async def test_keys_of_an_unbound_cluster_are_dropped_silently() -> None:
    async with clusters("home") as reach, EmbeddedCluster(SETTINGS) as silent:
        line, home = Line(silent), reach["home"]
        async with running(home, {"b": Client(line)}, marking()) as manager:
            line.cut()
            for name in ("x", "y", "z"):
                await silent.client().create(config_map(name, labels={"wants": "mark"}))
            await line.tried.wait()

            with capture_logs() as said:
                manager.unbind("b")
                await home.create(config_map("x", labels={"wants": "mark"}))
                await eventually(reader(home, at("x")), is_marked)
                (runner,) = manager._runners.values()
                await eventually(lambda: not runner.worker.queue._schedule._due and manager.is_idle)

            assert not [one for one in said if one["log_level"] in ("warning", "error")]


# ── dynamic watches of each cluster ──


class Counts(Recorder):
    """Records which owners have progress."""

    def __init__(self) -> None:
        self.counted: set[Ref] = set()

    def progress(self, ref: Ref, progress: Mapping[str, int]) -> None:
        (self.counted.add if progress else self.counted.discard)(ref)

    def forget_cluster(self, cluster: str) -> None:
        self.counted = {ref for ref in self.counted if ref.cluster != cluster}


def following() -> AnyController:
    """Follow one secret beside each config map called x."""

    def gather(world: World, ref: Ref) -> Ref | None:
        return ref if ref.name == "x" and ref.cluster and world.get(ref) is not None else None

    def queries(ref: Ref, answers: Answers) -> tuple[Query, ...]:
        asked = Follow(kind=SECRETS, namespaces=("default",), names=("s",), cluster=ref.cluster)
        return () if asked in answers else (asked,)

    return Controller(
        name="following",
        watches=(Watch(selects=CONFIG_MAPS, enqueue=itself, cluster=EVERYWHERE),),
        gather=gather,
        queries=queries,
        plan=lambda ref, answers, now: Plan(progress={"there": 1}),
    )


async def test_dynamic_watches_of_a_cluster_are_its_own_and_end_when_it_is_unbound() -> None:
    several = [f"c{number}" for number in range(12)]
    meter = Counts()
    async with clusters("home", *several) as reach:
        home = reach.pop("home")
        for client in reach.values():
            await client.create(config_map("x"))
        manager = Manager(
            home, (following(),), WallClock(), structlog.get_logger(), meters=lambda name: meter, others=reach
        )
        async with asyncio.TaskGroup() as group, asyncio.timeout(TIMEOUT):
            task = group.create_task(manager.run())
            await eventually(lambda: len(meter.counted) == len(several))
            (runner,) = manager._runners.values()
            assert {(where, what.named) for where, what in runner.follows} == {
                (name, "s") for name in several
            }

            manager.unbind("c0")

            assert {where for where, _ in runner.follows} == set(several[1:])
            assert {ref.cluster for ref in meter.counted} == set(several[1:])
            task.cancel()


# ── clusters with invalid answers, or none ──


async def test_a_refusal_names_the_cluster_it_came_from() -> None:
    async with clusters("home", "a") as reach, EmbeddedCluster(SETTINGS) as strict:
        others = {"a": reach["a"], "strict": strict.client()}
        async with running(reach["home"], others, marking(), SPREADING):
            strict.api.faults.add(Refuse(code=500, verbs=("create", "patch"), users=(ADMIN.name,)))
            with capture_logs() as said:
                await strict.client(CONTROLLERS).create(config_map("x", labels={"wants": "mark"}))
                await reach["home"].create(config_map("y", labels=SPREAD) | {"data": {"colour": "red"}})
                await eventually(reader(reach["a"], at("y")), says("red"))
                await eventually(lambda: len(_failed(said)) == 2)

            assert _failed(said).keys() == {"configmap default/x on strict", "configmap default/y"}
            assert all(because.startswith("on strict: ") for because in _failed(said).values())


def _failed(said: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """Return the objects whose reconcile failed, and why."""
    return {one["object"]: one["because"] for one in said if one["event"] == "reconcile failed"}


async def test_an_invalid_answer_of_one_cluster_does_not_stop_the_others() -> None:
    script = Script()
    odd = groups(("v1", "ConfigMap", "configmaps"))
    del odd["items"][0]["versions"][0]["version"]
    script.reply("GET", "/api", odd)
    script.reply("GET", "/apis", odd)
    async with clusters("home", "a") as reach:
        home = reach.pop("home")
        async with running(home, reach, SPREADING) as manager:
            manager.bind("odd", Client(script))
            await script.nth_request(2, "/api")

            await home.create(config_map("settings", labels=SPREAD) | {"data": {"colour": "red"}})
            await eventually(reader(reach["a"], at("settings")), says("red"))


async def test_a_controller_of_a_source_does_not_wait_for_a_silent_cluster_it_does_not_use() -> None:
    source = Source(
        name="signs",
        watches=(Watch(selects=CONFIG_MAPS, enqueue=no_keys),),
        controllers=lambda world: (two_steps(),) if world.get(at("sign")) is not None else (),
    )
    async with clusters("home") as reach, EmbeddedCluster(SETTINGS) as silent:
        home, line = reach["home"], Line(silent)
        line.cut()
        manager = Manager(
            home, (), WallClock(), structlog.get_logger(), (source,), others={"silent": Client(line)}
        )
        async with asyncio.TaskGroup() as group:
            task = group.create_task(manager.run())
            await line.tried.wait()
            await home.create(config_map("sign"))
            await home.create(config_map("x", labels={"wants": "mark"}))
            await wait_created(home, at("beside"))
            assert not manager._ready.is_set()

            line.mend()
            await manager.ready()
            task.cancel()


@pytest.mark.filterwarnings("error")
async def test_a_cluster_may_be_bound_after_the_manager_has_stopped() -> None:
    async with clusters("home", "late") as reach:
        async with running(reach["home"], {}, SPREADING) as manager:
            pass

        manager.bind("late", reach["late"])
        manager.resync()

        assert manager.has_other_clusters


# ── a controller that replaces another ──


@asynccontextmanager
async def changing(line: Line, editions: list[AnyController]) -> AsyncIterator[Manager]:
    """Run the last of the versions of a controller, and look for a newer one when a config map changes."""
    source = Source(
        name="editions",
        watches=(Watch(selects=CONFIG_MAPS, enqueue=no_keys),),
        controllers=lambda world: tuple(editions[-1:]),
    )
    manager = Manager(Client(line), (), WallClock(), structlog.get_logger(), (source,))
    async with asyncio.TaskGroup() as group:
        task = group.create_task(manager.run())
        await manager.ready()
        yield manager
        task.cancel()


async def test_a_query_of_a_replaced_controller_starts_no_watch_for_its_successor() -> None:
    def edition(number: str, *asked: Query) -> AnyController:
        def queries(ref: Ref, answers: Answers) -> tuple[Query, ...]:
            return tuple(one for one in asked if one not in answers)[:1]

        return Controller(
            name="edition",
            config_hash=number,
            watches=(Watch(selects=CONFIG_MAPS, enqueue=itself, named="x"),),
            gather=lambda world, ref: ref,
            queries=queries,
            plan=lambda ref, answers, now: NOTHING,
        )

    async with EmbeddedCluster(SETTINGS) as cluster:
        line, client = Line(cluster), cluster.client()
        editions = [edition("1", Read(at("x")), Follow(kind=SECRETS, names=("s",)))]
        with capture_logs() as said:
            async with changing(line, editions) as manager, asyncio.timeout(TIMEOUT):
                first = manager._runners["edition"]
                line.cut()
                await client.create(config_map("x"))
                await line.tried.wait()
                editions.append(edition("2"))
                await client.create(config_map("y"))
                await eventually(lambda: manager._runners["edition"] is not first)

                line.mend()
                await asyncio.wait(first.tasks)

                assert not any(runner.follows for runner in manager._runners.values())
        assert not [line for line in said if line["log_level"] == "error"]


# ── watches that cannot share an informer ──


async def test_a_kind_that_is_watched_in_two_namespaces_is_refused() -> None:
    def watch(namespace: str, **more: Any) -> Watch:
        return Watch(selects=CONFIG_MAPS, enqueue=itself, namespace=namespace, **more)

    def of(*watches: Watch) -> AnyController:
        return Controller(
            name="narrow", watches=watches, gather=lambda world, ref: None, plan=lambda v, a, n: NOTHING
        )

    async with clusters("home", "hub") as reach:
        home, hub = reach["home"], reach["hub"]
        async with running(home, {"hub": hub}, of(watch(""), watch("default"), watch("a", cluster="hub"))):
            pass

        manager = Manager(home, (of(watch("default"), watch("kube-system")),), WallClock())
        with pytest.RaisesGroup(pytest.RaisesExc(ValueError, match="configmaps in several places")):
            await manager.run()
