"""An agent needs the rights on its hub that `lamina rbac --agent` prints, and reports the claims of its cluster."""

import asyncio
import json
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlencode

import pytest
from click.testing import CliRunner

from lamina.cli.commands.rbac import rbac
from lamina.client.client import Client
from lamina.client.kubeconfig.read import Access, read_kubeconfig
from lamina.client.transport.base import Query, Response
from lamina.client.transport.http import HttpTransport
from lamina.client.write_guard import WriteGuard
from lamina.errors import Invalid
from lamina.families.manifestwork.labels import CLUSTER_GROUP
from lamina.families.manifestwork.placement.managedcluster import LEASE_NAME
from lamina.objects import meta
from lamina.objects.types import Made, Obj, Ref
from lamina.testing.waiting import eventually
from tests.bed.fixtures import chosen_server
from tests.scenarios.manifestwork.agents import Spoke, spoke
from tests.scenarios.manifestwork.stage import Stage
from tests.scenarios.test_rights import wanted_right
from tests.unit.families.manifestwork.agent.story import config_map

pytestmark = pytest.mark.asyncio(loop_scope="session")


class Noted(HttpTransport):
    """A way to a server that notes what is asked of it: where, what, and of which name."""

    def __init__(self, access: Access) -> None:
        super().__init__(access)
        self.asked: set[tuple[str, tuple[str, str, str], str]] = set()

    async def request(
        self,
        method: str,
        path: str,
        *,
        query: Query = (),
        headers: Mapping[str, str],
        body: bytes | None = None,
        streams: bool = False,
        guard: WriteGuard | None = None,
    ) -> Response:
        if right := wanted_right(method, path, urlencode(query)):
            parts = path.split("/")
            where = parts[parts.index("namespaces") + 1] if "namespaces" in parts else ""
            after = parts[parts.index(right[1].partition("/")[0]) + 1 :]
            chosen = parse_qs(urlencode(query)).get("fieldSelector", [""])[0].removeprefix("metadata.name=")
            self.asked.add((where, right, after[0] if after else chosen))
        return await super().request(
            method, path, query=query, headers=headers, body=body, streams=streams, guard=guard
        )


async def printed(cluster: str, *more: str) -> Sequence[Made]:
    """Return what is printed for the agent of a cluster."""
    asked = await asyncio.to_thread(CliRunner().invoke, rbac, ["--agent", cluster, "-o", "json", *more])
    assert asked.exit_code == 0, asked.output
    assert "cluster-admin" in asked.stderr
    items: Sequence[Made] = json.loads(asked.stdout)["items"]
    return items


def allows(roles: Sequence[Obj], where: str, right: tuple[str, str, str], name: str) -> bool:
    """Say whether one of some roles lets something be done: in their namespace, or anywhere."""
    group, resource, verb = right
    return any(
        group in rule["apiGroups"]
        and resource in rule["resources"]
        and verb in rule["verbs"]
        and ("resourceNames" not in rule or name in rule["resourceNames"])
        for role in roles
        if meta.namespace(role) in ("", where)
        for rule in role.get("rules") or ()
    )


async def account(stage: Stage, cluster: str, access: Access) -> Access:
    """Make an account with the printed roles, and return how to be it."""
    roles = await printed(cluster, "--account", f"{cluster}/agent", "--name", stage.id)
    named = {"name": "agent", "namespace": cluster}
    made = await stage.client.create({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": named})
    for one in roles:
        stage.made.append(meta.ref(await stage.client.create(one)))
    body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
    token = await stage.client.post(meta.ref(made), body, subresource="token")
    return Access(server=access.server, authority=access.authority, token=token["status"]["token"])


@asynccontextmanager
async def accepted(stage: Stage, kubeconfig: Path) -> AsyncIterator[tuple[Spoke, Noted]]:
    """A cluster that its hub has accepted, and its agent with no more rights there than it needs."""
    name, access = stage.cluster("east"), read_kubeconfig(kubeconfig)
    await stage.given_namespace(name)
    made = await stage.client.create(
        {
            "apiVersion": f"{CLUSTER_GROUP}/v1",
            "kind": "ManagedCluster",
            "metadata": {"name": name},
            "spec": {"hubAcceptsClient": True},
        }
    )
    stage.made.append(meta.ref(made))
    await stage.client.create(
        {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {"name": LEASE_NAME, "namespace": name},
            "spec": {"holderIdentity": LEASE_NAME},
        }
    )
    way = Noted(await account(stage, name, access) if chosen_server() == "real" else access)
    client = Client(way)
    try:
        async with spoke(name, stage.client, stage.clock, way=client) as east:
            yield east, way
    finally:
        await client.close()


async def managed(stage: Stage, east: Spoke) -> Made:
    """Return what the hub knows of a cluster."""
    found = await stage.client.get(Ref(f"{CLUSTER_GROUP}/v1", "ManagedCluster", "", east.name))
    return found.get("status") or {}


async def test_an_agent_runs_with_the_least_roles(stage: Stage, kubeconfig: Path) -> None:
    async with accepted(stage, kubeconfig) as (east, way):

        async def is_renewed() -> Any:
            lease = await stage.client.get(Ref("coordination.k8s.io/v1", "Lease", east.name, LEASE_NAME))
            return lease["spec"].get("renewTime") and (await managed(stage, east)).get("conditions")

        await eventually(is_renewed)
        await east.want(config_map(a="1"))
        await east.until_applied()
        await stage.client.delete(east.work_ref())
        await east.until_gone()

    roles = await printed(east.name)
    assert {one for one in way.asked if not allows(roles, *one)} == set()
    used = {right for _, right, _ in way.asked}
    assert ("work.open-cluster-management.io", "manifestworks/status", "patch") in used
    assert ("coordination.k8s.io", "leases", "patch") in used


async def test_what_a_cluster_claims_of_itself_is_known_on_its_hub(stage: Stage, kubeconfig: Path) -> None:
    def claim(name: str, value: str) -> Made:
        kind = {"apiVersion": f"{CLUSTER_GROUP}/v1alpha1", "kind": "ClusterClaim"}
        return {**kind, "metadata": {"name": name}, "spec": {"value": value}}

    async with accepted(stage, kubeconfig) as (east, _):

        async def claims() -> Mapping[str, str]:
            told = (await managed(stage, east)).get("clusterClaims") or ()
            return {one["name"]: one["value"] for one in told}

        async def are(**wanted: str) -> None:
            async def look() -> bool:
                return await claims() == wanted

            await eventually(look)

        region = await east.client.create(claim("region", "eu"))
        await east.client.create(claim("tier", "gold"))
        await are(region="eu", tier="gold")
        await east.client.patch(meta.ref(region), {"spec": {"value": "us"}})
        await are(region="us", tier="gold")
        await east.client.delete(meta.ref(region))
        await are(tier="gold")


@pytest.mark.parametrize("value", ["", "x" * 1025])
async def test_a_claim_says_something_and_not_too_much(stage: Stage, value: str) -> None:
    with pytest.raises(Invalid):
        await stage.client.create(
            {
                "apiVersion": f"{CLUSTER_GROUP}/v1alpha1",
                "kind": "ClusterClaim",
                "metadata": {"name": f"region{stage.suffix}"},
                "spec": {"value": value},
            }
        )
