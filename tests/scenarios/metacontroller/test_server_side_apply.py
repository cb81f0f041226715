"""Children that the server applies, in place of a record on each of them."""

import pytest

from lamina.families.metacontroller.controller import Options
from lamina.objects import meta
from tests.bed.scenarios import check
from tests.scenarios.metacontroller.rolls import (
    REVISIONS,
    Roll,
    disruptions,
    settled,
)
from tests.scenarios.metacontroller.stage import Stage, config_maps, desired
from tests.scenarios.metacontroller.wires import wired
from tests.scenarios.metacontroller.witness import witness

pytestmark = pytest.mark.asyncio(loop_scope="session")


@check("MC-85")
@pytest.mark.parametrize("method", ["RollingRecreate", "RollingInPlace"])
async def test_a_roll_ends_where_the_server_applies(stage: Stage, method: str) -> None:
    stage.options = Options(server_side_apply=True)
    roll = Roll(stage)
    async with stage.running():
        await settled(roll, "b", "a", "c", method=method)
        start = await roll.parts()
        async with witness(stage, roll.kind, REVISIONS) as seen:
            await roll.turn_to("two")
            async with roll.healing():
                await roll.until_all("two", 3)
            await roll.until_revisions("two")
            await stage.settled()
            await seen.has_seen(*await roll.parts())

    assert disruptions(seen, start) == {"a": 1, "b": 1, "c": 1}
    for part in await roll.parts():
        assert "metacontroller.k8s.io/last-applied-configuration" not in meta.annotations(part)
        applied = [one for one in part["metadata"]["managedFields"] if one["operation"] == "Apply"]
        assert [one["manager"] for one in applied] == ["metacontroller"]


@check("MC-85")
async def test_where_the_server_applies_looking_again_asks_it_nothing(stage: Stage) -> None:
    stage.options = Options(server_side_apply=True)
    stage.own, wire = wired(stage.client)
    roll = Roll(stage)
    async with stage.running():
        await settled(roll, "a", "b", method="RollingInPlace")
        await roll.want(extra={"size": 3.0, "list": [1, 2], "none": None, "empty": {}})
        await stage.until(roll.part("b"), lambda obj: obj is not None and obj["spec"].get("size") == 3)
        await stage.settled()
        wire.sent.clear()
        calls = stage.hook.count()
        stage.pass_time(minutes=31)
        await stage.hook.called(calls + 1)
        await stage.settled()

    assert wire.writes == []


async def test_where_the_server_applies_what_it_will_not_have_changed_is_recreated_if_that_is_the_way(
    stage: Stage,
) -> None:
    stage.options = Options(server_side_apply=True)
    stage.hook.answer = lambda said: {
        "children": [
            desired("ConfigMap", "c", data={"k": str(said["parent"]["spec"].get("n", 0))}, immutable=True)
        ]
    }
    at = stage.at("ConfigMap", "c")
    async with stage.running():
        controller = await stage.given_composite("cc", childResources=config_maps("InPlace"))
        await stage.given_parent()
        first = await stage.until_there(at)
        await stage.client.patch(stage.parent(), {"spec": {"n": 1}})
        await stage.until_event(stage.parent(), "SyncError", "immutable")
        assert (await stage.client.get(at))["data"] == {"k": "0"}

        await stage.client.patch(meta.ref(controller), {"spec": {"childResources": config_maps("Recreate")}})
        second = await stage.until(at, lambda obj: obj is not None and obj["data"] == {"k": "1"})
        await stage.settled()

    assert second is not None
    assert meta.uid(second) != meta.uid(first)


async def test_the_record_of_the_other_means_goes_without_any_child_being_replaced(stage: Stage) -> None:
    roll = Roll(stage)
    async with stage.running():
        await settled(roll, "a", "b", method="RollingInPlace")
    before = {meta.name(one): meta.uid(one) for one in await roll.parts()}
    stage.options = Options(server_side_apply=True)
    async with stage.running():
        await stage.until_listed(
            "Part",
            lambda those: (
                not any(
                    "metacontroller.k8s.io/last-applied-configuration" in meta.annotations(one)
                    for one in those
                )
            ),
            roll.kind[0],
        )
        await roll.turn_to("two")
        await roll.until_all("two", 2)

    assert {meta.name(one): meta.uid(one) for one in await roll.parts()} == before
