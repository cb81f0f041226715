"""Requests and responses, against a scripted server."""

import asyncio

import pytest
from hypothesis import given
from hypothesis.strategies import binary, integers, lists

from lamina.client import codec
from lamina.client.client import Client
from lamina.client.discovery import discover
from lamina.errors import ApiError, Forbidden, NotFound, TooManyRequests, Unavailable, Unreachable
from lamina.objects.types import GroupKind, Ref
from tests.runtime.scripted import Reply, Script, Stream, config_map, groups

CORE = groups(("v1", "ConfigMap", "configmaps"))
NONE = {"kind": "APIGroupDiscoveryList", "items": []}
A = Ref("v1", "ConfigMap", "default", "a")
PATH = "/api/v1/namespaces/default/configmaps/a"


@pytest.fixture
def script() -> Script:
    script = Script()
    script.reply("GET", "/api", CORE)
    script.reply("GET", "/apis", NONE)
    return script


@given(
    lists(binary(max_size=20).map(lambda line: line.replace(b"\n", b"")), max_size=8), lists(integers(1, 30))
)
def test_lines_are_the_same_however_the_stream_is_cut(wanted: list[bytes], cuts: list[int]) -> None:
    left = b"".join(line + b"\n" for line in wanted)
    read: list[bytes] = []
    rest = b""
    for cut in (*cuts, len(left)):
        lines, rest = codec.lines(rest, left[:cut])
        read += lines
        left = left[cut:]

    assert read == [line for line in wanted if line]
    assert rest == b""


def test_an_end_without_a_newline_is_no_line() -> None:
    assert codec.lines(b'{"wh', b'ole": 1}\n{"hal') == ([b'{"whole": 1}'], b'{"hal')


async def test_a_request_is_retried_after_retry_after(script: Script) -> None:
    busy = Reply(429, TooManyRequests("storage is (re)initializing").status(), headers={"retry-after": "0"})
    script.reply("GET", PATH, busy, busy, config_map("a", 1))

    again: list[tuple[str, int]] = []
    found = await Client(script, retried=lambda method, code: again.append((method, code))).get(A)

    assert found["metadata"]["name"] == "a"
    assert len([one for one in script.asked if one.path == PATH]) == 3
    assert again == [("GET", 429)] * 2


async def test_patience_ends(script: Script) -> None:
    script.reply("GET", PATH, TooManyRequests("busy", retry_after=0))

    with pytest.raises(TooManyRequests):
        await Client(script).get(A)


async def test_a_429_without_retry_after_is_not_retried(script: Script) -> None:
    script.reply("GET", PATH, TooManyRequests("busy"))

    with pytest.raises(TooManyRequests):
        await Client(script).get(A)

    assert len([one for one in script.asked if one.path == PATH]) == 1


@pytest.mark.parametrize(
    ("status", "body", "error", "message"),
    [
        (404, b"404 page not found\n", NotFound, "404 page not found"),
        (403, b"<html>proxy</html>", Forbidden, "<html>proxy</html>"),
        (503, b"[]", Unavailable, "the server answered 503"),
        (599, b"", ApiError, "the server answered 599"),
    ],
)
async def test_a_refusal_that_is_no_status_is_understood_by_its_code(
    script: Script, status: int, body: bytes, error: type[ApiError], message: str
) -> None:
    script.reply("GET", PATH, Reply(status, body))

    with pytest.raises(error) as refused:
        await Client(script).get(A)

    assert str(refused.value) == message


async def test_a_line_that_is_no_event_is_a_server_that_makes_no_sense(script: Script) -> None:
    stream = Stream()
    script.reply("GET", "/api/v1/configmaps", stream)
    stream.send_bytes(b"hello\n")

    with pytest.raises(Unreachable, match="invalid JSON in a watch"):
        async for _ in Client(script).watch(("v1", "ConfigMap")):
            pass


async def test_a_server_without_aggregated_discovery_is_asked_group_by_group() -> None:
    script = Script()
    script.reply("GET", "/api", {"kind": "APIVersions", "versions": ["v1"]})
    script.reply("GET", "/api/v1", {"resources": [_resource("configmaps", "ConfigMap")]})
    preferring = {
        "versions": [{"groupVersion": "apps/v1beta1"}, {"groupVersion": "apps/v1"}],
        "preferredVersion": {"groupVersion": "apps/v1"},
    }
    script.reply("GET", "/apis", {"kind": "APIGroupList", "groups": [preferring]})
    deployments = [_resource("deployments", "Deployment"), _resource("deployments/status", "Deployment")]
    script.reply("GET", "/apis/apps/v1", {"resources": deployments})
    script.reply("GET", "/apis/apps/v1beta1", {"resources": deployments})

    kinds = await Client(script).discover()

    assert [kind.plural for kind in kinds] == ["configmaps", "deployments"]
    found = kinds.preferred(GroupKind("apps", "Deployment"))
    assert found is not None
    assert (found.api_version, found.subresources) == ("apps/v1", frozenset({"status"}))
    assert kinds.find("apps/v1beta1", "Deployment") is not None


async def test_a_group_that_does_not_answer_is_uncertain() -> None:
    script = Script()
    script.reply("GET", "/api", {"kind": "APIVersions", "versions": []})
    script.reply("GET", "/apis", {"groups": [{"versions": [{"groupVersion": "metrics/v1"}]}]})
    script.reply(
        "GET", "/apis/metrics/v1", Unavailable("the server is currently unable to handle the request")
    )

    async def fetch(path: str, accept: str) -> bytes:
        return await Client(script).request("GET", path)

    assert (await discover(fetch)).stale == {"metrics/v1"}


async def test_of_many_who_miss_a_kind_at_once_one_asks(script: Script) -> None:
    script.reply("GET", PATH, config_map("a", 1))
    client = Client(script)

    await asyncio.gather(*(client.get(A) for _ in range(10)))

    assert len([one for one in script.asked if one.path == "/apis"]) == 1


def _resource(name: str, kind: str) -> dict[str, object]:
    return {"name": name, "kind": kind, "namespaced": True, "verbs": ["get", "list", "watch"]}
