"""How what a hook wants and what others write become one child."""

from functools import partial

import pytest

from lamina.objects import conditions, meta
from lamina.objects.types import Made
from tests.bed.scenarios import check
from tests.scenarios.hook import Said
from tests.scenarios.metacontroller.stage import Stage, config_maps, desired
from tests.scenarios.metacontroller.wires import wired

pytestmark = pytest.mark.asyncio(loop_scope="session")


@check("MC-30")
async def test_a_sidecar_of_another_manager_survives_a_new_image(stage: Stage) -> None:
    def answer(said: Said) -> Said:
        image = f"web:{said['parent']['spec'].get('n', 1)}"
        pod = {
            "metadata": {"labels": {"app": "x"}},
            "spec": {"containers": [{"name": "web", "image": image, "ports": [{"containerPort": 80}]}]},
        }
        spec = {"replicas": 0, "selector": {"matchLabels": {"app": "x"}}, "template": pod}
        return {"children": [desired("Deployment", "d", "apps/v1", spec=spec)]}

    stage.hook.answer = answer
    rule = {"apiVersion": "apps/v1", "resource": "deployments", "updateStrategy": {"method": "InPlace"}}
    at = stage.at("Deployment", "d", "apps/v1")

    async with stage.running():
        await stage.given_composite("cc", childResources=[rule])
        await stage.given_parent()
        made = await stage.until_there(at)
        containers = made["spec"]["template"]["spec"]["containers"]
        sidecar = [*containers, {"name": "sidecar", "image": "proxy:1"}]
        await stage.client.patch(at, {"spec": {"template": {"spec": {"containers": sidecar}}}})

        await stage.client.patch(stage.parent(), {"spec": {"n": 2}})

        await stage.until(at, lambda obj: images(obj) == {"web": "web:2", "sidecar": "proxy:1"})


def images(obj: Made | None) -> dict[str, str]:
    containers = obj["spec"]["template"]["spec"]["containers"] if obj else ()
    return {one["name"]: one["image"] for one in containers}


@check("MC-31")
async def test_lists_are_merged_by_the_key_their_items_share(stage: Stage) -> None:
    """Each field is a list: as it was wanted, with another manager's additions, as it is wanted then, as it becomes."""
    stories: dict[str, tuple[list[object], list[object], list[object], list[object]]] = {}
    for key in ("containerPort", "port", "mountPath", "name", "uid", "ip", "path"):
        stories[f"by{key}"] = (
            [{key: "1", "v": "a"}, {key: "2", "v": "a"}],
            [{key: "theirs", "v": "b"}],
            [{key: "1", "v": "c"}, {key: "3", "v": "c"}],
            [{key: "1", "v": "c"}, {key: "theirs", "v": "b"}, {key: "3", "v": "c"}],
        )
    stories |= {
        "bynumber": (
            [{"port": 80, "v": "a"}],
            [{"port": 81, "v": "b"}],
            [{"port": 80, "v": "c"}],
            [{"port": 80, "v": "c"}, {"port": 81, "v": "b"}],
        ),
        "firstkeywins": (
            [{"name": "x", "port": 1}],
            [{"name": "x", "port": 2}],
            [{"name": "y", "port": 1}],
            [{"name": "y", "port": 1}, {"name": "x", "port": 2}],
        ),
        "twoprotocols": (
            [{"port": 53, "protocol": "TCP"}, {"port": 53, "protocol": "UDP"}],
            [{"port": 54, "protocol": "TCP"}],
            [{"port": 53, "protocol": "UDP"}],
            [{"port": 53, "protocol": "UDP"}, {"port": 54, "protocol": "TCP"}],
        ),
        "scalars": (["a", "b"], ["theirs"], ["b", "c"], ["b", "c"]),
        "nokey": ([{"x": 1}], [{"x": 2}], [{"x": 3}], [{"x": 3}]),
        "mixed": ([{"name": "a"}, {"port": 1}], [{"name": "b"}], [{"name": "c"}], [{"name": "c"}]),
    }
    await stage.given_kind("Part")
    wanted = {field: story[0] for field, story in stories.items()}
    stage.hook.answer = lambda said: {"children": [desired("Part", "p", f"{stage.group}/v1", spec=wanted)]}
    rule = {
        "apiVersion": f"{stage.group}/v1",
        "resource": "parts",
        "updateStrategy": {"method": "InPlace"},
    }
    at = stage.at("Part", "p", f"{stage.group}/v1")

    async with stage.running():
        await stage.given_composite("cc", childResources=[rule])
        await stage.given_parent()
        await stage.until_there(at)
        await stage.settled()

        # Lists without keys are put back at once; so both change at the same time.
        wanted = {field: story[2] for field, story in stories.items()}
        theirs = {field: [*story[0], *story[1]] for field, story in stories.items()}
        await stage.client.patch(at, {"spec": theirs})

        became = {field: story[3] for field, story in stories.items()}
        await stage.until(at, lambda obj: bool(obj and obj["spec"] == became))


