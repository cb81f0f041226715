"""A cluster on which kro's controller ran is taken over: nothing is written to a child but the stamps, once."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress

import pytest

from lamina.client.client import Client
from lamina.client.kubeconfig.read import read_kubeconfig
from lamina.client.transport.http import HttpTransport
from lamina.clock import WallClock
from lamina.control_plane.install import install
from lamina.core.model.family import Family
from lamina.errors import NotFound, SettingsError
from lamina.families.resourcegraph.crds import definitions
from lamina.families.resourcegraph.family import family
from lamina.families.resourcegraph.labels import API_VERSION, OWNED
from lamina.objects import meta
from lamina.objects.types import Made, Obj, Ref
from lamina.runtime.controller.manager import Manager
from lamina.testing.waiting import eventually, idle
from tests.bed.kro import kro
from tests.bed.real import real_server

CONFIG_MAP = ("v1", "ConfigMap")
GENERATED = "kro.run/v1alpha1"
LEAVES = (GENERATED, "Leaf")
SECONDS = 60.0
NAMESPACE, OTHER = "here", "there"
NAME = "${schema.spec.name}"
STAMPS = [
    f"kro.run/{name}"
    for name in ("rgd-revision", "input-revision", "instance-name", "instance-namespace", "resource-id")
]


def config_map(name: str, namespace: str = "", **data: str) -> Made:
    metadata = {"name": name, **({"namespace": namespace} if namespace else {})}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


def definition(kind: str, *resources: Made) -> Made:
    schema = {
        "apiVersion": "v1alpha1",
        "kind": kind,
        "spec": {"name": "string", "value": "string | default=one", "items": "[]string"},
        "status": {"last": "${a.data.value}"} if kind == "Leaf" else {},
    }
    return {
        "apiVersion": API_VERSION,
        "kind": "ResourceGraphDefinition",
        "metadata": {"name": kind.lower()},
        "spec": {"schema": schema, "resources": list(resources)},
    }


LEAF = definition("Leaf", {"id": "a", "template": config_map(f"{NAME}-leaf", value="${schema.spec.value}")})
TREE = definition(
    "Tree",
    {"id": "b", "template": config_map(f"{NAME}-b", OTHER, before="${a.metadata.name}-${a.data.value}")},
    {"id": "a", "template": config_map(f"{NAME}-a", value="${schema.spec.value}")},
    {
        "id": "many",
        "forEach": [{"one": "${schema.spec.items}"}],
        "template": config_map(f"{NAME}-${{one}}", of="${b.data.before}", key="${given.data.key}"),
    },
    {
        "id": "given",
        "externalRef": {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "given"}},
    },
    {
        "id": "leaf",
        "template": {
            "apiVersion": GENERATED,
            "kind": "Leaf",
            "metadata": {"name": f"{NAME}-leaf"},
            "spec": {"name": NAME, "value": "${schema.spec.value}", "items": []},
        },
    },
)
"""A graph with a chain, two namespaces, a collection, an external object and an instance of another definition."""
TREES = ("oak", "elm")
CHILDREN = {f"{name}-{suffix}" for name in TREES for suffix in ("a", "b", "x", "y", "leaf")}


def tree(name: str) -> Made:
    return {
        "apiVersion": GENERATED,
        "kind": "Tree",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {"name": name, "items": ["x", "y"]},
    }


def ref_of(name: str, kind: str = "Tree") -> Ref:
    return Ref(GENERATED, kind, NAMESPACE, name)


def is_active(obj: Obj) -> bool:
    return (obj.get("status") or {}).get("state") in ("ACTIVE", "Active")


def has_completed(revision: int) -> Callable[[Made], bool]:
    """Return whether an instance has completed an input revision."""
    return lambda obj: (obj.get("status") or {}).get("observedInputRevision") == revision


async def until(client: Client, ref: Ref, is_so: Callable[[Made], object]) -> None:
    async def found() -> Made | None:
        with suppress(NotFound):
            return await client.get(ref)
        return None

    await eventually(found, lambda obj: obj is not None and is_so(obj), seconds=SECONDS)


async def owned(client: Client, kind: tuple[str, str] = CONFIG_MAP) -> dict[Ref, Made]:
    """Return the objects of a kind that instances own."""
    return {meta.ref(one): one for one in (await client.list(kind, labels=f"{OWNED}=true")).items}


async def made_by_kro(client: Client) -> None:
    """Create definitions and instances, and wait until kro's controller has made everything."""
    for name in (NAMESPACE, OTHER):
        await client.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    await client.create(config_map("given", NAMESPACE, key="one"))
    for one in (LEAF, TREE):
        created = await client.create(one)
        await until(client, meta.ref(created), is_active)
    await client.discover()
    for name in TREES:
        await client.create(tree(name))
    for name in TREES:
        await until(client, ref_of(name), is_active)
        await until(client, ref_of(f"{name}-leaf", "Leaf"), is_active)


@asynccontextmanager
async def taken_over(client: Client, ours: Family) -> AsyncIterator[Manager]:
    """Run our controllers."""
    manager = Manager(client, ours.controllers, WallClock(), sources=ours.sources)
    running = asyncio.create_task(manager.run())
    await manager.ready()
    try:
        yield manager
    finally:
        running.cancel()
        with suppress(asyncio.CancelledError):
            await running


@asynccontextmanager
async def counting(client: Client, since: str) -> AsyncIterator[list[Made]]:
    """Collect the versions of owned ConfigMaps that are written after a resource version."""
    versions: list[Made] = []

    async def watched() -> None:
        async for event in client.watch(CONFIG_MAP, version=since, labels=f"{OWNED}=true"):
            if event["type"] != "BOOKMARK":
                versions.append(event["object"])

    watching = asyncio.create_task(watched())
    try:
        yield versions
    finally:
        watching.cancel()
        with suppress(asyncio.CancelledError):
            await watching


