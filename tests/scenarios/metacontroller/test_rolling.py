"""Children that roll from one revision of their parent to the next, one by one."""

from collections.abc import Sequence

import pytest

from lamina.objects import meta
from tests.bed.scenarios import check
from tests.scenarios.hook import Said
from tests.scenarios.metacontroller.rolls import (
    READY,
    REVISIONS,
    Roll,
    settled,
    updated,
)
from tests.scenarios.metacontroller.stage import Stage, desired
from tests.scenarios.metacontroller.witness import witness

pytestmark = pytest.mark.asyncio(loop_scope="session")


@check("MC-69")
async def test_one_child_at_a_time_is_replaced_in_the_hooks_order_and_the_next_once_it_is_ready(
    stage: Stage,
) -> None:
    roll = Roll(stage)
    said: list[str] = []
    async with stage.running():
        await settled(roll, "b", "a", "c")
        async with witness(stage, roll.kind, REVISIONS, (f"{stage.group}/v1", "Thing")) as seen:
            await roll.turn_to("two")
            for moved in (("b",), ("b", "a"), ("b", "a", "c")):
                await roll.until_images(**{name: "two" if name in moved else "one" for name in "abc"})
                waiting = await roll.until_updated("RolloutWaiting", f"Part {moved[-1]} failed")
                said.append(waiting["message"])
                assert len(await roll.revisions()) == 2 - (len(moved) == 3)
                await roll.heal(moved[-1])
            await roll.until_all("two", 3)
            await roll.until_revisions("two")
            parent = await stage.client.get(stage.parent())
            await seen.has_seen(parent)

    told = [(one["reason"], one["message"]) for one in await stage.events(stage.parent())]
    assert {message for reason, message in told if reason == "RolloutProgressing"} == {
        "updating Part b (1 of 3)",
        "updating Part a (2 of 3)",
        "updating Part c (3 of 3)",
    }
    (revision,) = await roll.revisions()
    assert told.count(("RolloutComplete", f"latest ControllerRevision: {meta.name(revision)}")) == 1
    assert said == [
        f'child Part {name} failed status check: required condition type missing: "Ready"' for name in "bac"
    ]
    gone = [one.name for one in seen.of("Part") if one.what == "DELETED"]
    assert gone == ["b", "a", "c"]
    reasons = [found["reason"] for one in seen.of("Thing") if (found := updated(one.obj)) is not None]
    assert reasons[0] in ("OnLatestRevision", "RolloutProgressing")
    assert reasons[-1] == "OnLatestRevision"
    assert {"RolloutProgressing", "RolloutWaiting"} <= set(reasons)
    progress = [found["message"] for one in seen.of("Thing") if (found := updated(one.obj)) is not None and found["reason"] == "RolloutProgressing"]  # fmt: skip
    assert list(dict.fromkeys(progress)) == ["updating Part b", "updating Part a", "updating Part c"]
    assert updated(parent) == {
        "type": "Updated",
        "status": "True",
        "reason": "OnLatestRevision",
        "message": f"latest ControllerRevision: {meta.name((await roll.revisions())[0])}",
    }


@check("MC-70")
async def test_a_child_that_is_updated_in_place_is_waited_for_until_it_has_observed_its_spec(
    stage: Stage,
) -> None:
    roll = Roll(stage)
    async with stage.running():
        await settled(roll, "a", "b", method="RollingInPlace")
        await stage.client.patch(roll.part("a"), {"status": {"observedGeneration": 1}}, subresource="status")
        uid = meta.uid(await stage.client.get(roll.part("a")))

        await roll.turn_to("two")
        waiting = await roll.until_updated("RolloutWaiting", "Part a")
        assert waiting["message"] == "child Part a hasn't observed latest spec"
        assert await roll.images() == {"a": "two", "b": "one"}
        await stage.client.patch(roll.part("a"), {"status": {"observedGeneration": 2}}, subresource="status")
        await roll.until_all("two", 2)

        assert meta.uid(await stage.client.get(roll.part("a"))) == uid


@check("MC-71")
async def test_a_child_that_never_becomes_ready_holds_the_roll_at_one_until_it_is_mended(
    stage: Stage,
) -> None:
    roll = Roll(stage)
    async with stage.running():
        await settled(roll, "a", "b", "c")
        await roll.turn_to("two")
        await roll.until_waiting("a")
        await roll.heal("a", status="False")
        for _ in range(3):
            waiting = await roll.until_updated("RolloutWaiting", '(want "True")')
            assert waiting["message"] == 'child Part a failed status check: "Ready" condition status is "False" (want "True")'  # fmt: skip
            calls = len(stage.hook.requests)
            stage.pass_time(hours=1)
            await stage.hook.called(calls + 1)
            await stage.settled()
            assert await roll.images() == {"a": "two", "b": "one", "c": "one"}

        async with roll.healing():
            await roll.until_all("two", 3)


@check("MC-72")
async def test_a_child_that_dies_before_its_turn_comes_back_as_it_was_and_one_after_it_as_it_should_be(
    stage: Stage,
) -> None:
    roll = Roll(stage)
    async with stage.running():
        await settled(roll, "a", "b", "c")
        await roll.turn_to("two")
        await roll.until_waiting("a")
        before = {meta.name(one): meta.uid(one) for one in await roll.parts()}

        await stage.client.delete(roll.part("c"))
        await stage.client.delete(roll.part("a"))
        await stage.until_listed(
            "Part",
            lambda those: (
                {meta.name(one) for one in those if meta.uid(one) != before[meta.name(one)]} == {"a", "c"}
            ),
            roll.kind[0],
        )

        assert await roll.images() == {"a": "two", "b": "one", "c": "one"}
        async with roll.healing():
            await roll.until_all("two", 3)