@check("MC-32")
async def test_a_hook_may_echo_what_the_server_keeps(stage: Stage) -> None:
    def answer(said: Said) -> Said:
        seen = said["children"]["ConfigMap.v1"].get("c")
        if seen is None:
            return {"children": [desired("ConfigMap", "c", data={"k": "v"})]}
        metadata = {**seen["metadata"], "creationTimestamp": None}
        echo = {**seen, "metadata": metadata, "status": {"made": "up"}}
        return {"children": [echo], "resyncAfterSeconds": 5}

    stage.hook.answer = answer
    stage.own, wire = wired(stage.client)

    async with stage.running():
        await stage.given_composite("cc", childResources=config_maps())
        await stage.given_parent()
        await stage.until_there(stage.at("ConfigMap", "c"))
        await stage.hook.called(2)
        await stage.settled()
        stage.pass_time(seconds=6)
        await stage.hook.called_again()
        await stage.settled()
        before = await stage.client.get(stage.at("ConfigMap", "c"))
        wire.sent.clear()

        stage.pass_time(seconds=6)
        await stage.hook.called_again()
        await stage.settled()

        assert await stage.client.get(stage.at("ConfigMap", "c")) == before
        assert wire.writes == []


@check("MC-32")
async def test_an_echo_that_adds_nothing_is_not_written_at_all(stage: Stage) -> None:
    stage.hook.answer = lambda said: {
        "children": [
            {
                **desired("ConfigMap", "c", data={"k": "v"}, metadata={"creationTimestamp": None}),
                "status": {"calls": len(stage.hook.requests)},
            }
        ]
    }

    async with stage.running():
        await stage.given_composite("cc", childResources=config_maps("Recreate"))
        await stage.given_parent()
        made = await stage.until_there(stage.at("ConfigMap", "c"))
        calls = stage.hook.count()
        await stage.client.patch(stage.parent(), {"spec": {"n": 1}})
        await stage.hook.called(calls + 1)
        await stage.settled()

    assert await stage.client.get(stage.at("ConfigMap", "c")) == made


@check("MC-33")
@pytest.mark.parametrize("method", ["InPlace", "Recreate"])
async def test_what_the_server_drops_is_said_once(stage: Stage, method: str) -> None:
    empty: Made = {
        "nodeName": None,
        "securityContext": {},
        "hostname": "",
        "tolerations": [],
        "volumes": None,
    }
    pod = {"containers": [{"name": "c", "image": "i", "env": [], "resources": {}}], **empty}
    spec = {
        "replicas": 0,
        "minReadySeconds": None,
        "selector": {"matchLabels": {"app": "x"}},
        "template": {"metadata": {"labels": {"app": "x"}, "creationTimestamp": None}, "spec": pod},
    }
    stage.hook.answer = lambda said: {
        "children": [desired("ReplicaSet", "r", "apps/v1", spec=spec)],
        "resyncAfterSeconds": 30,
    }
    rule = {"apiVersion": "apps/v1", "resource": "replicasets", "updateStrategy": {"method": method}}
    at = stage.at("ReplicaSet", "r", "apps/v1")
    stage.own, wire = wired(stage.client)

    async with stage.running():
        await stage.given_composite("cc", childResources=[rule])
        await stage.given_parent()
        made = await stage.until_there(at)
        for _ in range(3):
            await stage.settled()
            stage.pass_time(seconds=31)
            await stage.hook.called_again()
        await stage.settled()

        found = await stage.client.get(at)
    assert meta.uid(found) == meta.uid(made)
    assert meta.generation(found) == 1
    assert len([one for one in wire.writes if "replicasets" in one.path]) <= 2


