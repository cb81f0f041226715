"""Requests in every form that HTTP allows."""

import asyncio
from collections.abc import AsyncIterator

import orjson
import pytest

from lamina.app import App
from lamina.server.http.request import Request, Response
from lamina.server.tls.certificates import Certificates
from tests.server.raw_http import CONFIG_MAPS, Scripted, reach, serving

pytestmark = pytest.mark.asyncio(loop_scope="module")


def config_map(name: str, **data: str) -> bytes:
    return orjson.dumps({"metadata": {"name": name}, "data": data})


async def test_a_request_may_come_one_byte_at_a_time(app: App) -> None:
    body = config_map("slowly")
    async with await reach(app) as wire:
        request = wire.request_bytes("POST", CONFIG_MAPS, "Content-Type: application/json", body=body)
        await wire.send(*[request[index : index + 1] for index in range(len(request))])
        made = await wire.read_response()
        read = wire.request_bytes("GET", f"{CONFIG_MAPS}/slowly")
        await wire.send(*[read[index : index + 1] for index in range(len(read))])
        found = await wire.read_response()

    assert (made.status, found.status) == (201, 200)
    assert made.json == found.json


async def test_requests_in_one_packet_are_answered_in_order(app: App) -> None:
    """The writes take longer than the reads behind them; the responses are still in order."""
    async with await reach(app) as wire:
        packet, expected = b"", []
        for number in range(40):
            name = f"order-{number}"
            packet += wire.request_bytes("GET", f"{CONFIG_MAPS}/{name}")
            packet += wire.request_bytes("POST", CONFIG_MAPS, body=config_map(name))
            packet += wire.request_bytes("GET", f"{CONFIG_MAPS}/{name}")
            expected += [(404, name), (201, name), (200, name)]
        await wire.send(packet)
        answers = [await wire.read_response() for _ in expected]

    told = [(one.status, one.json.get("metadata", {}).get("name") or one.json["details"]["name"]) for one in answers]  # fmt: skip
    assert told == expected


async def test_a_request_that_comes_while_the_one_before_is_answered_waits_its_turn(
    certificates: Certificates,
) -> None:
    answered = asyncio.Event()

    async def slowly(request: Request) -> Response:
        await answered.wait()
        return Response(200, b'"slow"')

    handler = Scripted(later={"/slow": slowly})
    async with serving(handler, certificates) as served, await served.connect() as wire:
        await wire.send(wire.request_bytes("POST", "/slow"))
        await asyncio.sleep(0)
        await wire.send(wire.request_bytes("GET", "/fast"))
        await wire.send(wire.request_bytes("POST", "/slow"), wire.request_bytes("GET", "/last"))
        answered.set()
        bodies = [(await wire.read_response()).json for _ in range(4)]

    assert bodies == ["slow", "/fast", "slow", "/last"]
    assert handler.requests == ["POST /slow", "GET /fast", "POST /slow", "GET /last"]


async def test_a_body_may_come_in_chunks(app: App) -> None:
    body = config_map("in-chunks", a="b" * 100)
    pieces = [body[start : start + 7] for start in range(0, len(body), 7)]
    async with await reach(app) as wire:
        await wire.send(
            wire.request_bytes("POST", CONFIG_MAPS, "Transfer-Encoding: chunked"),
            *[b"%x;note=1\r\n%b\r\n" % (len(piece), piece) for piece in pieces],
            b"0\r\n\r\n" + wire.request_bytes("GET", f"{CONFIG_MAPS}/in-chunks"),
        )
        made, found = await wire.read_response(), await wire.read_response()

    assert (made.status, found.status) == (201, 200)
    assert found.json["data"] == {"a": "b" * 100}


async def test_what_comes_after_the_last_chunk_says_nothing_about_the_request(
    certificates: Certificates,
) -> None:
    seen: list[Request] = []

    def look(request: Request) -> Response:
        seen.append(request)
        return Response(200, b"{}")

    async with serving(Scripted(now={"/": look}), certificates) as served, await served.connect() as wire:
        await wire.send(
            b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nA: first\r\n\r\n",
            b"2\r\nok\r\n0\r\nAuthorization: Bearer sesame\r\nA: second\r\nB: late\r\n\r\n",
        )
        await wire.read_response()

    (request,) = seen
    assert request.body == b"ok"
    assert request.headers == {"host": "x", "transfer-encoding": "chunked", "a": "first"}
    assert request.user.name == "system:anonymous"


