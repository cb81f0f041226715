"""The end of a set: its objects are deleted in order, left as orphans, or left to whatever else owns them."""

import asyncio

import pytest

from lamina.families.objectset.labels import CACHED, OWNING_DEPLOYMENT, REVISION
from lamina.objects import meta
from lamina.objects.types import Made
from tests.bed.scenarios import check
from tests.scenarios.objectset.stage import Stage, controlled, controller, has_condition, owners, revision_of

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def given_two_phases(stage: Stage) -> None:
    """A set that is available, with an object in each of two phases."""
    await stage.given_set(
        "v1", stage.phase("p1", stage.config_map("cm-a")), stage.phase("p2", stage.config_map("cm-b"))
    )
    await stage.until_set("v1")
    await stage.settled()


def has_no_trace(live: Made) -> bool:
    """Say whether an object has nothing of a set any more."""
    return not owners(live) and CACHED not in meta.labels(live) and REVISION not in meta.annotations(live)


async def adopted_by_another_set(stage: Stage) -> Made:
    """Create another set with IfNoController, and return cm-a once that set controls it."""
    phases = [
        stage.phase(name, stage.config_map(one), protection="IfNoController")
        for name, one in (("p1", "cm-a"), ("p2", "cm-b"))
    ]
    await stage.given_set("v2", *phases)
    await stage.until_set("v2")
    return await stage.live("cm-a")


@check("OS-29")
async def test_a_deleted_set_deletes_its_objects_phase_by_phase_from_the_last(stage: Stage) -> None:
    async with stage.running():
        await given_two_phases(stage)
        async with stage.recording() as record:
            await stage.client.delete(stage.set_ref("v1"))
            await stage.until_gone(stage.set_ref("v1"))
            await record.caught_up()

    gone = [one.name for one in record.changes if one.what == "DELETED"]
    assert gone == ["cm-b", "cm-a", "v1"]


@check("OS-29")
async def test_a_phase_waits_until_the_later_one_is_gone_with_its_finalizers(stage: Stage) -> None:
    async with stage.running():
        await given_two_phases(stage)
        await stage.edit(stage.object_ref("cm-b"), {"metadata": {"finalizers": ["example.com/held"]}})
        await stage.client.delete(stage.set_ref("v1"))
        await stage.until_object("cm-b", meta.is_deleting)
        await stage.settled()
        assert not meta.is_deleting(await stage.live("cm-a"))

        await stage.edit(stage.object_ref("cm-b"), {"metadata": {"finalizers": None}})
        await stage.until_gone(stage.set_ref("v1"))

        assert await stage.object("cm-a") is None


@check("OS-29")
async def test_orphans_of_a_set_stay_without_a_trace_and_another_set_adopts_them(stage: Stage) -> None:
    async with stage.running():
        await given_two_phases(stage)
        before = {name: meta.uid(await stage.live(name)) for name in ("cm-a", "cm-b")}
        await stage.client.delete(stage.set_ref("v1"), propagation="Orphan")
        await stage.until_gone(stage.set_ref("v1"))
        await stage.settled()
        left = [await stage.live(name) for name in before]
        assert all(map(has_no_trace, left))
        assert {meta.name(one): meta.uid(one) for one in left} == before

        adopted = await adopted_by_another_set(stage)

    assert meta.uid(adopted) == before["cm-a"]
    assert owners(adopted) == {"v2": True}
    assert revision_of(adopted) == "1"


@check("OS-29")
async def test_orphans_of_a_phase_with_a_class_stay_without_a_trace(class_stage: Stage) -> None:
    stage = class_stage
    async with stage.running():
        await given_two_phases(stage)
        await stage.client.delete(stage.set_ref("v1"), propagation="Orphan")
        await stage.until_gone(stage.set_ref("v1"))
        for phase in ("p1", "p2"):
            await stage.until_gone(stage.phase_ref("v1", phase))
        assert has_no_trace(await stage.live("cm-a"))
        assert has_no_trace(await stage.live("cm-b"))

        adopted = await adopted_by_another_set(stage)

    assert controller(adopted) == "v2-p1"


@check("OS-29")
async def test_orphans_are_released_where_the_garbage_collector_is_faster(stage: Stage) -> None:
    async with stage.running():
        await given_two_phases(stage)
    await stage.client.delete(stage.set_ref("v1"), propagation="Orphan")
    await asyncio.gather(
        *(stage.until_object(name, lambda now: not owners(now)) for name in ("cm-a", "cm-b"))
    )
    await stage.until_set("v1", lambda now: "orphan" not in meta.finalizers(now))

    async with stage.running():
        await stage.until_gone(stage.set_ref("v1"))

    assert has_no_trace(await stage.live("cm-a"))
    assert has_no_trace(await stage.live("cm-b"))


@check("OS-29")
async def test_a_set_that_is_deleted_with_orphans_takes_none_of_them_back(stage: Stage) -> None:
    async with stage.running():
        await stage.given_set("v1", stage.phase("p1", stage.config_map("cm-a"), protection="IfNoController"))
        await stage.until_set("v1")
        async with stage.recording() as record:
            await stage.client.delete(stage.set_ref("v1"), propagation="Orphan")
            await stage.until_gone(stage.set_ref("v1"))
            await record.caught_up()

    owned = [bool(owners(one.obj)) for one in record.of("cm-a")]
    assert owned == sorted(owned, reverse=True), "once it is released it has no owner again"
    assert not owned[-1]


