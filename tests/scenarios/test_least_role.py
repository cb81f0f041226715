"""On a server that checks rights, controllers run with the role that `lamina rbac` prints and nothing else."""

import asyncio
import json
from collections.abc import Mapping
from pathlib import Path

import pytest
from click.testing import CliRunner

from lamina.cli.commands.rbac import rbac
from lamina.client.client import Client
from lamina.client.kubeconfig.read import Access, read_kubeconfig
from lamina.client.transport.base import Query, Response
from lamina.client.transport.http import HttpTransport
from lamina.client.write_guard import WriteGuard
from lamina.clock import WallClock
from lamina.control_plane.install import apply_controllers, build_manager, install
from lamina.families.manifestwork.labels import WORK_VERSION
from lamina.families.registry import chosen
from lamina.hooks.supervisor import Hooks
from lamina.logs import log
from lamina.objects import meta
from lamina.objects.types import Ref
from lamina.runtime.controller.leader_election import LeaderElection
from lamina.runtime.controller.leader_election_lock import LeaseConfig
from lamina.runtime.controller.leader_election_upstream import UpstreamLeases
from lamina.runtime.hooks.client import HookClient
from tests.bed.either import start_server
from tests.bed.fixtures import chosen_server
from tests.scenarios.manifestwork.test_rights import objects as hub_objects
from tests.scenarios.manifestwork.test_rights import some
from tests.scenarios.story import Story
from tests.unit.families.objectset.revisions import config_map, deployment, phase, template

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


GRAPH = """
apiVersion: kro.run/v1alpha1
kind: ResourceGraphDefinition
metadata: {name: note}
spec:
  schema:
    apiVersion: v1alpha1
    kind: Note
    spec: {text: string}
  resources:
    - id: settings
      template:
        apiVersion: v1
        kind: ConfigMap
        metadata: {name: "${schema.metadata.name}"}
        data: {text: "${schema.spec.text}"}
"""
NOTE = """
apiVersion: kro.run/v1alpha1
kind: Note
metadata: {name: note, namespace: default}
spec: {text: first}
"""


class Refusing(HttpTransport):
    """A way to a server that notes what was refused for lack of a right."""

    def __init__(self, access: Access) -> None:
        super().__init__(access)
        self.refused: set[str] = set()

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
        response = await super().request(
            method, path, query=query, headers=headers, body=body, streams=streams, guard=guard
        )
        if response.status == 403:
            self.refused.add(f"{method} {path}")
        return response


@pytest.mark.skipif(chosen_server() != "real", reason="the embedded server lets its only user do everything")
async def test_all_families_run_with_what_is_printed_and_nothing_else(tmp_path: Path) -> None:
    """With their Leases and that of an original, whose namespace exists: no request is refused."""
    file = tmp_path / "hooks.py"
    file.write_text(HOOKS)
    for name, text in (("kinds", KINDS), ("parent", PARENT), ("graph", GRAPH), ("note", NOTE)):
        (tmp_path / f"{name}.yaml").write_text(text)
    with start_server("real") as server:
        access = read_kubeconfig(server.kubeconfig)
        admin, families = Client(HttpTransport(access)), chosen("all")
        story = Story(tmp_path, admin)
        await install(admin, families)
        for namespace in ("ops", "kro-system"):
            await admin.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})
        await story.apply("kinds.yaml", "graph.yaml")
        for one in hub_objects():
            await admin.create(one)
        shop = await admin.create(deployment("shop", template(phase("p1", config_map("shop")))))
        printed = await account(admin, access, file, "ops/robot", "--kubeconfig", str(server.kubeconfig))
        transport = Refusing(printed)
        robot = Client(transport)
        hooks = Hooks([file], log)
        await hooks.start()
        calls = HookClient(local=hooks.find)
        config = LeaseConfig(namespace="ops")
        own = LeaderElection(robot, "robot", config, log)
        leases = {one.name: one.upstream_leases for one in families}
        upstream = UpstreamLeases(robot, config.deployment, leases, config, log, own)
        manager = build_manager(
            robot,
            families,
            WallClock(),
            calls,
            own,
            leads={one.name: upstream.leadership(one.name) for one in families},
        )
        own.on_started_leading = upstream.on_started_leading = manager.resync
        running = [asyncio.create_task(one.run()) for one in (manager, own, upstream)]
        try:
            await install(robot, families)
            await apply_controllers(robot, hooks.manifests)
            await manager.ready()
            await story.apply("parent.yaml", "note.yaml")
            await story.until_there(story.at("ConfigMap", "a-1"))
            await story.until_there(story.at("ConfigMap", "shop"))
            note = story.at("ConfigMap", "note")
            await story.until(note, lambda obj: obj is not None and obj["data"] == {"text": "first"})
            await some(admin, WORK_VERSION, "ManifestWork", 1)
            template_of_shop = {
                "template": {"spec": template(phase("p1", config_map("shop", text="second")))}
            }
            await story.edit(meta.ref(shop), {"spec": template_of_shop})
            shopped = story.at("ConfigMap", "shop")
            await story.until(shopped, lambda obj: obj is not None and obj["data"] == {"text": "second"})
            noted = Ref("kro.run/v1alpha1", "Note", "default", "note")
            await story.edit(noted, {"spec": {"text": "second"}})
            await story.until(note, lambda obj: obj is not None and obj["data"] == {"text": "second"})
            for ref in (noted, meta.ref(shop), story.parent("Set", "a")):
                await admin.delete(ref)
            for gone in (noted, meta.ref(shop), story.parent("Set", "a"), shopped, note):
                await story.until_gone(gone)
            held = await admin.get(Ref("coordination.k8s.io/v1", "Lease", "kro-system", "controller.kro.run"))
        finally:
            for task in running:
                task.cancel()
            await asyncio.gather(*running, return_exceptions=True)
            await hooks.close()
            await calls.close()
            await robot.close()
            await admin.close()

    assert transport.refused == set()
    assert held["spec"]["holderIdentity"] == "ops/lamina (lamina)"


async def account(
    admin: Client, access: Access, file: Path, name: str = "default/lamina", *more: str
) -> Access:
    """Apply what is printed for an account, and return how to be it."""
    arguments = [str(file), "--service-account", name, "-o", "json", *more]
    printed = await asyncio.to_thread(CliRunner().invoke, rbac, arguments)
    assert printed.exit_code == 0, printed.output
    for obj in json.loads(printed.stdout)["items"]:
        await admin.create(obj)
    token = await admin.post(
        Ref("v1", "ServiceAccount", *name.split("/")),
        {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}},
        subresource="token",
    )
    return Access(server=access.server, authority=access.authority, token=token["status"]["token"])
