"""
The chart on a real kube-apiserver, from `helm install` to the deletion of the definitions.

The arguments are those of its Deployment, and the process has the token of its
ServiceAccount and nothing more; there are no nodes to run its pods. A tenant follows the
story of the README. The Job after `helm uninstall` is run in the same way.
"""

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import yaml

from lamina.client.client import Client
from lamina.client.kubeconfig.read import read_kubeconfig
from lamina.client.transport.http import HttpTransport
from lamina.clock import WallClock
from lamina.control_plane import hub as control_plane_hub
from lamina.control_plane.cluster import EmbeddedCluster
from lamina.control_plane.install import install
from lamina.core.crd.kinds import is_established
from lamina.core.model.agents import AgentSpec
from lamina.errors import Forbidden
from lamina.families.registry import agents
from lamina.objects import conditions
from lamina.objects.times import micro_stamp
from lamina.objects.types import Made, Ref
from lamina.settings import Settings
from tests.bed.accounts import account_kubeconfig
from tests.bed.either import start_server
from tests.bed.helm import CHART, helm, rendered
from tests.bed.server import Server
from tests.deploy.estate import HELD, HOOKS, apply_kinds, delete_definitions, held, is_gone, settle
from tests.scenarios.story import EXAMPLES, Story, free_port

NAMESPACE = "lamina-system"
CLUSTERS = [f"cluster{number}" for number in range(1, 6)]
WEB = Ref("work.open-cluster-management.io/v1alpha1", "ManifestWorkReplicaSet", "default", "web")
WEBHOOK = Ref("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration", "", "lamina-manifestwork")
SECRET = Ref("v1", "Secret", NAMESPACE, "lamina-webhook")
EVENTUALLY_MADE = ("of-set", "of-object-set", "of-note")

MANAGE = ["get", "list", "watch", "create", "patch", "delete"]
CHILDREN = [
    {"apiGroups": [""], "resources": ["configmaps"], "verbs": MANAGE},
    {"apiGroups": ["ctl.example.com"], "resources": ["sets"], "verbs": ["get", "list", "watch", "patch"]},
    {"apiGroups": ["ctl.example.com"], "resources": ["sets/status"], "verbs": ["patch"]},
    {"apiGroups": ["ctl.example.com"], "resources": ["sets/finalizers"], "verbs": ["update"]},
    {"apiGroups": ["kro.run"], "resources": ["notes"], "verbs": ["get", "list", "watch", "patch", "update"]},
    {"apiGroups": ["kro.run"], "resources": ["notes/status"], "verbs": ["patch"]},
    {"apiGroups": ["kro.run"], "resources": ["notes/finalizers"], "verbs": ["update"]},
    {"apiGroups": ["metacontroller.k8s.io"], "resources": ["compositecontrollers"], "verbs": MANAGE},
]


async def test_the_chart_is_installed_used_by_a_tenant_and_removed(tmp_path: Path) -> None:
    (tmp_path / "hooks.py").write_text(HOOKS)
    (tmp_path / "values.yaml").write_text(yaml.safe_dump(values(tmp_path)))
    with start_server("real") as server:
        admin = Client(HttpTransport(read_kubeconfig(server.kubeconfig)))
        try:
            await install_chart(server, tmp_path)
            await apply_kinds(admin, tmp_path)
            robot = account_kubeconfig(server, NAMESPACE, "lamina", tmp_path)
            async with AsyncExitStack() as stack:
                await stack.enter_async_context(process(*await container_args(admin), kubeconfig=robot))
                await joined(stack, admin)
                await settle(admin, tmp_path, EVENTUALLY_MADE, HELD - {"AppliedManifestWork"})
                await admin.get(WEBHOOK)
                await rolls_out_and_aborts(server, admin, tmp_path)
            await remove_chart(server, admin, tmp_path)

            assert await held(admin) == {}
            for ref in (WEBHOOK, SECRET, *map(agents().lease, CLUSTERS)):
                assert await is_gone(admin, ref), ref
            assert (await admin.list(("coordination.k8s.io/v1", "Lease"), NAMESPACE)).items == ()
            assert [name for name in EVENTUALLY_MADE if await is_gone(admin, config_map(name))] == []
            await delete_definitions(admin)
        finally:
            await admin.close()


def values(folder: Path) -> Made:
    """Return values for a process on this machine: ports that are free, and a URL that the server reaches."""
    port = free_port()
    return {
        "image": "registry.example.com/lamina:1",
        "webhook": {"url": f"https://127.0.0.1:{port}", "port": port},
        "metrics": {"port": free_port(), "probePort": free_port()},
        "extraArgs": [str(folder / "hooks.py")],
        "rbac": {"extraRules": CHILDREN},
    }


async def install_chart(server: Server, folder: Path) -> None:
    words = ["--namespace", NAMESPACE, "--create-namespace", "-f", str(folder / "values.yaml")]
    where = ["--kubeconfig", str(server.kubeconfig)]
    await asyncio.to_thread(helm, "install", "lamina", str(CHART), *words, *where, home=folder)


