"""On a server that checks rights, a tenant uses the command line with what `lamina rbac --people` prints."""

import asyncio
import json
from collections.abc import Sequence
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

from lamina.cli.commands.rbac import rbac
from lamina.cli.main import cli
from lamina.client.client import Client
from lamina.client.kubeconfig.read import Access, read_kubeconfig
from lamina.client.transport.http import HttpTransport
from lamina.clock import WallClock
from lamina.control_plane.install import build_manager, install
from lamina.families.registry import chosen
from lamina.objects import conditions, meta
from lamina.objects.types import Made, Ref
from lamina.runtime.hooks.client import HookClient
from tests.bed.either import start_server
from tests.bed.fixtures import chosen_server
from tests.scenarios.story import Story
from tests.scenarios.test_least_role import GRAPH, NOTE
from tests.unit.families.objectset.revisions import config_map, deployment, phase, template

TEAM = "team"
USER = f"system:serviceaccount:{TEAM}:alice"
SHOP = Ref("package-operator.run/v1alpha1", "ObjectDeployment", TEAM, "shop")
NOTED = Ref("kro.run/v1alpha1", "Note", TEAM, "note")


def shop(text: str) -> Made:
    made = deployment("shop", template(phase("p1", config_map("shop", text=text))))
    return {**made, "metadata": {**made["metadata"], "namespace": TEAM}}


def has_rolled_out(obj: Made | None, number: int) -> bool:
    status = (obj or {}).get("status") or {}
    return status.get("revision") == number and conditions.is_true(conditions.of(obj or {}), "Available")


async def credentials(admin: Client, access: Access, folder: Path) -> Path:
    """Create the account of a tenant, and return a kubeconfig with its token."""
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "alice", "namespace": TEAM}}
    made = await admin.create(account)
    request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
    answer = await admin.post(meta.ref(made), request, subresource="token")
    (folder / "ca.crt").write_bytes(access.authority)
    cluster = {"server": access.server, "certificate-authority": str(folder / "ca.crt")}
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "one", "cluster": cluster}],
        "users": [{"name": "alice", "user": {"token": answer["status"]["token"]}}],
        "contexts": [{"name": "one", "context": {"cluster": "one", "user": "alice", "namespace": TEAM}}],
        "current-context": "one",
    }
    (folder / "alice.yaml").write_text(yaml.safe_dump(config))
    return folder / "alice.yaml"


async def lamina(kubeconfig: Path, *words: str, code: int = 0) -> str:
    """Run a command as the tenant, in its namespace, and return what it prints, with its error."""
    command = [*words, "-n", TEAM, "--kubeconfig", str(kubeconfig)]
    done = await asyncio.to_thread(CliRunner().invoke, cli, command)
    assert done.exit_code == code, f"{command}: {done.output} {done.exception!r}"
    return f"{done.output}{done.exception or ''}"


async def granted(admin: Client, kubeconfig: Path, *more: str) -> Sequence[Made]:
    """Apply what is printed for the tenant."""
    command = ["--people", "-n", TEAM, "--user", USER, "-o", "json", "--kubeconfig", str(kubeconfig), *more]
    done = await asyncio.to_thread(CliRunner().invoke, rbac, command)
    assert done.exit_code == 0, done.output
    items: Sequence[Made] = json.loads(done.stdout)["items"]
    for one in items:
        await admin.apply(one, manager="test", force=True)
    return items


@pytest.mark.skipif(chosen_server() != "real", reason="the embedded server lets its only user do everything")
async def test_a_tenant_uses_every_command_in_its_namespace(tmp_path: Path) -> None:
    for name, text in (("graph", GRAPH), ("note", NOTE.replace("namespace: default", f"namespace: {TEAM}"))):
        (tmp_path / f"{name}.yaml").write_text(text)
    (tmp_path / "shop.yaml").write_text(yaml.safe_dump(shop("third")))
    with start_server("real") as server:
        access = read_kubeconfig(server.kubeconfig)
        admin, families, calls = Client(HttpTransport(access)), chosen("all"), HookClient()
        story = Story(tmp_path, admin)
        await install(admin, families)
        await admin.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": TEAM}})
        manager = build_manager(admin, families, WallClock(), calls)
        running = asyncio.create_task(manager.run())
        try:
            await manager.ready()
            await story.apply("graph.yaml")
            await admin.create(shop("first"))
            await story.until(SHOP, lambda obj: has_rolled_out(obj, 1))
            await admin.patch(SHOP, {"spec": shop("second")["spec"]})
            await story.until(SHOP, lambda obj: has_rolled_out(obj, 2))
            await story.apply("note.yaml")
            await story.until_there(story.at("ConfigMap", "note", TEAM))
            alice = await credentials(admin, access, tmp_path)

            await granted(admin, server.kubeconfig, "--view-only")
            target = "objectdeployment/shop"
            assert "objectdeployment/shop" in await lamina(alice, "get")
            assert "objectdeployment/shop" in await lamina(alice, "get", "objectdeployment")
            assert "Healthy" in await lamina(alice, "get", target)
            assert "Healthy" in await lamina(alice, "watch", target, "--until", "healthy")
            assert "wanted" in await lamina(alice, "revisions", "list", target)
            assert "second" in await lamina(alice, "revisions", "diff", target)
            await lamina(alice, "explain", target)
            await lamina(alice, "rollback", target, "--dry-run")
            assert "forbidden" in await lamina(alice, "rollback", target, code=1)

            await granted(admin, server.kubeconfig)
            assert "configured (dry run)" in await lamina(alice, "plan", "-f", str(tmp_path / "shop.yaml"))
            await lamina(alice, "rollback", target, "--to-revision", "1")
            await story.until(SHOP, lambda obj: has_rolled_out(obj, 3))
            await lamina(alice, "pin", "note/note", "--to-revision", "1")
            assert meta.annotations(await admin.get(NOTED))
            await lamina(alice, "unpin", "note/note")
            rest = await admin.get(story.at("ConfigMap", "shop", TEAM))
        finally:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)
            await calls.close()
            await admin.close()

    assert rest["data"] == {"text": "first"}
