"""
A roll on a whole server whose process dies after one of its writes, sees the past, or misses what happened.

What holds on paper holds there too. The faults are those that anybody may ask
for, and meet the one who rolls and nobody else.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest

from lamina.client.client import Client
from lamina.client.transport import Query, Response, Transport
from lamina.core.questions import Call
from lamina.families.every import chosen
from lamina.faults import Fault
from lamina.product import install, product
from lamina.runtime.calls import Calls
from lamina.runtime.manager import Manager
from lamina.server.request import Identity
from lamina.testing import Cluster, Cut, Expire, Stale
from lamina.testing.builders import definition
from tests.simulation.test_simulation import FLOCKS, flock, hook

FLOCK = flock("goose:1")
ROLLER = Identity("roller", ("system:masters", "system:authenticated"))


class Fateful:
    """A way to a server on which something happens after so many writes; a death is heard of by nobody."""

    def __init__(self, inner: Transport, writes: int, strike: Callable[[], bool]) -> None:
        self._inner, self._left, self._strike = inner, writes, strike

    async def request(
        self,
        method: str,
        path: str,
        *,
        query: Query = (),
        headers: Mapping[str, str],
        body: bytes | None = None,
        streams: bool = False,
    ) -> Response:
        answer = await self._inner.request(
            method, path, query=query, headers=headers, body=body, streams=streams
        )
        if method != "GET" and answer.status < 300:
            self._left -= 1
            if self._left == 0 and self._strike():
                await asyncio.Event().wait()
        return answer

    async def close(self) -> None:
        await self._inner.close()


class Office:
    """Runs Metacontroller on a cluster, and takes on another who remembers nothing when it dies."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster, self.struck = cluster, 0
        self._tasks: list[asyncio.Task[None]] = []

    def employ(self, writes: int = -1, *, dies: bool = True, faults: Sequence[Fault] = ()) -> None:
        """Have somebody work until something happens after so many writes: it dies, or faults come, or both."""
        running: list[Manager] = []

        def strike() -> bool:
            self.struck += 1
            for fault in faults:
                self._cluster.faults.add(fault)
            if dies:
                self._cluster.embedded.managers.remove(running[0])
                task.cancel()
                self.employ()
            return dies

        way = Fateful(self._cluster.embedded.client(ROLLER)._transport, writes, strike)
        calls = Calls(local=lambda url: _asked)
        running.append(product(Client(way), chosen("metacontroller"), self._cluster.clock, calls))
        self._cluster.embedded.managers.append(running[0])
        task = asyncio.create_task(running[0].run())
        self._tasks.append(task)

    async def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


async def _asked(call: Call) -> bytes:
    said: Any = hook(call)
    return bytes(said.body)


async def images(cluster: Cluster) -> list[str]:
    return [one["spec"]["containers"][0]["image"] for one in await cluster.list("pods", "default")]


def met(cluster: Cluster, fault: str) -> int:
    """Return how often a fault has met somebody."""
    return cluster.faults.in_force[fault].met


async def begun(cluster: Cluster) -> Office:
    """Return who has rolled out the first image, and is gone."""
    office = Office(cluster)
    await install(cluster.client, chosen("metacontroller"))
    await cluster.given(definition("Flock"), FLOCKS, FLOCK)
    office.employ()
    await cluster.pass_time(minutes=1)
    await office.close()
    cluster.embedded.managers.pop()
    return office


async def is_over(cluster: Cluster) -> bool:
    updated = await cluster.condition(FLOCK, "Updated")
    return await images(cluster) == ["goose:2"] * 3 and updated is not None and updated["status"] == "True"


async def ends(cluster: Cluster) -> None:
    """Let time pass until the roll is over; who lost a watch takes a moment to find its way back."""
    async with asyncio.timeout(60):
        while not await is_over(cluster):
            await cluster.pass_time(seconds=10)
    await cluster.pass_time(minutes=5)

    assert await is_over(cluster)
    assert len(await cluster.list("controllerrevisions", api_version="metacontroller.k8s.io/v1alpha1")) == 1


@pytest.mark.parametrize("writes", [1, 3, 8])
async def test_whoever_comes_after_a_death_ends_the_roll(cluster: Cluster, writes: int) -> None:
    office = await begun(cluster)

    office.employ(writes)
    await cluster.edit(FLOCK, spec={"image": "goose:2"})

    await ends(cluster)
    assert office.struck == 1
    await office.close()


@pytest.mark.parametrize("writes", [1, 3, 8])
@pytest.mark.parametrize("versions", [1, 6])
async def test_whoever_starts_with_the_past_before_its_eyes_ends_the_roll(
    cluster: Cluster, writes: int, versions: int
) -> None:
    office = await begun(cluster)

    office.employ(writes, faults=[Stale(id="past", versions=versions, users=(ROLLER.name,))])
    await cluster.edit(FLOCK, spec={"image": "goose:2"})
    await cluster.pass_time(seconds=5)
    assert office.struck == 1
    assert met(cluster, "past")
    cluster.faults.remove("past")

    await ends(cluster)
    await office.close()


@pytest.mark.parametrize("writes", [1, 3, 8])
async def test_whoever_misses_what_happened_ends_the_roll(cluster: Cluster, writes: int) -> None:
    """Every watch ends, and none can go on where it was: of each object the last word is heard, kind by kind."""
    office = await begun(cluster)

    lost: list[Fault] = [Cut(users=(ROLLER.name,)), Expire(id="gone", users=(ROLLER.name,))]
    office.employ(writes, dies=False, faults=lost)
    await cluster.edit(FLOCK, spec={"image": "goose:2"})

    await ends(cluster)
    assert office.struck == 1
    assert met(cluster, "gone")
    await office.close()
