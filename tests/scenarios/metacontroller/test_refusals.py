"""Children that the server refuses, and the others beside them."""

import asyncio
from contextlib import suppress

import pytest

from lamina.errors import Conflict
from lamina.objects import meta
from lamina.objects.types import Made, Ref
from tests.bed.fixtures import chosen_server
from tests.bed.scenarios import check
from tests.scenarios.hook import Said
from tests.scenarios.metacontroller.stage import Stage, config_maps, desired

pytestmark = pytest.mark.asyncio(loop_scope="session")


@check("MC-39")
async def test_one_child_that_the_server_refuses_does_not_hold_up_the_others(stage: Stage) -> None:
    stage.hook.answer = lambda said: {
        "children": [desired("ConfigMap", name) for name in ("a", "Not_A_Name", "b")],
        "status": {"n": 1},
    }

    async with stage.running():
        await stage.given_composite("cc", childResources=config_maps())
        await stage.given_parent()

        await stage.until_event(stage.parent(), "SyncError", "Not_A_Name")
        await stage.until_listed("ConfigMap", lambda those: [meta.name(one) for one in those] == ["a", "b"])
        await stage.until(stage.parent(), lambda obj: bool(obj and obj.get("status", {}).get("n") == 1))

    # A simulation refuses the child, too.
    assert (stage.parity.refused >= 1) is (chosen_server() != "real")


@check("MC-39")
async def test_a_status_that_the_server_refuses_comes_after_the_children(stage: Stage) -> None:
    spec = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    status = {"type": "object", "required": ["ready"], "properties": {"ready": {"type": "boolean"}}}
    schema = {"type": "object", "properties": {"spec": spec, "status": status}}
    await stage.given_kind("Picky", schema=schema)

    def answer(said: Said) -> Said:
        there = "c" in said["children"]["ConfigMap.v1"]
        return {"children": [desired("ConfigMap", "c")], "status": {"ready": True} if there else {}}

    stage.hook.answer = answer
    async with stage.running():
        await stage.given_composite(
            "cc",
            parentResource={"apiVersion": f"{stage.group}/v1", "resource": "pickys"},
            childResources=config_maps(),
        )
        await stage.given_parent("a", "Picky")

        await stage.until_there(stage.at("ConfigMap", "c"))
        await stage.until(
            stage.parent("a", "Picky"), lambda obj: bool(obj and obj.get("status") == {"ready": True})
        )


@check("MC-40")
async def test_the_name_of_a_foreign_object_is_left_alone(stage: Stage) -> None:
    stage.hook.answer = lambda said: {"children": [desired("ConfigMap", "c", data={"k": "v"})]}
    await stage.given_kind("Owner")
    owner = meta.owner_ref(await stage.given_parent("o", "Owner"), controller=True, blocks=True)
    theirs = {
        **desired("ConfigMap", "c", data={"theirs": "x"}),
        "metadata": {"name": "c", "namespace": stage.namespace, "ownerReferences": [owner]},
    }
    before = await stage.create(theirs)

    async with stage.running():
        await stage.given_composite("cc", childResources=config_maps())
        await stage.given_parent()
        told = await stage.until_event(stage.parent(), "NameTaken", "configmap")
        await stage.settled()

    assert "owner o controls it" in told["message"]
    assert await stage.client.get(stage.at("ConfigMap", "c")) == before


@check("MC-41")
async def test_what_two_write_at_once_both_survives(stage: Stage) -> None:
    stage.hook.answer = lambda said: {
        "children": [desired("ConfigMap", "c", data={"ours": str(said["parent"]["spec"].get("n", 0))})]
    }
    at = stage.at("ConfigMap", "c")

    async def write() -> None:
        """Write twenty times a second, as a client that reads and replaces does."""
        number = 0
        while number < 30:
            seen = await stage.client.get(at)
            with suppress(Conflict):
                await stage.client.update({**seen, "data": {**seen["data"], "theirs": str(number)}})
                number += 1
            await asyncio.sleep(0.05)

    async with stage.running():
        await stage.given_composite("cc", childResources=config_maps())
        await stage.given_parent()
        await stage.until_there(at)
        writing = asyncio.create_task(write())
        for number in range(1, 20):
            await stage.client.patch(stage.parent(), {"spec": {"n": number}})
            await stage.until(at, lambda obj, n=number: bool(obj and obj["data"]["ours"] == str(n)))  # type: ignore[misc]  # mypy knows no default of a lambda
        await writing

        found = await stage.until(at, lambda obj: bool(obj and obj["data"]["ours"] == "19"))
    assert found is not None
    assert found["data"]["theirs"] == "29"


