"""Calling webhooks, such as people write them."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread
from typing import Any

import pytest

from lamina.core.model.queries import Call, HookResponse
from lamina.errors import HookError
from lamina.runtime.hooks.client import HookClient
from lamina.runtime.metrics.recorder import HookRecorder

Answer = tuple[int, dict[str, str], bytes]


class Hook:
    """A webhook as in the old examples: one thread, HTTP/1.0, an answer without a length."""

    def __init__(self, answer: Callable[["Hook"], Answer]) -> None:
        self.heard: list[dict[str, str]] = []
        self.bodies: list[Any] = []
        hook = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                assert self.headers["Content-Type"] == "application/json"
                assert "Transfer-Encoding" not in self.headers
                body = self.rfile.read(int(self.headers["Content-Length"]))
                hook.bodies.append(json.loads(body))
                hook.heard.append(dict(self.headers))
                code, headers, said = answer(hook)
                self.send_response(code)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(said)

            def log_message(self, format: str, *args: object) -> None:
                pass

        self._server = HTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}/sync"
        self._thread = Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02})

    def __enter__(self) -> "Hook":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def call(self, **fields: Any) -> Call:
        return Call(url=self.url, body=b'{"a":1}', seconds=10, purpose="sync", **fields)


def saying(code: int, body: bytes = b"{}", **headers: str) -> Hook:
    return Hook(lambda hook: (code, {name.replace("_", "-"): value for name, value in headers.items()}, body))


@pytest.fixture
async def calls() -> AsyncIterator[HookClient]:
    made = HookClient()
    yield made
    await made.close()


async def test_a_hook_on_a_server_of_one_thread_answers_fifty_at_once(calls: HookClient) -> None:
    with saying(200, b'{"children":[]}') as hook:
        said = await asyncio.gather(*(calls.call(hook.call()) for _ in range(50)))

    assert said == [HookResponse(b'{"children":[]}')] * 50
    assert hook.bodies == [{"a": 1}] * 50


@pytest.mark.parametrize("code", [201, 204, 304, 400, 404, 412, 500, 503])
async def test_any_answer_but_200_is_a_failure_that_says_what_came(calls: HookClient, code: int) -> None:
    with saying(code, b"") as hook, pytest.raises(HookError) as refused:
        await calls.call(hook.call())

    assert refused.value.with_body.endswith(f" failed: unsupported status code: {code} body: ")


async def test_the_body_of_a_failing_answer_is_kept_apart_from_the_message_that_is_logged(
    calls: HookClient,
) -> None:
    with saying(500, b"password=hunter2") as hook, pytest.raises(HookError) as refused:
        await calls.call(hook.call())

    assert "hunter2" not in str(refused.value)
    assert refused.value.with_body == f"{refused.value} body: password=hunter2"


async def test_an_unreachable_hook_is_an_http_error(calls: HookClient) -> None:
    with saying(200) as hook:
        call = hook.call()

    with pytest.raises(HookError, match="^http error: sync hook http://"):
        await calls.call(call)


@pytest.mark.parametrize(
    ("header", "after"),
    [
        ({"Retry_After": "3"}, 3.0),
        ({}, 0.0),
        ({"Retry_After": "soon"}, 0.0),
        ({"Retry_After": "0"}, 1.0),
        ({"Retry_After": "99999"}, 300.0),
        ({"Retry_After": format_datetime(datetime.now(UTC) + timedelta(days=1), usegmt=True)}, 300.0),
    ],
)
async def test_a_busy_hook_says_when_to_come_back(
    calls: HookClient, header: dict[str, str], after: float
) -> None:
    with saying(429, b"", **header) as hook, pytest.raises(HookError) as busy:
        await calls.call(hook.call())

    assert busy.value.after == after


async def test_an_answer_with_an_etag_is_asked_for_again_by_it(calls: HookClient) -> None:
    answers = [
        (200, {"ETag": '"1"'}, b"one"),
        (304, {}, b""),
        (412, {}, b""),
        (200, {}, b"two"),
        (304, {}, b""),
    ]
    with Hook(lambda hook: answers[len(hook.heard) - 1]) as hook:
        said = [(await calls.call(hook.call(etag=True, about="a"))).body for _ in answers]

    assert said == [b"one", b"one", b"one", b"two", b"one"]
    assert [one.get("If-None-Match") for one in hook.heard] == [None, '"1"', '"1"', '"1"', '"1"']


async def test_the_etag_of_one_parent_is_not_sent_for_another(calls: HookClient) -> None:
    with saying(200, b"one", ETag='"1"') as hook:
        await calls.call(hook.call(etag=True, about="a"))
        await calls.call(hook.call(etag=True, about="b"))

    assert [one.get("If-None-Match") for one in hook.heard] == [None, None]


async def test_what_may_be_remembered_is_asked_once(calls: HookClient) -> None:
    with saying(200, b"rules") as hook:
        for _ in range(3):
            assert (await calls.call(hook.call(memo="m", memo_seconds=60))).body == b"rules"
        await asyncio.gather(*(calls.call(hook.call(memo="n", memo_seconds=60)) for _ in range(5)))
        await calls.call(hook.call(memo="o"))
        await calls.call(hook.call(memo="o"))

    assert len(hook.heard) == 4, "m once, n once, and o, which is not to be kept, twice"


async def test_a_failure_is_not_remembered(calls: HookClient) -> None:
    with Hook(lambda hook: (500 if len(hook.heard) == 1 else 200, {}, b"ok")) as hook:
        with pytest.raises(HookError):
            await calls.call(hook.call(memo="m", memo_seconds=60))

        assert (await calls.call(hook.call(memo="m", memo_seconds=60))).body == b"ok"


async def test_a_redirect_keeps_the_body_where_it_should(calls: HookClient) -> None:
    with saying(200, b"there") as there, saying(307, b"", Location=there.url) as here:
        assert (await calls.call(here.call())).body == b"there"

    assert there.bodies == [{"a": 1}]


async def test_a_hook_that_runs_here_has_the_same_patience() -> None:
    async def never(call: Call) -> bytes:
        await asyncio.Event().wait()
        return b""

    calls = HookClient(local=lambda url: never if url.startswith("hook:") else None)
    with pytest.raises(HookError, match=r"sync hook hook:me took longer than 0\.01s"):
        await calls.call(Call(url="hook:me", body=b"", seconds=0.01, purpose="sync"))


async def test_every_call_is_counted_with_what_came_of_it() -> None:
    seen: list[str] = []

    class Noted(HookRecorder):
        def ended(self, call: Call, outcome: str, seconds: float) -> None:
            seen.append(outcome)

    calls = HookClient(meter=Noted())
    with saying(500) as hook, pytest.raises(HookError):
        await calls.call(hook.call())
    with pytest.raises(HookError):
        await calls.call(hook.call())
    await calls.close()

    assert seen == ["500", "error"]
