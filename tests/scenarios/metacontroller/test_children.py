"""What becomes of children."""

import json

import pytest

from lamina.objects import meta
from lamina.objects.types import Made
from tests.bed.scenarios import check
from tests.scenarios.hook import Said
from tests.scenarios.metacontroller.stage import Stage, config_maps, desired
from tests.scenarios.metacontroller.wires import wired

pytestmark = pytest.mark.asyncio(loop_scope="session")

CONFIG_MAPS = [{"apiVersion": "v1", "resource": "configmaps", "updateStrategy": {"method": "InPlace"}}]


@check("MC-28")
async def test_a_child_is_made_owned_and_with_what_was_desired_written_down(stage: Stage) -> None:
    wanted = desired("ConfigMap", "c", data={"k": "v"})
    stage.hook.answer = lambda said: {"children": [wanted]}

    async with stage.running():
        await stage.given_composite("cc", childResources=CONFIG_MAPS)
        parent = await stage.given_parent()
        child = await stage.until_there(stage.at("ConfigMap", "c"))

    assert meta.owner_refs(child) == [meta.owner_ref(parent, controller=True, blocks=True)]
    recorded = json.loads(meta.annotations(child)["metacontroller.k8s.io/last-applied-configuration"])
    assert recorded == {**wanted, "metadata": {**wanted["metadata"], "namespace": stage.namespace}}
    assert child["data"] == {"k": "v"}


@check("MC-29")
async def test_a_field_the_hook_no_longer_wants_goes_and_somebody_elses_stays(stage: Stage) -> None:
    stage.hook.answer = lambda said: {"children": [desired("ConfigMap", "c", data={"k": "v", "l": "w"})]}
    at = stage.at("ConfigMap", "c")

    async with stage.running():
        await stage.given_composite("cc", childResources=CONFIG_MAPS)
        await stage.given_parent()
        await stage.until_there(at)
        await stage.client.patch(at, {"data": {"theirs": "x"}})
        stage.hook.answer = lambda said: {"children": [desired("ConfigMap", "c", data={"k": "v"})]}
        await stage.client.patch(stage.parent(), {"spec": {"x": 1}})

        await stage.until(at, lambda obj: obj is not None and obj["data"] == {"k": "v", "theirs": "x"})


@check("MC-69")
async def test_children_roll_one_by_one_in_the_hooks_order(stage: Stage) -> None:
    def answer(said: Said) -> Said:
        image = said["parent"]["spec"]["image"]
        return {"children": [desired("ConfigMap", name, data={"image": image}) for name in ("b", "a", "c")]}

    stage.hook.answer = answer
    rolling = {"apiVersion": "v1", "resource": "configmaps", "updateStrategy": {"method": "RollingInPlace"}}

    async with stage.running():
        await stage.given_composite("cc", childResources=[rolling])
        await stage.given_parent(spec={"image": "one"})
        await stage.until_listed("ConfigMap", lambda those: len(those) == 3)

        await stage.client.patch(stage.parent(), {"spec": {"image": "two"}})

        await stage.until_listed(
            "ConfigMap", lambda those: [one["data"]["image"] for one in those] == ["two"] * 3
        )
        await stage.settled()

    order = sorted(await stage.listed("ConfigMap"), key=lambda one: int(meta.resource_version(one)))
    assert [meta.name(one) for one in order] == ["b", "a", "c"]
    assert len(await stage.listed("ControllerRevision", "metacontroller.k8s.io/v1alpha1")) == 1


@check("MC-30")
async def test_a_sidecar_that_somebody_else_added_survives_a_new_image(stage: Stage) -> None:
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
    """Each field is a list: as it was wanted, with what somebody else adds, as it is wanted then, as it becomes."""
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

        # Lists nobody can tell the items of are put back at once; so both change at the same time.
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
        await stage.client.patch(stage.parent(), {"spec": {"n": 1}})
        await stage.hook.called_again()
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


@check("MC-33")
async def test_a_child_that_the_server_makes_otherwise_is_not_recreated_for_ever(stage: Stage) -> None:
    """The server fills in a port of its own, in a list whose items nobody can tell apart."""
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
        await stage.until_told(stage.parent(), "RecreateFutile", "part")
        for _ in range(2):
            stage.pass_time(seconds=31)
            await stage.hook.called_again()
            await stage.settled()
        assert meta.uid(await stage.client.get(at)) == meta.uid(made)

        # What somebody else makes of it is another matter.
        await stage.client.patch(at, {"spec": {"items": [{"a": "theirs"}]}})
        await stage.settled()
        stage.pass_time(seconds=31)
        await stage.until(at, lambda obj: bool(obj and obj["spec"]["items"][0]["a"] == "x"))


