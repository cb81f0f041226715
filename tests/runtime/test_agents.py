"""Clusters beside a hub, each with its agent, in one process."""

from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from lamina.app import App
from lamina.client.client import Client
from lamina.clock import PacedClock, pass_time
from lamina.control_plane.hub import identity
from lamina.errors import NotFound
from lamina.families.registry import agents
from lamina.faults import Silence
from lamina.objects import meta
from lamina.objects.types import Made, Ref
from lamina.settings import Settings
from lamina.testing.waiting import eventually
from tests.runtime.cluster import at, config_map, reader, wait_created, wait_deleted

WORK = "work.open-cluster-management.io/v1"
CLUSTER = "cluster.open-cluster-management.io/v1"


def settings(*clusters: str, data: Path | None = None) -> Settings:
    return Settings(
        ephemeral=data is None,
        data=data,
        port=0,
        simulate="controllers",
        families="manifestwork",
        clusters=clusters,
    )


def work(cluster: str, name: str, colour: str = "red") -> Made:
    manifest = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": "default"},
        "data": {"colour": colour},
    }
    return {
        "apiVersion": WORK,
        "kind": "ManifestWork",
        "metadata": {"name": name, "namespace": cluster},
        "spec": {"workload": {"manifests": [manifest]}},
    }


def client_of(app: App, name: str) -> Client:
    (found,) = (one for one in app.clusters if one.name == name)
    return found.client()


def is_available(obj: Made | None) -> bool:
    said: list[Any] = ((obj or {}).get("status") or {}).get("conditions") or []
    return any(one["type"] == "ManagedClusterConditionAvailable" and one["status"] == "True" for one in said)


def at_cluster(name: str) -> Ref:
    return Ref(CLUSTER, "ManagedCluster", "", name)


@pytest.fixture
async def app() -> AsyncIterator[App]:
    async with App(settings("east", "west")) as running:
        yield running


async def test_every_cluster_but_the_first_is_known_to_the_hub_and_available(app: App) -> None:
    hub = app.client()
    for name in ("east", "west"):
        known = await eventually(reader(hub, at_cluster(name)), is_available)
        assert known is not None
        assert known["spec"]["managedClusterClientConfigs"][0]["url"].endswith(f"/clusters/{name}")
        assert meta.labels(known)["cluster.open-cluster-management.io/clusterset"] == "default"
        await wait_created(hub, Ref("v1", "Namespace", "", name))
    sets = (await hub.list(("cluster.open-cluster-management.io/v1beta2", "ManagedClusterSet"))).items
    assert [meta.name(one) for one in sets] == ["default", "global"]
    with pytest.raises(NotFound):
        await hub.get(at_cluster("lamina"))


async def test_each_agent_applies_what_its_own_namespace_has(app: App) -> None:
    hub = app.client()
    await app.settled()
    await hub.create(work("east", "text"))

    await wait_created(client_of(app, "east"), at("text"))
    await app.settled()
    with pytest.raises(NotFound):
        await client_of(app, "west").get(at("text"))

    await hub.delete(Ref(WORK, "ManifestWork", "east", "text"))
    await wait_deleted(client_of(app, "east"), at("text"))
    await wait_deleted(hub, Ref(WORK, "ManifestWork", "east", "text"))


async def test_a_mark_that_two_works_state_goes_when_its_own_work_gives_the_object_up(app: App) -> None:
    """To state it no more is not enough, since the other work still does under a name of its own."""
    hub, spoke = app.client(), client_of(app, "east")
    await app.settled()
    for name in ("one", "two"):
        made = work("east", "text")
        made["metadata"]["name"] = name
        which = {"group": "", "resource": "configmaps", "namespace": "default", "name": "text"}
        how = {"force": True, "fieldManager": f"work-agent-{name}"}
        strategy = {"type": "ServerSideApply", "serverSideApply": how}
        made["spec"]["manifestConfigs"] = [{"resourceIdentifier": which, "updateStrategy": strategy}]
        await hub.create(made)
        await app.settled()
    await eventually(reader(spoke, at("text")), lambda obj: _owners(obj) == ["one", "two"])

    first = Ref(WORK, "ManifestWork", "east", "one")
    await hub.patch(first, {"spec": {"deleteOption": {"propagationPolicy": "Orphan"}}})

    await eventually(reader(spoke, at("text")), lambda obj: _owners(obj) == ["two"])
    await eventually(reader(hub, first), lambda obj: _applied_generation(obj) == 2)


