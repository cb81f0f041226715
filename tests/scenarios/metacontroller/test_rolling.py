"""Children that roll from one revision of their parent to the next, one by one."""

import asyncio
import hashlib
from collections.abc import Sequence
from contextlib import suppress
from random import Random

import pytest

from lamina.errors import NotFound
from lamina.families.metacontroller.controller import Options
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
    image_of,
    updated,
)
from tests.scenarios.metacontroller.stage import API, Stage, desired
from tests.scenarios.metacontroller.wires import wired
from tests.scenarios.metacontroller.witness import Witness, witness

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def settled(roll: Roll, *names: str, **settings: object) -> None:
    """Have the parts there and ready, all of image `one`."""
    await roll.given(*names, **settings)  # type: ignore[arg-type]  # handed on as they come
    await roll.until_images(**dict.fromkeys(names, "one"))
    await roll.heal()
    await roll.until_updated("OnLatestRevision")


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
        await roll.until_updated("RolloutWaiting", "Part a")
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
        await roll.until_updated("RolloutWaiting", "Part a")
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
        await roll.until_updated("RolloutWaiting", "Part a")

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
        await roll.until_updated("RolloutWaiting", "Part a")

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
        await roll.until_updated("RolloutWaiting", "Part a")
        await roll.heal("a")
        await roll.until_updated("RolloutWaiting", "Part b")
        async with witness(stage, roll.kind, REVISIONS) as seen:
            await roll.turn_to("one")
            await roll.until_updated("RolloutWaiting", "Part a")
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
        await roll.until_updated("RolloutWaiting", "Part a")
        await roll.heal("a")
        await roll.until_updated("RolloutWaiting", "Part b")
        async with witness(stage, roll.kind) as seen:
            await roll.turn_to("three")
            await roll.until_revisions("one", "two", "three")
            async with roll.healing():
                await roll.until_all("three", 3)
            await roll.until_revisions("three")

    made = [one.obj["spec"]["image"] for one in seen.of("Part") if one.what == "ADDED"]
    assert made == ["three"] * 3


@check("MC-76")
async def test_whoever_is_killed_over_and_over_disturbs_no_child_twice(stage: Stage) -> None:
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
    roll = Roll(stage)
    async with stage.running():
        await settled(roll, "a", "b")
        await roll.turn_to("two")
        await roll.until_updated("RolloutWaiting", "Part a")
        for sick in ("one", "three"):

            def ill(said: Said, sick: str = sick) -> Said:
                # The old revision first, then the new one.
                image = said["parent"]["spec"]["template"]["image"]
                return roll.answer(said) if image != sick else {"children": "ill"}

            before = _versions(await roll.parts(), await roll.revisions())
            stage.hook.answer = ill
            await roll.turn_to("three") if sick == "three" else await roll.want(parts=["a"])
            calls = len(stage.hook.requests)
            await stage.until_told(stage.parent(), "SyncError", "the answer of sync hook")
            await stage.hook.called(calls + 2)
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
        await roll.until_updated("RolloutWaiting", "Part a")

        await stage.client.delete(stage.parent())

        await stage.until_gone(stage.parent())
        await stage.until_listed("Part", lambda those: not those, roll.kind[0])
        await stage.until_listed("ControllerRevision", lambda those: not those, API)
    assert bool(stage.hook.on("/finalize")) == finalizes


@check("MC-79")
async def test_a_parent_deleted_alone_and_made_again_takes_up_its_children_and_its_roll(
    stage: Stage,
) -> None:
    roll = Roll(stage)
    async with stage.running():
        await settled(roll, "a", "b", "c")
        await roll.turn_to("two")
        await roll.until_updated("RolloutWaiting", "Part a")
        await roll.heal("a")
        await roll.until_updated("RolloutWaiting", "Part b")
    before = {meta.name(one): meta.uid(one) for one in await roll.parts()}
    await stage.client.delete(stage.parent(), propagation="Orphan")
    await stage.until_gone(stage.parent())

    async with stage.running(), witness(stage, roll.kind, REVISIONS) as seen:
        new = await stage.given_parent(spec={"parts": ["a", "b", "c"], "template": {"image": "two"}})
        await stage.until_listed(
            "Part",
            lambda those: all(meta.is_controlled_by(one, meta.uid(new)) for one in those),
            roll.kind[0],
        )
        await roll.until_updated("RolloutWaiting", "Part b")
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
        await roll.until_updated("RolloutWaiting", "Part a")
        async with witness(stage, roll.kind) as seen:
            for revision in await roll.revisions():
                with suppress(NotFound):
                    await stage.client.delete(meta.ref(revision))
            await roll.until_revisions("two")
            await roll.until_updated("RolloutWaiting", "Part a")
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
            lambda obj: obj is not None and obj["status"].get("observedGeneration") == meta.generation(obj),
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
        await roll.until_updated("RolloutWaiting", "Part a")
        async with roll.healing():
            await roll.until_all("two", 2)
        await roll.turn_to("three")
        await roll.until_updated("RolloutWaiting", "Part a")

        parent = await stage.client.get(stage.parent())
        assert [one["type"] for one in parent["status"]["conditions"]] == ["Other", "Updated"]


