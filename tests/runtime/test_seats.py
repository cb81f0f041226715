"""A controller at work is nobody else's hand."""

import asyncio
from datetime import datetime

from lamina.client.leave import check_leave, only_while
from lamina.core.controller import AnyController, Controller, Watch, itself
from lamina.core.plan import NOTHING, Plan
from lamina.core.questions import Answers
from lamina.core.world import World
from lamina.errors import NotLeading
from lamina.objects.types import Ref
from tests.runtime.cluster import config_map
from tests.runtime.fleet import CONFIG_MAPS, clusters, running


def trying(found: "asyncio.Queue[bool]") -> AnyController:
    """Tell of the one config map that is looked at, and whether somebody could write there."""

    def plan(view: Ref, answers: Answers, now: datetime) -> Plan:
        try:
            check_leave("PATCH")
        except NotLeading:
            found.put_nowait(False)
        else:
            found.put_nowait(True)
        return NOTHING

    def gather(world: World, ref: Ref) -> Ref:
        return ref

    watch = Watch(selects=CONFIG_MAPS, concerns=itself, named="x")
    return Controller(name="trying", watches=(watch,), gather=gather, plan=plan)


async def test_whoever_brings_work_does_not_say_for_how_long_others_may_write() -> None:
    found: asyncio.Queue[bool] = asyncio.Queue()
    async with clusters("home") as reach, running(reach["home"], {}, trying(found)):
        leaves = iter([True])
        # The news of it is told before the write returns, and wakes somebody up.
        with only_while(lambda: next(leaves, False)):
            await reach["home"].create(config_map("x"))

        async with asyncio.timeout(30):
            assert await found.get()