async def test_of_a_header_said_twice_the_first_counts(certificates: Certificates) -> None:
    seen: list[Request] = []

    def look(request: Request) -> Response:
        seen.append(request)
        return Response(200, b"{}")

    async with serving(Scripted(now={"/": look}), certificates) as served, await served.connect() as wire:
        await wire.send_request("GET", "/", "ACCEPT: first", "accept: second", "Authorization: Bearer wrong")

    assert seen[0].headers["accept"] == "first"
    assert seen[0].user.name == "lamina-admin"


@pytest.mark.parametrize(
    ("target", "path", "query"),
    [
        ("/", "/", ""),
        ("/a/b?c=d&e", "/a/b", "c=d&e"),
        ("/a?", "/a", ""),
        ("/a?b?c", "/a", "b?c"),
        ("/a#b?c", "/a", ""),
        ("/a?b#c", "/a", "b"),
        ("/%20%2f", "/%20%2f", ""),
        ("//a//b", "//a//b", ""),
        ("https://elsewhere/a/b?c", "/a/b", "c"),
        ("https://elsewhere", "/", ""),
        ("https://elsewhere?c", "/", "c"),
    ],
)
async def test_the_target_of_a_request_is_taken_apart(
    certificates: Certificates, target: str, path: str, query: str
) -> None:
    seen: list[Request] = []

    def look(request: Request) -> Response:
        seen.append(request)
        return Response(200, b"{}")

    handler = Scripted(now={path: look})
    async with serving(handler, certificates) as served, await served.connect() as wire:
        assert (await wire.send_request("GET", target)).status == 200

    assert (seen[0].path, seen[0].query) == (path, query)


async def test_a_client_that_asks_first_is_told_to_go_on(app: App) -> None:
    body = config_map("asked-first")
    async with await reach(app) as wire:
        request = wire.request_bytes("POST", CONFIG_MAPS, "Expect: 100-Continue", body=body)
        await wire.send(request.removesuffix(body))
        close = await wire.read_response()
        await wire.send(body)
        made = await wire.read_response()

    assert (close.line, close.headers) == ("HTTP/1.1 100 Continue", [])
    assert made.status == 201


async def test_leave_to_go_on_is_given_when_the_answers_before_it_are_out(certificates: Certificates) -> None:
    answered = asyncio.Event()

    async def slowly(request: Request) -> Response:
        await answered.wait()
        return Response(200, b'"slow"')

    handler = Scripted(later={"/slow": slowly})
    async with serving(handler, certificates) as served, await served.connect() as wire:
        head = wire.request_bytes("PUT", "/b", "Expect: 100-continue", body=b"x").removesuffix(b"x")
        await wire.send(wire.request_bytes("POST", "/slow") + head)
        answered.set()
        first, close = await wire.read_response(), await wire.read_response()
        await wire.send(b"x")
        second = await wire.read_response()

    assert [first.json, close.status, second.json] == ["slow", 100, "/b"]


async def test_a_request_without_a_body_gets_no_100_continue(certificates: Certificates) -> None:
    async with serving(Scripted(), certificates) as served, await served.connect() as wire:
        answers = [
            await wire.send_request("POST", "/a", "Expect: 100-continue", body=b""),
            await wire.send_request("GET", "/b", "Expect: 100-continue"),
            await wire.send_request("POST", "/c", "Expect: 100-continue", body=b"already here"),
        ]

    assert [one.status for one in answers] == [200, 200, 200]


async def test_a_connection_is_kept_until_one_side_closes_it(app: App) -> None:
    async with await reach(app) as wire:
        answers = [await wire.send_request("GET", "/version") for _ in range(3)]
        last = await wire.send_request("GET", "/version", "Connection: close")
        rest = await wire.ends()

    assert [one.one("connection") for one in answers] == [None, None, None]
    assert (last.status, last.one("connection"), rest) == (200, "close", b"")