@check("MC-82")
async def test_a_revision_is_named_and_labelled_so_that_it_is_found_again(stage: Stage) -> None:
    roll = Roll(stage)
    stage.group = ".".join((60 * "x", 60 * "y", 60 * "z", stage.group))
    async with stage.running():
        await stage.given_kind("Thing")
        await stage.given_kind("Part")
        roll.kind = (f"{stage.group}/v1", "Part")
        await roll.given_controller()
        labels = {"component": "backend", "app": "x"}
        template = {"image": "one", "note": "<&>", "metadata": {"labels": labels}}
        parent = await stage.given_parent(spec={"parts": ["a"], "template": template})
        await roll.until_revisions("one")

    (revision,) = await roll.revisions()
    patch = (
        r'{"spec":{"template":{"image":"one","metadata":{"labels":{"app":"x","component":"backend"}},'
        r'"note":"\u003c\u0026\u003e"}}}'
    )
    digest = hashlib.sha1((meta.uid(parent) + patch).encode()).hexdigest()
    assert meta.name(revision) == f"things.{stage.group}"[:212] + f"-{digest}"
    assert revision["parentPatch"] == {"spec": {"template": template}}
    # A label holds 63 characters, and a group may have more.
    short = f"{stage.group[:52]}-{hashlib.sha1(stage.group.encode()).hexdigest()[:10]}"
    assert meta.labels(revision) == {
        **labels,
        "metacontroller.k8s.io/apiGroup": short,
        "metacontroller.k8s.io/resource": "things",
    }
    assert meta.owner_refs(revision) == [meta.owner_ref(parent, controller=True, blocks=True)]
    assert revision["children"] == [{"apiGroup": stage.group, "kind": "Part", "names": ["a"]}]
    assert image_of(revision) == "one"


@check("MC-82")
async def test_a_parent_of_the_core_group_has_revisions_too(stage: Stage) -> None:
    def answer(said: Said) -> Said:
        image = said["parent"]["metadata"]["annotations"]["image"]
        return {"status": {}, "children": [desired("ConfigMap", "c", data={"image": image})]}

    stage.hook.answer = answer
    parent = {
        "apiVersion": "v1",
        "resource": "replicationcontrollers",
        "labelSelector": {"matchLabels": {"story": stage.namespace}},
        "revisionHistory": {"fieldPaths": ["spec.template"]},
    }
    rolling = {"apiVersion": "v1", "resource": "configmaps", "updateStrategy": {"method": "RollingInPlace"}}
    async with stage.running():
        await stage.given_composite("rc", parentResource=parent, childResources=[rolling], generateSelector=True)  # fmt: skip
        template = {
            "metadata": {"labels": {"app": "nginx"}},
            "spec": {"containers": [{"name": "c", "image": "one"}]},
        }
        made = await stage.create(
            {
                "apiVersion": "v1",
                "kind": "ReplicationController",
                "metadata": {
                    "name": "rc",
                    "namespace": stage.namespace,
                    "labels": {"story": stage.namespace},
                    "annotations": {"image": "one"},
                },
                "spec": {"replicas": 0, "selector": {"app": "nginx"}, "template": template},
            }
        )
        await stage.until_listed("ControllerRevision", lambda those: len(those) == 1, API)

    (revision,) = await roll_revisions(stage)
    assert meta.name(revision).startswith("replicationcontrollers.core-")
    assert len(meta.name(revision).removeprefix("replicationcontrollers.core-")) == 40
    assert meta.labels(revision) == {
        "controller-uid": meta.uid(made),
        "metacontroller.k8s.io/apiGroup": "",
        "metacontroller.k8s.io/resource": "replicationcontrollers",
    }


async def roll_revisions(stage: Stage) -> Sequence[Made]:
    return await stage.listed("ControllerRevision", API)


@check("MC-83")
async def test_children_of_a_parent_without_a_namespace_cannot_roll_and_it_is_said_why(stage: Stage) -> None:
    await stage.given_kind("World", namespaced=False)
    rolling = {"apiVersion": "v1", "resource": "configmaps", "updateStrategy": {"method": "RollingInPlace"}}
    parent = {"apiVersion": f"{stage.group}/v1", "resource": "worlds"}
    async with stage.running():
        made = await stage.given_composite("cc", parentResource=parent, childResources=[rolling])
        told = await stage.until_told(meta.ref(made), "CreateError", "cannot roll")

    assert told["message"].startswith("Cannot create new controller: ")
    assert "worlds are cluster-scoped" in told["message"]
    assert stage.hook.requests == []


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
            await roll.until_updated("RolloutWaiting", "Part a")
            assert await maps_of(stage) == {"m": "two", "n": "one"}
            await roll.heal("a")
            await roll.until_updated("RolloutWaiting", "Part b")
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
