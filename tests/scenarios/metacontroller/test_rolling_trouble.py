"""Rolls that are killed, deleted, lied to and robbed of their records."""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from random import Random

import pytest

from lamina.errors import NotFound
from lamina.objects import meta
from lamina.objects.types import Made
from tests.bed.scenarios import check
from tests.scenarios.hook import Said
from tests.scenarios.metacontroller.rolls import (
    READY,
    REVISIONS,
    Roll,
    check_promises,
    disruptions,
    settled,
)
from tests.scenarios.metacontroller.stage import API, Stage, config_maps, desired
from tests.scenarios.metacontroller.wires import wired
from tests.scenarios.metacontroller.witness import Witness, witness

pytestmark = pytest.mark.asyncio(loop_scope="session")


@check("MC-76")
async def test_a_process_killed_over_and_over_disturbs_no_child_twice(stage: Stage) -> None:
    """Twenty deaths in one roll, each after a few more writes; every successor starts with nothing remembered."""
    random, roll = Random(76), Roll(stage)
    names = ("f", "b", "e", "a", "d", "c", "g", "h")
    async with stage.running():
        await settled(roll, *names)
        start = {meta.uid(one): one for one in [*await roll.parts(), *await roll.revisions()]}
    deaths = 0
    async with witness(stage, roll.kind, REVISIONS) as seen, roll.healing():
        await roll.turn_to("two")
        while deaths < 20:
            stage.own, wire = wired(stage.client)
            wire.last = random.choice((1, 1, 2, 2, 3))
            await stage.start()
            dead = asyncio.create_task(wire.dead.wait())
            done = asyncio.create_task(roll.until_all("two", len(names)))
            await asyncio.wait((dead, done), return_when=asyncio.FIRST_COMPLETED)
            ended = done.done()
            for task in (dead, done):
                task.cancel()
                with suppress(asyncio.CancelledError):
                    await task
            await stage.stop()
            if ended:
                break
            deaths += 1
        stage.own = None
        async with stage.running():
            await roll.until_all("two", len(names))
            await roll.until_revisions("two")
            await stage.settled()
        await seen.has_seen(*await roll.parts(), *await roll.revisions())

    assert deaths == 20
    assert disruptions(seen, list(start.values())) == dict.fromkeys(names, 1)
    check_promises(seen.history, start, newest="two")
    assert await roll.claims() == {"two": sorted(names)}


@check("MC-77")
async def test_a_hook_that_fails_for_one_revision_has_nothing_written(stage: Stage) -> None:
    roll, sick = Roll(stage), set[str]()

    def image(said: Said) -> str:
        return str(said["parent"]["spec"]["template"]["image"])

    def about(revision: str) -> Callable[[Said], bool]:
        return lambda said: image(said) == revision

    def ill(said: Said) -> Said:
        return {"children": "ill"} if image(said) in sick else roll.answer(said)

    async with stage.running():
        await settled(roll, "a", "b")
        await roll.turn_to("two")
        await roll.until_waiting("a")
        await stage.settled()
        before = _versions(await roll.parts(), await roll.revisions())
        stage.hook.answer = ill
        # The old revision first, then the new one.
        for revision, change in (("one", {"parts": ["a"]}), ("three", {"template": {"image": "three"}})):
            sick.add(revision)
            calls = stage.hook.count()
            await roll.want(**change)
            await stage.hook.received(about(revision), since=calls)
            # Healthy again only now: a process with a stale cache would go on without the unhealthy one.
            sick.intersection_update({revision})
            await stage.until_event(stage.parent(), "SyncError", "the answer of sync hook")
            await stage.hook.called(stage.hook.count() + 2)
            assert _versions(await roll.parts(), await roll.revisions()) == before

        stage.hook.answer = roll.answer
        async with roll.healing():
            stage.pass_time(minutes=20)
            await roll.until_all("three", 1)


def _versions(*objects: Sequence[Made]) -> set[tuple[str, str]]:
    return {(meta.uid(one), meta.resource_version(one)) for those in objects for one in those}


