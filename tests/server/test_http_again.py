"""Repeated requests: recognized by their bytes, and served as if they had been parsed."""

import asyncio

import orjson
import pytest

from lamina.app import App
from lamina.server.http.request import Request, Response
from lamina.server.http.request_parser import RequestParser
from lamina.server.tls.certificates import Certificates
from tests.server.raw_http import CONFIG_MAPS, Scripted, reach, serving

pytestmark = pytest.mark.asyncio(loop_scope="module")

HEADERS = b" HTTP/1.1\r\nHost: here\r\nAuthorization: Bearer x\r\nAccept: application/json\r\n\r\n"


def fed(*packets: bytes) -> list[Request]:
    """Return the requests in some packets."""
    parser = RequestParser()
    for packet in packets:
        parser.feed(packet)
    assert parser.rejection is None
    return [request for request, _, _ in parser.arrived]


def taken(*packets: bytes) -> list[tuple[str, str, str]]:
    """Return the requests, each taken before the next packet arrives."""
    parser, seen = RequestParser(), []
    for packet in packets:
        parser.feed(packet)
        while parser.arrived:
            request, keep, http_1_1 = parser.arrived.popleft()
            assert (keep, http_1_1) == (True, True)
            assert request.headers.get("host") == "here"
            seen.append((request.method, request.path, request.query))
    assert parser.rejection is None
    return seen


async def test_requests_that_differ_in_their_target_alone_are_all_found() -> None:
    targets = ["/a", "/a/b-c.d_e~f", "/a?b=c&d=e,f", "/a%20b", "/", "/a?", "/a?b?c"]

    seen = taken(*(b"GET " + target.encode() + HEADERS for target in targets))

    assert seen == [("GET", *(target.partition("?")[0::2])) for target in targets]


async def test_a_request_known_again_has_the_headers_of_its_like() -> None:
    first, second = fed(b"GET /a" + HEADERS, b"GET /b" + HEADERS)

    assert first.headers == second.headers
    assert first.path != second.path


async def test_other_headers_are_read_again() -> None:
    other = HEADERS.replace(b"application/json", b"application/yaml")
    packets = [b"GET /a" + HEADERS, b"GET /a" + other, b"GET /a" + HEADERS, b"GET /a" + other]

    parser, accepted = RequestParser(), []
    for packet in packets:
        parser.feed(packet)
        accepted.append(parser.arrived.popleft()[0].headers["accept"])

    assert accepted == ["application/json", "application/yaml"] * 2


async def test_a_request_in_pieces_between_its_likes_is_put_together() -> None:
    whole = b"GET /b" + HEADERS
    for cut in range(1, len(whole)):
        seen = taken(b"GET /a" + HEADERS, whole[:cut], whole[cut:], b"GET /c" + HEADERS)
        assert [path for _, path, _ in seen] == ["/a", "/b", "/c"]


async def test_what_ends_like_a_request_inside_another_is_not_one() -> None:
    """A body may hold anything, including the bytes of an earlier request."""
    body = b"GET /b" + HEADERS
    head = b"POST /c HTTP/1.1\r\nHost: here\r\nContent-Length: %d\r\n\r\n" % len(body)

    requests = fed(b"GET /a" + HEADERS, head, body, b"GET /d" + HEADERS)

    assert [(one.method, one.path, one.body) for one in requests] == [
        ("GET", "/a", b""),
        ("POST", "/c", body),
        ("GET", "/d", b""),
    ]


async def test_several_in_one_packet_are_told_apart() -> None:
    packet = b"GET /b" + HEADERS + b"GET /c" + HEADERS

    assert [one.path for one in fed(b"GET /a" + HEADERS, packet, b"GET /d" + HEADERS)] == [
        "/a",
        "/b",
        "/c",
        "/d",
    ]


