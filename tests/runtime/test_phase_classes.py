"""Clusters of one server, each of which serves the phase class of its name."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from lamina.app import App
from lamina.client.client import Client
from lamina.errors import NotFound
from lamina.faults import Refuse
from lamina.objects import meta
from lamina.objects.types import Made, Ref
from lamina.settings import Settings
from lamina.testing.waiting import eventually
from tests.runtime.cluster import at, config_map, reader, wait_created, wait_deleted
from tests.server.several_clusters import client_of

API = "package-operator.run/v1alpha1"
OWNERS = "package-operator.run/owners"


def settings(*clusters: str, data: Path | None = None, families: str = "objectset") -> Settings:
    return Settings(
        ephemeral=data is None,
        data=data,
        port=0,
        simulate="controllers",
        families=families,
        clusters=clusters,
    )


def phase(name: str, phase_class: str, *objects: Made) -> Made:
    made: Made = {"name": name, "objects": [{"object": one} for one in objects]}
    return {**made, "class": phase_class} if phase_class else made


def deployment(name: str, *phases: Made) -> Made:
    labels = {"app": name}
    return {
        "apiVersion": API,
        "kind": "ObjectDeployment",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"phases": list(phases)}},
        },
    }


def of_kind(kind: str, name: str) -> Ref:
    return Ref(API, kind, "default", name)


def available(obj: Made | None) -> dict[str, Any]:
    said: list[Any] = ((obj or {}).get("status") or {}).get("conditions") or []
    return next((one for one in said if one["type"] == "Available"), {})


def is_available(obj: Made | None) -> bool:
    return available(obj).get("status") == "True"


async def wait_message(client: Client, name: str, message: str) -> Made:
    """Wait until the condition Available of a set says this."""
    found = await eventually(
        reader(client, of_kind("ObjectSet", name)), lambda obj: message in available(obj).get("message", "")
    )
    assert found is not None
    return found


def object_set(name: str, *phases: Made) -> Made:
    metadata = {"name": name, "namespace": "default"}
    spec = {"lifecycleState": "Active", "phases": list(phases)}
    return {"apiVersion": API, "kind": "ObjectSet", "metadata": metadata, "spec": spec}


@pytest.fixture
async def app() -> AsyncIterator[App]:
    async with App(settings("east", "west")) as running:
        yield running


async def test_one_deployment_lays_each_phase_on_the_cluster_of_its_class(app: App) -> None:
    hub, east, west = client_of(app, ""), client_of(app, "east"), client_of(app, "west")

    await hub.create(
        deployment(
            "web",
            phase("first", "east", config_map("a")),
            phase("second", "west", config_map("b")),
            phase("third", "", config_map("c")),
        )
    )

    await eventually(reader(hub, of_kind("ObjectDeployment", "web")), is_available)
    assert OWNERS in meta.annotations(await east.get(at("a")))
    assert OWNERS in meta.annotations(await west.get(at("b")))
    assert not meta.owner_refs(await west.get(at("b")))
    assert (await hub.get(at("c")))["metadata"]["ownerReferences"]
    for client, name in ((east, "b"), (west, "a"), (hub, "a")):
        with pytest.raises(NotFound):
            await client.get(at(name))

    await west.delete(at("b"))
    await wait_created(west, at("b"))

    await hub.delete(of_kind("ObjectDeployment", "web"))
    for client, name in ((hub, "c"), (west, "b"), (east, "a")):
        await wait_deleted(client, at(name))


async def test_an_object_of_both_revisions_is_handed_over_there(app: App) -> None:
    hub, east = client_of(app, ""), client_of(app, "east")
    first = phase("p", "east", {**config_map("a"), "data": {"v": "1"}}, config_map("old"))
    made = await hub.create(deployment("web", first))
    await eventually(reader(hub, of_kind("ObjectDeployment", "web")), is_available)
    before = await east.get(at("a"))

    second = phase("p", "east", {**config_map("a"), "data": {"v": "2"}})
    await hub.patch(meta.ref(made), {"spec": deployment("web", second)["spec"]})

    await wait_deleted(east, at("old"))
    after = await east.get(at("a"))
    assert meta.uid(after) == meta.uid(before) and after["data"] == {"v": "2"}


async def test_a_namespace_that_the_cluster_lacks_is_named(app: App) -> None:
    hub, east = client_of(app, ""), client_of(app, "east")
    await hub.create(object_set("v1", phase("p", "east", config_map("a", "elsewhere"))))

    found = await wait_message(hub, "v1", 'ConfigMap elsewhere/a: namespace "elsewhere" not found')
    assert available(found)["reason"] == "PreflightError"

    await hub.create(
        object_set(
            "v2",
            phase(
                "namespace", "east", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "theirs"}}
            ),
            phase("rest", "east", config_map("a", "theirs")),
        )
    )
    await wait_created(east, at("a", "theirs"))


async def test_a_cluster_that_is_added_later_serves_its_class_from_then_on(app: App) -> None:
    hub = client_of(app, "")
    await hub.create(object_set("v1", phase("p", "north", config_map("a"))))
    await wait_message(hub, "v1", 'the controller of class "north" has not reported')

    await app.clusters.add("north")

    await wait_created(client_of(app, "north"), at("a"))
    await eventually(reader(hub, of_kind("ObjectSet", "v1")), is_available)


@pytest.mark.parametrize("families", ["objectset", "manifestwork,objectset"])
async def test_a_cluster_that_is_removed_holds_no_set_and_is_said_to_be_silent(families: str) -> None:
    async with App(settings("east", families=families)) as app:
        hub = client_of(app, "")
        await hub.create(object_set("v1", phase("p", "east", config_map("a"))))
        await hub.create(object_set("v2", phase("p", "east", config_map("b"))))
        for name in ("v1", "v2"):
            await eventually(reader(hub, of_kind("ObjectSet", name)), is_available)

        await app.clusters.remove("east")

        await wait_message(hub, "v1", "no status reported")
        left = await hub.get(of_kind("ObjectSetPhase", "v1-p"))
        assert not meta.finalizers(left) and not left.get("status")
        await hub.delete(of_kind("ObjectSet", "v2"))
        await wait_deleted(hub, of_kind("ObjectSet", "v2"))

        await app.clusters.add("east")
        await wait_created(client_of(app, "east"), at("a"))
        await eventually(reader(hub, of_kind("ObjectSet", "v1")), is_available)
        with pytest.raises(NotFound):
            await client_of(app, "east").get(at("b"))


async def test_a_release_that_the_hub_refuses_is_repeated() -> None:
    async with App(settings("east")) as app:
        hub = client_of(app, "")
        await hub.create(object_set("v1", phase("p", "east", config_map("a"))))
        await eventually(reader(hub, of_kind("ObjectSet", "v1")), is_available)
        fault = app.cluster.api.faults.add(Refuse(code=500, verbs=("list",), resources=("objectsetphases",)))

        await app.clusters.remove("east")
        assert meta.finalizers(await hub.get(of_kind("ObjectSetPhase", "v1-p")))
        app.cluster.api.faults.remove(fault.id)

        await eventually(
            reader(hub, of_kind("ObjectSetPhase", "v1-p")), lambda obj: not meta.finalizers(obj or {})
        )


async def test_a_cluster_that_is_removed_while_its_family_does_not_run_holds_no_set(tmp_path: Path) -> None:
    async with App(settings("east", data=tmp_path)) as app:
        hub = client_of(app, "")
        await hub.create(object_set("v1", phase("p", "east", config_map("a"))))
        await eventually(reader(hub, of_kind("ObjectSet", "v1")), is_available)

    async with App(settings(data=tmp_path, families="none")) as app:
        await app.clusters.remove("east")
        assert not meta.finalizers(await client_of(app, "").get(of_kind("ObjectSetPhase", "v1-p")))


async def test_a_cluster_is_served_after_a_restart(tmp_path: Path) -> None:
    async with App(settings("east", data=tmp_path)) as app:
        await client_of(app, "").create(object_set("v1", phase("p", "east", config_map("a"))))
        await wait_created(client_of(app, "east"), at("a"))

    async with App(settings(data=tmp_path)) as app:
        await client_of(app, "east").delete(at("a"))
        await wait_created(client_of(app, "east"), at("a"))


async def test_a_cluster_that_is_added_while_the_hub_does_not_answer_is_served_once_it_does(app: App) -> None:
    hub = client_of(app, "")
    await hub.create(object_set("v1", phase("p", "north", config_map("a"))))
    await wait_message(hub, "v1", "no status reported")
    fault = app.cluster.api.faults.add(Refuse(code=503))

    await app.clusters.add("north")
    app.cluster.api.faults.remove(fault.id)

    await wait_created(client_of(app, "north"), at("a"))
