"""`lamina uninstall` on a cluster with owners of every family: nothing of ours holds anything afterwards."""

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest_asyncio
from click.testing import CliRunner, Result

from lamina.admission.ca import Secrets, authority
from lamina.admission.registration import WebhookEndpoint, configurations
from lamina.app import App
from lamina.cli.commands.uninstall import uninstall
from lamina.client.client import Client
from lamina.errors import LaminaError, SettingsError
from lamina.families.registry import agents, chosen
from lamina.logs import log
from lamina.objects.times import micro_stamp
from lamina.objects.types import Ref
from lamina.runtime.controller.leader_election import LeaderElection
from lamina.runtime.controller.leader_election_lock import LeaseConfig
from lamina.settings import Settings
from lamina.testing.waiting import eventually
from tests.deploy.estate import CLUSTER, HELD, MADE, controllers, delete_definitions, held, is_gone, settle
from tests.scenarios.story import Story

NAMESPACE = "lamina-system"
WEBHOOK = Ref("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration", "", "lamina-manifestwork")
SECRET = Ref("v1", "Secret", NAMESPACE, "lamina-webhook")
LEASE = Ref("coordination.k8s.io/v1", "Lease", NAMESPACE, "lamina")


@pytest_asyncio.fixture
async def app(tmp_path: Path) -> AsyncIterator[App]:
    """A server whose controllers and agent have stopped, and whose last agent renewed its Lease long ago."""
    async with App(Settings(ephemeral=True, port=0, families="none", simulate="off")) as app:
        client = app.client()
        async with controllers(client, tmp_path):
            await settle(client, tmp_path)
        await client.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
        await authority(client, Secrets(namespace=NAMESPACE))
        checks = tuple(check for family in chosen("all") for check in family.checks)
        for one in configurations(checks, WebhookEndpoint(url="https://127.0.0.1:1")):
            await client.create(one)
        await renewed(client, agents().lease(CLUSTER), timedelta(hours=1))
        yield app


async def renewed(client: Client, lease: Ref, ago: timedelta) -> None:
    await client.patch(lease, {"spec": {"renewTime": micro_stamp(datetime.now(UTC) - ago)}})


async def run(app: App, *arguments: str) -> Result:
    words = ["--kubeconfig", str(app.kubeconfig), *arguments]
    return await asyncio.to_thread(CliRunner().invoke, uninstall, words)


async def leading(client: Client) -> tuple[LeaderElection, "asyncio.Task[None]"]:
    leases = LeaderElection(client, "replica-a", LeaseConfig(namespace=NAMESPACE), log)
    task = asyncio.create_task(leases.run())
    await eventually(lambda: leases.held)
    return leases, task


async def test_it_removes_webhook_finalizers_secret_and_leases_and_leaves_objects(app: App) -> None:
    client = app.client()
    _, task = await leading(client)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)

    done = await run(app)

    assert done.exit_code == 0, (done.output, done.exception)
    lines = done.output.splitlines()
    assert lines[0] == f"deleted {WEBHOOK}"
    assert lines.index(f"deleted {SECRET}") > max(
        place for place, line in enumerate(lines) if line.startswith("removed finalizer")
    )
    assert lines.index(f"deleted {LEASE}") > lines.index(f"deleted {SECRET}")
    assert "1 manifestworkreplicasets.work.open-cluster-management.io" in lines[-2]
    assert lines[-1].endswith("`lamina crds | kubectl delete -f -`")
    assert await held(client) == {}
    for ref in (WEBHOOK, SECRET, LEASE, agents().lease(CLUSTER)):
        assert await is_gone(client, ref), ref
    for name in MADE:
        await client.get(Ref("v1", "ConfigMap", "default", name))
    await delete_definitions(client)
    assert (await run(app)).output == ""


async def test_a_dry_run_prints_the_same_and_removes_nothing(app: App) -> None:
    shown = await run(app, "--dry-run")

    assert shown.exit_code == 0, (shown.output, shown.exception)
    assert (await held(app.client())).keys() >= HELD
    done = await run(app)
    assert shown.output.replace(" (dry run)", "") == done.output


