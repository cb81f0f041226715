"""On a server that checks rights, controllers run with the role that `lamina rbac` prints and nothing else."""

import asyncio
import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from lamina.cli.commands.rbac import rbac
from lamina.client.client import Client
from lamina.client.kubeconfig.read import Access, read_kubeconfig
from lamina.client.transport.http import HttpTransport
from lamina.clock import WallClock
from lamina.control_plane.install import apply_controllers, build_manager, install
from lamina.families.registry import chosen
from lamina.hooks.supervisor import Hooks
from lamina.logs import log
from lamina.objects import meta
from lamina.objects.types import Ref
from lamina.runtime.hooks.client import HookClient
from tests.bed.either import start_server
from tests.bed.fixtures import chosen_server
from tests.scenarios.story import Story

HOOKS = """
import lamina

@lamina.sync(
    "ctl.example.com/v1/sets", children={"v1/configmaps": lamina.Update("RollingInPlace")}, generate_selector=True
)
def rolls(parent):
    for place in range(2):
        yield {"apiVersion": "v1", "kind": "ConfigMap", "data": {"colour": parent["spec"]["colour"]},
               "metadata": {"name": f"{parent['metadata']['name']}-{place}"}}

@rolls.finalize
def leaving(children):
    return not children["ConfigMap.v1"]
"""
KINDS = """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: sets.ctl.example.com}
spec:
  group: ctl.example.com
  scope: Namespaced
  names: {plural: sets, kind: Set}
  versions:
    - name: v1
      served: true
      storage: true
      subresources: {status: {}}
      schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
"""
PARENT = """
apiVersion: ctl.example.com/v1
kind: Set
metadata: {name: a, namespace: default}
spec: {colour: red}
"""


@pytest.mark.skipif(chosen_server() != "real", reason="the embedded server lets its only user do everything")
async def test_a_controller_runs_with_the_least_role(tmp_path: Path) -> None:
    file = tmp_path / "hooks.py"
    file.write_text(HOOKS)
    (tmp_path / "kinds.yaml").write_text(KINDS)
    (tmp_path / "parent.yaml").write_text(PARENT)
    with start_server("real") as server:
        access = read_kubeconfig(server.kubeconfig)
        admin, families = Client(HttpTransport(access)), chosen("all")
        story = Story(tmp_path, admin)
        await install(admin, families)
        await story.apply("kinds.yaml")
        robot = Client(HttpTransport(await account(admin, access, file)))
        hooks = Hooks([file], log)
        await hooks.start()
        calls = HookClient(local=hooks.find)
        manager = build_manager(robot, families, WallClock(), calls)
        running = asyncio.create_task(manager.run())
        try:
            await apply_controllers(robot, hooks.manifests)
            await manager.ready()
            await story.apply("parent.yaml")
            parent, last = story.parent("Set", "a"), story.at("ConfigMap", "a-1")
            await story.until(last, lambda obj: obj is not None and obj["data"] == {"colour": "red"})
            await story.edit(parent, {"spec": {"colour": "blue"}})
            await story.until(last, lambda obj: obj is not None and obj["data"] == {"colour": "blue"})
            await story.client.delete(parent)
            await story.until_gone(parent)
            events = (await admin.list(("v1", "Event"), "default")).items
        finally:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)
            await hooks.close()
            await calls.close()
            await robot.close()
            await admin.close()

    assert [one["message"] for one in events if one["reason"] == "SyncError"] == []
    assert any(meta.ref(one).name for one in events if one["reason"] == "Started")


async def account(admin: Client, access: Access, file: Path) -> Access:
    """Make an account with the printed role, and return how to be it."""
    printed = await asyncio.to_thread(CliRunner().invoke, rbac, [str(file), "-o", "json"])
    assert printed.exit_code == 0, printed.output
    for obj in json.loads(printed.stdout)["items"]:
        await admin.create(obj)
    token = await admin.post(
        Ref("v1", "ServiceAccount", "default", "lamina"),
        {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}},
        subresource="token",
    )
    return Access(server=access.server, authority=access.authority, token=token["status"]["token"])
