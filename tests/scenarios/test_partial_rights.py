"""On a server that checks rights, a user of one namespace sees what may be read there, and what may not be read is named."""

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from lamina.client.client import Client
from lamina.client.kubeconfig.read import Access, read_kubeconfig
from lamina.client.transport.http import HttpTransport
from lamina.control_plane.install import install
from lamina.errors import Forbidden
from lamina.families.registry import chosen
from lamina.objects import meta
from lamina.objects.types import Made
from lamina.testing.waiting import eventually
from tests.bed.either import start_server
from tests.bed.fixtures import chosen_server
from tests.cli.conftest import Lamina
from tests.cli.in_process import run_here

DEPLOYMENT = """
apiVersion: package-operator.run/v1alpha1
kind: ObjectDeployment
metadata: {name: shop, namespace: team}
spec:
  selector: {matchLabels: {app: shop}}
  template:
    metadata: {labels: {app: shop}}
    spec: {availabilityProbes: [], phases: []}
"""
CONDITION = {
    "type": "Available",
    "status": "True",
    "reason": "Available",
    "message": "Latest revision is Available.",
    "observedGeneration": 1,
    "lastTransitionTime": "2026-01-01T00:00:00Z",
}
RIGHTS = """
apiVersion: v1
kind: List
items:
  - apiVersion: rbac.authorization.k8s.io/v1
    kind: Role
    metadata: {name: reader, namespace: team}
    rules:
      - apiGroups: [package-operator.run]
        resources: [objectdeployments, objectsets]
        verbs: [get, list, watch]
  - apiVersion: rbac.authorization.k8s.io/v1
    kind: RoleBinding
    metadata: {name: reader, namespace: team}
    roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: reader}
    subjects: [{kind: ServiceAccount, name: reader, namespace: team}]
"""


@pytest.fixture(scope="module")
def tenant(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lamina]:
    """The command line of a user who may read deployments and their sets in one namespace."""
    home = tmp_path_factory.mktemp("home")
    with start_server("real") as server:
        file = home / "tenant.kubeconfig"
        file.write_text(json.dumps(asyncio.run(prepare(server.kubeconfig))))
        yield Lamina(home, {"KUBECONFIG": str(file)})


async def prepare(kubeconfig: Path) -> Made:
    """Create the deployment and the user, and return the user's kubeconfig."""
    access = read_kubeconfig(kubeconfig)
    admin = Client(HttpTransport(access))
    try:
        await install(admin, chosen("objectset"))
        await admin.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"}})
        deployment = await admin.create(yaml.safe_load(DEPLOYMENT))
        status = {"status": {"conditions": [CONDITION]}}
        await admin.patch(meta.ref(deployment), status, subresource="status")
        named = {"name": "reader", "namespace": "team"}
        made = await admin.create({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": named})
        for one in yaml.safe_load(RIGHTS)["items"]:
            await admin.create(one)
        request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
        token = await admin.post(meta.ref(made), request, subresource="token")
        await until_allowed(
            Access(server=access.server, authority=access.authority, token=token["status"]["token"])
        )
    finally:
        await admin.close()
    known = yaml.safe_load(kubeconfig.read_text())
    return {
        **known,
        "users": [
            {"name": one["name"], "user": {"token": token["status"]["token"]}} for one in known["users"]
        ],
    }


async def until_allowed(access: Access) -> None:
    """Wait until the server has noticed the role of a user."""
    client = Client(HttpTransport(access))

    async def may_list() -> bool:
        try:
            await client.list(("package-operator.run/v1alpha1", "ObjectDeployment"), "team")
        except Forbidden:
            return False
        return True

    try:
        await eventually(may_list)
    finally:
        await client.close()


@pytest.mark.skipif(chosen_server() != "real", reason="the embedded server lets its only user do everything")
def test_a_user_of_one_namespace_sees_what_may_be_read_there(tenant: Lamina) -> None:
    user = 'User "system:serviceaccount:team:reader" cannot list resource'

    shown = run_here(tenant, "get", "od", "-n", "team")
    status = run_here(tenant, "status", "od/shop", "-n", "team")
    watched = run_here(tenant, "watch", "od/shop", "-n", "team", "--until", "healthy")
    everywhere = run_here(tenant, "get", "od", code=1).stderr
    elsewhere = run_here(tenant, "get", "od", "-n", "default", code=1).stderr

    assert shown.stdout.splitlines()[1].split()[:2] == ["team", "objectdeployment/shop"]
    assert shown.stdout.splitlines()[1].split()[3:6] == ["-", "-", "Healthy"]
    assert shown.stderr == ""
    assert status.stdout.startswith("objectdeployment team/shop is Healthy")
    assert "Healthy" in watched.stdout
    assert (
        "cannot list objectdeployments.package-operator.run in all namespaces: objectdeployments"
        in everywhere
    )
    assert user in everywhere and "select a namespace with -n" in everywhere
    assert "cannot list objectdeployments.package-operator.run in namespace default" in elsewhere
    assert "No owners found" not in everywhere + elsewhere