async def test_it_refuses_while_a_controller_holds_a_lease(app: App) -> None:
    client = app.client()
    _, task = await leading(client)
    try:
        refused = await run(app)
        shown = await run(app, "--dry-run")
        kept = await held(client)
        forced = await run(app, "--force")
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    assert isinstance(refused.exception, SettingsError)
    assert str(refused.exception) == f"a controller still runs: {LEASE} is held by replica-a"
    assert f"refused without --force: {LEASE} is held by replica-a" in shown.stderr
    assert kept.keys() >= HELD
    assert forced.exit_code == 0
    assert await held(client) == {}


async def test_it_waits_until_the_lease_of_a_killed_replica_expires(app: App) -> None:
    killed = {
        "holderIdentity": "replica-a",
        "leaseDurationSeconds": 3,
        "renewTime": micro_stamp(datetime.now(UTC)),
    }
    metadata = {"name": LEASE.name, "namespace": NAMESPACE}
    lease = {"apiVersion": LEASE.api_version, "kind": LEASE.kind, "metadata": metadata, "spec": killed}
    await app.client().create(lease)

    assert (await run(app, "--wait", "120s")).exit_code == 0


async def test_it_refuses_while_an_agent_renews_its_lease(app: App) -> None:
    lease = agents().lease(CLUSTER)
    await renewed(app.client(), lease, timedelta(0))

    refused = await run(app)

    assert isinstance(refused.exception, LaminaError)
    assert f"the agent of {CLUSTER} renews {lease}" in str(refused.exception)


async def test_finalizers_can_be_kept_for_the_originals(app: App) -> None:
    done = await run(app, "--keep-finalizers")

    assert "finalizer" not in done.output
    assert f"deleted {WEBHOOK}" in done.output
    assert (await held(app.client())).keys() >= HELD


async def test_an_object_that_is_being_deleted_goes_and_what_was_made_for_it_stays(app: App) -> None:
    client, story = app.client(), Story(Path(), app.client())
    parent = story.parent("Set", "a")
    await client.delete(parent)

    done = await run(app)

    assert f"from {parent}; 1 of them are being deleted, and what was made for them stays" in done.output
    await story.until_gone(parent)


async def test_leases_of_originals_go_where_we_held_them(app: App) -> None:
    client = app.client()
    ours = await leading_as_original(
        client, "kro-system", "controller.kro.run", f"{NAMESPACE}/lamina (lamina)"
    )
    theirs = await leading_as_original(
        client, "metacontroller", "metacontroller", "metacontroller-0", seconds=0
    )

    done = await run(app)

    assert done.exit_code == 0, (done.output, done.exception)
    assert f"deleted {ours}" in done.output
    assert await is_gone(client, ours)
    assert not await is_gone(client, theirs)


async def test_it_refuses_while_an_original_leads_unless_finalizers_are_kept(app: App) -> None:
    lease = await leading_as_original(app.client(), "metacontroller", "metacontroller", "metacontroller-0")

    refused, kept = await run(app), await run(app, "--keep-finalizers")

    assert str(refused.exception) == f"a controller still runs: {lease} is held by metacontroller-0"
    assert kept.exit_code == 0


async def leading_as_original(
    client: Client, namespace: str, name: str, holder: str, seconds: int = 3600
) -> Ref:
    """Make the Lease of an original, renewed just now; with 0 seconds it is expired."""
    await client.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})
    renewed_at = datetime.now(UTC) - timedelta(seconds=0 if seconds else 3600)
    spec = {
        "holderIdentity": holder,
        "leaseDurationSeconds": seconds or 1,
        "renewTime": micro_stamp(renewed_at),
    }
    metadata = {"name": name, "namespace": namespace}
    await client.create(
        {"apiVersion": LEASE.api_version, "kind": LEASE.kind, "metadata": metadata, "spec": spec}
    )
    return Ref(LEASE.api_version, LEASE.kind, namespace, name)
