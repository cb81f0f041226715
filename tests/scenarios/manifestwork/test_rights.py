"""On a server that checks rights, a hub runs with the role that `lamina rbac` prints on a fresh cluster."""

import asyncio
import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from click.testing import CliRunner

from lamina.admission.ca import Secrets
from lamina.admission.registration import WebhookEndpoint
from lamina.admission.webhook_server import serving
from lamina.app import App
from lamina.cli.commands.rbac import rbac
from lamina.client.client import Client
from lamina.client.kubeconfig.read import Access, read_kubeconfig
from lamina.client.transport.http import HttpTransport
from lamina.client.transport.inprocess import InProcessTransport
from lamina.clock import WallClock
from lamina.control_plane.install import build_manager, install
from lamina.families.manifestwork.labels import REPLICA_SET_VERSION, WORK_VERSION
from lamina.families.registry import FamilyOptions, chosen
from lamina.logs import log
from lamina.objects import meta
from lamina.objects.types import Made, Ref
from lamina.runtime.hooks.client import HookClient
from lamina.server.http.request import Response
from lamina.settings import Settings
from lamina.testing.waiting import eventually
from tests.bed.either import start_server
from tests.bed.fixtures import chosen_server
from tests.scenarios.manifestwork.stage import TIMEOUT
from tests.scenarios.story import free_port
from tests.scenarios.test_rights import wanted_right
from tests.unit.families.manifestwork.fleet import OK1, OK2, all_at_once

CLUSTERS = "cluster.open-cluster-management.io"


def objects() -> list[Made]:
    """A cluster of the set that every hub has, a placement that selects it, and something to send there."""
    here = {"namespace": "default"}
    executor = {
        "subject": {"type": "ServiceAccount", "serviceAccount": {"namespace": "ops", "name": "robot"}}
    }
    return [
        {
            "apiVersion": f"{CLUSTERS}/v1", "kind": "ManagedCluster", "spec": {"hubAcceptsClient": True},
            "metadata": {"name": "one", "labels": {f"{CLUSTERS}/clusterset": "default"}},
        },
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
                "placementRefs": [{"name": "place", "rolloutStrategy": all_at_once()}],
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
        calls, running = HookClient(), None
        try:
            await install(robot, families)
            port = free_port()
            way, secrets = WebhookEndpoint(url=f"https://127.0.0.1:{port}"), Secrets(namespace="default")
            async with serving(checks, robot, way, ("127.0.0.1", port), secrets, log):
                manager = build_manager(robot, families, WallClock(), calls)
                running = asyncio.create_task(manager.run())
                await manager.ready()
                for one in objects():
                    await admin.create(one)
                async with asyncio.timeout(TIMEOUT):
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
        ) -> Response:
            if right := wanted_right(method, path, query):
                asked.add(right)
            return await app.request(method, path, query, headers, body)

        admin, client, families = app.client(), Client(InProcessTransport(handle)), chosen("manifestwork")
        await install(client, families)
        asked.clear()
        calls = HookClient()
        manager = build_manager(client, families, WallClock(), calls)
        running = asyncio.create_task(manager.run())
        try:
            await manager.ready()
            for one in objects():
                await admin.create(one)
            async with asyncio.timeout(TIMEOUT):
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


def test_a_hub_without_cluster_management_writes_neither_decisions_nor_namespaces() -> None:
    (family,) = chosen("manifestwork", FamilyOptions(schedules=False, registers=False))
    needed = family.rights(())

    assert needed.allow("cluster.open-cluster-management.io", "placementdecisions", "watch")
    assert not needed.allow("cluster.open-cluster-management.io", "placementdecisions", "create")
    assert not needed.allow("", "namespaces", "create")
    assert needed.allow("work.open-cluster-management.io", "manifestworks", "execute-as")


async def some(client: Client, version: str, kind: str, many: int) -> Sequence[Made]:
    """Wait until there are so many of a kind."""

    async def listed() -> Sequence[Made]:
        return (await client.list((version, kind))).items

    return await eventually(listed, lambda found: len(found) == many, seconds=TIMEOUT, interval=0.1)


async def changed(client: Client, ref: Ref) -> None:
    """Wait until an object asks for something else than at first."""
    await eventually(
        lambda: client.get(ref), lambda obj: meta.generation(obj) > 1, seconds=TIMEOUT, interval=0.1
    )


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
    for obj in json.loads(printed.stdout)["items"]:
        await admin.create(obj)
    token = await admin.post(
        Ref("v1", "ServiceAccount", "default", "lamina"),
        {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}},
        subresource="token",
    )
    return Access(server=access.server, authority=access.authority, token=token["status"]["token"])
