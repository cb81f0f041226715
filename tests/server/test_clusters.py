"""Several clusters on one server, and their isolation."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing
from pathlib import Path
from typing import Any

import orjson
import pytest
import pytest_asyncio

from lamina.app import App
from lamina.client.client import Client
from lamina.errors import Gone, Unavailable, UnknownKind
from lamina.objects import meta
from lamina.objects.types import Made, Ref
from lamina.server.http.cluster_router import ClusterRoute, ClusterRouter
from lamina.server.http.request import Request
from lamina.server.identity import ADMIN
from lamina.server.storage.store import Key
from lamina.settings import Settings
from lamina.testing.waiting import eventually
from tests.runtime.cluster import at, config_map, definition, reader, wait_created, wait_deleted
from tests.server.several_clusters import client_of, persistent_app

pytestmark = pytest.mark.asyncio(loop_scope="module")

CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def app() -> AsyncIterator[App]:
    settings = Settings(ephemeral=True, port=0, simulate="off", clusters=("east", "west"))
    async with App(settings) as running:
        yield running


async def ask(app: App, method: str, path: str, body: Made | None = None, query: str = "") -> tuple[int, Any]:
    answer = await app.request(method, path, query, body=orjson.dumps(body) if body else b"")
    assert isinstance(answer.body, bytes)
    return answer.status, orjson.loads(answer.body) if answer.content_type == "application/json" else None


async def names(app: App, path: str) -> list[str]:
    status, listed = await ask(app, "GET", path)
    assert status == 200, listed
    return [one["metadata"]["name"] for one in listed["items"]]


# Isolation


async def test_objects_of_one_name_in_two_clusters_are_two_objects(app: App) -> None:
    east, west = client_of(app, "east"), client_of(app, "west")
    made = await east.create(config_map("twin"))
    other = await west.create(config_map("twin"))

    assert meta.uid(made) != meta.uid(other)
    await east.delete(at("twin"))
    assert meta.uid(await west.get(at("twin"))) == meta.uid(other)
    assert "twin" not in await names(app, f"/clusters/east{CONFIG_MAPS}")
    assert "twin" not in await names(app, CONFIG_MAPS)


async def test_each_cluster_has_its_own_beginnings(app: App) -> None:
    usual = ["default", "kube-node-lease", "kube-public", "kube-system"]

    for way in ("", "/clusters/east", "/clusters/west"):
        assert await names(app, f"{way}/api/v1/namespaces") == usual


async def test_a_kind_that_one_cluster_defines_is_unknown_to_the_others(app: App) -> None:
    east, west = client_of(app, "east"), client_of(app, "west")
    crd = await east.create(definition("gadgets", "Gadget"))
    gadget: Made = {"apiVersion": "runtime.example.com/v1", "kind": "Gadget", "metadata": {"name": "g"}}
    gadget["metadata"]["namespace"] = "default"
    await eventually(reader(east, meta.ref(crd)), lambda one: "conditions" in (one or {}).get("status", {}))
    await east.create(gadget)

    with pytest.raises(UnknownKind):
        await west.create(gadget)
    for way in ("/clusters/west", ""):
        _, groups = await ask(app, "GET", f"{way}/apis")
        assert "runtime.example.com" not in {group["name"] for group in groups["groups"]}
        _, index = await ask(app, "GET", f"{way}/openapi/v3")
        assert "apis/runtime.example.com/v1" not in index["paths"]
    _, index = await ask(app, "GET", "/clusters/east/openapi/v3")
    assert "apis/runtime.example.com/v1" in index["paths"]


async def test_clusters_may_define_one_name_in_two_ways(app: App) -> None:
    east, west = client_of(app, "east"), client_of(app, "west")
    one, other = definition("tools", "Tool"), definition("tools", "Tool")
    other["spec"]["scope"] = "Cluster"
    await east.create(one)
    await west.create(other)

    tool: Made = {"apiVersion": "runtime.example.com/v1", "kind": "Tool", "metadata": {"name": "t"}}
    await west.create(tool)
    await east.create({**tool, "metadata": {"name": "t", "namespace": "default"}})

    assert meta.namespace(await west.get(Ref("runtime.example.com/v1", "Tool", "", "t"))) == ""


async def test_a_policy_holds_in_its_own_cluster(app: App) -> None:
    policy: Made = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": "none"},
        "spec": {
            "matchConstraints": {
                "resourceRules": [
                    {
                        "apiGroups": [""],
                        "apiVersions": ["v1"],
                        "operations": ["CREATE"],
                        "resources": ["configmaps"],
                    }
                ]
            },
            "validations": [{"expression": "object.metadata.name != 'refused'"}],
        },
    }
    binding: Made = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": "none"},
        "spec": {"policyName": "none", "validationActions": ["Deny"]},
    }
    await client_of(app, "east").create(policy)
    await client_of(app, "east").create(binding)

    refused, _ = await ask(app, "POST", f"/clusters/east{CONFIG_MAPS}", {"metadata": {"name": "refused"}})
    allowed, _ = await ask(app, "POST", f"/clusters/west{CONFIG_MAPS}", {"metadata": {"name": "refused"}})
    first, _ = await ask(app, "POST", CONFIG_MAPS, {"metadata": {"name": "refused"}})

    assert (refused, allowed, first) == (422, 201, 201)


async def test_a_watch_hears_of_its_own_cluster_alone(app: App) -> None:
    east, west = client_of(app, "east"), client_of(app, "west")
    kind = await east.kind("v1", "ConfigMap")
    version = (await east.list(kind)).version
    await west.create(config_map("elsewhere"))
    await client_of(app, "").create(config_map("elsewhere"))
    await east.create(config_map("here"))

    heard = []
    async with aclosing(east.watch(kind, version=version)) as events:
        async for event in events:
            heard.append((event["type"], meta.name(event["object"])))
            if heard[-1][1] == "here":
                break

    assert heard == [("ADDED", "here")]


async def test_versions_grow_with_every_write_to_any_cluster(app: App) -> None:
    versions = [
        int(meta.resource_version(await client_of(app, name).create(config_map("counted"))))
        for name in ("east", "west", "")
    ]

    assert versions == sorted(set(versions))


async def test_a_token_for_the_next_page_shows_nothing_of_another_cluster(app: App) -> None:
    east, west = client_of(app, "east"), client_of(app, "west")
    for number in range(3):
        await east.create(config_map(f"page-{number}", "kube-public"))
    await west.create(config_map("page-1", "kube-public"))
    _, first = await ask(
        app, "GET", "/clusters/east/api/v1/namespaces/kube-public/configmaps", query="limit=1"
    )
    token = first["metadata"]["continue"]

    way = "/clusters/west/api/v1/namespaces/kube-public/configmaps"
    _, rest = await ask(app, "GET", way, query=f"limit=5&continue={token}")

    assert {one["metadata"]["uid"] for one in rest["items"]} <= {
        one["metadata"]["uid"] for one in (await ask(app, "GET", way))[1]["items"]
    }


async def test_a_namespace_ends_in_its_own_cluster(app: App) -> None:
    east, west = client_of(app, "east"), client_of(app, "west")
    shared = Ref("v1", "Namespace", "", "shared")
    for client in (east, west):
        await client.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shared"}})
        await client.create(config_map("inside", "shared"))

    await east.delete(shared)
    await wait_deleted(east, shared)

    assert meta.name(await west.get(at("inside", "shared"))) == "inside"


async def test_an_owner_in_another_cluster_is_no_owner(app: App) -> None:
    east, west = client_of(app, "east"), client_of(app, "west")
    owner = await east.create(config_map("owner"))
    await east.create(config_map("owned", "default", owner))
    await west.create(config_map("orphan", "default", owner))

    await wait_deleted(west, at("orphan"))
    assert meta.name(await east.get(at("owned"))) == "owned"
    await east.delete(at("owner"))
    await wait_deleted(east, at("owned"))


async def test_each_cluster_counts_its_own_requests_and_objects(app: App) -> None:
    await client_of(app, "west").create(
        {
            "apiVersion": "v1",
            "kind": "ResourceQuota",
            "metadata": {"name": "counted", "namespace": "default"},
            "spec": {},
        }
    )

    async def counted(way: str) -> str:
        answer = await app.request("GET", f"{way}/metrics")
        assert isinstance(answer.body, bytes)
        return answer.body.decode()

    quotas = 'apiserver_storage_objects{resource="resourcequotas"}'
    assert quotas in await counted("/clusters/west")
    assert quotas not in await counted("/clusters/east")
    assert quotas not in await counted("")
    assert "west" not in await counted("")


async def test_a_fault_breaks_its_own_cluster(app: App) -> None:
    fault = {"fault": "refuse", "verbs": ["list"], "resources": ["secrets"]}
    status, _ = await ask(app, "POST", "/clusters/east/lamina/faults", fault)
    assert status == 201

    secrets = "/api/v1/namespaces/default/secrets"
    broken, _ = await ask(app, "GET", f"/clusters/east{secrets}")
    whole = [(await ask(app, "GET", f"{way}{secrets}"))[0] for way in ("/clusters/west", "")]
    await ask(app, "DELETE", "/clusters/east/lamina/faults")

    assert (broken, whole) == (503, [200, 200])


async def test_the_clock_is_wound_for_all_clusters_by_who_administers_the_server(app: App) -> None:
    assert (await ask(app, "POST", "/clusters/east/lamina/clock", {"wind": 60}))[0] == 403
    before = next(iter(app.clusters)).clock.now()

    status, _ = await ask(app, "POST", "/lamina/clock", {"wind": 3600})

    assert status == 200
    for cluster in app.clusters:
        assert (cluster.clock.now() - before).total_seconds() >= 3600


# The clusters API


async def test_the_list_of_clusters_names_where_each_is(app: App) -> None:
    status, listed = await ask(app, "GET", "/clusters")

    assert status == 200
    assert [one["name"] for one in listed["clusters"]][:3] == ["lamina", "east", "west"]
    assert listed["clusters"][1]["server"] == f"{app.url}/clusters/east"


@pytest.mark.parametrize(
    ("method", "path", "status", "words"),
    [
        ("PUT", "/clusters/Up", 400, '"Up" is not a valid cluster name: a lowercase RFC 1123 label'),
        ("PUT", "/clusters/" + "a" * 64, 400, "must be no more than 63"),
        ("PUT", "/clusters/lamina", 400, '"lamina" is the first cluster, which already exists'),
        ("PUT", "/clusters/default", 400, '"default" is the first cluster, which already exists'),
        ("DELETE", "/clusters/lamina", 409, "the first cluster stays for as long as its server runs"),
        ("DELETE", "/clusters/nobody", 404, 'there is no cluster "nobody"'),
        ("GET", "/clusters/nobody", 404, 'there is no cluster "nobody"'),
        ("GET", "/clusters/nobody/api/v1/pods", 404, 'there is no cluster "nobody"'),
        ("GET", "/clusters/lamina/api/v1/pods", 404, "leave out /clusters/lamina"),
        ("POST", "/clusters", 405, "the list of clusters supports GET"),
        ("PATCH", "/clusters/east", 405, "a cluster supports GET, PUT and DELETE"),
    ],
)
async def test_what_cannot_be_is_refused_in_words(
    app: App, method: str, path: str, status: int, words: str
) -> None:
    code, said = await ask(app, method, path)

    assert code == status
    assert words in said["message"]


async def test_below_a_cluster_there_is_no_way_to_another(app: App) -> None:
    for path in ("/clusters/east/clusters/west/api/v1/namespaces", "/clusters/east/clusters"):
        answer = await app.request("GET", path)
        assert answer.status == 404
    assert (await app.request("PUT", "/clusters/east/clusters/new")).status != 201
    assert (await app.request("POST", "/clusters/east/lamina/backup")).status in (404, 405)


async def test_a_document_that_has_moved_has_moved_within_its_cluster(app: App) -> None:
    answer = await app.request("GET", "/clusters/east/openapi/v3/api/v1", "hash=old")

    assert answer.status == 301
    assert dict(answer.headers)["location"].startswith("/clusters/east/openapi/v3/api/v1?hash=")


# Adding and removing


async def test_a_cluster_that_is_added_works_at_once_and_adding_it_again_changes_nothing(app: App) -> None:
    status, made = await ask(app, "PUT", "/clusters/fresh")
    again, same = await ask(app, "PUT", "/clusters/fresh")

    assert (status, again) == (201, 200)
    assert made == same
    await client_of(app, "fresh").create(config_map("at-work"))
    assert "fresh" in app.kubeconfig.read_text()


async def test_a_cluster_that_is_removed_leaves_nothing_behind(app: App) -> None:
    _, made = await ask(app, "PUT", "/clusters/brief")
    client = client_of(app, "brief")
    kind = await client.kind("v1", "ConfigMap")
    await client.create(config_map("kept"))
    version = (await client.list(kind)).version
    (place,) = {name.partition("/")[0] for name in app.store._buckets if name.startswith("brief.")}
    watching = asyncio.create_task(_all_of(client, version))
    await asyncio.sleep(0)

    status, _ = await ask(app, "DELETE", "/clusters/brief")
    assert status == 200
    async with asyncio.timeout(20):
        assert await watching == []
    assert app.store.buckets(place) == []
    assert app.store.get(Key(f"{place}/configmaps", "default", "kept")) is None
    assert (await ask(app, "GET", f"/clusters/brief{CONFIG_MAPS}"))[0] == 404
    assert "brief" not in app.kubeconfig.read_text()

    _, other = await ask(app, "PUT", "/clusters/brief")
    assert other["token"] != made["token"]
    assert "kept" not in await names(app, f"/clusters/brief{CONFIG_MAPS}")
    app.store.compact(app.store.version)
    assert not [name for name in app.store._buckets if name.startswith(place)]


async def _all_of(client: Client, version: str) -> list[str]:
    """Return all events of a watch until it ends."""
    kind = await client.kind("v1", "ConfigMap")
    async with aclosing(client.watch(kind, version=version)) as events:
        return [meta.name(event["object"]) async for event in events if event["type"] != "BOOKMARK"]


async def test_who_comes_after_a_cluster_hears_nothing_of_it(app: App) -> None:
    await ask(app, "PUT", "/clusters/heir")
    version = meta.resource_version(await client_of(app, "heir").create(config_map("old")))
    await ask(app, "DELETE", "/clusters/heir")
    await ask(app, "PUT", "/clusters/heir")
    heir = client_of(app, "heir")
    await heir.create(config_map("new"))

    kind = await heir.kind("v1", "ConfigMap")
    heard = []
    async with aclosing(heir.watch(kind, "default", version=version)) as events:
        async for event in events:
            heard.append(meta.name(event["object"]))
            if heard[-1] == "new":
                break

    assert set(heard) <= {"new", "kube-root-ca.crt"}


async def test_of_many_who_add_one_cluster_at_once_one_does(app: App) -> None:
    answers = await asyncio.gather(*(ask(app, "PUT", "/clusters/wanted") for _ in range(5)))

    assert sorted(status for status, _ in answers) == [200, 200, 200, 200, 201]
    assert len({told["token"] for _, told in answers}) == 1


async def test_a_removal_continues_without_its_client(app: App) -> None:
    await ask(app, "PUT", "/clusters/leaving")
    asked = asyncio.create_task(app.clusters.remove("leaving"))
    while "leaving" in app.clusters.tokens:  # noqa: ASYNC110 (no event to wait for)
        await asyncio.sleep(0)
    asked.cancel()

    # The next request waits.
    status, _ = await ask(app, "PUT", "/clusters/leaving")

    assert status == 201
    await client_of(app, "leaving").create(config_map("at-work"))


async def test_a_removal_whose_client_disconnects_leaves_nothing_behind(app: App) -> None:
    await ask(app, "PUT", "/clusters/alone")
    (place,) = {name.partition("/")[0] for name in app.store._buckets if name.startswith("alone.")}
    asked = asyncio.create_task(app.clusters.remove("alone"))
    while "alone" in app.clusters.tokens:  # noqa: ASYNC110 (no event to wait for)
        await asyncio.sleep(0)
    asked.cancel()

    async with asyncio.timeout(30):
        while "alone" in app.clusters._records():  # noqa: ASYNC110 (no event to wait for)
            await asyncio.sleep(0)
    assert app.store.buckets(place) == []


# Persistence


async def test_clusters_and_all_in_them_are_found_again(tmp_path: Path) -> None:
    async with persistent_app(tmp_path, "east", "west") as app:
        await client_of(app, "east").create(config_map("kept"))
        tokens = app.clusters.tokens
        await ask(app, "DELETE", "/clusters/west")

    async with persistent_app(tmp_path, "north") as app:
        assert [cluster.name for cluster in app.clusters] == ["", "east", "north"]
        assert app.clusters.tokens["east"] == tokens["east"]
        assert meta.name(await client_of(app, "east").get(at("kept"))) == "kept"


async def test_no_cluster_is_added_to_a_server_that_stops(tmp_path: Path) -> None:
    async with persistent_app(tmp_path) as app:
        await app.clusters.stop()

        with pytest.raises(Unavailable, match="the server is stopping"):
            await app.clusters.add("late")

    async with persistent_app(tmp_path) as app:
        assert [cluster.name for cluster in app.clusters] == [""]


async def test_an_end_that_was_cut_short_is_finished_at_the_next_start(tmp_path: Path) -> None:
    async with persistent_app(tmp_path, "east") as app:
        await client_of(app, "east").create(config_map("kept"))
        place = next(name for name in app.store._buckets if name.startswith("east.")).partition("/")[0]
        (row,) = app.store.list("/clusters").rows
        await app.store.append(row.key, {**orjson.loads(row.value), "ending": True})

    async with persistent_app(tmp_path) as app:
        assert [cluster.name for cluster in app.clusters] == [""]
        assert app.store.buckets(place) == []
        assert not app.store.list("/clusters").rows


# Controllers


async def test_workloads_run_on_every_cluster(tmp_path: Path) -> None:
    settings = Settings(ephemeral=True, port=0, families="none", clusters=("east",))
    pods: Made = {
        "selector": {"matchLabels": {"app": "web"}},
        "template": {
            "metadata": {"labels": {"app": "web"}},
            "spec": {"containers": [{"name": "web", "image": "web:1"}]},
        },
    }
    web: Made = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {"replicas": 2, **pods},
    }
    async with App(settings) as app:
        for client in (client_of(app, ""), client_of(app, "east")):
            await wait_created(client, Ref("v1", "ServiceAccount", "default", "default"))
            await client.create(web)
            await eventually(
                reader(client, meta.ref(web)),
                lambda one: (one or {}).get("status", {}).get("readyReplicas") == 2,
            )


async def test_waiting_until_the_server_is_settled_waits_for_every_cluster() -> None:
    settings = Settings(ephemeral=True, port=0, families="none", simulate="controllers", clusters=("east",))
    labels = {"app": "web"}
    made: Made = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "web", "image": "web:1"}]}}
    web: Made = {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {"replicas": 200, "selector": {"matchLabels": labels}, "template": made},
    }
    async with App(settings) as app:
        east = client_of(app, "east")
        await wait_created(east, Ref("v1", "ServiceAccount", "default", "default"))
        await app.settled()
        await east.create(web)

        await app.settled()

        assert len((await east.list(("v1", "Pod"), "default")).items) == 200


async def test_what_is_compacted_is_gone_for_every_cluster(tmp_path: Path) -> None:
    async with persistent_app(tmp_path, "east") as app:
        east = client_of(app, "east")
        version = meta.resource_version(await east.create(config_map("a")))
        await client_of(app, "").create(config_map("b"))
        app.store.compact(app.store.version)
        kind = await east.kind("v1", "ConfigMap")

        with pytest.raises(Gone):
            async with aclosing(east.watch(kind, version=version)) as events:
                await anext(events)


async def test_a_cluster_that_is_not_reached_yet_is_not_said_to_be_unknown(app: App) -> None:
    """A client that gets NotFound or Unauthorized gives up permanently."""
    gate = ClusterRouter(ClusterRoute(app.cluster.api, app.cluster.authenticator), app.clusters)
    request = Request("GET", "/clusters/east/api/v1/namespaces", user=ADMIN)

    with pytest.raises(Unavailable):
        gate.authenticate(Request("GET", "/clusters/east/api/v1/namespaces"))
    assert (await gate.handle(request)).status == 503

    gate.is_complete = True
    assert (await gate.handle(Request("GET", "/clusters/east/api", user=ADMIN))).status == 404