@check("MC-78")
@pytest.mark.parametrize("finalizes", [False, True])
async def test_a_parent_deleted_in_the_middle_leaves_nothing_behind(stage: Stage, finalizes: bool) -> None:
    roll = Roll(stage)
    sync = {"webhook": {"url": f"{stage.hook.url}/sync"}}
    last = {"finalize": {"webhook": {"url": f"{stage.hook.url}/finalize"}}} if finalizes else {}

    def goodbye(said: Said) -> Said:
        there = said["children"]["Part." + roll.kind[0]]
        return {"children": roll.wanted(said["parent"])[: len(there) - 1], "finalized": not there}

    stage.hook.paths["/finalize"] = goodbye
    async with stage.running():
        await settled(roll, "a", "b", "c", hooks={"sync": sync, **last})
        await roll.turn_to("two")
        await roll.until_waiting("a")

        await stage.client.delete(stage.parent())

        await stage.until_gone(stage.parent())
        # A garbage collector that has not heard of the kind yet takes a while.
        await stage.until_listed("Part", lambda those: not those, roll.kind[0], timeout=120)
        await stage.until_listed("ControllerRevision", lambda those: not those, API, timeout=120)
    assert bool(stage.hook.on("/finalize")) == finalizes


@check("MC-79")
async def test_a_parent_deleted_alone_and_made_again_takes_up_its_children_and_its_roll(
    stage: Stage,
) -> None:
    roll = Roll(stage)
    async with stage.running():
        await settled(roll, "a", "b", "c")
        await roll.turn_to("two")
        await roll.until_waiting("a")
        await roll.heal("a")
        await roll.until_waiting("b")
    before = {meta.name(one): meta.uid(one) for one in await roll.parts()}
    await stage.until_collected(*roll.kind)
    await stage.client.delete(stage.parent(), propagation="Orphan")
    await stage.until_gone(stage.parent())

    async with stage.running(), witness(stage, roll.kind, REVISIONS) as seen:
        new = await stage.given_parent(spec={"parts": ["a", "b", "c"], "template": {"image": "two"}})
        await stage.until_listed(
            "Part",
            lambda those: all(meta.is_controlled_by(one, meta.uid(new)) for one in those),
            roll.kind[0],
        )
        await roll.until_waiting("b")
        assert {meta.name(one): meta.uid(one) for one in await roll.parts()} == before
        assert await roll.images() == {"a": "two", "b": "two", "c": "one"}
        assert await roll.claims() == {"one": ["c"], "two": ["a", "b"]}
        async with roll.healing():
            await roll.until_all("two", 3)
        await roll.until_revisions("two")

    assert [one.name for one in seen.of("Part") if one.what == "DELETED"] == ["c"]


@check("MC-80")
async def test_revisions_lost_in_the_middle_do_not_have_everything_replaced(stage: Stage) -> None:
    roll = Roll(stage)
    async with stage.running():
        await settled(roll, "a", "b", "c", "d")
        await roll.turn_to("two")
        await roll.until_waiting("a")
        async with witness(stage, roll.kind) as seen:
            for revision in await roll.revisions():
                with suppress(NotFound):
                    await stage.client.delete(meta.ref(revision))
            await roll.until_revisions("two")
            await roll.until_waiting("a")
            assert await roll.images() == {"a": "two", "b": "one", "c": "one", "d": "one"}
            async with roll.healing():
                await roll.until_all("two", 4)

    assert [one.name for one in seen.of("Part") if one.what == "DELETED"] == ["b", "c", "d"]
    _one_after_the_other(seen)


@check("MC-80")
async def test_children_whose_kind_is_to_roll_from_now_on_are_not_replaced_all_at_once(stage: Stage) -> None:
    roll = Roll(stage)
    async with stage.running():
        await stage.given_kind("Part")
        await roll.given_controller(method="OnDelete")
        await roll.given_parent("a", "b", "c")
        await roll.until_images(a="one", b="one", c="one")
        await roll.turn_to("two")
        await stage.until(
            stage.parent(),
            lambda obj: (
                obj is not None
                and (obj.get("status") or {}).get("observedGeneration") == meta.generation(obj)
            ),
        )
        async with witness(stage, roll.kind) as seen:
            rule = {"apiVersion": roll.kind[0], "resource": "parts"}
            strategy = {"method": "RollingRecreate", "statusChecks": READY}
            at = stage.at("CompositeController", stage.named("roll"), API, namespace="")
            await stage.client.patch(at, {"spec": {"childResources": [{**rule, "updateStrategy": strategy}]}})
            async with roll.healing():
                await roll.until_all("two", 3)
            await seen.has_seen(*await roll.parts())

    _one_after_the_other(seen)


