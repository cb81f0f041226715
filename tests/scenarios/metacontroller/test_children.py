"""How children are created, updated and deleted."""

import json

import pytest

from lamina.objects import meta
from tests.bed.fixtures import chosen_server
from tests.bed.scenarios import check
from tests.scenarios.hook import Said
from tests.scenarios.metacontroller.stage import Stage, config_maps, desired

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
async def test_a_field_the_hook_no_longer_wants_goes_and_another_managers_stays(stage: Stage) -> None:
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


def numbered(said: Said) -> Said:
    return {"children": [desired("ConfigMap", "c", data={"n": str(said["parent"]["spec"].get("n", 0))})]}


@check("MC-34")
async def test_on_delete_leaves_a_child_until_it_is_deleted(stage: Stage) -> None:
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
async def test_a_deleted_child_comes_back(stage: Stage) -> None:
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
async def test_an_unwanted_child_goes_and_takes_its_own_with_it(stage: Stage) -> None:
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


async def test_the_writes_of_a_parent_are_compared_with_those_of_a_simulation(stage: Stage) -> None:
    stage.hook.answer = lambda said: {"children": [desired("ConfigMap", "c", data={"k": "v"})]}

    async with stage.running():
        await stage.given_composite("cc", childResources=CONFIG_MAPS)
        await stage.given_parent()
        await stage.until_there(stage.at("ConfigMap", "c"))
        await stage.settled()

    # A child and a status at the least; a real server's writes are those of the embedded one.
    assert (stage.parity.compared >= 2) is (chosen_server() != "real")
