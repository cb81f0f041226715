"""What passes between Metacontroller and its hooks."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from lamina.objects import meta
from lamina.objects.types import Made, Obj, Ref
from lamina.testing.waiting import eventually
from tests.bed.scenarios import check
from tests.scenarios.hook import Said
from tests.scenarios.metacontroller.stage import Stage, config_maps, desired

pytestmark = pytest.mark.asyncio(loop_scope="session")

NAMESPACED, CLUSTERED = "Thing", "Globe"


@check("MC-9")
async def test_the_first_request_has_every_kind_that_is_listed(stage: Stage) -> None:
    secrets = {"apiVersion": "v1", "resource": "secrets"}

    async with stage.running():
        controller = await stage.given_composite("cc", childResources=[*config_maps(), secrets])
        parent = await stage.given_parent()
        await stage.hook.called(1)

    said = stage.hook.requests[0]
    assert said.keys() == {"controller", "parent", "children", "related", "finalizing"}
    assert said["children"] == {"ConfigMap.v1": {}, "Secret.v1": {}}
    assert said["related"] == {}
    assert said["finalizing"] is False
    assert said["parent"] == parent
    assert (said["controller"]["apiVersion"], said["controller"]["kind"]) == (
        "metacontroller.k8s.io/v1alpha1",
        "CompositeController",
    )
    assert said["controller"]["spec"] == controller["spec"]
    assert said["controller"]["status"] == {}
    assert "managedFields" in said["parent"]["metadata"]


@check("MC-10")
async def test_a_hook_that_compares_whole_headers_is_content(stage: Stage) -> None:
    async with stage.running():
        await stage.given_composite("cc")
        await stage.given_parent(spec={"text": "ü" * 5000})
        await stage.hook.called(1)

    heard = {name.lower(): value for name, value in stage.hook.headers[0].items()}
    assert heard["content-type"] == "application/json"
    assert int(heard["content-length"]) > 10_000
    assert not {"transfer-encoding", "expect", "cookie"} & heard.keys()


@contextmanager
def plain_server() -> Iterator[tuple[str, list[str]]]:
    """A screenful of code that speaks HTTP/1.0, to one caller at a time, and ends its answers by hanging up."""
    heard: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            said = json.loads(self.rfile.read(int(self.headers["content-length"])))
            heard.append(said["parent"]["metadata"]["name"])
            child = desired("ConfigMap", said["parent"]["metadata"]["name"])
            self.send_response(200)
            self.end_headers()
            self.wfile.write(json.dumps({"children": [child]}).encode())

        def log_message(self, format: str, *args: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/sync", heard
        finally:
            server.shutdown()
            thread.join()


@check("MC-10")
async def test_fifty_parents_share_a_hook_that_serves_one_caller_at_a_time(stage: Stage) -> None:
    with plain_server() as (url, _):
        async with stage.running():
            await stage.given_composite(
                "cc", childResources=config_maps(), hooks={"sync": {"webhook": {"url": url}}}
            )
            for number in range(50):
                await stage.given_parent(f"p{number}", spec={"selector": {"matchLabels": {"app": "x"}}})
            await stage.until_listed("ConfigMap", lambda those: len(those) == 50)


def hooks(stage: Stage, version: str, **more: Obj) -> Made:
    return {
        name: {"version": version, "webhook": {"url": f"{stage.hook.url}/{name}"}}
        for name in ("sync", "customize")
    }


@check("MC-11")
@pytest.mark.parametrize("version", ["v1", "v2"])
async def test_the_keys_shown_to_a_namespaced_parent(stage: Stage, version: str) -> None:
    far = f"{stage.namespace}-far"
    await stage.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": far}})
    for namespace in (stage.namespace, far):
        await stage.create(
            {
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "metadata": {"name": "r", "namespace": namespace, "labels": {"related": "yes"}},
            }
        )
    rules = [
        {"apiVersion": "v1", "resource": "configmaps", "labelSelector": {"matchLabels": {"related": "yes"}}},
        {"apiVersion": "v1", "resource": "namespaces", "names": [far]},
    ]
    stage.hook.paths["/customize"] = lambda said: {"relatedResources": rules}
    stage.hook.answer = lambda said: {"children": [desired("ConfigMap", "c")]}

    async with stage.running():
        await stage.given_composite("cc", childResources=config_maps(), hooks=hooks(stage, version))
        await stage.given_parent()
        said = await until_shown(stage, "ConfigMap.v1")

    if version == "v1":
        assert said["children"]["ConfigMap.v1"].keys() == {"c"}
        assert said["related"]["ConfigMap.v1"].keys() == {"r"}
    else:
        assert said["children"]["ConfigMap.v1"].keys() == {f"{stage.namespace}/c"}
        assert said["related"]["ConfigMap.v1"].keys() == {f"{stage.namespace}/r", f"{far}/r"}
    assert said["related"]["Namespace.v1"].keys() == {far}


@check("MC-11")
@pytest.mark.parametrize("version", ["v1", "v2"])
async def test_the_keys_shown_to_a_cluster_scoped_parent(stage: Stage, version: str) -> None:
    await stage.given_kind(CLUSTERED, namespaced=False)
    await stage.given_kind("Mark", namespaced=False)
    name = stage.named("mark")
    rules = [{"apiVersion": "v1", "resource": "namespaces", "names": [stage.namespace]}]
    stage.hook.paths["/customize"] = lambda said: {"relatedResources": rules}
    stage.hook.answer = lambda said: {
        "children": [
            desired("Mark", name, f"{stage.group}/v1"),
            desired("ConfigMap", "c", metadata={"namespace": stage.namespace}),
        ]
    }
    marks = {"apiVersion": f"{stage.group}/v1", "resource": "marks"}

    async with stage.running():
        await stage.given_composite(
            "cc",
            parentResource={"apiVersion": f"{stage.group}/v1", "resource": "globes"},
            childResources=[*config_maps(), marks],
            hooks=hooks(stage, version),
        )
        await stage.given_parent("g", CLUSTERED, metadata={"namespace": None})
        said = await until_shown(stage, "ConfigMap.v1")

    assert said["children"]["ConfigMap.v1"].keys() == {f"{stage.namespace}/c"}
    assert said["children"][f"Mark.{stage.group}/v1"].keys() == {name}
    assert said["related"]["Namespace.v1"].keys() == {stage.namespace}


async def until_shown(stage: Stage, kind: str, many: int = 1) -> Said:
    """Wait until the sync hook has been shown children of a kind, and return what was said."""

    def shown() -> Said | None:
        return next((one for one in stage.hook.on("/sync") if len(one["children"][kind]) >= many), None)

    found = await eventually(shown, seconds=120)
    assert found is not None
    return found


@check("MC-12")
async def test_children_of_one_name_in_two_namespaces_are_two_children(stage: Stage) -> None:
    await stage.given_kind(CLUSTERED, namespaced=False)
    far = f"{stage.namespace}-far"
    await stage.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": far}})
    wanted = {stage.namespace: "near", far: "far"}

    def answer(said: Said) -> Said:
        return {
            "children": [
                desired("ConfigMap", "c", metadata={"namespace": namespace}, data={"is": text})
                for namespace, text in wanted.items()
            ]
        }

    stage.hook.answer = answer
    near_ref, far_ref = stage.at("ConfigMap", "c"), stage.at("ConfigMap", "c", namespace=far)
    globe = Ref(f"{stage.group}/v1", CLUSTERED, "", "g")

    async with stage.running():
        await stage.given_composite(
            "cc",
            parentResource={"apiVersion": f"{stage.group}/v1", "resource": "globes"},
            childResources=config_maps(),
        )
        await stage.given_parent("g", CLUSTERED, metadata={"namespace": None})
        said = await until_shown(stage, "ConfigMap.v1", many=2)
        assert said["children"]["ConfigMap.v1"].keys() == {f"{stage.namespace}/c", f"{far}/c"}

        before = await stage.client.get(near_ref)
        wanted[far] = "farther"
        await stage.client.patch(globe, {"spec": {"n": 1}})
        await stage.until(far_ref, lambda obj: obj is not None and obj["data"] == {"is": "farther"})
        assert await stage.client.get(near_ref) == before

        del wanted[far]
        await stage.client.patch(globe, {"spec": {"n": 2}})
        await stage.until_gone(far_ref)
        assert meta.uid(await stage.client.get(near_ref)) == meta.uid(before)


@check("MC-13")
async def test_children_arrive_in_the_version_of_their_rule(stage: Stage) -> None:
    definition = await stage.given_kind("Part")
    first = definition["spec"]["versions"][0]
    second = {**first, "name": "v2", "storage": False}
    await stage.client.patch(meta.ref(definition), {"spec": {"versions": [first, second]}})
    stage.hook.answer = lambda said: {"children": [desired("Part", "p", f"{stage.group}/v2", size=1)]}
    rule = {"apiVersion": f"{stage.group}/v2", "resource": "parts"}

    async with stage.running():
        await stage.given_composite("cc", childResources=[rule])
        await stage.given_parent()
        said = await until_shown(stage, f"Part.{stage.group}/v2")

    assert said["children"].keys() == {f"Part.{stage.group}/v2"}
    assert said["children"][f"Part.{stage.group}/v2"]["p"]["apiVersion"] == f"{stage.group}/v2"


@check("MC-13")
async def test_children_named_in_two_versions_arrive_in_both(stage: Stage) -> None:
    definition = await stage.given_kind("Part")
    first = definition["spec"]["versions"][0]
    second = {**first, "name": "v2", "storage": False}
    await stage.client.patch(meta.ref(definition), {"spec": {"versions": [first, second]}})
    stage.hook.answer = lambda said: {
        "children": [desired("Part", "p", f"{stage.group}/v1", size=said["parent"]["spec"].get("n", 0))]
    }
    rules = [
        {"apiVersion": f"{stage.group}/{version}", "resource": "parts", "updateStrategy": {"method": method}}
        for version, method in (("v1", "OnDelete"), ("v2", "InPlace"))
    ]

    async with stage.running():
        await stage.given_composite("cc", childResources=rules)
        await stage.given_parent()
        said = await until_shown(stage, f"Part.{stage.group}/v2")
        shown = said["children"]
        assert {key: those["p"]["apiVersion"] for key, those in shown.items()} == {
            f"Part.{stage.group}/{version}": f"{stage.group}/{version}" for version in ("v1", "v2")
        }

        # Of two rules the later counts.
        await stage.client.patch(stage.parent(), {"spec": {"n": 5}})
        await stage.until(
            stage.at("Part", "p", f"{stage.group}/v1"), lambda obj: bool(obj and obj["size"] == 5)
        )


@check("MC-14")
@pytest.mark.parametrize(
    ("hook", "refused"),
    [
        ({"version": "v1"}, False),
        ({"version": "v1", "mode": "strict"}, True),
        ({"version": "v2"}, True),
        ({"version": "v2", "mode": "loose"}, False),
    ],
)
async def test_an_unknown_key_is_refused_where_that_is_asked_for(
    stage: Stage, hook: dict[str, str], refused: bool
) -> None:
    stage.hook.answer = lambda said: {
        "children": [desired("ConfigMap", "c")],
        "status": {"n": 1},
        "childrens": [],
    }
    webhook = {"url": f"{stage.hook.url}/sync"}
    if mode := hook.get("mode"):
        webhook["responseUnMarshallMode"] = mode

    async with stage.running():
        await stage.given_composite(
            "cc",
            childResources=config_maps(),
            hooks={"sync": {"version": hook["version"], "webhook": webhook}},
        )
        await stage.given_parent()
        if not refused:
            await stage.until_there(stage.at("ConfigMap", "c"))
            return
        await stage.until_event(stage.parent(), "SyncError", '"childrens"')
        await stage.settled()

    assert await stage.listed("ConfigMap") == []
    assert "status" not in await stage.client.get(stage.parent())


@check("MC-14")
async def test_a_key_given_twice_counts_as_the_last_or_is_refused(stage: Stage) -> None:
    stage.hook.answer = lambda said: b'{"status": {"n": 1}, "status": {"n": 2}}'
    strict = {"url": f"{stage.hook.url}/sync", "responseUnMarshallMode": "strict"}

    async with stage.running():
        controller = meta.ref(await stage.given_composite("cc"))
        await stage.given_parent()
        await stage.until(stage.parent(), lambda obj: bool(obj and obj.get("status", {}).get("n") == 2))

        await stage.client.patch(controller, {"spec": {"hooks": {"sync": {"webhook": strict}}}})
        await stage.until_event(stage.parent(), "SyncError", '"status"')


@check("MC-15")
async def test_a_hook_is_found_by_its_service_and_by_its_url_first(stage: Stage) -> None:
    port = int(stage.hook.url.rpartition(":")[2])
    # Name, dot, namespace: here they happen to be an address.
    service = {"name": "127.0.0", "namespace": "1", "port": port, "protocol": "http"}

    async with stage.running():
        controller = meta.ref(
            await stage.given_composite(
                "cc", hooks={"sync": {"webhook": {"service": service, "path": "/by/service"}}}
            )
        )
        await stage.given_parent()
        await stage.hook.called(1, "/by/service")

        await stage.client.patch(
            controller, {"spec": {"hooks": {"sync": {"webhook": {"url": f"{stage.hook.url}/by/url"}}}}}
        )
        await stage.hook.called(1, "/by/url")