def numbered(said: Said) -> Said:
    return {"children": [desired("ConfigMap", "c", data={"n": str(said["parent"]["spec"].get("n", 0))})]}


@check("MC-34")
async def test_on_delete_leaves_a_child_until_somebody_deletes_it(stage: Stage) -> None:
    stage.hook.answer = numbered
    at = stage.at("ConfigMap", "c")

    async with stage.running():
        await stage.given_composite("cc", childResources=[{"apiVersion": "v1", "resource": "configmaps"}])
        await stage.given_parent()
        made = await stage.until_there(at)
        await stage.client.patch(stage.parent(), {"spec": {"n": 1}})
        await stage.until(stage.parent(), lambda obj: bool(obj and obj["status"]["observedGeneration"] == 2))
        await stage.settled()
        assert await stage.client.get(at) == made

        await stage.client.delete(at)

        await stage.until(at, lambda obj: bool(obj and obj["data"] == {"n": "1"}))


@check("MC-35")
async def test_recreate_puts_a_new_child_in_the_place_of_the_old(stage: Stage) -> None:
    stage.hook.answer = numbered
    at = stage.at("ConfigMap", "c")

    async with stage.running():
        await stage.given_composite("cc", childResources=config_maps("Recreate"))
        await stage.given_parent()
        made = await stage.until_there(at)
        heard = stage.hook.count()
        await stage.client.patch(at, {"metadata": {"annotations": {"theirs": "x"}}, "data": {"theirs": "y"}})
        await stage.hook.called(heard + 1)
        await stage.settled()
        assert meta.uid(await stage.client.get(at)) == meta.uid(made)

        await stage.client.patch(stage.parent(), {"spec": {"n": 1}})

        found = await stage.until(at, lambda obj: bool(obj and obj["data"] == {"n": "1"}))
    assert found is not None
    assert meta.uid(found) != meta.uid(made)


@check("MC-36")
async def test_a_child_that_somebody_deletes_comes_back(stage: Stage) -> None:
    stage.hook.answer = numbered
    at = stage.at("ConfigMap", "c")

    async with stage.running():
        await stage.given_composite("cc", childResources=config_maps())
        await stage.given_parent()
        made = await stage.until_there(at)

        await stage.client.delete(at)

        await stage.until(at, lambda obj: obj is not None and meta.uid(obj) != meta.uid(made))


@check("MC-37")
async def test_a_child_that_is_held_on_its_way_out_is_waited_for(stage: Stage) -> None:
    stage.hook.answer = numbered
    at = stage.at("ConfigMap", "c")

    async with stage.running():
        await stage.given_composite("cc", childResources=config_maps())
        await stage.given_parent()
        await stage.until_there(at)
        await stage.client.patch(at, {"metadata": {"finalizers": ["example.com/held"]}})
        await stage.client.delete(at)
        await stage.until(at, lambda obj: obj is not None and meta.is_deleting(obj))
        await stage.settled()
        going = await stage.client.get(at)

        await stage.client.patch(stage.parent(), {"spec": {"n": 1}})
        await stage.until(stage.parent(), lambda obj: bool(obj and obj["status"]["observedGeneration"] == 2))
        await stage.settled()
        assert await stage.client.get(at) == going

        await stage.client.patch(at, {"metadata": {"finalizers": None}})
        await stage.until(at, lambda obj: bool(obj and obj["data"] == {"n": "1"}))


@check("MC-38")
async def test_a_child_nobody_wants_goes_and_takes_its_own_with_it(stage: Stage) -> None:
    wanted = ["keep", "drop"]
    stage.hook.answer = lambda said: {"children": [desired("ConfigMap", name) for name in wanted]}

    async with stage.running():
        await stage.given_composite("cc", childResources=config_maps())
        await stage.given_parent()
        drop = await stage.until_there(stage.at("ConfigMap", "drop"))
        await stage.until_there(stage.at("ConfigMap", "keep"))
        owner = meta.owner_ref(drop, controller=True, blocks=True)
        grandchild = {"name": "grandchild", "namespace": stage.namespace, "ownerReferences": [owner]}
        await stage.create({"apiVersion": "v1", "kind": "Secret", "metadata": grandchild})

        wanted.remove("drop")
        await stage.client.patch(stage.parent(), {"spec": {"n": 1}})

        await stage.until_gone(stage.at("ConfigMap", "drop"))
        await stage.until_gone(stage.at("Secret", "grandchild"))
        await stage.until_there(stage.at("ConfigMap", "keep"))
