"""One cluster in this process, without a listener."""

import asyncio
from datetime import timedelta
from pathlib import Path

import pytest

from lamina.client.client import Client
from lamina.clock import ManualClock
from lamina.control_plane.cluster import BackgroundTasks, EmbeddedCluster
from lamina.core.model.controller import Controller, Watch, itself, only
from lamina.core.model.plan import Plan
from lamina.core.model.queries import Answers
from lamina.errors import BadRequest, StoreError
from lamina.objects import meta
from lamina.objects.types import Obj, Ref
from lamina.runtime.controller.manager import Manager
from lamina.server.storage.memory_store import MemoryStore
from lamina.server.storage.store import Key
from lamina.settings import Settings, validated
from tests.runtime.cluster import at, config_map, wait_created

OFF = Settings(simulate="off")


async def test_a_cluster_has_what_every_cluster_has_and_needs_no_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    async with EmbeddedCluster(Settings(families="none")) as cluster:
        client = cluster.client()
        await wait_created(client, Ref("v1", "Node", "", "sim-0"))
        account = await wait_created(client, Ref("v1", "ServiceAccount", "default", "default"))
        assert meta.name(account) == "default"
        assert (await cluster.request("GET", "/readyz")).status == 200

    assert list(tmp_path.iterdir()) == []


async def test_it_answers_before_it_is_ready_and_says_that_it_is_not() -> None:
    cluster = EmbeddedCluster(OFF)

    assert (await cluster.request("GET", "/livez/ping")).status == 200
    assert (await cluster.request("GET", "/readyz")).status == 500
    assert not cluster.is_ready


async def test_its_families_run_as_its_settings_say() -> None:
    settings = validated(
        families="manifestwork",
        scheduler=False,
        manifest_limit=10,
        feature_gates="CleanUpCompletedManifestWork=false",
    )
    work = {
        "apiVersion": "work.open-cluster-management.io/v1",
        "kind": "ManifestWork",
        "metadata": {"name": "large", "namespace": "default"},
        "spec": {"workload": {"manifests": [config_map("in-it")]}},
    }
    async with EmbeddedCluster(settings) as cluster:
        running = {name for manager in cluster.managers for name in manager.names}
        with pytest.raises(BadRequest, match="exceeds the 10 limit"):
            await cluster.client().create(work)

    assert {"manifestworkreplicaset", "managedclusters"} <= running
    assert not {"placements", "finished-works"} & running


async def test_two_clusters_share_what_they_know_of_kinds_and_nothing_else() -> None:
    async with EmbeddedCluster(OFF) as one, EmbeddedCluster(OFF) as other:
        await one.client().create(config_map("here"))

        assert one.api.context.registry.kinds() == other.api.context.registry.kinds()
        assert other.store.get(Key("configmaps", "default", "here")) is None


async def test_a_store_that_was_brought_along_stays_open_and_is_found_again() -> None:
    store = MemoryStore()
    async with EmbeddedCluster(OFF, store=store) as cluster:
        await cluster.client().create(config_map("kept"))
    async with EmbeddedCluster(OFF, store=store) as cluster:
        assert meta.name(await cluster.client().get(at("kept"))) == "kept"
    await store.close()


async def test_a_store_of_its_own_ends_with_it() -> None:
    async with EmbeddedCluster(OFF) as cluster:
        pass

    with pytest.raises(StoreError):
        await cluster.store.append(Key("configmaps", "default", "late"), config_map("late"))


async def test_time_is_what_its_clock_says() -> None:
    clock = ManualClock()
    async with EmbeddedCluster(OFF, clock=clock) as cluster:
        made = await cluster.client().create(config_map("dated"))

    assert made["metadata"]["creationTimestamp"] == clock.now().strftime("%Y-%m-%dT%H:%M:%SZ")


async def test_whatever_else_runs_on_it_runs_for_as_long_as_it_does() -> None:
    seen: list[str] = []

    def plan(view: Obj, answers: Answers, now: object) -> Plan:
        seen.append(meta.name(view))
        return Plan()

    note = Controller(
        name="note",
        watches=(Watch(selects=only("", "ConfigMap"), enqueue=itself),),
        gather=lambda world, ref: world.get(ref),
        plan=plan,
    )

    def noting(cluster: EmbeddedCluster) -> Manager:
        client: Client = cluster.client()
        return Manager(client, (note,), cluster.clock)

    async with EmbeddedCluster(OFF, extra_managers=(noting,)) as cluster:
        await cluster.client().create(config_map("noted"))
        await cluster.settled()
        assert "noted" in seen
        assert "note" in cluster.managers[-1].names


async def test_work_in_the_background_does_not_end_without_a_word(capsys: pytest.CaptureFixture[str]) -> None:
    async def fails() -> None:
        raise ZeroDivisionError("by nought")

    async with BackgroundTasks() as tasks:
        tasks.start(fails())
        await asyncio.sleep(0)
        await asyncio.sleep(0)

    assert "background task failed" in capsys.readouterr().err


async def test_a_stopped_manager_is_idle_whatever_it_has_scheduled() -> None:
    clock = ManualClock()
    later: Controller[Obj] = Controller(
        name="later",
        watches=(Watch(selects=only("", "ConfigMap"), enqueue=itself),),
        gather=lambda world, ref: world.get(ref),
        plan=lambda view, answers, now: Plan(requeue_after=timedelta(hours=1)),
    )
    managers: list[Manager] = []

    def also(cluster: EmbeddedCluster) -> Manager:
        managers.append(Manager(cluster.client(), (later,), clock))
        return managers[0]

    async with EmbeddedCluster(OFF, clock=clock, extra_managers=(also,)) as cluster:
        await cluster.client().create(config_map("settings"))
        await cluster.settled()
    clock.wind(timedelta(hours=2))

    assert not managers[0]._is_busy()
