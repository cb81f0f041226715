"""
A server that says what it was told to say, at the boundary where bytes are exchanged.

Everything on our side of that boundary is the real thing: client, informer, catalogue.
"""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl, urlencode

import orjson

from lamina.client.transport.base import Query
from lamina.client.write_guard import WriteGuard
from lamina.errors import ApiError, Unreachable
from lamina.testing.waiting import eventually


@dataclass
class Asked:
    """One request that arrived."""

    method: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: Any


@dataclass
class Stream:
    """A watch whose events are written while it is read."""

    lines: asyncio.Queue[bytes | Exception | None] = field(default_factory=asyncio.Queue)

    def send(self, event: str, obj: Mapping[str, Any]) -> None:
        self.lines.put_nowait(orjson.dumps({"type": event, "object": obj}) + b"\n")

    def send_bytes(self, piece: bytes) -> None:
        self.lines.put_nowait(piece)

    def end(self) -> None:
        self.lines.put_nowait(None)

    def break_off(self) -> None:
        self.lines.put_nowait(Unreachable("the line is dead"))


@dataclass
class Reply:
    status: int = 200
    body: Any = None
    stream: Stream | None = None
    headers: Mapping[str, str] = field(default_factory=dict)

    async def read(self) -> bytes:
        return self.body if isinstance(self.body, bytes) else orjson.dumps(self.body)

    async def pieces(self) -> AsyncIterator[bytes]:
        assert self.stream is not None
        while (piece := await self.stream.lines.get()) is not None:
            if isinstance(piece, Exception):
                raise piece
            yield piece


class _Response:
    def __init__(self, reply: Reply) -> None:
        self.status, self.headers, self._reply = reply.status, reply.headers, reply
        self.closed = False

    async def read(self) -> bytes:
        return await self._reply.read()

    def stream(self) -> AsyncIterator[bytes]:
        return self._reply.pieces()

    async def close(self) -> None:
        self.closed = True


class Script:
    """
    Answers requests path by path, with replies in the order in which they were scripted.

    A request without a reply waits a moment for the test to script one, and then fails the test.
    """

    def __init__(self) -> None:
        self.asked: list[Asked] = []
        self._replies: dict[tuple[str, str], list[Reply]] = {}
        self._arrived = asyncio.Event()
        self._foreseen = asyncio.Event()

    def reply(self, method: str, path: str, *replies: Any) -> None:
        """Foresee requests for a path; the last reply is given again and again."""
        self._replies.setdefault((method, path), []).extend(map(_reply, replies))
        self._foreseen.set()

    async def request(
        self,
        method: str,
        path: str,
        *,
        query: Query = (),
        headers: Mapping[str, str],
        body: bytes | None = None,
        streams: bool = False,
        guard: WriteGuard | None = None,
    ) -> _Response:
        parsed = dict(parse_qsl(urlencode(query)))
        self.asked.append(Asked(method, path, parsed, headers, orjson.loads(body) if body else None))
        self._arrived.set()
        async with asyncio.timeout(60):
            while not (foreseen := self._replies.get((method, path))):
                self._foreseen.clear()
                await self._foreseen.wait()
        reply = foreseen.pop(0) if len(foreseen) > 1 else foreseen[0]
        if isinstance(reply.body, Exception):
            raise reply.body
        return _Response(reply)

    async def close(self) -> None:
        pass

    async def nth_request(self, times: int, path: str) -> Asked:
        """Wait for the request of that number for a path, counted from one."""
        found = await eventually(
            lambda: [one for one in self.asked if one.path == path],
            lambda found: len(found) >= times,
            interval=0.001,
        )
        return found[times - 1]


def _reply(what: Any) -> Reply:
    if isinstance(what, Reply):
        return what
    if isinstance(what, Stream):
        return Reply(stream=what)
    if isinstance(what, ApiError):
        return Reply(what.code, what.status())
    return Reply(body=what)


def config_map(name: str, version: int, *, uid: str = "", **metadata: Any) -> dict[str, Any]:
    """Return a ConfigMap as a server would show it."""
    return {
        "kind": "ConfigMap",
        "apiVersion": "v1",
        "metadata": {
            "name": name,
            "namespace": "default",
            "uid": uid or f"uid-{name}",
            "resourceVersion": str(version),
            **metadata,
        },
    }


def bookmark(version: int, *, end: bool = False) -> dict[str, Any]:
    metadata: dict[str, Any] = {"resourceVersion": str(version)}
    if end:
        metadata["annotations"] = {"k8s.io/initial-events-end": "true"}
    return {"kind": "ConfigMap", "apiVersion": "v1", "metadata": metadata}


def listing(version: int, *items: Mapping[str, Any], token: str = "") -> dict[str, Any]:
    metadata = {"resourceVersion": str(version)} | ({"continue": token} if token else {})
    return {"kind": "ConfigMapList", "apiVersion": "v1", "metadata": metadata, "items": items}


def groups(*resources: tuple[str, str, str], group: str = "") -> dict[str, Any]:
    """Return an aggregated discovery document of one group with these (version, kind, plural)."""
    versions: dict[str, list[dict[str, Any]]] = {}
    for version, kind, plural in resources:
        versions.setdefault(version, []).append(
            {
                "resource": plural,
                "responseKind": {"group": group, "version": version, "kind": kind},
                "scope": "Namespaced",
                "verbs": ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"],
            }
        )
    items: Sequence[Any] = [
        {
            "metadata": {"name": group},
            "versions": [{"version": version, "resources": found} for version, found in versions.items()],
        }
    ]
    return {"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "items": items}