def says(condition: Made, parent: Made | None) -> bool:
    return parent is not None and condition in ((parent.get("status") or {}).get("conditions") or ())


@check("MC-33")
async def test_a_child_that_the_server_makes_otherwise_is_not_recreated_for_ever(stage: Stage) -> None:
    """The server fills in a port of its own, in a list without keys."""
    schema = {
        "type": "object",
        "properties": {
            "spec": {
                "type": "object",
                "properties": {
                    "items": {
                        "type": "array",
                        "items": {
                            "type": "object",
                            "properties": {
                                "a": {"type": "string"},
                                "b": {"type": "string", "default": "filled in"},
                            },
                        },
                    }
                },
            }
        },
    }
    await stage.given_kind("Part", schema=schema)
    stage.hook.answer = lambda said: {
        "children": [desired("Part", "p", f"{stage.group}/v1", spec={"items": [{"a": "x"}]})],
        "resyncAfterSeconds": 30,
    }
    rule = {"apiVersion": f"{stage.group}/v1", "resource": "parts", "updateStrategy": {"method": "Recreate"}}
    at = stage.at("Part", "p", f"{stage.group}/v1")

    async with stage.running():
        await stage.given_composite("cc", childResources=[rule])
        await stage.given_parent()
        made = await stage.until_there(at)
        told = await stage.until_event(stage.parent(), "RecreateFutile", "part")
        doubt = {
            "type": "AsDesired",
            "status": "False",
            "reason": "RecreateFutile",
            "message": told["message"],
        }
        await stage.until(stage.parent(), partial(says, doubt))
        for _ in range(2):
            stage.pass_time(seconds=31)
            await stage.hook.called_again()
            await stage.settled()
        assert meta.uid(await stage.client.get(at)) == meta.uid(made)

        # Changes by other managers are tested elsewhere.
        await stage.client.patch(at, {"spec": {"items": [{"a": "theirs"}]}})
        await stage.settled()
        stage.pass_time(seconds=31)
        await stage.until(at, lambda obj: bool(obj and obj["spec"]["items"][0]["a"] == "x"))


@check("MC-35")
async def test_a_child_that_is_undone_as_soon_as_it_is_made_is_recreated_a_little_later(stage: Stage) -> None:
    stage.hook.answer = lambda said: {"children": [desired("ConfigMap", "c", data={"a": "ours"})]}
    at = stage.at("ConfigMap", "c")

    async with stage.running():
        await stage.given_composite("cc", childResources=config_maps("Recreate"))
        await stage.given_parent()
        made = await stage.until_there(at)
        await stage.client.patch(at, {"data": {"a": "theirs"}})

        await stage.until(stage.parent(), lambda obj: reason(obj) == "RecreateDelayed")
        assert meta.uid(await stage.client.get(at)) == meta.uid(made)
        stage.pass_time(seconds=11)

        await stage.until(at, lambda obj: bool(obj and obj["data"] == {"a": "ours"}))
        await stage.until(stage.parent(), lambda obj: reason(obj) == "")


def reason(parent: Made | None) -> str:
    """Return why a parent's children are not as they are desired, if it says so."""
    found = conditions.find(((parent or {}).get("status") or {}).get("conditions") or (), "AsDesired")
    return str(found["reason"]) if found is not None else ""
