"""
A roll on a server that misbehaves: its promises hold, and it ends where it should.

The embedded server is told to break its own answers; on the way to a real one a
transport breaks them. Who tells the story, and who heals parts, is spared.
"""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import orjson
import pytest
import pytest_asyncio

from lamina.client.client import Client
from lamina.client.kubeconfig.read import read_kubeconfig
from lamina.client.transport.faulty import FaultyTransport
from lamina.client.transport.http import HttpTransport
from lamina.faults import Cut, Expire, Fault, Faults, Refuse, Silence, Slow, Stale, shown
from lamina.objects import meta
from tests.bed.fixtures import chosen_server
from tests.scenarios.metacontroller.rolls import REVISIONS, Roll, check_promises, disruptions, settled
from tests.scenarios.metacontroller.stage import Stage
from tests.scenarios.metacontroller.witness import witness

pytestmark = pytest.mark.asyncio(loop_scope="session")

NAMES = ("a", "b", "c", "d")


class Breaker:
    """Breaks the requests of Metacontroller, and no others."""

    def __init__(self, stage: Stage, faults: Faults | None) -> None:
        self._stage, self._faults = stage, faults

    @asynccontextmanager
    async def breaking(self, *faults: Fault) -> AsyncIterator[None]:
        """Break things until the end of the block, and see that every fault was met with."""
        await self._set(faults)
        try:
            yield
            assert all(await self._met())
        finally:
            await self._set(())

    async def _met(self) -> list[int]:
        if self._faults is not None:
            return [entry.met for entry in self._faults.entries]
        shown = orjson.loads(await self._stage.client.request("GET", "/lamina/faults"))
        return [one["met"] for one in shown["faults"]]

    async def _set(self, faults: Sequence[Fault]) -> None:
        if self._faults is None:
            body = orjson.dumps({"faults": [shown(fault) for fault in faults]})
            await self._stage.client.request("PUT", "/lamina/faults", body=body)
            return
        self._faults.clear()
        for fault in faults:
            self._faults.add(fault)


@pytest_asyncio.fixture(loop_scope="session")
async def breaker(stage: Stage, kubeconfig: Path) -> AsyncIterator[Breaker]:
    """Metacontroller with a client of its own, which meets with faults."""
    way = HttpTransport(read_kubeconfig(kubeconfig))
    usual = stage.client
    if chosen_server() == "real":
        faults = Faults()
        stage.own = Client(FaultyTransport(way, faults, timeout=5.0))
        yield Breaker(stage, faults)
        await stage.stop()
        await stage.own.close()
        return
    stage.own, stage.client = usual, Client(way, manager="lamina-chaos")
    yield Breaker(stage, None)
    await stage.stop()
    await stage.client.close()
    stage.client = usual


REFUSED = Refuse(code=429, rate=0.2, retry_after=0)
LOST = Refuse(code=500, rate=0.2, after=True, verbs=("create", "update", "patch", "delete"))


@pytest.mark.parametrize(
    "faults",
    [
        (REFUSED, Refuse(code=503, rate=0.1, seed=7)),
        (LOST,),
        (Cut(events=3), Expire(rate=0.5)),
        (Stale(seconds=0.3),),
        (REFUSED, LOST, Cut(events=5), Expire(rate=0.3), Stale(seconds=0.1), Slow(seconds=0.02, rate=0.3)),
    ],
    ids=["refusals", "lost-answers", "cut-watches", "stale", "everything"],
)
async def test_a_roll_keeps_its_promises_whatever_goes_wrong_with_answers(
    stage: Stage, breaker: Breaker, faults: Sequence[Fault]
) -> None:
    roll = Roll(stage)
    async with stage.running():
        await settled(roll, *NAMES)
        start = {meta.uid(one): one for one in [*await roll.parts(), *await roll.revisions()]}
        async with witness(stage, roll.kind, REVISIONS) as seen, roll.healing(), breaker.breaking(*faults):
            await roll.turn_to("two")
            await roll.until_all("two", len(NAMES))
            await seen.has_seen(*await roll.parts(), *await roll.revisions())

    assert disruptions(seen, list(start.values())) == dict.fromkeys(NAMES, 1)
    check_promises(seen.history, start, newest="two")


async def test_a_roll_waits_for_a_server_that_is_silent_and_goes_on_when_it_answers(
    stage: Stage, breaker: Breaker
) -> None:
    roll = Roll(stage)
    async with stage.running():
        await settled(roll, *NAMES)
        start = {meta.uid(one): one for one in [*await roll.parts(), *await roll.revisions()]}
        async with witness(stage, roll.kind, REVISIONS) as seen, roll.healing():
            async with breaker.breaking(Silence()):
                await roll.turn_to("two")
                for _ in range(20):
                    await asyncio.sleep(0.01)
                assert await roll.images() == dict.fromkeys(NAMES, "one")
            await roll.until_all("two", len(NAMES))
            await seen.has_seen(*await roll.parts(), *await roll.revisions())

    assert disruptions(seen, list(start.values())) == dict.fromkeys(NAMES, 1)
    check_promises(seen.history, start, newest="two")