@check("MC-73")
@pytest.mark.parametrize("left", [("a", "b"), ("b", "c"), ("c",), ("a",), ("a", "b", "c", "d", "e")])
async def test_a_field_outside_the_snapshot_counts_at_once_and_wedges_nothing(
    stage: Stage, left: Sequence[str]
) -> None:
    roll = Roll(stage)
    async with stage.running():
        await settled(roll, "a", "b", "c")
        await roll.turn_to("two")
        await roll.until_waiting("a")

        await roll.want(parts=list(left), extra={"size": 3})
        await stage.until_listed(
            "Part", lambda those: {meta.name(one) for one in those} == set(left), roll.kind[0]
        )
        async with roll.healing():
            await roll.until_all("two", len(left))

        assert [one["spec"]["size"] for one in await roll.parts()] == [3] * len(left)
        await roll.until_revisions("two")


@check("MC-73")
async def test_a_child_that_is_wanted_again_in_the_middle_of_a_roll_comes_back_as_it_was(
    stage: Stage,
) -> None:
    roll = Roll(stage)
    async with stage.running():
        await settled(roll, "a", "b", "c")
        await roll.turn_to("two")
        await roll.until_waiting("a")

        await roll.want(parts=["a", "b"])
        await stage.until_gone(roll.part("c"))
        await roll.want(parts=["a", "b", "c"])
        await roll.until_images(a="two", b="one", c="one")


@check("MC-74")
async def test_going_back_in_the_middle_is_a_roll_the_other_way(stage: Stage) -> None:
    roll = Roll(stage)
    async with stage.running():
        await settled(roll, "a", "b", "c")
        await roll.turn_to("two")
        await roll.until_waiting("a")
        await roll.heal("a")
        await roll.until_waiting("b")
        async with witness(stage, roll.kind, REVISIONS) as seen:
            await roll.turn_to("one")
            await roll.until_waiting("a")
            assert await roll.images() == {"a": "one", "b": "two", "c": "one"}
            async with roll.healing():
                await roll.until_all("one", 3)
            await roll.until_revisions("one")

    assert [one.name for one in seen.of("Part") if one.what == "DELETED"] == ["a", "b"]


@check("MC-75")
async def test_another_change_in_the_middle_makes_three_revisions_and_only_the_newest_is_rolled_to(
    stage: Stage,
) -> None:
    roll = Roll(stage)
    async with stage.running():
        await settled(roll, "a", "b", "c")
        await roll.turn_to("two")
        await roll.until_waiting("a")
        await roll.heal("a")
        await roll.until_waiting("b")
        async with witness(stage, roll.kind) as seen:
            await roll.turn_to("three")
            await roll.until_revisions("one", "two", "three")
            async with roll.healing():
                await roll.until_all("three", 3)
            await roll.until_revisions("three")

    made = [one.obj["spec"]["image"] for one in seen.of("Part") if one.what == "ADDED"]
    assert made == ["three"] * 3


@check("MC-84")
async def test_of_two_rolling_kinds_one_child_moves_at_a_time_and_each_waits_for_the_other(
    stage: Stage,
) -> None:
    roll = Roll(stage)
    checks = {"method": "RollingRecreate", "statusChecks": READY}
    rules = [
        {"apiVersion": roll.kind[0], "resource": "parts", "updateStrategy": checks},
        {"apiVersion": "v1", "resource": "configmaps", "updateStrategy": {"method": "RollingInPlace"}},
    ]

    def answer(said: Said) -> Said:
        image = said["parent"]["spec"]["template"]["image"]
        parts = roll.wanted(said["parent"])
        maps = [desired("ConfigMap", name, data={"image": image}) for name in ("m", "n")]
        return {"children": [maps[0], parts[0], maps[1], parts[1]]}

    async with stage.running():
        await stage.given_kind("Part")
        parent = {
            "apiVersion": f"{stage.group}/v1",
            "resource": "things",
            "revisionHistory": {"fieldPaths": ["spec.template"]},
        }
        stage.hook.answer = answer
        await stage.given_composite("cc", parentResource=parent, childResources=rules)
        await roll.given_parent("a", "b")
        await roll.until_images(a="one", b="one")
        await roll.heal()
        await roll.until_updated("OnLatestRevision")
        async with witness(stage, roll.kind, ("v1", "ConfigMap")) as seen:
            await roll.turn_to("two")
            await roll.until_waiting("a")
            assert await maps_of(stage) == {"m": "two", "n": "one"}
            await roll.heal("a")
            await roll.until_waiting("b")
            assert await maps_of(stage) == {"m": "two", "n": "two"}
            await roll.heal("b")
            await roll.until_all("two", 2)
            await seen.has_seen(*await roll.parts())

    moves = [
        one.name
        for one in seen.history
        if one.what == "DELETED" or (one.what == "MODIFIED" and one.obj["kind"] == "ConfigMap")
    ]
    assert moves == ["m", "a", "n", "b"]


async def maps_of(stage: Stage) -> dict[str, str]:
    return {meta.name(one): one["data"]["image"] for one in await stage.listed("ConfigMap")}
