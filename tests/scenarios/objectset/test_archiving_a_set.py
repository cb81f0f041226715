"""Archiving one set: its objects are deleted in reverse order of the phases, and it stays archived."""

import pytest

from lamina.families.objectset.labels import TEARDOWN
from lamina.objects import meta
from tests.bed.scenarios import check
from tests.scenarios.objectset.stage import (
    CONFIG_MAP,
    Stage,
    condition,
    controlled,
    has_condition,
    is_archived,
    message,
)

pytestmark = pytest.mark.asyncio(loop_scope="session")

HOLD = "example.com/hold"


async def given_set(stage: Stage, held: str = "") -> None:
    """A finished set of two phases; a finalizer of another controller holds one of its objects."""
    await stage.given_set(
        "v1", stage.phase("p1", stage.config_map("cm-a")), stage.phase("p2", stage.config_map("cm-b"))
    )
    await stage.until_set("v1")
    if held:
        await stage.edit(stage.object_ref(held), {"metadata": {"finalizers": [HOLD]}})
    await stage.settled()


async def release(stage: Stage, name: str) -> None:
    await stage.edit(stage.object_ref(name), {"metadata": {"finalizers": None}})


async def assert_archived(stage: Stage) -> None:
    found = await stage.set("v1")
    assert condition(found, "Archived") == ("True", "Archived")
    assert message(found, "Archived") == ""
    assert controlled(found) == []
    assert TEARDOWN not in meta.finalizers(found)
    assert not has_condition(found, "Available")
    assert not has_condition(found, "InTransition")
    assert await stage.listed(CONFIG_MAP) == []


@check("OS-26")
async def test_the_objects_of_the_last_phase_are_deleted_first(stage: Stage) -> None:
    async with stage.running():
        await given_set(stage, held="cm-a")
        async with stage.recording(CONFIG_MAP) as record:
            await stage.set_state("v1", "Archived")
            await stage.until_object("cm-a", meta.is_deleting)
            await stage.settled()
            await record.caught_up()
        assert await stage.object("cm-b") is None
        found = await stage.set("v1")
        assert condition(found, "Archived") == ("False", "ArchivalInProgress")
        waits_for = "v1-p1" if stage.phase_class else "cm-a"
        assert waits_for in message(found, "Archived")
        assert not has_condition(found, "Available")
        assert TEARDOWN in meta.finalizers(found)
        gone = next(one for one in record.of("cm-b") if one.what == "DELETED")
        ending = next(one for one in record.of("cm-a") if meta.is_deleting(one.obj))
        assert gone.version < ending.version

        await release(stage, "cm-a")
        await stage.until_set("v1", is_archived)
        await stage.settled()
        await assert_archived(stage)
        assert has_condition(await stage.set("v1"), "Succeeded")


@check("OS-27")
async def test_a_held_object_of_a_later_phase_keeps_the_earlier_ones(stage: Stage) -> None:
    async with stage.running():
        await given_set(stage, held="cm-b")
        before = await stage.live("cm-a")
        await stage.set_state("v1", "Archived")
        await stage.until_object("cm-b", meta.is_deleting)
        await stage.until_set("v1", lambda now: condition(now, "Archived") == ("False", "ArchivalInProgress"))
        await stage.settled()
        stage.pass_time(3600)
        await stage.settled()
        assert await stage.live("cm-a") == before
        assert "deletionTimestamp" not in before["metadata"]
        found = await stage.set("v1")
        assert not has_condition(found, "Available")
        assert TEARDOWN in meta.finalizers(found)

        await release(stage, "cm-b")
        await stage.until_set("v1", is_archived)
        await stage.settled()
        await assert_archived(stage)


@check("OS-28")
async def test_an_archived_set_that_is_made_active_creates_nothing(stage: Stage) -> None:
    async with stage.running():
        await given_set(stage)
        await stage.set_state("v1", "Archived")
        await stage.until_set("v1", is_archived)
        await stage.settled()
        await assert_archived(stage)

        async with stage.recording() as record:
            await stage.set_state("v1", "Active")
            await stage.settled()
            stage.journal.requests.clear()
            stage.pass_time(7200)
            await stage.settled()
            await record.caught_up()

        assert [one.what for one in record.changes] == ["MODIFIED"], "only the edit itself"
        assert stage.journal.requests == []
        assert await stage.listed(CONFIG_MAP) == []
        assert is_archived(await stage.set("v1"))


@check("OS-28")
async def test_an_archived_set_stays_so_when_the_controllers_start_again(stage: Stage) -> None:
    async with stage.running():
        await given_set(stage)
        await stage.set_state("v1", "Archived")
        await stage.until_set("v1", is_archived)
        await stage.settled()
    await stage.set_state("v1", "Active")
    before = await stage.set("v1")

    async with stage.running():
        await stage.settled()

    assert await stage.set("v1") == before
    assert await stage.listed(CONFIG_MAP) == []