def without(obj: Obj, *notes: str) -> Made:
    """Return an object without these annotations, and without what changes with every write."""
    gone = ("resourceVersion", "managedFields")
    metadata = {key: value for key, value in meta.metadata(obj).items() if key not in gone}
    kept = {key: value for key, value in meta.annotations(obj).items() if key not in notes}
    return {**obj, "metadata": {**metadata, "annotations": kept}}


def inventory(instance: Obj) -> Mapping[str, str]:
    """Return what an instance says about its ApplySet."""
    both = {**meta.labels(instance), **meta.annotations(instance)}
    return {key: value for key, value in both.items() if "applyset" in key}


def newest(*listed: Mapping[Ref, Obj]) -> str:
    return str(max(int(meta.resource_version(one)) for some in listed for one in some.values()))


def names(versions: Iterable[Obj]) -> Iterator[str]:
    return (f"{meta.namespace(one)}/{meta.name(one)}" for one in versions)


@asynccontextmanager
async def left_by_kro() -> AsyncIterator[Client]:
    """A server on which kro's controller has made children of instances, and was stopped."""
    with real_server() as server:
        client = Client(HttpTransport(read_kubeconfig(server.kubeconfig)))
        try:
            with kro(server):
                await made_by_kro(client)
            yield client
        finally:
            await client.close()


async def given_our_crds(client: Client, ours: Family) -> None:
    """Take the CRDs over: without them there is no place for the current revision."""
    with pytest.raises(SettingsError, match="lacks status.currentRevision"):
        await install(client, [ours])
    # As `lamina crds | kubectl apply --server-side --force-conflicts -f -` does.
    for crd in definitions():
        await client.apply(crd, manager="kubectl", force=True)
    await install(client, [ours])


async def test_what_kro_made_is_taken_over_with_one_write_of_metadata_to_each_child() -> None:
    ours = family()
    async with left_by_kro() as client:
        maps, leaves = await owned(client), await owned(client, LEAVES)
        trees = {name: await client.get(ref_of(name)) for name in TREES}
        assert {ref.name for ref in maps} == CHILDREN
        await given_our_crds(client, ours)

        version = newest(maps, leaves)
        async with counting(client, version) as versions, taken_over(client, ours) as manager:
            for name in TREES:
                await until(client, ref_of(name), has_completed(1))
                await until(client, ref_of(f"{name}-leaf", "Leaf"), has_completed(1))
            await settled(client, manager)
            written = await owned(client)
            last = int(newest(written))
            await eventually(lambda: [one for one in versions if int(meta.resource_version(one)) >= last])
            assert sorted(names(versions)) == sorted(names(maps.values()))
            for ref, now in written.items():
                assert without(now, *STAMPS) == without(maps[ref])
                notes = meta.annotations(now)
                assert set(STAMPS) <= notes.keys()
                assert (notes["kro.run/rgd-revision"], notes["kro.run/input-revision"]) == ("1", "1")
            for ref, now in (await owned(client, LEAVES)).items():
                # It is an instance itself, whose own revision is no pin of its parent.
                before = leaves[ref]
                assert (now["spec"], meta.uid(now)) == (before["spec"], meta.uid(before))
                assert meta.generation(now) == meta.generation(before)
                assert meta.annotations(now)["kro.run/parent-input-revision"] == "1"
                assert "kro.run/rgd-revision" not in meta.annotations(now)
            for name, before in trees.items():
                now = await client.get(ref_of(name))
                assert is_active(now)
                assert (inventory(now), now["spec"]) == (inventory(before), before["spec"])
            await an_edit_works(client)
            await a_deletion_ends(client)


async def settled(client: Client, manager: Manager) -> None:
    """Wait until the controllers are idle, and no child changes."""

    async def version() -> int:
        return int(newest(await owned(client), await owned(client, LEAVES)))

    await idle(manager, unchanged=version, rounds=8, interval=0.05, seconds=SECONDS)


async def an_edit_works(client: Client) -> None:
    await client.patch(ref_of("oak"), {"spec": {"value": "two", "items": ["y", "z"]}}, manager="user")
    wanted = {"value": "two"}
    await until(client, Ref(*CONFIG_MAP, NAMESPACE, "oak-a"), lambda obj: obj["data"] == wanted)
    await until(client, Ref(*CONFIG_MAP, NAMESPACE, "oak-leaf"), lambda obj: obj["data"] == wanted)
    await until(client, Ref(*CONFIG_MAP, OTHER, "oak-b"), lambda obj: obj["data"]["before"] == "oak-a-two")
    await until(client, Ref(*CONFIG_MAP, NAMESPACE, "oak-z"), lambda obj: obj["data"]["of"] == "oak-a-two")
    await until(client, ref_of("oak"), has_completed(2))
    assert {ref.name for ref in await owned(client)} == (CHILDREN - {"oak-x"}) | {"oak-z"}


async def a_deletion_ends(client: Client) -> None:
    await client.delete(ref_of("oak"))

    async def left() -> Sequence[Ref]:
        instances = (await client.list((GENERATED, "Tree"))).items
        return [*map(meta.ref, instances), *await owned(client)]

    await eventually(left, lambda found: all("oak" not in one.name for one in found), seconds=SECONDS)
    assert {ref.name for ref in await owned(client)} == {one for one in CHILDREN if one.startswith("elm")}
    assert (await client.get(Ref(*CONFIG_MAP, NAMESPACE, "given")))["data"] == {"key": "one"}