@check("OS-29")
async def test_a_set_that_is_deleted_with_orphans_is_gone_though_the_one_before_is_paused(
    stage: Stage,
) -> None:
    async with stage.running():
        await stage.given_set("v1", stage.phase("p1", stage.config_map("cm-a")))
        await stage.until_set("v1")
        await stage.given_set("v2", stage.phase("p1", stage.config_map("cm-a", by="v2")), previous=["v1"])
        await stage.until_set("v2")
        before = await stage.live("cm-a")
        assert owners(before) == {"v1": False, "v2": True}
        await stage.edit(stage.set_ref("v1"), {"spec": {"lifecycleState": "Paused"}})
        await stage.until_set("v1", lambda now: has_condition(now, "Paused"))

        await stage.client.delete(stage.set_ref("v2"), propagation="Orphan")
        await stage.until_gone(stage.set_ref("v2"))
        await stage.settled()
        left = await stage.live("cm-a")
        assert owners(left) == {"v1": False}
        assert (meta.uid(left), left["data"]) == (meta.uid(before), before["data"])

        await stage.client.delete(stage.set_ref("v1"))
        await stage.until_gone(stage.set_ref("v1"))
        await stage.settled()

    after = await stage.live("cm-a")
    assert meta.uid(after) == meta.uid(before)
    assert has_no_trace(after)


@check("OS-30")
async def test_an_object_that_a_set_does_not_control_any_more_survives_it(stage: Stage) -> None:
    async with stage.running():
        await given_two_phases(stage)
        before = await stage.live("cm-b")
        released = [{**meta.owner_refs(before)[0], "controller": False}]
        await stage.edit(stage.object_ref("cm-b"), {"metadata": {"ownerReferences": released}})
        await stage.settled()
        assert owners(await stage.live("cm-b")) == {"v1": False}

        await stage.client.delete(stage.set_ref("v1"))
        await stage.until_gone(stage.set_ref("v1"))
        await stage.settled()

    after = await stage.live("cm-b")
    assert meta.uid(after) == meta.uid(before)
    assert after["data"] == before["data"]
    assert owners(after) == {}
    assert await stage.object("cm-a") is None


@check("OS-29")
async def test_the_latest_revision_is_deleted_in_the_foreground_during_a_handover(stage: Stage) -> None:
    async with stage.running():
        phases = (
            stage.phase("p1", stage.config_map("cm-a", by="v1")),
            stage.phase("p2", stage.config_map("cm-b")),
        )
        await stage.given_deployment("web", *phases)
        await stage.until_rolled_out("web", 1)
        failing = stage.phase("p1", stage.config_map("cm-a", healthy=False, by="v2")), phases[1]
        await stage.want("web", *failing)
        [_, second] = await stage.until_revisions(
            "web", lambda found: len(found) == 2 and controlled(found[1]) == ["cm-a"]
        )
        await stage.settled()
        before = {name: meta.uid(await stage.live(name)) for name in ("cm-a", "cm-b")}

        await stage.client.delete(meta.ref(second), propagation="Foreground")
        await stage.until_gone(meta.ref(second))
        await stage.until_revisions("web", lambda found: len(found) == 2 and controlled(found[1]) == ["cm-a"])
        await stage.settled()

        third = (await stage.revisions("web"))[1]
        assert third["spec"]["revision"] == 3
        taken = await stage.live("cm-a")
        assert (controller(taken), revision_of(taken)) == (meta.name(third), "3")
        await stage.heal("cm-a")
        await stage.until_rolled_out("web", 3)

    assert {name: meta.uid(await stage.live(name)) for name in before} == before


@check("OS-29")
async def test_a_deleted_set_leaves_what_a_sibling_without_its_label_contains(stage: Stage) -> None:
    async with stage.running():
        first = stage.object_set(
            "v1", stage.phase("p1", stage.config_map("cm-a")), stage.phase("p2", stage.config_map("cm-b"))
        )
        await stage.client.create(meta.with_metadata(first, labels={OWNING_DEPLOYMENT: "none"}))
        await stage.until_set("v1")
        failing = stage.config_map("cm-a", healthy=False, by="v2")
        later = stage.phase("p2", stage.config_map("cm-b", by="v2"))
        await stage.given_set("v2", stage.phase("p1", failing), later, previous=["v1"])
        await stage.until_set("v2", lambda now: controlled(now) == ["cm-a"])
        await stage.settled()
        before = meta.uid(await stage.live("cm-b"))

        await stage.client.delete(stage.set_ref("v1"))
        await stage.until_set("v1", meta.is_deleting)
        await stage.settled()
        assert not meta.is_deleting(await stage.live("cm-b"))

        await stage.heal("cm-a")
        await stage.until_set("v2")
        await stage.until_gone(stage.set_ref("v1"))

    after = await stage.live("cm-b")
    assert (meta.uid(after), owners(after)) == (before, {"v2": True})
