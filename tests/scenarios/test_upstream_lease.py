"""A family waits for its original, works when the original has gone, and stops when it has come back."""

import asyncio

import structlog

from lamina.app import App
from lamina.client.client import Client
from lamina.clock import WallClock
from lamina.control_plane.install import build_manager, install
from lamina.families.registry import chosen
from lamina.objects import meta
from lamina.objects.types import Made, Ref
from lamina.runtime.controller.leader_election_lock import LeaseConfig
from lamina.runtime.controller.leader_election_upstream import UpstreamLeases
from lamina.runtime.hooks.client import HookClient
from lamina.settings import Settings
from lamina.testing.waiting import eventually
from tests.unit.families.objectset.revisions import config_map, deployment, phase, template

LEASE = Ref("coordination.k8s.io/v1", "Lease", "package-operator-system", "8a4hp84a6s.package-operator-lock")
ORIGINAL = "package-operator-manager-0"


async def leads(client: Client, original: str, at: int) -> None:
    """Write the original into its Lease, or with an empty name out of it."""
    spec = {
        "holderIdentity": original,
        "leaseDurationSeconds": 3600,
        "renewTime": f"2026-01-01T00:00:{at:02d}.000000Z",
    }
    await client.apply(
        {
            "apiVersion": LEASE.api_version,
            "kind": "Lease",
            "metadata": {"name": LEASE.name, "namespace": LEASE.namespace},
            "spec": spec,
        },
        manager="package-operator",
        force=True,
    )


async def sets(client: Client) -> list[Made]:
    return list((await client.list(("package-operator.run/v1alpha1", "ObjectSet"))).items)


async def test_the_controllers_of_a_family_wait_for_the_lease_of_their_original() -> None:
    families = chosen("objectset")
    async with App(Settings(ephemeral=True, port=0, families="none")) as app:
        client = app.client()
        await client.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": LEASE.namespace}})
        await leads(client, ORIGINAL, 1)
        await install(client, families)
        upstream = UpstreamLeases(
            client,
            "default/lamina (lamina)",
            {one.name: one.upstream_leases for one in families},
            LeaseConfig(retry_period=0.01),
            structlog.get_logger(),
        )
        manager = build_manager(
            client,
            families,
            WallClock(),
            HookClient(),
            leads={one.name: upstream.leadership(one.name) for one in families},
        )
        upstream.on_started_leading = manager.resync
        running = [asyncio.create_task(manager.run()), asyncio.create_task(upstream.run())]
        try:
            await manager.ready()
            web = await client.create(deployment("web", template(phase("p1", config_map("one")))))
            await eventually(lambda: manager.is_idle)
            assert await sets(client) == [], "the original leads"

            await leads(client, "", 2)
            assert len(await eventually(lambda: sets(client))) == 1

            await leads(client, ORIGINAL, 3)
            await eventually(lambda: not upstream.holds("objectset"))
            second = template(phase("p1", config_map("two")))
            await client.patch(meta.ref(web), {"spec": {"template": {"spec": second}}})
            await eventually(lambda: manager.is_idle)
            assert len(await sets(client)) == 1, "the original leads again"

            await leads(client, "", 4)
            await eventually(lambda: sets(client), lambda found: len(found) == 2)
        finally:
            for task in running:
                task.cancel()
            await asyncio.gather(*running, return_exceptions=True)
