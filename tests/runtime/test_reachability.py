"""Whether a process is ready: only if the API server answers."""

import asyncio
from collections.abc import Awaitable, Callable

import aiohttp
import pytest

from lamina.cli.options.metrics_flags import ProcessMetrics
from lamina.client.client import Client
from lamina.client.transport.base import Response
from lamina.errors import NotLeading, Unauthorized, Unreachable
from lamina.runtime.metrics.reachability import Reachability
from tests.runtime.cluster import embedded
from tests.runtime.fleet import Line
from tests.scenarios.story import free_port

SERVER = "https://10.0.0.1:6443"


class Failing:
    """A transport whose requests end with an error."""

    def __init__(self, error: Exception) -> None:
        self._error = error

    async def request(self, *args: object, **more: object) -> Response:
        raise self._error

    async def close(self) -> None:
        pass


class Time:
    seconds = 0.0

    def __call__(self) -> float:
        return self.seconds


async def test_the_process_is_ready_while_its_server_answers() -> None:
    time, port = Time(), free_port()
    flags = {
        "metrics_address": "0", "health_probe_bind_address": f"127.0.0.1:{port}", "pprof_address": "0",
        "metrics_secure": False,
    }  # fmt: skip
    metrics = ProcessMetrics(flags, SERVER, time)
    async with embedded() as app, metrics.serving(app.client()), aiohttp.ClientSession() as http:
        line = Line(app.cluster)
        client = Client(metrics.metered(line))

        async def ready() -> tuple[int, str]:
            async with http.get(f"http://127.0.0.1:{port}/readyz") as answer:
                return answer.status, await answer.text()

        assert await ready() == (503, "the caches have not synced yet\n")
        metrics.is_ready = True
        await client.discover()
        # A server that is sent nothing is not silent.
        time.seconds = 1000
        assert await ready() == (200, "ok")

        line.cut()
        asked = asyncio.create_task(client.discover())
        await line.tried.wait()
        time.seconds = 1029
        assert await ready() == (200, "ok")
        time.seconds = 1042
        assert await ready() == (503, f"{SERVER} has not answered for 42s\n")

        line.mend()
        await asked
        assert await ready() == (200, "ok")


async def asked(reachability: Reachability, error: Exception) -> None:
    with pytest.raises(type(error)):
        await reachability.tracked(Failing(error)).request("GET", "/api", headers={})


def refused(reachability: Reachability) -> Awaitable[None]:
    return asked(reachability, Unreachable("connection refused"))


def unauthorized(reachability: Reachability) -> Awaitable[None]:
    return asked(reachability, Unauthorized("the server has asked for the client to provide credentials"))


def not_sent(reachability: Reachability) -> Awaitable[None]:
    return asked(reachability, NotLeading("not sent"))


@pytest.mark.parametrize(
    ("ask", "problem"),
    [(refused, f"{SERVER} has not answered for 31s: connection refused"), (unauthorized, ""), (not_sent, "")],
)
async def test_a_request_that_fails_is_unanswered_and_one_that_was_not_sent_is_none(
    ask: Callable[[Reachability], Awaitable[None]], problem: str
) -> None:
    time = Time()
    reachability = Reachability(SERVER, time)
    await ask(reachability)
    time.seconds = 31
    await ask(reachability)

    assert reachability.problem == problem
