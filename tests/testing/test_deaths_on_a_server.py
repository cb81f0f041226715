"""A roll whose process dies after one of its writes, on a whole server: what holds on paper holds there too."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from lamina.client.client import Client
from lamina.client.transport import Query, Response, Transport
from lamina.core.questions import Call
from lamina.families.every import chosen
from lamina.product import install, product
from lamina.runtime.calls import Calls
from lamina.runtime.manager import Manager
from lamina.testing import Cluster
from lamina.testing.builders import definition
from tests.simulation.test_simulation import FLOCKS, flock, hook

FLOCK = flock("goose:1")


class Mortal:
    """A way to a server on which nothing is heard any more after so many writes."""

    def __init__(self, inner: Transport, writes: int, die: Callable[[], None]) -> None:
        self._inner, self._left, self._die = inner, writes, die

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
        if self._left == 0 and method != "GET":
            await asyncio.Event().wait()
        answer = await self._inner.request(
            method, path, query=query, headers=headers, body=body, streams=streams
        )
        if method != "GET" and answer.status < 300:
            self._left -= 1
            if self._left == 0:
                self._die()
                await asyncio.Event().wait()
        return answer

    async def close(self) -> None:
        await self._inner.close()


class Office:
    """Runs Metacontroller on a cluster, and takes on another who remembers nothing when it dies."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster, self.deaths = cluster, 0
        self._tasks: list[asyncio.Task[None]] = []

    def employ(self, writes: int = -1) -> None:
        """Have somebody work until they have written so often, or for good."""
        running: list[Manager] = []

        def die() -> None:
            self.deaths += 1
            self._cluster.embedded.managers.remove(running[0])
            task.cancel()
            self.employ()

        way = Mortal(self._cluster.embedded.client()._transport, writes, die)
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


@pytest.mark.parametrize("writes", [1, 3, 8])
async def test_whoever_comes_after_a_death_ends_the_roll(cluster: Cluster, writes: int) -> None:
    office = Office(cluster)
    await install(cluster.client, chosen("metacontroller"))
    await cluster.given(definition("Flock"), FLOCKS, FLOCK)
    office.employ()
    await cluster.pass_time(minutes=1)
    await office.close()
    cluster.embedded.managers.pop()

    office.employ(writes)
    await cluster.edit(FLOCK, spec={"image": "goose:2"})
    await cluster.pass_time(minutes=5)

    assert office.deaths == 1
    assert await images(cluster) == ["goose:2"] * 3
    updated = await cluster.condition(FLOCK, "Updated")
    assert updated is not None
    assert updated["status"] == "True"
    assert len(await cluster.list("controllerrevisions", api_version="metacontroller.k8s.io/v1alpha1")) == 1
    await office.close()
