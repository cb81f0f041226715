"""Hooks as an ASGI application, called as an ASGI server does."""

import json
from typing import Any

import pytest

import lamina


@lamina.sync("ex.com/v1/things", children=["v1/pods"])
def thing(parent: lamina.Obj) -> lamina.Response:
    return lamina.Response(status={"seen": parent["name"]})


@thing.customize
async def seeing(parent: lamina.Obj) -> list[lamina.Related]:
    return [lamina.Related("v1/secrets", names=[parent["name"]])]


@lamina.decorate("v1/pods")
def busy(object: lamina.Obj) -> None:
    raise lamina.Later(2.6)


async def ask(method: str, path: str, *parts: bytes) -> tuple[int, dict[str, str], bytes]:
    """Send one request, its body in the given parts, and return status, headers and body."""
    said = [
        {"type": "http.request", "body": part, "more_body": place < len(parts) - 1}
        for place, part in enumerate(parts or (b"",))
    ]
    sent: list[Any] = []

    async def receive() -> Any:
        return said.pop(0)

    async def send(message: Any) -> None:
        sent.append(message)

    await lamina.asgi(seeing, busy)({"type": "http", "method": method, "path": path}, receive, send)
    start, body = sent
    headers = {key.decode(): value.decode() for key, value in start["headers"]}
    assert headers["content-length"] == str(len(body["body"]))
    return start["status"], headers, body["body"]


async def test_a_hook_answers_at_its_own_path() -> None:
    status, headers, body = await ask("POST", "/thing/sync", b'{"parent": {"na', b'me": "a"}}')

    assert (status, headers["content-type"]) == (200, "application/json")
    assert json.loads(body) == {"children": [], "status": {"seen": "a"}}


async def test_an_async_hook_answers_too() -> None:
    _, _, body = await ask("POST", "/thing/customize", b'{"parent": {"name": "a"}}')

    assert json.loads(body)["relatedResources"][0]["names"] == ["a"]


async def test_a_hook_that_asks_for_time_is_busy() -> None:
    status, headers, _ = await ask("POST", "/busy/sync", b'{"object": {}}')

    assert (status, headers["retry-after"]) == (429, "3")


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "said"),
    [
        ("POST", "/thing/sync", b'{"parent": {}}', 500, "KeyError: 'name'"),
        ("POST", "/thing/sync", b"nonsense", 500, "JSONDecodeError"),
        ("POST", "/thing/finalize", b"{}", 404, "the hooks are /thing/sync, /thing/customize, /busy/sync"),
        ("GET", "/thing/sync", b"", 405, "POST"),
        ("GET", "/healthz", b"", 200, "ok"),
    ],
)
async def test_everything_else_is_said_with_its_status(
    method: str, path: str, body: bytes, status: int, said: str
) -> None:
    got, _, text = await ask(method, path, body)

    assert got == status
    assert said in text.decode()


async def test_it_comes_and_goes_when_its_server_says_so() -> None:
    said = [{"type": "lifespan.startup"}, {"type": "lifespan.shutdown"}]
    sent: list[Any] = []

    async def receive() -> Any:
        return said.pop(0)

    async def send(message: Any) -> None:
        sent.append(message["type"])

    await lamina.asgi(thing)({"type": "lifespan"}, receive, send)

    assert sent == ["lifespan.startup.complete", "lifespan.shutdown.complete"]