async def test_what_is_said_after_the_last_request_is_not_heard(certificates: Certificates) -> None:
    """A second response, or the rejection of what follows, would be taken for another request's response."""
    handler = Scripted(later={"/slow": lambda request: _later(b'"slow"')})
    async with serving(handler, certificates) as served:
        for path in ("/slow", "/fast"):
            async with await served.connect() as wire:
                await wire.send(
                    wire.request_bytes("GET", path, "Connection: close")
                    + wire.request_bytes("GET", "/not-heard")
                    + b"\0"
                )
                answer, rest = await wire.read_response(), await wire.ends()

            assert (answer.json, rest) == (path if path == "/fast" else "slow", b"")

    assert handler.requests == ["GET /slow", "GET /fast"]


async def _later(body: bytes) -> Response:
    await asyncio.sleep(0)
    return Response(200, body)


async def test_an_old_client_is_answered_in_its_own_version_and_left(app: App) -> None:
    async with await reach(app) as wire:
        await wire.send(b"GET /version HTTP/1.0\r\n\r\n")
        answer, rest = await wire.read_response(), await wire.ends()

    assert answer.line == "HTTP/1.0 200 OK"
    assert answer.json["major"] == "1"
    assert rest == b""


async def test_an_old_client_may_ask_to_be_kept(app: App) -> None:
    async with await reach(app) as wire:
        for _ in range(2):
            await wire.send(b"GET /version HTTP/1.0\r\nConnection: keep-alive\r\n\r\n")
            answer = await wire.read_response()
            assert (answer.line, answer.one("connection")) == ("HTTP/1.0 200 OK", "keep-alive")


async def test_an_old_client_gets_a_stream_without_chunks(app: App) -> None:
    async with await reach(app) as wire:
        watch = wire.request_bytes(
            "GET", "/api/v1/namespaces?watch=1&timeoutSeconds=1", "Connection: keep-alive"
        )
        await wire.send(watch.replace(b"HTTP/1.1", b"HTTP/1.0"))
        answer, rest = await wire.read_response(), await wire.ends()

    assert answer.line == "HTTP/1.0 200 OK"
    assert (answer.one("transfer-encoding"), answer.one("connection")) == (None, "close")
    events = [orjson.loads(line) for line in answer.body.splitlines()]
    assert {one["object"]["metadata"]["name"] for one in events} >= {"default", "kube-system"}
    assert rest == b""


async def test_a_connection_serves_on_after_a_stream_has_ended(app: App) -> None:
    async with await reach(app) as wire:
        watch = await wire.send_request("GET", "/api/v1/namespaces?watch=1&timeoutSeconds=1")
        after = await wire.send_request("GET", "/version")

    assert watch.one("transfer-encoding") == "chunked"
    assert watch.body.count(b'"ADDED"') >= 4
    assert after.status == 200


@pytest.mark.parametrize(
    ("path", "status"),
    [("/healthz", 200), ("/apis", 200), ("/openapi/v3", 200), ("/nope", 404),
     ("/version", 405), ("/api/v1", 405), (CONFIG_MAPS, 405), (f"{CONFIG_MAPS}/kube-root-ca.crt", 405),
     ("/api/v1/watch/configmaps", 405)],
)  # fmt: skip
async def test_head_is_answered_without_a_body_where_a_real_server_answers_it(
    app: App, path: str, status: int
) -> None:
    async with await reach(app) as wire:
        head = await wire.send_request("HEAD", path)
        after = await wire.send_request("GET", "/version")

    assert head.status == status
    assert int(head.one("content-length") or 0) > 0
    assert after.json["major"] == "1"


async def test_a_stream_has_no_body_for_head(certificates: Certificates) -> None:
    async def stream(request: Request) -> Response:
        async def chunks() -> AsyncIterator[bytes]:
            yield b"never"

        return Response(200, chunks())

    handler = Scripted(later={"/s": stream})
    async with serving(handler, certificates) as served, await served.connect() as wire:
        head = await wire.send_request("HEAD", "/s")
        after = await wire.send_request("GET", "/after")

    assert head.one("transfer-encoding") == "chunked"
    assert after.json == "/after"