def _one_after_the_other(seen: Witness) -> None:
    """See that no part went while another was away."""
    away: set[str] = set()
    for one in seen.of("Part"):
        if one.what == "DELETED":
            assert not away, f"{one.name} went while {sorted(away)} was away"
            away.add(one.name)
        elif one.what == "ADDED":
            away.discard(one.name)


@check("MC-81")
async def test_a_hook_without_a_status_has_its_condition_written_and_one_with_its_own_has_it_overwritten(
    stage: Stage,
) -> None:
    roll = Roll(stage)
    theirs = {"type": "Updated", "status": "True", "reason": "Theirs", "message": "mine"}
    statuses = {"two": None, "three": {"conditions": [theirs, {"type": "Other", "status": "True"}]}}
    async with stage.running():
        await settled(roll, "a", "b")
        stage.hook.answer = lambda said: {
            "children": roll.wanted(said["parent"]),
            "status": statuses.get(said["parent"]["spec"]["template"]["image"], {}),
        }
        await roll.turn_to("two")
        await roll.until_waiting("a")
        async with roll.healing():
            await roll.until_all("two", 2)
        await roll.turn_to("three")
        await roll.until_waiting("a")

        parent = await stage.client.get(stage.parent())
        assert [one["type"] for one in parent["status"]["conditions"]] == ["Other", "Updated"]


@pytest.mark.parametrize("required", [True, False])
async def test_the_condition_of_a_rollout_has_a_transition_time_where_the_parents_schema_requires_one(
    stage: Stage, required: bool
) -> None:
    condition = {
        "type": "object",
        "properties": {
            name: {"type": "string"} for name in ("type", "status", "reason", "message", "lastTransitionTime")
        },
        "required": ["type", "status", *(["lastTransitionTime"] if required else [])],
    }
    anything = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    listed = {"type": "array", "items": condition}
    status = {**anything, "properties": {"conditions": listed}}
    await stage.given_kind(
        "Timed", schema={"type": "object", "properties": {"spec": anything, "status": status}}
    )
    stage.hook.answer = lambda said: {
        "children": [desired("ConfigMap", "c", data={"n": str(said["parent"]["spec"].get("n", 0))})]
    }
    timed = stage.parent(kind="Timed")

    def is_updated(obj: Made | None) -> bool:
        return obj is not None and (obj.get("status") or {}).get("observedGeneration") == meta.generation(obj)

    async with stage.running():
        await stage.given_composite(
            "cc",
            parentResource={"apiVersion": f"{stage.group}/v1", "resource": "timeds"},
            childResources=config_maps("RollingInPlace"),
        )
        await stage.given_parent(kind="Timed")
        first = await stage.until(timed, is_updated)
        assert first is not None
        (before,) = first["status"]["conditions"]
        assert ("lastTransitionTime" in before) is required

        stage.pass_time(minutes=1)
        await stage.client.patch(timed, {"spec": {"n": 1}})
        await stage.until(stage.at("ConfigMap", "c"), lambda obj: bool(obj and obj["data"]["n"] == "1"))
        last = await stage.until(
            timed,
            lambda obj: (
                is_updated(obj)
                and bool(obj and obj["status"]["conditions"][0]["reason"] == "OnLatestRevision")
            ),
        )
        assert last is not None
        (after,) = last["status"]["conditions"]
        if required:
            assert after["lastTransitionTime"] > before["lastTransitionTime"]
        else:
            assert "lastTransitionTime" not in after
        await stage.settled()
        # Nothing is written again.
        assert await stage.client.get(timed) == last
