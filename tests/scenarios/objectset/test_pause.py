"""Pausing sets and deployments."""

from functools import partial

import pytest

from lamina.families.objectset.labels import PAUSED_BY_PARENT
from lamina.objects import meta
from lamina.objects.types import Made
from tests.bed.scenarios import check
from tests.scenarios.objectset.stage import (
    CONFIG_MAP,
    Stage,
    condition,
    controlled,
    has_condition,
    is_archived,
    is_available,
    message,
    state,
)

pytestmark = pytest.mark.asyncio(loop_scope="session")

PAUSED = ("True", "Paused")


def is_paused(obj: Made) -> bool:
    return condition(obj, "Paused") == PAUSED


def is_marked(obj: Made) -> bool:
    """Say whether a set is paused because its deployment is."""
    return meta.annotations(obj).get(PAUSED_BY_PARENT) == "true"


@check("OS-23")
async def test_a_paused_set_observes_and_writes_nothing_until_it_is_active_again(stage: Stage) -> None:
    async with stage.running():
        await stage.given_set(
            "v1",
            stage.phase("p1", stage.config_map("cm-a", colour="red")),
            stage.phase("p2", stage.config_map("cm-b", colour="blue")),
        )
        await stage.until_set("v1")
        await stage.set_state("v1", "Paused")
        await stage.until_set("v1", is_paused)
        await stage.settled()
        found = await stage.set("v1")
        assert is_available(found)
        assert condition(found, "Paused") == PAUSED

        old = await stage.live("cm-b")
        await stage.edit(stage.object_ref("cm-a"), {"data": {"colour": "green"}})
        await stage.client.delete(stage.object_ref("cm-b"))
        await stage.until_set("v1", lambda now: condition(now, "Available") == ("False", "ProbeFailure"))
        await stage.settled()
        found = await stage.set("v1")
        assert f"ConfigMap {stage.place('cm-b')}/cm-b: not found" in message(found, "Available")
        assert condition(found, "Paused") == PAUSED
        assert controlled(found) == ["cm-a"]
        assert (await stage.live("cm-a"))["data"] == {"colour": "green"}
        assert await stage.object("cm-b") is None

        await stage.set_state("v1", "Active")
        await stage.until_object("cm-a", lambda now: now["data"] == {"colour": "red"})
        new = await stage.until_object("cm-b", lambda now: meta.uid(now) != meta.uid(old))
        await stage.until_set("v1")
        await stage.settled()

    found = await stage.set("v1")
    assert is_available(found)
    assert not has_condition(found, "Paused")
    assert (new["data"], controlled(found)) == ({"colour": "blue"}, ["cm-a", "cm-b"])


@check("OS-23")
async def test_availability_is_probed_while_a_set_is_paused(stage: Stage) -> None:
    async with stage.running():
        await stage.given_set("v1", stage.phase("p1", stage.config_map("cm-a", healthy=False)))
        # A phase with a class fails from the beginning, also before its object exists.
        await stage.until_set("v1", lambda now: controlled(now) == ["cm-a"])
        await stage.set_state("v1", "Paused")
        await stage.until_set("v1", is_paused)

        await stage.heal("cm-a")
        await stage.until_set("v1", is_available)
        await stage.hurt("cm-a")
        await stage.until_set("v1", lambda now: condition(now, "Available") == ("False", "ProbeFailure"))


@check("OS-24")
async def test_a_set_that_is_created_paused_writes_no_object(stage: Stage) -> None:
    async with stage.running():
        async with stage.recording(CONFIG_MAP) as record:
            await stage.given_set(
                "v1",
                stage.phase("p1", stage.config_map("cm-a")),
                stage.phase("p2", stage.config_map("cm-b")),
                lifecycleState="Paused",
            )
            await stage.until_set("v1", is_paused)
            await stage.settled()
            stage.pass_time(3600)
            await stage.settled()
            await record.caught_up()
        assert record.changes == []
        assert stage.journal.written("ConfigMap") == []
        found = await stage.set("v1")
        assert condition(found, "Available") == ("False", "ProbeFailure")
        missing = f"{stage.place('cm-a')}/cm-a: not found"
        if stage.phase_class:
            missing = f"{stage.phase_ref('v1', 'p1')}: not found"
        assert missing in message(found, "Available")
        assert controlled(found) == []

        await stage.set_state("v1", "Active")
        await stage.until_set("v1")
        assert controlled(await stage.set("v1")) == ["cm-a", "cm-b"]


