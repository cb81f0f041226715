"""
An owner of each family, so that a cluster has every finalizer that controllers and agents set.

What they make are ConfigMaps: nothing has to run.
"""

import asyncio
from collections.abc import AsyncIterator, Sequence
from collections.abc import Set as AbstractSet
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path

from lamina.client.client import Client
from lamina.clock import WallClock
from lamina.control_plane import hub as control_plane_hub
from lamina.control_plane.install import apply_controllers, build_manager, install
from lamina.core.model.agents import AgentSpec
from lamina.errors import Forbidden, MethodNotAllowed, NotFound
from lamina.families.registry import agents, chosen
from lamina.hooks.supervisor import Hooks
from lamina.logs import log
from lamina.objects import meta
from lamina.objects.types import Ref
from lamina.runtime.controller.manager import Manager
from lamina.runtime.hooks.client import HookClient
from lamina.testing.waiting import eventually
from tests.scenarios.story import Story

CLUSTER = "one"
HOOKS = """
import lamina

@lamina.sync("ctl.example.com/v1/sets", children={"v1/configmaps": lamina.Update("InPlace")}, generate_selector=True)
def maps(parent):
    yield {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "of-set"}}

@maps.finalize
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
OWNERS = """
apiVersion: ctl.example.com/v1
kind: Set
metadata: {name: a, namespace: default}
spec: {}
---
apiVersion: package-operator.run/v1alpha1
kind: ObjectSet
metadata: {name: a, namespace: default}
spec:
  phases:
    - name: only
      objects:
        - object: {apiVersion: v1, kind: ConfigMap, metadata: {name: of-object-set, namespace: default}}
---
apiVersion: kro.run/v1alpha1
kind: ResourceGraphDefinition
metadata: {name: note}
spec:
  schema: {apiVersion: v1alpha1, kind: Note, spec: {text: string}}
  resources:
    - id: map
      template:
        apiVersion: v1
        kind: ConfigMap
        metadata: {name: of-note}
        data: {text: "${schema.spec.text}"}
---
apiVersion: cluster.open-cluster-management.io/v1beta2
kind: ManagedClusterSetBinding
metadata: {name: global, namespace: default}
spec: {clusterSet: global}
---
apiVersion: cluster.open-cluster-management.io/v1beta1
kind: Placement
metadata: {name: anywhere, namespace: default}
spec: {tolerations: [{operator: Exists}]}
---
apiVersion: work.open-cluster-management.io/v1alpha1
kind: ManifestWorkReplicaSet
metadata: {name: a, namespace: default}
spec:
  placementRefs: [{name: anywhere, rolloutStrategy: {type: All, all: {}}}]
  manifestWorkTemplate:
    workload:
      manifests:
        - {apiVersion: v1, kind: ConfigMap, metadata: {name: of-work, namespace: default}}
"""
INSTANCE = """
apiVersion: kro.run/v1alpha1
kind: Note
metadata: {name: a, namespace: default}
spec: {text: hello}
"""
HELD = {
    "Set",
    "ObjectSet",
    "ResourceGraphDefinition",
    "ResourceGraphDefinitionRevision",
    "Note",
    "ManifestWorkReplicaSet",
    "ManifestWork",
    "AppliedManifestWork",
}
"""The kinds whose objects have finalizers once all is settled."""
MADE = ("of-set", "of-object-set", "of-note", "of-work")


async def settle(
    client: Client, folder: Path, made: Sequence[str] = MADE, kinds: AbstractSet[str] = frozenset(HELD)
) -> None:
    """Apply the owners, and wait until everything is made and held; controllers, and an agent, are running."""
    story = Story(folder, client)
    for name, text in (("owners.yaml", OWNERS), ("instance.yaml", INSTANCE)):
        (folder / name).write_text(text)
        await story.apply(name)
    for name in made:
        await story.until_there(story.at("ConfigMap", name))
    await eventually(lambda: held(client), lambda found: found.keys() >= kinds, seconds=120)


async def apply_kinds(client: Client, folder: Path) -> None:
    (folder / "kinds.yaml").write_text(KINDS)
    await Story(folder, client).apply("kinds.yaml")


async def held(client: Client) -> dict[str, list[str]]:
    """Return the finalizers of the families that objects have, by kind."""
    families, found = chosen("all"), dict[str, list[str]]()
    for kind in await client.discover():
        if not kind.can("list", "patch"):
            continue
        try:
            objects = (await client.list(kind, metadata_only=True)).items
        except (Forbidden, NotFound, MethodNotAllowed):
            continue
        for obj in objects:
            for finalizer in meta.finalizers(obj):
                if any(family.is_finalizer(finalizer) for family in families):
                    found.setdefault(kind.kind, []).append(finalizer)
    return found


@asynccontextmanager
async def controllers(client: Client, folder: Path) -> AsyncIterator[None]:
    """Run all families with the hooks, and the agent of a cluster that is the same server, until the end of the block."""
    (folder / "hooks.py").write_text(HOOKS)
    families, hooks = chosen("all"), Hooks([folder / "hooks.py"], log)
    await install(client, (*families, agents()))
    await apply_kinds(client, folder)
    async with AsyncExitStack() as stack:
        await hooks.start()
        stack.push_async_callback(hooks.close)
        calls = HookClient(local=hooks.find)
        stack.push_async_callback(calls.close)
        await apply_controllers(client, hooks.manifests)
        await control_plane_hub.join(agents(), client, CLUSTER)
        spec = AgentSpec(cluster=CLUSTER, address="https://hub.example.com")
        agent = control_plane_hub.agent(agents(), spec, client, client, clock=WallClock())
        for manager in (build_manager(client, families, WallClock(), calls), agent):
            await stack.enter_async_context(_running(manager))
        yield


@asynccontextmanager
async def _running(manager: Manager) -> AsyncIterator[None]:
    task = asyncio.create_task(manager.run())
    try:
        await manager.ready()
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def delete_definitions(client: Client) -> None:
    """Delete all definitions, those of the families and the generated one too, and wait until they are gone."""
    found = await client.list(("apiextensions.k8s.io/v1", "CustomResourceDefinition"))
    refs = [meta.ref(one) for one in found.items]
    assert len(refs) > len(chosen("all"))
    for ref in refs:
        await client.delete(ref)
    for ref in refs:
        await eventually(partial(is_gone, client, ref), seconds=120)


async def is_gone(client: Client, ref: Ref) -> bool:
    try:
        await client.get(ref)
    except NotFound:
        return True
    return False
