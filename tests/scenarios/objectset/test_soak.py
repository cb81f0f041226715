"""The soak time: how long a revision has to be available before it has succeeded."""

from datetime import timedelta

import pytest

from lamina.objects import conditions
from lamina.objects.times import moment
from lamina.objects.types import Obj
from tests.bed.scenarios import check
from tests.scenarios.objectset.stage import Stage, condition, has_condition, is_archived, is_available

pytestmark = pytest.mark.asyncio(loop_scope="session")

SOAK = {"successDelaySeconds": 20}


def since(obj: Obj, name: str) -> timedelta:
    """Return the time from the transition to Available until the transition of another condition."""
    found = [conditions.find(conditions.of(obj), one) for one in ("Available", name)]
    times = [moment(one["lastTransitionTime"]) if one is not None else None for one in found]
    assert times[0] is not None
    assert times[1] is not None
    return times[1] - times[0]


@check("OS-39")
async def test_a_set_succeeds_after_the_soak_time_without_another_event(stage: Stage) -> None:
    async with stage.running():
        await stage.given_set("v1", stage.phase("p1", stage.config_map("cm")), **SOAK)
        await stage.until_set("v1", is_available)
        await stage.settled()
        assert not has_condition(await stage.set("v1"), "Succeeded")

        stage.pass_time(12)
        await stage.settled()
        assert not has_condition(await stage.set("v1"), "Succeeded")

        stage.pass_time(8)
        found = await stage.until_set("v1", lambda now: has_condition(now, "Succeeded"))

        assert condition(found, "Succeeded") == ("True", "RolloutSuccess")
        assert timedelta(seconds=20) <= since(found, "Succeeded") <= timedelta(seconds=25)


@check("OS-39")
async def test_an_outage_begins_the_soak_time_again(stage: Stage) -> None:
    async with stage.running():
        await stage.given_set("v1", stage.phase("p1", stage.config_map("cm", healthy=False)), **SOAK)
        await stage.until_object("cm")
        await stage.heal("cm")
        await stage.until_set("v1")
        stage.pass_time(15)
        await stage.hurt("cm")
        await stage.until_set("v1", lambda now: condition(now, "Available") == ("False", "ProbeFailure"))
        stage.pass_time(15)
        await stage.heal("cm")
        await stage.until_set("v1")
        await stage.settled()
        assert not has_condition(await stage.set("v1"), "Succeeded"), "it was not available all the time"

        stage.pass_time(20)
        found = await stage.until_set("v1", lambda now: has_condition(now, "Succeeded"))

        assert timedelta(seconds=20) <= since(found, "Succeeded") <= timedelta(seconds=25)


@check("OS-39")
async def test_a_deployment_progresses_while_its_latest_revision_soaks_and_archives_the_old_one(
    stage: Stage,
) -> None:
    async with stage.running():
        await stage.given_deployment("web", stage.phase("p1", stage.config_map("cm")))
        await stage.until_rolled_out("web", 1)
        phases = stage.phase("p1", stage.config_map("cm", key="v2"))
        await stage.want("web", phases, template=SOAK)
        first, second = await stage.until_rolled_out("web", 2)
        assert is_archived(first), "the soak time does not delay it"
        assert not has_condition(second, "Succeeded")
        found = await stage.until_deployment("web", is_available)
        assert condition(found, "Progressing") == ("True", "LatestRevisionPendingSuccess")
        assert found["status"]["revision"] == 2

        stage.pass_time(12)
        await stage.settled()
        assert not has_condition((await stage.revisions("web"))[1], "Succeeded")
        found = await stage.client.get(stage.deployment_ref("web"))
        assert condition(found, "Progressing") == ("True", "LatestRevisionPendingSuccess")

        stage.pass_time(8)
        found = await stage.until_deployment(
            "web", lambda now: condition(now, "Progressing") == ("False", "Idle")
        )

        succeeded = (await stage.revisions("web"))[1]
        assert timedelta(seconds=20) <= since(succeeded, "Succeeded") <= timedelta(seconds=25)
        assert is_available(found)