@check("OS-25")
async def test_a_paused_deployment_pauses_its_sets_in_the_middle_of_a_rollout(stage: Stage) -> None:
    async with stage.running():
        await stage.given_deployment("web", stage.phase("p1", stage.config_map("cm-1")))
        await stage.until_rolled_out("web", 1)
        await stage.want("web", stage.phase("p1", stage.config_map("cm-2")))
        await stage.until_rolled_out("web", 2)
        await stage.want("web", stage.phase("p1", stage.config_map("cm-3", healthy=False)))
        await stage.until_object("cm-3")
        await stage.until_revisions(
            "web", lambda found: len(found) == 3 and has_condition(found[2], "Available")
        )
        await stage.settled()

        await stage.edit(stage.deployment_ref("web"), {"spec": {"paused": True}})
        await stage.until_deployment("web", is_paused)
        await stage.until_revisions("web", lambda found: all(is_paused(one) for one in found[1:]))
        await stage.settled()
        web = await stage.deployment_named("web")
        assert condition(web, "Paused") == PAUSED
        assert condition(web, "Progressing") == ("True", "LatestRevisionPendingSuccess")
        found = await stage.revisions("web")
        assert [state(one) for one in found] == ["Archived", "Paused", "Paused"]
        assert [is_marked(one) for one in found] == [False, True, True]

        await stage.want("web", stage.phase("p1", stage.config_map("cm-4")))
        await stage.settled()
        stage.pass_time(31)
        await stage.settled()
        found = await stage.revisions("web")
        assert [state(one) for one in found] == ["Archived", "Paused", "Paused"]
        assert await stage.object("cm-4") is None

        await stage.edit(stage.deployment_ref("web"), {"spec": {"paused": False}})
        found = await stage.until_rolled_out("web", 4)

    assert [is_archived(one) for one in found] == [True, True, True, False]
    assert [is_marked(one) for one in found] == [False, False, False, False]
    assert state(found[3]) == "Active"
    web = await stage.deployment_named("web")
    assert not has_condition(web, "Paused")
    assert await stage.object("cm-4") is not None
    assert await stage.object("cm-3") is None


@check("OS-25")
async def test_a_deployment_that_goes_on_resumes_the_sets_that_it_paused(stage: Stage) -> None:
    async with stage.running():
        await given_failing_update(stage)
        await stage.edit(stage.deployment_ref("web"), {"spec": {"paused": True}})
        await stage.until_revisions("web", lambda found: all(is_paused(one) for one in found))
        await stage.settled()
        await stage.edit(stage.object_ref("cm-1"), {"data": {"colour": "green"}})
        await stage.settled()
        assert (await stage.live("cm-1"))["data"] == {"colour": "green"}

        await stage.edit(stage.deployment_ref("web"), {"spec": {"paused": False}})
        await stage.until_object("cm-1", lambda now: now["data"] == {"colour": "red"})
        await stage.until_revisions(
            "web", lambda found: not any(has_condition(one, "Paused") for one in found)
        )
        await stage.settled()

    found = await stage.revisions("web")
    assert [state(one) for one in found] == ["Active", "Active"]
    assert not any(is_marked(one) for one in found)
    assert not has_condition(await stage.deployment_named("web"), "Paused")


@check("OS-25")
async def test_a_set_that_was_paused_by_hand_stays_so_when_its_deployment_goes_on(stage: Stage) -> None:
    async with stage.running():
        first, second = await given_failing_update(stage)
        await stage.edit(meta.ref(first), {"spec": {"lifecycleState": "Paused"}})
        await stage.until(meta.ref(first), is_paused)
        await stage.settled()
        assert [state(one) for one in await stage.revisions("web")] == ["Paused", "Active"]

        await stage.edit(stage.deployment_ref("web"), {"spec": {"paused": True}})
        await stage.until_deployment("web", is_paused)
        await stage.until_revisions("web", lambda found: all(is_paused(one) for one in found))
        await stage.settled()
        assert [is_marked(one) for one in await stage.revisions("web")] == [False, True]

        await stage.edit(stage.deployment_ref("web"), {"spec": {"paused": False}})
        await stage.until_revisions("web", lambda found: state(found[1]) == "Active")
        await stage.until_deployment("web", lambda now: not has_condition(now, "Paused"))
        await stage.settled()

    first, second = await stage.revisions("web")
    assert (state(first), state(second)) == ("Paused", "Active")
    assert is_paused(first)


