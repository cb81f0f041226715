"""Works that are complete go from the hub by themselves, and what was applied of them goes along."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import pytest

from lamina.families.manifestwork.hub.ttl import FINISHED
from lamina.objects import meta
from lamina.objects.types import Made
from lamina.runtime.controller.manager import Manager
from tests.scenarios.manifestwork.agents import spoke
from tests.scenarios.manifestwork.stage import Stage
from tests.unit.families.manifestwork.agent.story import config_for, config_map

pytestmark = pytest.mark.asyncio(loop_scope="session")

RULE = {"condition": "Complete", "type": "CEL", "celExpressions": ["object.data.state == 'done'"]}


def completion_spec(manifest: Made) -> Made:
    """Return what a work says that is complete once its object is done, and is kept for an hour then."""
    return {
        "manifestConfigs": [config_for(manifest, conditionRules=[RULE])],
        "deleteOption": {"ttlSecondsAfterFinished": 3600},
    }


@asynccontextmanager
async def cleaning_up(stage: Stage) -> AsyncIterator[None]:
    """Have a hub see to finished works until the end of the block."""
    manager = Manager(stage.client, [FINISHED], stage.clock, meters=stage.parity.recorder)
    running = asyncio.create_task(manager.run())
    try:
        await manager.ready()
        yield
    finally:
        running.cancel()
        with suppress(asyncio.CancelledError):
            await running
        await stage.parity.check()


async def test_a_complete_work_goes_an_hour_later_and_takes_its_objects_along(stage: Stage) -> None:
    name = stage.cluster("east")
    await stage.given_namespace(name)
    async with cleaning_up(stage), spoke(name, stage.client, stage.clock) as east:
        begun, done = config_map("begun", state="begun"), config_map("done", state="done")
        await east.want(begun, name="begun", **completion_spec(begun))
        await east.want(done, name="done", **completion_spec(done))
        await east.until(lambda now: now.holds("Complete"), "done")
        await east.until(lambda now: now.denies("Complete"), "begun")

        stage.pass_time(1800)
        await east.settled()
        assert (await east.work("done")).holds("Complete")

        stage.pass_time(1800)
        await east.until_gone("done")
        assert await east.config_map("done") is None
        assert (await east.work("begun")).denies("Complete")
        assert await east.config_map("begun") is not None
    assert stage.parity.has_compared, "the deletion of the work that is done"


async def test_a_work_of_a_replica_set_stays_although_it_is_complete(stage: Stage) -> None:
    stage.spokes.said["c1"] = {"Complete": "True"}
    template = {
        "workload": {"manifests": [config_map("done", rev="1", phase="done")]},
        "deleteOption": {"ttlSecondsAfterFinished": 0},
    }
    async with cleaning_up(stage), stage.running():
        await stage.given(template, clusters=1)
        before = await stage.until_done()
        stage.pass_time(60)
        after = await stage.settled()

        assert [meta.uid(one) for one in after.works] == [meta.uid(one) for one in before.works]
        assert len(after.works) == 1
