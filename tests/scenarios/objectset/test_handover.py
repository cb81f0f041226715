"""The handover of objects from one set to a newer one, phase by phase."""

from functools import partial
from operator import lt

import pytest

from lamina.families.objectset.labels import REVISION
from lamina.objects import meta
from lamina.objects.types import Made, Obj
from lamina.testing.waiting import eventually
from tests.bed.scenarios import check
from tests.scenarios.objectset.record import Record
from tests.scenarios.objectset.stage import (
    Stage,
    condition,
    controlled,
    controller,
    has_condition,
    is_available,
    is_finished,
    owners,
    revision_of,
)

pytestmark = pytest.mark.asyncio(loop_scope="session")


def passes(live: Obj) -> bool:
    """Say whether the probe of a ConfigMap passes."""
    return meta.annotations(live).get("name") == meta.name(live)


def assert_handed_over_in_one_write(stage: Stage, record: Record, name: str, phase: str) -> None:
    """Assert that an object always has one controller, and the content of the revision that controls it."""
    old, new = stage.owner_of("v1", phase), stage.owner_of("v2", phase)
    controllers = []
    for change in record.of(name):
        assert change.what != "DELETED"
        controlling = [one for one, is_controller in owners(change.obj).items() if is_controller]
        assert len(controlling) == 1, f"at {change.version}"
        controllers += controlling
        if controlling == [new]:
            assert (revision_of(change.obj), change.obj["data"]["by"]) == ("2", "v2")
            assert owners(change.obj) == {old: False, new: True}
        else:
            assert new not in owners(change.obj)
            assert revision_of(change.obj) == "1"
    assert controllers == sorted(controllers, key=[old, new].index), "control only moves forward"


def assert_gated(stage: Stage, record: Record, first: Made) -> None:
    """Assert that child-2 never carries a reference to v2 before child-1 has passed under v2."""
    new, child_1 = stage.owner_of("v2", "phase-2"), first
    for change in record.changes:
        if change.name == "child-1":
            child_1 = change.obj
        elif change.name == "child-2" and new in owners(change.obj):
            assert passes(child_1), f"at {change.version}"
            assert controller(child_1) == stage.owner_of("v2", "phase-1")


def phases(stage: Stage, by: str, *, healthy: bool = True) -> tuple[Made, Made]:
    return (
        stage.phase("phase-1", stage.config_map("child-1", healthy=healthy, by=by)),
        stage.phase("phase-2", stage.config_map("child-2", by=by)),
    )


async def given_first(stage: Stage) -> None:
    """The set v1, which has succeeded."""
    await stage.given_set("v1", *phases(stage, "v1"), revision=1)
    first = await stage.until_set("v1")
    assert condition(first, "Succeeded") == ("True", "RolloutSuccess")
    await stage.settled()


async def given_second(stage: Stage) -> None:
    """The set v2, which has taken child-1 over and is stuck in phase-1, because child-1 fails."""
    await stage.given_set("v2", *phases(stage, "v2", healthy=False), previous=["v1"], revision=2)
    await stage.until_object("child-1", lambda now: controller(now) == stage.owner_of("v2", "phase-1"))
    await stage.until_set("v1", lambda now: controlled(now) == ["child-2"])
    await stage.until_set("v2", lambda now: condition(now, "Available") == ("False", "ProbeFailure"))
    await stage.settled()