async def container_args(admin: Client) -> list[str]:
    deployment = await admin.get(Ref("apps/v1", "Deployment", NAMESPACE, "lamina"))
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    found: list[str] = container["args"]
    return found


@asynccontextmanager
async def process(*words: str, kubeconfig: Path) -> AsyncIterator[None]:
    """Run `lamina` with a kubeconfig until the end of the block; it has to stop by itself then."""
    environ = {name: value for name, value in os.environ.items() if not name.startswith(("LAMINA_", "KUBE"))}
    with (kubeconfig.parent / "lamina.log").open("w") as log:
        started = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "lamina", *words, "--kubeconfig", str(kubeconfig), stderr=log, env=environ
        )
        try:
            yield
            started.send_signal(signal.SIGTERM)
            assert await started.wait() == 0
        finally:
            if started.returncode is None:
                started.kill()
                await started.wait()


async def joined(stack: AsyncExitStack, admin: Client) -> None:
    """Join five clusters with simulated pods, each with its agent, once the hub serves its kinds."""
    name = "managedclusters.cluster.open-cluster-management.io"
    hub = Ref("apiextensions.k8s.io/v1", "CustomResourceDefinition", "", name)
    await Story(Path(), admin).until(hub, lambda found: found is not None and is_established(found))
    for name in CLUSTERS:
        cluster = await stack.enter_async_context(EmbeddedCluster(Settings(families="none"), name=name))
        client = cluster.client()
        await install(client, (agents(),))
        await control_plane_hub.join(agents(), admin, name)
        spec = AgentSpec(cluster=name, address="https://hub.example.com")
        manager = control_plane_hub.agent(agents(), spec, client, admin, clock=WallClock())
        task = asyncio.create_task(manager.run())
        stack.push_async_callback(stopped, task)
        await manager.ready()


async def stopped(task: "asyncio.Task[None]") -> None:
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def rolls_out_and_aborts(server: Server, admin: Client, folder: Path) -> None:
    """Follow the README as a user with the role `edit` in one namespace."""
    await Story(EXAMPLES / "fleet", admin).apply("placement.yaml")
    for obj in tenant_objects():
        await admin.create(obj)
    access = read_kubeconfig(account_kubeconfig(server, "default", "tenant", folder))
    tenant = Client(HttpTransport(access))
    try:
        story = Story(EXAMPLES / "fleet", tenant)
        # A machine under load takes longer than 15 seconds, which would abort this rollout, too.
        await story.apply("web.yaml", instead=("15s", "10m"))
        await story.until(WEB, lambda obj: has(obj, "PlacementRolledOut", "Complete"))
        await story.apply("web.yaml", instead=("nginx:1", "nginx:bad"))
        found = await story.until(WEB, lambda obj: has(obj, "Progressing", "RolloutAborted"))
        assert (
            found["spec"]["manifestWorkTemplate"]["workload"]["manifests"][0]["spec"]["template"]["spec"][
                "containers"
            ][0]["image"]
            == "nginx:bad"
        )
        try:
            await tenant.get(SECRET)
        except Forbidden:
            return
        raise AssertionError("a tenant reads the secrets of the installation")
    finally:
        await tenant.close()


def tenant_objects() -> Sequence[Made]:
    named, version = {"name": "tenant", "namespace": "default"}, "rbac.authorization.k8s.io"
    return (
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": named},
        {
            "apiVersion": f"{version}/v1",
            "kind": "RoleBinding",
            "metadata": named,
            "roleRef": {"apiGroup": version, "kind": "ClusterRole", "name": "edit"},
            "subjects": [{"kind": "ServiceAccount", **named}],
        },
    )


def has(obj: Made | None, condition: str, reason: str) -> bool:
    found = conditions.find(conditions.of(obj or {}), condition)
    return found is not None and found.get("reason") == reason


async def remove_chart(server: Server, admin: Client, folder: Path) -> None:
    """Uninstall the release, and do what its hook does: its objects but the Job, whose container runs here."""
    hooks = [
        one
        for one in rendered("-f", str(folder / "values.yaml"))
        if "helm.sh/hook" in (one["metadata"].get("annotations") or {})
    ]
    words = ["--namespace", NAMESPACE, "--no-hooks", "--kubeconfig", str(server.kubeconfig)]
    await asyncio.to_thread(helm, "uninstall", "lamina", *words, home=folder)
    # As if the agents had stopped some time ago.
    long_ago = {"spec": {"renewTime": micro_stamp(datetime.now(UTC) - timedelta(hours=1))}}
    for name in CLUSTERS:
        await admin.patch(agents().lease(name), long_ago)
    *before, job = hooks
    assert job["kind"] == "Job"
    for one in before:
        await admin.create(one)
    cleaner = account_kubeconfig(server, NAMESPACE, "lamina-cleanup", folder)
    (container,) = job["spec"]["template"]["spec"]["containers"]
    done = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "lamina", *container["args"], "--kubeconfig", str(cleaner)
    )
    assert await done.wait() == 0


def config_map(name: str) -> Ref:
    return Ref("v1", "ConfigMap", "default", name)
