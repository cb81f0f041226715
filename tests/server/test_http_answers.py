"""Response headers and compression."""

import asyncio
import gzip
import threading
import uuid
from collections.abc import AsyncIterator, Callable
from email.utils import parsedate_to_datetime

import orjson
import pytest

from lamina.app import App
from lamina.server.http.request import Request, Response
from lamina.server.tls.certificates import Certificates
from tests.server.raw_http import CONFIG_MAPS, Scripted, reach, serving

pytestmark = pytest.mark.asyncio(loop_scope="module")

KIBIBYTE = 1024


@pytest.mark.parametrize(
    ("method", "path", "status", "content_type"),
    [
        ("GET", f"{CONFIG_MAPS}/kube-root-ca.crt", 200, "application/json"),
        ("GET", CONFIG_MAPS, 200, "application/json"),
        ("GET", f"{CONFIG_MAPS}/none", 404, "application/json"),
        ("POST", CONFIG_MAPS, 400, "application/json"),
        ("PATCH", f"{CONFIG_MAPS}/none", 415, "application/json"),
        ("GET", "/api/v1/namespaces?watch=1&timeoutSeconds=1", 200, "application/json"),
        ("GET", "/version", 200, "application/json"),
        ("GET", "/healthz", 200, "text/plain; charset=utf-8"),
    ],
)
async def test_every_answer_carries_what_every_answer_carries(
    app: App, method: str, path: str, status: int, content_type: str
) -> None:
    async with await reach(app) as wire:
        answer = await wire.send_request(method, path, body=b"" if method != "GET" else None)

    assert answer.status == status
    assert answer.one("content-type") == content_type
    assert answer.one("cache-control") == "no-cache, private"
    identifier = answer.one("audit-id") or ""
    assert str(uuid.UUID(identifier)) == identifier
    assert uuid.UUID(identifier).version == 4
    assert uuid.UUID(identifier).variant == uuid.RFC_4122
    assert parsedate_to_datetime(answer.one("date") or "").tzinfo is not None


async def test_no_two_answers_have_the_same_id(app: App) -> None:
    async with await reach(app) as wire:
        given_out = {(await wire.send_request("GET", "/version")).one("audit-id") for _ in range(50)}

    assert len(given_out) == 50


async def test_a_warning_is_said_in_a_header(app: App, certificates: Certificates) -> None:
    def warn(request: Request) -> Response:
        request.warn('say "this"\\that')
        request.warn("once")
        request.warn("once")
        return Response(200, b"{}")

    handler = Scripted(now={"/": warn})
    async with serving(handler, certificates) as served, await served.connect() as wire:
        quoted = await wire.send_request("GET", "/")
    async with await reach(app) as wire:
        body = orjson.dumps({"metadata": {"name": "warned"}, "ünbekannt": 2})
        strange = await wire.send_request("POST", f"{CONFIG_MAPS}?dryRun=All", body=body)

    assert quoted.all("warning") == [r'299 - "say \"this\"\\that"', '299 - "once"']
    assert [one.encode("latin-1").decode() for one in strange.all("warning")] == [
        r'299 - "unknown field \"ünbekannt\""'
    ]


async def test_no_header_can_be_smuggled_into_a_response(app: App) -> None:
    evil = "x\r\nSet-Cookie: a=b\r\n\r\n<html>"
    body = orjson.dumps({"metadata": {"name": "n"}, evil: 1})
    async with await reach(app) as wire:
        warned = await wire.send_request("POST", f"{CONFIG_MAPS}?dryRun=All", body=body)
        moved = await wire.send_request("GET", "/openapi/v3/api/v1?hash=x%0d%0aSet-Cookie:%20a=b")
        named = await wire.send_request("GET", f"{CONFIG_MAPS}/x%0d%0aSet-Cookie:%20a=b")
        typed = await wire.send_request("GET", "/apis", "Accept: application/json;v=v2%0d%0aSet-Cookie:a=b")

    assert (warned.status, moved.status, named.status) == (201, 301, 404)
    for answer in (warned, moved, named, typed):
        assert answer.all("set-cookie") == []


async def test_what_did_not_change_is_not_sent_again(app: App) -> None:
    async with await reach(app) as wire:
        first = await wire.send_request("GET", "/openapi/v2")
        again = await wire.send_request("GET", "/openapi/v2", f"If-None-Match: {first.one('etag')}")
        after = await wire.send_request("GET", "/version")

    assert (first.status, again.status, after.status) == (200, 304, 200)


PROTOBUF = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"


@pytest.mark.parametrize(
    ("accept", "status", "content_type"),
    [
        ("*/*", 200, "application/json"),
        ("application/json", 200, "application/json"),
        (PROTOBUF, 200, PROTOBUF),
        ("application/com.github.proto-openapi.spec.v2@v1.0+protobuf", 200, PROTOBUF),
        (f"{PROTOBUF};q=0.5, application/json", 200, "application/json"),
        (f"text/plain, {PROTOBUF}", 200, PROTOBUF),
        ("application/yaml", 406, None),
    ],
)
async def test_the_old_description_comes_in_two_forms(
    app: App, accept: str, status: int, content_type: str | None
) -> None:
    async with await reach(app) as wire:
        answer = await wire.send_request("GET", "/openapi/v2", f"Accept: {accept}")

    assert answer.status == status
    assert content_type in (None, answer.one("content-type"))


