"""On a server that checks rights, a hub runs with the role that `lamina rbac` prints on a fresh cluster."""

import asyncio
import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from click.testing import CliRunner

from lamina.admission.authority import Secrets
from lamina.admission.registration import Way
from lamina.admission.serving import serving
from lamina.app import App
from lamina.cli.rbac import rbac
from lamina.client.client import Client
from lamina.client.http import HttpTransport
from lamina.client.inprocess import InProcessTransport
from lamina.client.kubeconfig import Access, read_kubeconfig
from lamina.clock import WallClock
from lamina.families.every import Manner, chosen
from lamina.families.manifestwork.names import REPLICA_SET_VERSION, WORK_VERSION
from lamina.logs import log
from lamina.objects import meta
from lamina.objects.types import Made, Ref
from lamina.product import install, product
from lamina.runtime.calls import Calls
from lamina.server.request import Answer
from lamina.settings import Settings
from tests.bed.either import start_server
from tests.bed.fixtures import chosen_server
from tests.scenarios.manifestwork.stage import PATIENCE
from tests.scenarios.story import free_port
from tests.scenarios.test_rights import wanted_right
from tests.unit.families.manifestwork.fleet import OK1, OK2, everybody

CLUSTERS = "cluster.open-cluster-management.io"


def objects() -> list[Made]:
    """A cluster that has been accepted, a placement that selects it, and something to send there."""
    here = {"namespace": "default"}
    executor = {
        "subject": {"type": "ServiceAccount", "serviceAccount": {"namespace": "ops", "name": "robot"}}
    }
    return [
        {
            "apiVersion": f"{CLUSTERS}/v1", "kind": "ManagedCluster", "spec": {"hubAcceptsClient": True},
            "metadata": {"name": "one", "labels": {f"{CLUSTERS}/clusterset": "default"}},
        },
        {"apiVersion": f"{CLUSTERS}/v1beta2", "kind": "ManagedClusterSet", "metadata": {"name": "default"}},
        {
            "apiVersion": f"{CLUSTERS}/v1beta2", "kind": "ManagedClusterSetBinding",
            "metadata": {"name": "default", **here}, "spec": {"clusterSet": "default"},
        },
        {
            "apiVersion": f"{CLUSTERS}/v1beta1", "kind": "Placement", "metadata": {"name": "place", **here},
            "spec": {"tolerations": [{"operator": "Exists"}]},
        },
        {
            "apiVersion": "work.open-cluster-management.io/v1", "kind": "ManifestWorkReplicaSet",
            "metadata": {"name": "app", **here},
            "spec": {
                "placementRefs": [{"name": "place", "rolloutStrategy": everybody()}],
                "manifestWorkTemplate": {**OK1, "executor": executor},
            },
        },
    ]  # fmt: skip


@pytest.mark.skipif(chosen_server() != "real", reason="the embedded server lets its only user do everything")
async def test_a_hub_runs_with_the_least_role(tmp_path: Path) -> None:
    with start_server("real") as server:
        access = read_kubeconfig(server.kubeconfig)
        admin, families = Client(HttpTransport(access)), chosen("manifestwork")
        robot = Client(HttpTransport(await account(admin, access, server.kubeconfig)))
        checks = tuple(check for family in families for check in family.checks)
        calls, running = Calls(), None
        try:
            await install(robot, families)
            port = free_port()
            way, secrets = Way(url=f"https://127.0.0.1:{port}"), Secrets(namespace="default")
            async with serving(checks, robot, way, ("127.0.0.1", port), secrets, log):
                manager = product(robot, families, WallClock(), calls)
                running = asyncio.create_task(manager.run())
                await manager.ready()
                for one in objects():
                    await admin.create(one)
                async with asyncio.timeout(PATIENCE):
                    (work,) = await some(admin, WORK_VERSION, "ManifestWork", 1)
                    await admin.delete(Ref(REPLICA_SET_VERSION, "ManifestWorkReplicaSet", "default", "app"))
                    await some(admin, REPLICA_SET_VERSION, "ManifestWorkReplicaSet", 0)
                events = (await admin.list(("v1", "Event"), "default")).items
        finally:
            if running is not None:
                running.cancel()
                await asyncio.gather(running, return_exceptions=True)
            await calls.close()
            await robot.close()
            await admin.close()

    assert meta.namespace(work) == "one"
    assert [one["message"] for one in events if one["reason"] == "SyncError"] == []


