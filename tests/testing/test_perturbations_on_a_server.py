"""
A rollout on a server whose process crashes after one of its writes, reads stale objects, or misses events.

What holds in simulation holds on a server, too. The faults are the public ones, and
hit only the requests of the controller under test.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest

from lamina.client.client import Client
from lamina.client.transport.base import Query, Response, Transport
from lamina.client.write_guard import WriteGuard
from lamina.control_plane.install import build_manager, install
from lamina.core.model.queries import Call
from lamina.families.registry import chosen
from lamina.faults import Fault
from lamina.runtime.controller.manager import Manager
from lamina.runtime.hooks.client import HookClient
from lamina.server.identity import Identity
from lamina.testing import Cluster, Cut, Expire, Stale
from lamina.testing.builders import definition
from tests.simulation.test_simulation import FLOCKS, flock, hook

FLOCK = flock("goose:1")
ROLLER = Identity("roller", ("system:masters", "system:authenticated"))


class Fateful:
    """A transport that triggers a perturbation after a number of writes; a crash sends no response."""

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
        guard: WriteGuard | None = None,
    ) -> Response:
        answer = await self._inner.request(
            method, path, query=query, headers=headers, body=body, streams=streams, guard=guard
        )
        if method != "GET" and answer.status < 300:
            self._left -= 1
            if self._left == 0 and self._strike():
                await asyncio.Event().wait()
        return answer

    async def close(self) -> None:
        await self._inner.close()


class Restarting:
    """Runs Metacontroller on a cluster, and starts another manager without state after a crash."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster, self.struck = cluster, 0
        self._tasks: list[asyncio.Task[None]] = []

    def start(self, writes: int = -1, *, dies: bool = True, faults: Sequence[Fault] = ()) -> None:
        """Run the controller until a perturbation after a number of writes: a crash, faults, or both."""
        running: list[Manager] = []

        def strike() -> bool:
            self.struck += 1
            for fault in faults:
                self._cluster.faults.add(fault)
            if dies:
                self._cluster.embedded.managers.remove(running[0])
                task.cancel()
                self.start()
            return dies

        way = Fateful(self._cluster.embedded.client(ROLLER)._transport, writes, strike)
        calls = HookClient(local=lambda url: _asked)
        running.append(build_manager(Client(way), chosen("metacontroller"), self._cluster.clock, calls))
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
    """Return the number of requests that a fault has hit."""
    return cluster.faults.in_force[fault].met


async def begun(cluster: Cluster) -> Restarting:
    """Roll out the first image, and stop the manager."""
    managers = Restarting(cluster)
    await install(cluster.client, chosen("metacontroller"))
    await cluster.given(definition("Flock"), FLOCKS, FLOCK)
    managers.start()
    await cluster.pass_time(minutes=1)
    await managers.close()
    cluster.embedded.managers.pop()
    return managers


async def is_over(cluster: Cluster) -> bool:
    updated = await cluster.condition(FLOCK, "Updated")
    return await images(cluster) == ["goose:2"] * 3 and updated is not None and updated["status"] == "True"


async def ends(cluster: Cluster) -> None:
    """Let time pass until the rollout is over; a lost watch takes a moment to be started again."""
    async with asyncio.timeout(60):
        while not await is_over(cluster):
            await cluster.pass_time(seconds=10)
    await cluster.pass_time(minutes=5)

    assert await is_over(cluster)
    assert len(await cluster.list("controllerrevisions", api_version="metacontroller.k8s.io/v1alpha1")) == 1


@pytest.mark.parametrize("writes", [1, 3, 8])
async def test_a_process_that_starts_after_a_crash_completes_the_rollout(
    cluster: Cluster, writes: int
) -> None:
    managers = await begun(cluster)

    managers.start(writes)
    await cluster.edit(FLOCK, spec={"image": "goose:2"})

    await ends(cluster)
    assert managers.struck == 1
    await managers.close()


@pytest.mark.parametrize("writes", [1, 3, 8])
@pytest.mark.parametrize("versions", [1, 6])
async def test_a_process_that_starts_with_a_stale_view_completes_the_rollout(
    cluster: Cluster, writes: int, versions: int
) -> None:
    managers = await begun(cluster)

    managers.start(writes, faults=[Stale(id="past", versions=versions, users=(ROLLER.name,))])
    await cluster.edit(FLOCK, spec={"image": "goose:2"})
    await cluster.pass_time(seconds=5)
    assert managers.struck == 1
    assert met(cluster, "past")
    cluster.faults.remove("past")

    await ends(cluster)
    await managers.close()


@pytest.mark.parametrize("writes", [1, 3, 8])
async def test_a_process_that_misses_events_completes_the_rollout(cluster: Cluster, writes: int) -> None:
    """Every watch ends and its version has expired: each kind is listed again."""
    managers = await begun(cluster)

    lost: list[Fault] = [Cut(users=(ROLLER.name,)), Expire(id="gone", users=(ROLLER.name,))]
    managers.start(writes, dies=False, faults=lost)
    await cluster.edit(FLOCK, spec={"image": "goose:2"})

    await ends(cluster)
    assert managers.struck == 1
    assert met(cluster, "gone")
    await managers.close()