async def given_failing_update(stage: Stage) -> list[Made]:
    """A deployment whose first revision serves, while the second one fails."""
    await stage.given_deployment("web", stage.phase("p1", stage.config_map("cm-1", colour="red")))
    await stage.until_rolled_out("web", 1)
    await stage.want("web", stage.phase("p1", stage.config_map("cm-2", healthy=False)))
    await stage.until_object("cm-2")
    await stage.until_revisions("web", lambda found: len(found) == 2 and has_condition(found[1], "Available"))
    await stage.settled()
    return await stage.revisions("web")


@check("OS-25")
async def test_a_deployment_with_an_invalid_template_is_paused_all_the_same(stage: Stage) -> None:
    async with stage.running():
        await stage.given_deployment("web", stage.phase("p1", stage.config_map("cm-1", colour="red")))
        await stage.until_rolled_out("web", 1)
        typo = {"template": {"metadata": {"labels": {"app": "typo"}}}}
        await stage.edit(stage.deployment_ref("web"), {"spec": {"paused": True, **typo}})
        await stage.until_deployment("web", is_paused)
        await stage.until_revisions("web", lambda found: all(is_paused(one) for one in found))
        await stage.settled()
        web = await stage.deployment_named("web")
        assert condition(web, "Paused") == PAUSED
        assert condition(web, "Progressing") == ("False", "InvalidTemplate")
        await stage.edit(stage.object_ref("cm-1"), {"data": {"colour": "green"}})
        await stage.settled()
        assert (await stage.live("cm-1"))["data"] == {"colour": "green"}

        await stage.edit(stage.deployment_ref("web"), {"spec": {"paused": False}})
        await stage.until_object("cm-1", lambda now: now["data"] == {"colour": "red"})
        await stage.until_deployment("web", lambda now: not has_condition(now, "Paused"))
        await stage.settled()

    [found] = await stage.revisions("web")
    assert (state(found), is_marked(found)) == ("Active", False)


def _are_in(states: list[str], found: list[Made]) -> bool:
    return [state(one) for one in found] == states


@check("OS-25")
async def test_a_pause_deletes_nothing_of_a_revision_that_serves_and_still_soaks(stage: Stage) -> None:
    """The second revision has an object of the first one, and fails; the third one has none, and fails, too."""
    soak = {"successDelaySeconds": 3600}
    async with stage.running():
        first = stage.config_map("cm-c"), stage.config_map("cm-d")
        await stage.given_deployment("web", stage.phase("p1", *first), template=soak)
        await stage.until_revisions(
            "web", lambda found: len(found) == 1 and has_condition(found[0], "Available")
        )
        second = stage.config_map("cm-c"), stage.config_map("cm-z", healthy=False)
        await stage.want("web", stage.phase("p1", *second), template=soak)
        await stage.until_revisions(
            "web", lambda found: len(found) == 2 and controlled(found[1]) == ["cm-c", "cm-z"]
        )
        await stage.want("web", stage.phase("p1", stage.config_map("cm-y", healthy=False)), template=soak)
        await stage.until_revisions(
            "web", lambda found: len(found) == 3 and has_condition(found[2], "Available")
        )
        await stage.settled()
        before = {name: meta.uid(await stage.live(name)) for name in ("cm-c", "cm-d")}

        for paused in (True, False, True, False):
            await stage.edit(stage.deployment_ref("web"), {"spec": {"paused": paused}})
            wanted = ["Paused" if paused else "Active"] * 3
            await stage.until_revisions("web", partial(_are_in, wanted))
            await stage.settled()

    assert {name: meta.uid(await stage.live(name)) for name in before} == before
    assert [state(one) for one in await stage.revisions("web")] == ["Active", "Active", "Active"]