@check("MC-42")
async def test_one_name_wanted_twice_is_refused_and_touches_nothing(stage: Stage) -> None:
    stage.hook.answer = lambda said: {"children": [desired("ConfigMap", "old")]}

    async with stage.running():
        await stage.given_composite("cc", childResources=config_maps())
        await stage.given_parent()
        await stage.until_there(stage.at("ConfigMap", "old"))

        twice = [desired("ConfigMap", "c", data={"n": n}) for n in ("1", "2")]
        stage.hook.answer = lambda said: {"children": twice}
        await stage.client.patch(stage.parent(), {"spec": {"n": 1}})
        await stage.until_event(stage.parent(), "SyncError", f"configmap {stage.namespace}/c twice")
        await stage.settled()

    assert [meta.name(one) for one in await stage.listed("ConfigMap")] == ["old"]


@check("MC-43")
@pytest.mark.parametrize(
    ("stranger", "why"),
    [
        (desired("Secret", "s"), "is not listed in spec.childResources"),
        (
            desired("Unicorn", "u", "example.com/v1"),
            "discovery: can't find kind Unicorn in apiVersion example.com/v1",
        ),
    ],
    ids=["known", "unknown"],
)
async def test_a_kind_that_is_not_listed_is_refused_and_the_others_go_on(
    stage: Stage, stranger: Made, why: str
) -> None:
    stage.hook.answer = lambda said: {
        "children": [stranger, desired("ConfigMap", "c", data={"n": str(said["parent"]["spec"].get("n", 0))})]
    }

    async with stage.running():
        await stage.given_composite("cc", childResources=config_maps())
        await stage.given_parent()
        await stage.until_event(stage.parent(), "SyncError", why)
        await stage.client.patch(stage.parent(), {"spec": {"n": 1}})

        await stage.until(stage.at("ConfigMap", "c"), lambda obj: bool(obj and obj["data"] == {"n": "1"}))

    assert await stage.listed("Secret") == []


@check("MC-44")
async def test_a_child_out_of_its_parents_reach_is_refused(stage: Stage) -> None:
    await stage.given_kind("Globe", namespaced=False)
    globes = {"apiVersion": f"{stage.group}/v1", "resource": "globes"}
    elsewhere = desired("ConfigMap", stage.named("c"), metadata={"namespace": "default"})
    globe = desired("Globe", stage.named("g"), f"{stage.group}/v1")
    stage.hook.answer = lambda said: {"children": [elsewhere, desired("ConfigMap", "near")]}

    async with stage.running():
        await stage.given_composite("cc", childResources=[*config_maps(), globes])
        await stage.given_parent()
        await stage.until_event(stage.parent(), "SyncError", "is in another namespace")

        stage.hook.answer = lambda said: {"children": [globe, desired("ConfigMap", "near")]}
        await stage.client.patch(stage.parent(), {"spec": {"n": 1}})
        await stage.until_event(stage.parent(), "SyncError", "is cluster-scoped")
        await stage.settled()

    assert await stage.get(meta.ref(elsewhere)) is None
    assert await stage.get(Ref(f"{stage.group}/v1", "Globe", "", stage.named("g"))) is None
    assert await stage.listed("ConfigMap") == []


@check("MC-45")
async def test_a_cluster_scoped_parent_has_to_say_where_its_child_is(stage: Stage) -> None:
    await stage.given_kind("Globe", namespaced=False)
    stage.hook.answer = lambda said: {"children": [desired("ConfigMap", "nowhere")]}

    async with stage.running():
        await stage.given_composite(
            "cc",
            parentResource={"apiVersion": f"{stage.group}/v1", "resource": "globes"},
            childResources=config_maps(),
        )
        name = stage.named("g")
        await stage.given_parent(name, "Globe", metadata={"namespace": None})

        globe = Ref(f"{stage.group}/v1", "Globe", "", name)
        await stage.until_event(globe, "SyncError", "configmap nowhere has no namespace")