def _owners(obj: Made | None) -> list[str]:
    return [one["name"].rpartition("-")[2] for one in meta.owner_refs(obj or {})]


def _applied_generation(obj: Made | None) -> int:
    said: list[Any] = ((obj or {}).get("status") or {}).get("conditions") or []
    return next((one["observedGeneration"] for one in said if one["type"] == "Applied"), 0)


async def test_an_agent_that_is_cut_off_from_the_hub_holds_up_no_other(app: App) -> None:
    hub = app.client()
    await app.settled()
    faults = app.api.faults
    cut = faults.add(Silence(users=(identity(agents(), "east").name,)))
    for name in ("east", "west"):
        await hub.create(work(name, "text"))

    await wait_created(client_of(app, "west"), at("text"))
    with pytest.raises(NotFound):
        await client_of(app, "east").get(at("text"))

    faults.remove(cut.id)
    await wait_created(client_of(app, "east"), at("text"))


async def test_time_passes_for_other_agents_while_one_gets_no_answer(app: App) -> None:
    hub = app.client()
    for name in ("east", "west"):
        await eventually(reader(hub, at_cluster(name)), is_available)
    cut = app.api.faults.add(Silence(users=(identity(agents(), "east").name,)))
    assert isinstance(app.clock, PacedClock)

    await pass_time(app.clock, timedelta(minutes=10), app.settled)

    assert not is_available(await hub.get(at_cluster("east")))
    assert is_available(await hub.get(at_cluster("west")))
    app.api.faults.remove(cut.id)
    await eventually(reader(hub, at_cluster("east")), is_available)


async def test_clusters_that_come_later_join_and_those_that_go_leave_nothing_on_the_hub(app: App) -> None:
    hub = app.client()
    await app.settled()
    await app.clusters.add("north")
    await eventually(reader(hub, at_cluster("north")), is_available)
    await hub.create(work("north", "text"))
    await wait_created(client_of(app, "north"), at("text"))

    await app.clusters.remove("north")

    with pytest.raises(NotFound):
        await hub.get(at_cluster("north"))
    await wait_deleted(hub, Ref(WORK, "ManifestWork", "north", "text"))
    await wait_deleted(hub, Ref("v1", "Namespace", "", "north"))


@pytest.mark.parametrize("name", ["theirs", "kube-system"])
async def test_a_namespace_that_was_there_before_the_cluster_of_its_name_stays_when_that_goes(
    app: App, name: str
) -> None:
    hub = app.client()
    if name == "theirs":
        await hub.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    await hub.create(config_map("kept", name))
    await app.clusters.add(name)
    await eventually(reader(hub, at_cluster(name)), is_available)
    await hub.create(work(name, "text"))
    await wait_created(client_of(app, name), at("text"))

    await app.clusters.remove(name)

    await wait_deleted(hub, Ref(WORK, "ManifestWork", name, "text"))
    await wait_deleted(hub, Ref("coordination.k8s.io/v1", "Lease", name, "managed-cluster-lease"))
    await app.settled()
    assert not meta.is_deleting(await hub.get(Ref("v1", "Namespace", "", name)))
    assert await hub.get(at("kept", name))
    await app.clusters.add(name)
    await eventually(reader(hub, at_cluster(name)), is_available)


async def test_agents_found_again_at_the_next_start_change_nothing(tmp_path: Path) -> None:
    async with App(settings("east", data=tmp_path)) as app:
        await app.settled()
        await app.client().create(work("east", "text"))
        made = await wait_created(client_of(app, "east"), at("text"))
        await app.settled()
        said = await app.client().get(Ref(WORK, "ManifestWork", "east", "text"))

    async with App(settings(data=tmp_path)) as app:
        await app.settled()
        again = await client_of(app, "east").get(at("text"))
        assert meta.resource_version(again) == meta.resource_version(made)
        assert await app.client().get(Ref(WORK, "ManifestWork", "east", "text")) == said


@pytest.mark.parametrize("changed", [{"simulate": "off"}, {"families": "metacontroller"}])
async def test_a_first_cluster_that_is_no_hub_has_no_agents(changed: dict[str, Any]) -> None:
    wanted = {"ephemeral": True, "port": 0, "simulate": "controllers", "clusters": ("east",), **changed}
    async with App(Settings(**wanted)) as app:
        (east,) = (one for one in app.clusters if one.name)
        assert [name for manager in east.managers for name in manager.names if name.startswith("work-")] == []