@pytest.mark.parametrize(
    "line",
    [
        b"GET /a b",
        b"GET /a\r\nX: y",
        b"GET /a HTTP/1.1\r\nHost: there\r\nX: /",
        b"GET /a\x00",
        b"GET /\xff",
        b"GET /a#b",
        b"GET //",
        b"GET /a\tb",
        b"GETS /a",
    ],
)
async def test_a_strange_target_is_treated_as_it_is_the_first_time(line: bytes) -> None:
    def outcome(*packets: bytes) -> object:
        parser = RequestParser()
        for packet in packets:
            parser.feed(packet)
        if parser.rejection is not None:
            return parser.rejection.status, parser.rejection.body
        request = parser.arrived[-1][0]
        return request.method, request.path, request.query, request.headers

    assert outcome(b"GET /a" + HEADERS, line + HEADERS) == outcome(line + HEADERS)


async def test_a_request_that_is_the_last_is_not_what_others_are_like() -> None:
    last = HEADERS.replace(b"Accept", b"Connection: close\r\nAccept")
    parser = RequestParser()
    parser.feed(b"GET /a" + last)
    assert parser.finished
    parser.feed(b"GET /b" + last)

    assert [request.path for request, _, _ in parser.arrived] == ["/a"]


async def test_who_asks_is_looked_at_each_time(certificates: Certificates) -> None:
    """The headers are remembered, not the identity."""
    requests: list[str] = []

    def answer(request: Request) -> Response:
        requests.append(request.user.name)
        return Response(200, b"{}")

    async with (
        serving(Scripted(now={"/a": answer, "/b": answer}), certificates) as served,
        await served.connect() as wire,
    ):
        await wire.send_request("GET", "/a")
        await wire.send_request("GET", "/b")
        wire.token = "wrong"
        refused = [await wire.send_request("GET", "/a"), await wire.send_request("GET", "/b")]

    assert requests == ["lamina-admin", "lamina-admin"]
    assert [one.status for one in refused] == [401, 401]


async def test_a_read_again_shows_what_has_changed_since(app: App) -> None:
    path = f"{CONFIG_MAPS}/again"
    async with await reach(app) as wire:

        async def read() -> tuple[int, object]:
            response = await wire.send_request("GET", path)
            return response.status, response.json.get("data")

        seen = [await read()]
        for value in ("1", "2"):
            body = orjson.dumps({"metadata": {"name": "again"}, "data": {"a": value}})
            if value == "1":
                await wire.send_request("POST", CONFIG_MAPS, body=body)
            else:
                await wire.send_request("PUT", path, body=body)
            seen += [await read(), await read()]
        await wire.send_request("DELETE", path)
        seen.append(await read())

    assert seen == [
        (404, None),
        (200, {"a": "1"}),
        (200, {"a": "1"}),
        (200, {"a": "2"}),
        (200, {"a": "2"}),
        (404, None),
    ]


async def test_a_path_means_something_else_once_the_kinds_have_changed(app: App) -> None:
    crds = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    things = "/apis/again.example.com/v1/namespaces/default/things"
    crd = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "things.again.example.com"},
        "spec": {
            "group": "again.example.com",
            "scope": "Namespaced",
            "names": {"plural": "things", "singular": "thing", "kind": "Thing", "listKind": "ThingList"},
            "versions": [
                {
                    "name": "v1",
                    "served": True,
                    "storage": True,
                    "schema": {
                        "openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
                    },
                }
            ],
        },
    }
    async with await reach(app) as wire:
        before = await wire.send_request("GET", f"{things}/a")
        await wire.send_request("POST", crds, body=orjson.dumps(crd))
        thing = {"apiVersion": "again.example.com/v1", "kind": "Thing", "metadata": {"name": "a"}}
        made = await wire.send_request("POST", things, body=orjson.dumps(thing))
        found = [await wire.send_request("GET", f"{things}/a") for _ in range(2)]
        await wire.send_request("DELETE", f"{crds}/things.again.example.com")
        async with asyncio.timeout(60):
            while (await wire.send_request("GET", f"{crds}/things.again.example.com")).status != 404:
                pass
        after = await wire.send_request("GET", f"{things}/a")

    assert (before.status, made.status, after.status) == (404, 201, 404)
    assert [one.json["metadata"]["name"] for one in found] == ["a", "a"]
    assert found[0].json == made.json
