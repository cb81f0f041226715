"""A controller writes under its own guard, whatever woke it."""

import asyncio
from datetime import datetime

from lamina.core.model.controller import AnyController, Controller, Watch, itself
from lamina.core.model.plan import Create, Plan, Stage
from lamina.core.model.queries import Answers
from lamina.core.model.world import World
from lamina.objects.types import Ref
from tests.runtime.cluster import config_map
from tests.runtime.fleet import CONFIG_MAPS, clusters, running


def copying() -> AnyController:
    """Return a controller that creates `y` once there is `x`."""

    def plan(view: Ref, answers: Answers, now: datetime) -> Plan:
        return Plan(because="there is x", stages=(Stage("copy", (Create(obj=config_map("y")),)),))

    def gather(world: World, ref: Ref) -> Ref:
        return ref

    watch = Watch(selects=CONFIG_MAPS, enqueue=itself, named="x")
    return Controller(name="copying", watches=(watch,), gather=gather, plan=plan)


async def test_the_guard_of_a_write_does_not_apply_to_the_controllers_that_the_write_wakes() -> None:
    async with clusters("home") as reach, running(reach["home"], {}, copying()):
        home, allowed = reach["home"], iter([True])
        # In one process, the watch event arrives before the write returns, and wakes the controller.
        await home.create(config_map("x"), guard=lambda: next(allowed, False))

        async with asyncio.timeout(30):
            async for event in home.watch(("v1", "ConfigMap"), "default", initial=True):
                if event["object"]["metadata"].get("name") == "y":
                    break
