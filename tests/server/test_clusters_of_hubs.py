"""Clusters of a server whose first cluster is a hub, was one, or does not respond."""

from pathlib import Path
from typing import Any

import pytest

from lamina.app import App
from lamina.errors import InternalError, NotFound, Unavailable
from lamina.faults import Fault, Refuse, Silence
from lamina.objects.types import Made, Ref
from lamina.server.http.cluster_router import FIRST_CLUSTER
from lamina.settings import Settings
from tests.runtime.cluster import at, config_map, wait_created, wait_deleted
from tests.server.several_clusters import client_of, persistent_app

CLUSTER = Ref("cluster.open-cluster-management.io/v1", "ManagedCluster", "", "a")
WORKS = ("work.open-cluster-management.io/v1", "ManifestWork")


def work(name: str, cluster: str) -> Made:
    version, kind = WORKS
    made: Made = {"apiVersion": version, "kind": kind, "metadata": {"name": name, "namespace": cluster}}
    return {**made, "spec": {"workload": {"manifests": [config_map(name)]}}}


async def test_an_end_that_the_hub_did_not_hear_of_is_told_again() -> None:
    settings = Settings(ephemeral=True, port=0, clusters=("a",), families="manifestwork")
    async with App(settings) as app:
        hub = client_of(app, "")
        await wait_created(hub, Ref("v1", "Namespace", "", "a"))
        await hub.create(work("old", "a"))
        await wait_created(client_of(app, "a"), at("old"))
        fault = app.cluster.api.faults.add(Refuse(code=500, verbs=("list",), resources=("manifestworks",)))

        await app.clusters.remove("a")
        assert [one["name"] for one in app.clusters.list_clusters()] == [FIRST_CLUSTER]
        with pytest.raises(Unavailable, match="is still ending"):
            await app.clusters.add("a")
        assert (await hub.get(Ref(*WORKS, "a", "old")))["spec"]
        app.cluster.api.faults.remove(fault.id)

        await wait_deleted(hub, Ref(*WORKS, "a", "old"))
        await wait_deleted(hub, Ref("v1", "Namespace", "", "a"))
        await app.clusters.add("a")
        await wait_created(hub, Ref("v1", "Namespace", "", "a"))
        await app.settled()
        assert not (await hub.list(WORKS, "a")).items


@pytest.mark.parametrize("fault", [Refuse(code=500, resources=("managedclusters",)), Silence()])
async def test_a_hub_that_was_not_told_of_a_cluster_hears_of_it_later(fault: Fault) -> None:
    settings = Settings(ephemeral=True, port=0, clusters=("b",), families="manifestwork")
    async with App(settings, hub_timeout=0.1) as app:
        hub = client_of(app, "")
        await wait_created(hub, Ref("v1", "Namespace", "", "b"))
        broken = app.cluster.api.faults.add(fault)

        await app.clusters.add("a")
        await client_of(app, "a").create(config_map("at-work"))
        await app.clusters.add("brief")
        await app.clusters.remove("brief")
        await app.clusters.remove("b")
        app.cluster.api.faults.remove(broken.id)

        assert (await wait_created(hub, CLUSTER))["spec"]["hubAcceptsClient"]
        await wait_deleted(hub, CLUSTER._replace(name="b"))
        with pytest.raises(NotFound):
            await hub.get(CLUSTER._replace(name="brief"))


@pytest.mark.parametrize("meanwhile", [{"families": "none"}, {"simulate": "off"}])
async def test_a_cluster_that_ends_while_its_hub_is_none_leaves_nothing_to_the_next_of_its_name(
    tmp_path: Path, meanwhile: dict[str, Any]
) -> None:
    hub = Settings(data=tmp_path, port=0, clusters=("a", "b"), families="manifestwork")
    async with App(hub) as app:
        await wait_created(client_of(app, ""), Ref("v1", "Namespace", "", "a"))
        await client_of(app, "").create(work("old", "a"))
        await wait_created(client_of(app, "a"), at("old"))

    async with App(Settings(data=tmp_path, port=0, **meanwhile)) as app:
        theirs = {"spec": {"managedClusterClientConfigs": [{"url": "https://elsewhere"}]}}
        await client_of(app, "").patch(CLUSTER._replace(name="b"), theirs)
        await app.clusters.remove("a")
        await app.clusters.remove("b")
        await wait_deleted(client_of(app, ""), CLUSTER)
        await wait_deleted(client_of(app, ""), Ref("v1", "Namespace", "", "a"))
        assert await client_of(app, "").get(CLUSTER._replace(name="b")), "another manager owns it by now"

    async with App(hub) as app:
        await wait_created(client_of(app, ""), Ref("v1", "Namespace", "", "a"))
        await app.settled()
        assert not (await client_of(app, "").list(WORKS, "a")).items


async def test_a_hub_knows_where_its_clusters_are_after_a_start_elsewhere(tmp_path: Path) -> None:
    settings = Settings(data=tmp_path, port=0, clusters=("a",), families="manifestwork")
    for _ in range(2):
        async with App(settings) as app:
            known = await client_of(app, "").get(CLUSTER)
            assert known["spec"]["managedClusterClientConfigs"] == [{"url": app.clusters.address("a")}]


# With other failures


async def test_a_webhook_without_a_server_keeps_no_control_plane_from_starting(tmp_path: Path) -> None:
    everything = {
        "name": "all.example.com",
        "clientConfig": {"url": "https://127.0.0.1:1"},
        "rules": [{"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["*"], "resources": ["*/*"]}],
        "failurePolicy": "Fail",
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
    }
    kind = {"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration"}
    async with persistent_app(tmp_path) as app:
        await client_of(app, "").create({**kind, "metadata": {"name": "all"}, "webhooks": [everything]})

    # Many objects have to be written: a storage kind, the kinds of a hub, and a cluster of it.
    settings = Settings(data=tmp_path, port=0, clusters=("a",), families="manifestwork")
    async with App(settings) as app:
        assert (await client_of(app, "").get(CLUSTER))["spec"]["hubAcceptsClient"]
        with pytest.raises(InternalError, match="failed calling webhook"):
            await client_of(app, "").create(config_map("refused"))


async def test_an_end_that_was_cut_short_while_the_hub_is_none_goes_on_where_it_was(tmp_path: Path) -> None:
    """The record of the cluster is deleted last."""
    hub = Settings(data=tmp_path, port=0, clusters=("a",), families="manifestwork")
    async with App(hub) as app:
        await wait_created(client_of(app, ""), Ref("v1", "Namespace", "", "a"))
        await client_of(app, "").create(work("old", "a"))
        await wait_created(client_of(app, "a"), at("old"))

    async with App(Settings(data=tmp_path, port=0, families="none")) as app:
        first = client_of(app, "")
        fault = app.cluster.api.faults.add(Refuse(code=503, verbs=("list",), resources=("manifestworks",)))
        await app.clusters.remove("a")
        assert (await first.get(Ref(*WORKS, "a", "old")))["spec"]

        app.cluster.api.faults.remove(fault.id)

        await wait_deleted(first, Ref(*WORKS, "a", "old"))
        await wait_deleted(first, CLUSTER)