async def test_everything_a_hub_asks_for_is_in_the_role_of_a_fresh_cluster() -> None:
    asked: set[tuple[str, str, str]] = set()
    async with App(Settings(ephemeral=True, port=0, families="none")) as app:

        async def handle(
            method: str, path: str, query: str, headers: Mapping[str, str], body: bytes
        ) -> Answer:
            if right := wanted_right(method, path, query):
                asked.add(right)
            return await app.request(method, path, query, headers, body)

        admin, client, families = app.client(), Client(InProcessTransport(handle)), chosen("manifestwork")
        await install(client, families)
        asked.clear()
        calls = Calls()
        manager = product(client, families, WallClock(), calls)
        running = asyncio.create_task(manager.run())
        try:
            await manager.ready()
            for one in objects():
                await admin.create(one)
            async with asyncio.timeout(PATIENCE):
                (work,) = await some(admin, WORK_VERSION, "ManifestWork", 1)
                app_ref = Ref(REPLICA_SET_VERSION, "ManifestWorkReplicaSet", "default", "app")
                await admin.patch(app_ref, {"spec": {"manifestWorkTemplate": OK2, "revisionHistoryLimit": 0}})
                await changed(admin, meta.ref(work))
                await admin.delete(app_ref)
                await some(admin, WORK_VERSION, "ManifestWork", 0)
                await some(admin, REPLICA_SET_VERSION, "ManifestWorkReplicaSet", 0)
        finally:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)
            await calls.close()

    needed = families[0].rights(())
    needed.add("apiextensions.k8s.io", ("customresourcedefinitions",), ("get", "list", "watch"))
    assert {right for right in asked if not needed.allow(*right)} == set()


def test_whoever_leaves_clusters_to_others_writes_neither_decisions_nor_namespaces() -> None:
    (family,) = chosen("manifestwork", Manner(schedules=False, registers=False))
    needed = family.rights(())

    assert needed.allow("cluster.open-cluster-management.io", "placementdecisions", "watch")
    assert not needed.allow("cluster.open-cluster-management.io", "placementdecisions", "create")
    assert not needed.allow("", "namespaces", "create")
    assert needed.allow("work.open-cluster-management.io", "manifestworks", "execute-as")


async def some(client: Client, version: str, kind: str, many: int) -> Sequence[Made]:
    """Wait until there are so many of a kind."""
    while True:
        found = (await client.list((version, kind))).items
        if len(found) == many:
            return found
        await asyncio.sleep(0.1)


async def changed(client: Client, ref: Ref) -> None:
    """Wait until an object asks for something else than at first."""
    while True:
        if meta.generation(await client.get(ref)) > 1:
            return
        await asyncio.sleep(0.1)


async def account(admin: Client, access: Access, kubeconfig: Path) -> Access:
    """Make an account with the printed role, and return how to be it."""
    arguments = [
        "--families",
        "manifestwork",
        "--install",
        "--webhook",
        "-o",
        "json",
        "--kubeconfig",
        str(kubeconfig),
    ]
    printed = await asyncio.to_thread(CliRunner().invoke, rbac, arguments)
    assert printed.exit_code == 0, printed.output
    named = {"name": "lamina", "namespace": "default"}
    made = await admin.create({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": named})
    for obj in json.loads(printed.stdout)["items"]:
        await admin.create(obj)
    token = await admin.post(
        meta.ref(made),
        {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}},
        subresource="token",
    )
    return Access(server=access.server, authority=access.authority, token=token["status"]["token"])
