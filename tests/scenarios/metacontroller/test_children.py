"""What becomes of children."""

import json

import pytest

from lamina.objects import meta
from tests.bed.scenarios import check
from tests.scenarios.hook import Said
from tests.scenarios.metacontroller.stage import Stage, desired

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
