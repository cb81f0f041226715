"""The deadline of a request: `?timeout=`."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from lamina.app import App
from lamina.server.http.request import Request, Response
from lamina.server.tls.certificates import Certificates
from tests.server.raw_http import CONFIG_MAPS, Scripted, reach, serving

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest.mark.parametrize("timeout", ["34s", "0", "0s", "-1s", "1h", "1m30s", ""])
async def test_a_request_that_is_in_time_is_answered(app: App, timeout: str) -> None:
    async with await reach(app) as wire:
        answer = await wire.send_request("GET", f"{CONFIG_MAPS}?timeout={timeout}")

    assert answer.status == 200


@pytest.mark.parametrize(
    ("timeout", "why"),
    [("soon", 'time: invalid duration "soon"'), ("5", 'time: missing unit in duration "5"')],
)
async def test_a_timeout_that_is_none_is_refused(app: App, timeout: str, why: str) -> None:
    async with await reach(app) as wire:
        answer = await wire.send_request("GET", f"{CONFIG_MAPS}?timeout={timeout}")

    assert (answer.status, answer.json["reason"]) == (400, "BadRequest")
    assert answer.message == f"invalid timeout specified in the request URL - {why}"


async def test_a_watch_has_no_deadline(app: App) -> None:
    async with await reach(app) as wire:
        watch = await wire.send_request("GET", "/api/v1/namespaces?watch=1&timeoutSeconds=1&timeout=soon")

    assert watch.status == 200
    assert watch.body.count(b'"ADDED"') >= 4


async def test_a_request_that_takes_too_long_is_given_up(certificates: Certificates) -> None:
    """Without Retry-After, as in kube-apiserver: a client that repeats a write might write twice."""
    given_up: list[bool] = []

    async def for_ever(request: Request) -> Response:
        try:
            await asyncio.Event().wait()
        finally:
            given_up.append(True)
        return Response(200, b"{}")

    handler = Scripted(later={"/slow": for_ever})
    async with serving(handler, certificates) as served, await served.connect() as wire:
        answer = await wire.send_request("POST", "/slow?timeout=10ms")
        after = await wire.send_request("GET", "/after")

    assert answer.status == 504
    assert answer.json == {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": "Timeout: request did not complete within the allotted timeout",
        "reason": "Timeout",
        "details": {},
        "code": 504,
    }
    assert answer.one("retry-after") is None
    assert given_up == [True]
    assert after.status == 200


async def test_a_deadline_is_for_the_answer_and_not_for_its_stream(certificates: Certificates) -> None:
    async def stream(request: Request) -> Response:
        async def chunks() -> AsyncIterator[bytes]:
            for number in range(5):
                await asyncio.sleep(0.005)
                yield b"%d" % number

        return Response(200, chunks())

    handler = Scripted(later={"/stream": stream})
    async with serving(handler, certificates) as served, await served.connect() as wire:
        answer = await wire.send_request("POST", "/stream?timeout=10ms")

    assert answer.body == b"01234"
