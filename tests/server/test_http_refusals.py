"""Bytes that are no request, or too large for one."""

import asyncio

import pytest

from lamina.app import App
from lamina.server.http.connection_context import Timeouts
from lamina.server.http.request import Request, Response
from lamina.server.http.request_parser import BODY_LIMIT, HEADER_BYTES_LIMIT, HEADERS_LIMIT
from lamina.server.tls.certificates import Certificates
from tests.server.raw_http import CONFIG_MAPS, Scripted, Wire, reach, serving

pytestmark = pytest.mark.asyncio(loop_scope="module")

HOST = b"Host: x\r\n"
POST = b"POST /x HTTP/1.1\r\nHost: x\r\n"


@pytest.mark.parametrize(
    ("data", "status"),
    [
        (b"hello\r\n\r\n", 400),
        (b"\0\0\0\0", 400),
        (b"\x16\x03\x01\x00\xa5\x01\x00\x00\xa1\x03\x03", 400),
        (b"GET\r\n\r\n", 400),
        (b"GET / HTTP/1.1\n\n", 400),
        (b"GET /a b HTTP/1.1\r\n" + HOST + b"\r\n", 400),
        (b"GET /\xc3\xbc HTTP/1.1\r\n" + HOST + b"\r\n", 400),
        (b"GET /\x7f HTTP/1.1\r\n" + HOST + b"\r\n", 400),
        (b"GET * HTTP/1.1\r\n" + HOST + b"\r\n", 400),
        (b"OPTIONS * HTTP/1.1\r\n" + HOST + b"\r\n", 400),
        (b"GET nowhere HTTP/1.1\r\n" + HOST + b"\r\n", 400),
        (b"GET x:/y HTTP/1.1\r\n" + HOST + b"\r\n", 400),
        (b"CONNECT x:1 HTTP/1.1\r\n" + HOST + b"\r\n", 400),
        (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\n" + HOST + b"A : b\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\n" + HOST + b"A: b\r\n folded\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\n" + HOST + b"A: b\0c\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\n" + HOST + b"A: b\rc\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\n" + HOST + b": b\r\n\r\n", 400),
        (b"GET / HTTP/2.0\r\n" + HOST + b"\r\n", 505),
        (b"GET / HTTP/2.0\r\n" + HOST + b"Connection: keep-alive\r\n\r\n", 505),
        (b"GET /\r\n\r\n", 505),
        (POST + b"Content-Length: -1\r\n\r\n", 400),
        (POST + b"Content-Length: +1\r\n\r\nx", 400),
        (POST + b"Content-Length: 0x1\r\n\r\nx", 400),
        (POST + b"Content-Length: 1, 1\r\n\r\nx", 400),
        (POST + b"Content-Length: \r\n\r\n", 400),
        (POST + b"Content-Length: " + b"0" * 5000 + b"1\r\n\r\nx", 400),
        (POST + b"Content-Length: 99999999999999999999999\r\n\r\n", 400),
        (POST + b"Content-Length: 1\r\nContent-Length: 1\r\n\r\nx", 400),
        (POST + b"Content-Length: 1\r\nContent-Length: 2\r\n\r\nxx", 400),
        (POST + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400),
        (POST + b"Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n", 400),
        (POST + b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400),
        (POST + b"Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n", 400),
        (POST + b"Transfer-Encoding: identity\r\n\r\n", 501),
        (POST + b"Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", 501),
        (POST + b"Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n", 501),
        (b"POST /x HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 501),
        (POST + b"Transfer-Encoding: chunked\r\n\r\nnot a number\r\n", 400),
        (POST + b"Transfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\n", 400),
        (POST + b"Transfer-Encoding: chunked\r\n\r\n3\r\nabcdef\r\n0\r\n\r\n", 400),
        (POST + b"Expect: the-unexpected\r\nContent-Length: 1\r\n\r\nx", 417),
        (b"GET / HTTP/1.1\r\n" + HOST + b"Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n", 400),
        (b"POST / HTTP/1.1\r\n" + HOST + b"Connection: Upgrade\r\nUpgrade: SPDY/3.1\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\n" + HOST + b"Connection: Upgrade\r\nUpgrade: h2c\r\n\r\nPRI * HTTP/2.0\r\n", 400),
        (POST + b"Connection: Upgrade\r\nUpgrade: x\r\nContent-Length: 2\r\n\r\n{}GET /y HTTP/1.1\r\n\r\n", 400),
    ],
)  # fmt: skip
async def test_what_is_no_request_is_refused_once_and_reaches_no_handler(
    certificates: Certificates, data: bytes, status: int
) -> None:
    handler = Scripted()
    timeouts = Timeouts(refused=0.01)
    async with serving(handler, certificates, timeouts) as served, await served.connect() as wire:
        await wire.send(data)
        answer, rest = await wire.read_response(), await wire.ends()

    assert answer.status == status
    assert answer.one("connection") == "close"
    if status == 400:
        assert answer.one("content-type") == "application/json"
        assert answer.json["reason"] == "BadRequest" and answer.message
    assert rest == b""
    assert handler.requests == []


async def test_a_refusal_comes_after_the_answers_to_what_was_asked_before(certificates: Certificates) -> None:
    """Sent at once it would be taken for the response to the request in progress."""
    answered = asyncio.Event()

    async def slowly(request: Request) -> Response:
        await answered.wait()
        return Response(201, b'"slow"')

    handler = Scripted(later={"/slow": slowly})
    timeouts = Timeouts(refused=0.01)
    async with serving(handler, certificates, timeouts) as served, await served.connect() as wire:
        await wire.send(
            wire.request_bytes("POST", "/slow") + wire.request_bytes("GET", "/fast") + b"\0 nonsense"
        )
        answered.set()
        answers = [await wire.read_response() for _ in range(3)]
        rest = await wire.ends()

    assert [one.status for one in answers] == [201, 200, 400]
    assert rest == b""


async def test_an_upgrade_is_refused_with_a_status_kubectl_can_show(app: App) -> None:
    async with await reach(app) as wire:
        answer = await wire.send_request(
            "POST",
            "/api/v1/namespaces/default/pods/x/exec?command=ls",
            "Connection: Upgrade",
            "Upgrade: SPDY/3.1",
        )

    assert (answer.status, answer.message) == (400, "this server does not upgrade connections")


async def test_a_body_that_says_it_is_too_large_is_not_waited_for(app: App) -> None:
    async with await reach(app) as wire:
        await wire.send(wire.request_bytes("POST", CONFIG_MAPS, f"Content-Length: {BODY_LIMIT + 1}"))
        answer = await wire.read_response()

    assert (answer.status, answer.json["reason"]) == (413, "RequestEntityTooLarge")
    assert answer.message == "Request entity too large: limit is 3145728"
    assert answer.one("connection") == "close"


async def test_a_client_that_is_still_sending_can_read_the_rejection(app: App) -> None:
    """If the server closed at once, the client would get a connection reset instead of the response."""
    async with await reach(app) as wire:
        request = wire.request_bytes("POST", CONFIG_MAPS, body=b"x" * (4 * BODY_LIMIT))
        await wire.send(*[request[start : start + 65536] for start in range(0, len(request), 65536)])
        answer = await wire.read_response()

    assert answer.message == "Request entity too large: limit is 3145728"


async def test_a_body_in_chunks_is_counted(app: App) -> None:
    mebibyte = b"100000\r\n" + b"x" * 0x100000 + b"\r\n"
    async with await reach(app) as wire:
        await wire.send(
            wire.request_bytes("POST", CONFIG_MAPS, "Transfer-Encoding: chunked"), *[mebibyte] * 3, b"1\r\nx"
        )
        answer = await wire.read_response()

    assert (answer.status, answer.message) == (413, "Request entity too large: limit is 3145728")


async def test_a_body_of_exactly_the_limit_is_read(certificates: Certificates) -> None:
    sizes: list[int] = []

    def look(request: Request) -> Response:
        sizes.append(len(request.body))
        return Response(200, b"{}")

    handler = Scripted(now={"/": look})
    async with serving(handler, certificates) as served, await served.connect() as wire:
        await wire.send_request("POST", "/", body=b"x" * BODY_LIMIT)
        await wire.send(wire.request_bytes("POST", "/", "Transfer-Encoding: chunked"))
        await wire.send(b"%x\r\n" % BODY_LIMIT + b"x" * BODY_LIMIT + b"\r\n0\r\n\r\n")
        await wire.read_response()

    assert sizes == [BODY_LIMIT, BODY_LIMIT]


async def test_a_hundred_headers_are_read(certificates: Certificates) -> None:
    async with serving(Scripted(), certificates) as served:
        async with await served.connect() as wire:
            few = await wire.send_request(
                "GET", "/", *[f"X-{number}: y" for number in range(HEADERS_LIMIT - 2)]
            )
            large = await wire.send_request("GET", "/", "X: " + "y" * (HEADER_BYTES_LIMIT - 200))
        async with await served.connect() as wire:
            many = await wire.send_request("GET", "/", *[f"X-{number}: y" for number in range(HEADERS_LIMIT)])
        async with await served.connect() as wire:
            larger = await wire.send_request("GET", "/", "X: " + "y" * HEADER_BYTES_LIMIT)
        async with await served.connect() as wire:
            same = await wire.send_request("GET", "/", *["X: y"] * HEADER_BYTES_LIMIT)

    assert (few.status, large.status) == (200, 200)
    for refused in (many, larger, same):
        assert refused.line == "HTTP/1.1 431 Request Header Fields Too Large"
        assert refused.one("connection") == "close"


async def test_a_path_is_long_only_if_the_whole_head_is(app: App) -> None:
    async with await reach(app) as wire:
        long = await wire.send_request("GET", "/version?x=" + "y" * (HEADER_BYTES_LIMIT - 1000))
        longer = await wire.send_request("GET", "/version?x=" + "y" * HEADER_BYTES_LIMIT)

    assert (long.status, longer.status) == (200, 431)


ENDLESS = {
    "a path": (b"GET /", b"x"),
    "a header": (b"GET / HTTP/1.1\r\nHost: x\r\nA: ", b"b"),
    "the name of a header": (b"GET / HTTP/1.1\r\nHost: x\r\nA", b"a"),
    "headers": (b"GET / HTTP/1.1\r\nHost: x\r\n", b"A: b\r\n"),
    "a note about a chunk": (POST + b"Transfer-Encoding: chunked\r\n\r\n1;", b"x"),
    "what comes after the last chunk": (POST + b"Transfer-Encoding: chunked\r\n\r\n0\r\nA: ", b"b"),
}


@pytest.mark.parametrize("what", ENDLESS)
async def test_what_has_no_end_is_not_read_for_ever(certificates: Certificates, what: str) -> None:
    """The parser reports a header when it is complete; until then it buffers it."""
    beginning, more = ENDLESS[what]
    packet = (more * 4096)[:4096]
    async with serving(Scripted(), certificates) as served, await served.connect() as wire:
        await wire.send(beginning)
        sent = 0
        while not _has_answered(wire):
            await wire.send(packet)
            await asyncio.sleep(0)
            sent += len(packet)
            assert sent < 100 * HEADER_BYTES_LIMIT
        answer = await wire.read_response()

    assert answer.status == 431


def _has_answered(wire: Wire) -> bool:
    return bool(wire.reader._buffer)  # type: ignore[attr-defined]  # reading it would wait for it


async def test_chunks_may_be_as_small_as_a_byte(certificates: Certificates) -> None:
    seen: list[bytes] = []

    def look(request: Request) -> Response:
        seen.append(request.body)
        return Response(200, b"{}")

    handler = Scripted(now={"/": look})
    async with serving(handler, certificates) as served, await served.connect() as wire:
        await wire.send(wire.request_bytes("POST", "/", "Transfer-Encoding: chunked"))
        await wire.send(*[b"1\r\nx\r\n" * 1000] * 200, b"0\r\n\r\n")
        answer = await wire.read_response()

    assert answer.status == 200
    assert seen == [b"x" * 200_000]


async def test_a_rejected_client_does_not_affect_others(app: App) -> None:
    async with await reach(app) as good, await reach(app) as bad:
        await bad.send(b"\0\0\0")
        refused = await bad.read_response()
        served = await good.send_request("GET", "/version")

    assert (refused.status, served.status) == (400, 200)