@pytest.mark.parametrize(
    ("size", "accepted", "packed"),
    [
        (128 * KIBIBYTE, "gzip", False),
        (128 * KIBIBYTE + 1, "gzip", True),
        (128 * KIBIBYTE + 1, "deflate, gzip , br", True),
        (128 * KIBIBYTE + 1, "", False),
        (128 * KIBIBYTE + 1, "identity", False),
        (128 * KIBIBYTE + 1, "gzip;q=0", False),
        (128 * KIBIBYTE + 1, "x-gzip", False),
        (3000 * KIBIBYTE, "gzip", True),
        (3000 * KIBIBYTE, "", False),
    ],
)
async def test_large_answers_are_packed_for_those_who_ask(
    certificates: Certificates, size: int, accepted: str, packed: bool
) -> None:
    body = b'"' + b"x" * (size - 2) + b'"'

    async def later(request: Request) -> Response:
        return Response(200, body, headers=[("etag", '"1"')])

    handler = Scripted(now={"/now": lambda request: Response(200, body)}, later={"/later": later})
    async with serving(handler, certificates) as served, await served.connect() as wire:
        for path in ("/now", "/later"):
            answer = await wire.send_request("GET", path, f"Accept-Encoding: {accepted}")

            assert answer.one("content-encoding") == ("gzip" if packed else None)
            assert answer.one("vary") == ("Accept-Encoding" if packed else None)
            assert (gzip.decompress(answer.body) if packed else answer.body) == body


async def test_packing_does_not_hold_up_others(
    certificates: Certificates, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The event loop serves other requests while a response is compressed."""
    packing, packed = threading.Event(), threading.Event()
    compress = gzip.compress

    def slowly(data: bytes, level: int) -> bytes:
        packing.set()
        assert packed.wait(20)
        return compress(data, level)

    monkeypatch.setattr(gzip, "compress", slowly)
    body = b"x" * (200 * KIBIBYTE)
    handler = Scripted(now={"/large": lambda request: Response(200, body)})
    async with serving(handler, certificates) as served, await served.connect() as large:
        await large.send(large.request_bytes("GET", "/large", "Accept-Encoding: gzip"))
        assert await asyncio.to_thread(packing.wait, 20)
        async with await served.connect() as small:
            other = await small.send_request("GET", "/small")
        packed.set()
        answer = await large.read_response()

    assert other.json == "/small"
    assert gzip.decompress(answer.body) == body


async def test_a_large_list_is_packed_whole(app: App) -> None:
    path = "/api/v1/namespaces/kube-public/configmaps"
    async with await reach(app) as wire:
        for number in range(12):
            body = orjson.dumps({"metadata": {"name": f"large-{number}"}, "data": {"a": "x" * 100_000}})
            assert (await wire.send_request("POST", path, body=body)).status == 201
        plain = await wire.send_request("GET", path)
        packed = await wire.send_request("GET", path, "Accept-Encoding: gzip")
        single = await wire.send_request("GET", f"{path}/large-1", "Accept-Encoding: gzip")

    assert len(plain.body) > 1024 * KIBIBYTE
    assert packed.one("content-encoding") == "gzip"
    assert gzip.decompress(packed.body) == plain.body
    assert single.one("content-encoding") is None


async def test_a_watch_is_never_packed(app: App) -> None:
    path = "/api/v1/namespaces/kube-node-lease/configmaps"
    async with await reach(app) as wire:
        for number in range(3):
            body = orjson.dumps({"metadata": {"name": f"large-{number}"}, "data": {"a": "x" * 100_000}})
            assert (await wire.send_request("POST", path, body=body)).status == 201
        watch = await wire.send_request("GET", f"{path}?watch=1&timeoutSeconds=1", "Accept-Encoding: gzip")

    assert watch.one("content-encoding") is None
    assert [orjson.loads(line)["type"] for line in watch.body.splitlines()].count("ADDED") >= 3


async def test_a_stream_that_fails_is_not_ended_as_if_it_were_whole(certificates: Certificates) -> None:
    async def stream(request: Request) -> Response:
        async def chunks() -> AsyncIterator[bytes]:
            yield b"begun"
            raise RuntimeError("on purpose")

        return Response(200, chunks())

    handler = Scripted(later={"/s": stream})
    async with serving(handler, certificates) as served, await served.connect() as wire:
        await wire.send(wire.request_bytes("GET", "/s"))
        head, rest = await wire.read_head(), await wire.ends()

    assert head.status == 200
    assert rest == b"5\r\nbegun\r\n"


async def test_what_fails_is_answered_without_its_reason(
    certificates: Certificates, logged: Callable[[], str]
) -> None:
    def fail(request: Request) -> Response:
        raise RuntimeError("a secret")

    async def fail_later(request: Request) -> Response:
        raise RuntimeError("a secret")

    handler = Scripted(now={"/now": fail}, later={"/later": fail_later})
    async with serving(handler, certificates) as served, await served.connect() as wire:
        for path in ("/now", "/later"):
            answer = await wire.send_request("GET", path)
            log = logged()

            assert (answer.status, answer.json["reason"]) == (500, "InternalError")
            assert "secret" not in answer.body.decode()
            assert log.count("request failed") == log.count("RuntimeError: a secret") == 1
        after = await wire.send_request("GET", "/after")

    assert after.status == 200