@check("OS-11")
async def test_objects_are_handed_over_in_the_order_of_the_phases(stage: Stage) -> None:
    async with stage.running():
        await given_first(stage)
        child_1, child_2 = await stage.live("child-1"), await stage.live("child-2")
        assert [controller(one) for one in (child_1, child_2)] == [
            stage.owner_of("v1", "phase-1"),
            stage.owner_of("v1", "phase-2"),
        ]
        assert [revision_of(one) for one in (child_1, child_2)] == ["1", "1"]

        async with stage.recording() as record:
            await given_second(stage)
            handed = await stage.live("child-1")
            assert owners(handed) == {
                stage.owner_of("v1", "phase-1"): False,
                stage.owner_of("v2", "phase-1"): True,
            }
            assert (revision_of(handed), handed["data"]) == ("2", {"by": "v2"})
            assert meta.uid(handed) == meta.uid(child_1)
            assert await stage.live("child-2") == child_2
            first, second = await stage.set("v1"), await stage.set("v2")
            assert (controlled(first), controlled(second)) == (["child-2"], ["child-1"])
            for one in (first, second):
                assert condition(one, "InTransition") == ("True", "InTransition")
                assert condition(one, "Available") == ("False", "ProbeFailure")

            await stage.edit(stage.object_ref("child-1"), {"data": {"by": "hand"}})
            await stage.until_object("child-1", lambda now: now["data"] == {"by": "v2"})
            await stage.edit(stage.object_ref("child-2"), {"data": {"by": "hand"}})
            await stage.until_object("child-2", lambda now: now["data"] == {"by": "v1"})
            await stage.settled()
            assert controller(await stage.live("child-2")) == stage.owner_of("v1", "phase-2")

            await stage.heal("child-1")
            await stage.until_set("v2")
            await stage.until_set("v1", lambda now: not controlled(now))
            await stage.settled()
            await record.caught_up()

    edited = [one for one in record.changes if (one.obj.get("data") or {}).get("by") == "hand"]
    assert len(edited) == 2
    record.leave_out(*edited)
    assert_handed_over_in_one_write(stage, record, "child-1", "phase-1")
    assert_handed_over_in_one_write(stage, record, "child-2", "phase-2")
    assert_gated(stage, record, child_1)
    child_2 = await stage.live("child-2")
    assert (revision_of(child_2), child_2["data"]) == ("2", {"by": "v2"})
    first, second = await stage.set("v1"), await stage.set("v2")
    assert controlled(first) == []
    assert condition(first, "InTransition") == ("True", "InTransition")
    assert controlled(second) == ["child-1", "child-2"]
    assert is_finished(second)
    assert condition(second, "Succeeded") == ("True", "RolloutSuccess")


@check("OS-12")
async def test_what_the_old_set_still_controls_is_reconciled_by_it(stage: Stage) -> None:
    async with stage.running():
        await given_first(stage)
        await given_second(stage)
        old = await stage.live("child-2")

        await stage.edit(stage.object_ref("child-2"), {"data": {"by": "hand"}})
        edited = await stage.until_object("child-2", lambda now: now["data"] == {"by": "v1"})
        assert controller(edited) == stage.owner_of("v1", "phase-2")

        await stage.client.delete(stage.object_ref("child-2"))
        await stage.until_object("child-2", lambda now: meta.uid(now) != meta.uid(old))
        await stage.settled()

    new = await stage.live("child-2")
    assert new["data"] == {"by": "v1"}
    assert revision_of(new) == "1"
    assert owners(new) == {stage.owner_of("v1", "phase-2"): True}
    assert controlled(await stage.set("v1")) == ["child-2"]
    assert controlled(await stage.set("v2")) == ["child-1"]


@check("OS-13")
async def test_the_old_set_never_takes_an_object_back(stage: Stage) -> None:
    async with stage.running():
        await given_first(stage)
        await given_second(stage)
        taken = await stage.live("child-1")
        async with stage.recording() as record:
            for number in range(50):
                passes = stage.passes.total()
                await stage.edit(stage.object_ref("child-2"), {"data": {"by": f"touch {number}"}})
                await stage.until_object("child-2", lambda now: now["data"] == {"by": "v1"})
                # A reconcile ends after its write can be read.
                await eventually(stage.passes.total, partial(lt, passes))
            await stage.settled()
            await record.caught_up()

    assert record.of("child-1") == []
    assert await stage.live("child-1") == taken
    assert owners(taken) == {stage.owner_of("v1", "phase-1"): False, stage.owner_of("v2", "phase-1"): True}
    assert not is_available(await stage.set("v2"))
    assert has_condition(await stage.set("v1"), "InTransition")


def _has_number(number: str, live: Made) -> bool:
    return revision_of(live) == number


@check("OS-36")
@pytest.mark.parametrize("number", [None, "0", "1", "99"], ids=["removed", "zero", "lowered", "raised"])
async def test_an_edited_number_changes_no_controller_during_a_handover(
    stage: Stage, number: str | None
) -> None:
    async with stage.running():
        await given_first(stage)
        await given_second(stage)
        children = {"child-1": ("v2", "phase-1", "2"), "child-2": ("v1", "phase-2", "1")}
        async with stage.recording() as record:
            for name, (_, _, restored) in children.items():
                patch = {"metadata": {"annotations": {REVISION: number}}}
                await stage.edit(stage.object_ref(name), patch)
                await stage.until_object(name, partial(_has_number, restored))
            await stage.settled()
            await record.caught_up()

        for name, (holder, phase, _) in children.items():
            owner = stage.owner_of(holder, phase)
            assert {controller(one.obj) for one in record.of(name)} <= {owner}
            assert controller(await stage.live(name)) == owner
