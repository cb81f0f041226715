"""
Replicas of Metacontroller, each a process of its own behind a gate that sees what it sends.

All gates are in the process of the test, so what passes them has one order:
who held a Lease when a write came is known for certain.
"""

import asyncio
import json
import os
import signal
import sys
from asyncio.subprocess import Process
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from aiohttp import web

from lamina.client.kubeconfig.read import Access
from lamina.client.kubeconfig.write import write_kubeconfig
from lamina.client.transport.base import Transport
from lamina.objects import meta
from lamina.runtime.controller.leader_election import shard_of
from lamina.testing.waiting import eventually
from tests.scenarios.metacontroller.stage import Stage

TIMEOUT = 180.0
_CARRIED = ("accept", "content-type", "user-agent")
# The time between the two is what a busy machine may take to carry a write that was still allowed.
_TERMS = ("--lease-duration", "4s", "--renew-deadline", "1500ms", "--retry-period", "100ms")


class Write(NamedTuple):
    """A write that the server accepted: its replica, and the leader for the parent at that time."""

    by: "Replica"
    leader: "Replica | None"
    method: str
    path: str


@dataclass(eq=False)
class Replica:
    """One process, and the gate it goes through."""

    team: "Team"
    name: str
    process: Process | None = None
    asked: int = 0
    """How often it has asked for a Lease."""

    @property
    def pid(self) -> int:
        assert self.process is not None
        return self.process.pid

    @property
    def is_alive(self) -> bool:
        return self.process is not None and self.process.returncode is None

    def signal(self, number: signal.Signals) -> None:
        with suppress(ProcessLookupError):
            os.kill(self.pid, number)

    async def handle(self, request: web.Request) -> web.StreamResponse:
        body = await request.read()
        if "/leases" in request.path:
            self.asked += 1
        is_write = request.method != "GET"
        if is_write:
            self.team.about_to_pass(self, request.path)
        streams = request.query.get("watch") in ("1", "true")
        answer = await self.team.transport.request(
            request.method,
            request.path,
            query=list(request.query.items()),
            headers={name: request.headers[name] for name in _CARRIED if name in request.headers},
            body=body or None,
            streams=streams,
        )
        kind = {"content-type": answer.headers.get("content-type", "application/json")}
        if not streams or answer.status >= 300:
            read = await answer.read()
            if is_write and answer.status < 300:
                self.team.passed(self, request.method, request.path, body, read)
            return web.Response(status=answer.status, body=read, headers=kind)
        flowing = web.StreamResponse(status=answer.status, headers=kind)
        await flowing.prepare(request)
        try:
            with suppress(ConnectionError):
                async for piece in answer.stream():
                    await flowing.write(piece)
        finally:
            await answer.close()
        return flowing


@dataclass
class Team:
    """The replicas of one story, and everything they wrote."""

    stage: Stage
    folder: Path
    transport: Transport
    shards: int = 1
    replicas: list[Replica] = field(default_factory=list)
    writes: list[Write] = field(default_factory=list)
    holders: dict[str, Replica | None] = field(default_factory=dict)
    _parents: dict[tuple[str, str], str] = field(default_factory=dict)
    _trap: tuple[int, Callable[[Replica], None], asyncio.Future[Replica]] | None = None
    _runners: list[web.AppRunner] = field(default_factory=list)

    async def add(self) -> Replica:
        """Start one more, and wait until it asks for a Lease."""
        replica = Replica(self, f"r{len(self.replicas)}")
        app = web.Application(client_max_size=64 * 1024 * 1024)
        app.router.add_route("*", "/{path:.*}", replica.handle)
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        host, port = runner.addresses[0][:2]
        file = self.folder / f"{replica.name}.kubeconfig"
        write_kubeconfig(file, Access(server=f"http://{host}:{port}", token=replica.name))
        leases = (
            "--lease-name",
            "team",
            "--lease-namespace",
            self.stage.namespace,
            "--shards",
            str(self.shards),
        )
        command = (
            "run",
            "--families",
            "metacontroller",
            "--no-install",
            "--kubeconfig",
            str(file),
            *leases,
            *_TERMS,
        )
        with (self.folder / f"{replica.name}.log").open("wb") as heard:
            replica.process = await asyncio.create_subprocess_exec(
                sys.executable, "-m", "lamina", *command, stderr=heard
            )
        self._runners.append(runner)
        self.replicas.append(replica)
        await self.until(lambda: replica.asked > 0 or not replica.is_alive)
        assert replica.is_alive, "it never came to ask for a Lease"
        return replica

    async def end(self) -> None:
        for replica in self.replicas:
            replica.signal(signal.SIGKILL)
            replica.signal(signal.SIGCONT)
            if replica.process is not None:
                await replica.process.wait()
        for runner in self._runners:
            await runner.cleanup()

    async def until(self, is_so: Callable[[], bool]) -> None:
        await eventually(is_so, seconds=TIMEOUT)

    def trap(self, writes: int, act: Callable[[Replica], None]) -> "asyncio.Task[Replica]":
        """Do something to the process that sends the nth write about parents from now; the write still arrives."""
        caught: asyncio.Future[Replica] = asyncio.get_running_loop().create_future()
        self._trap = writes, act, caught
        return asyncio.create_task(_patiently(caught))

    def about_to_pass(self, replica: Replica, path: str) -> None:
        if self._trap is None or not self._is_ours(path):
            return
        left, act, caught = self._trap
        self._trap = (left - 1, act, caught) if left > 1 else None
        if left == 1:
            act(replica)
            if not caught.done():
                caught.set_result(replica)

    def passed(self, replica: Replica, method: str, path: str, sent: bytes, answer: bytes) -> None:
        if "/leases" in path:
            holder = (json.loads(sent).get("spec") or {}).get("holderIdentity")
            self.holders[json.loads(answer)["metadata"]["name"]] = replica if holder else None
        elif self._is_ours(path):
            said = json.loads(answer)
            number = f"-{shard_of(self._parent(path, said), self.shards)}" if self.shards > 1 else ""
            self.writes.append(Write(replica, self.holders.get(f"team{number}"), method, path))

    def _is_ours(self, path: str) -> bool:
        plural = self._below(path)[:1]
        return bool(plural) and plural[0] not in ("", "events", "leases")

    def _below(self, path: str) -> list[str]:
        """Return the kind and the name that a path has below the story's namespace."""
        return path.partition(f"/namespaces/{self.stage.namespace}/")[2].split("/")

    def _parent(self, path: str, said: dict[str, object]) -> str:
        """Return the uid of the parent that a write is about: the owner of the object, or the object itself."""
        plural, *rest = self._below(path)
        what = plural, rest[0] if rest else meta.name(said)
        if said.get("kind") != "Status":
            owner = meta.controller_of(said)
            self._parents[what] = owner["uid"] if owner is not None else meta.uid(said)
        return self._parents[what]

    @property
    def strays(self) -> list[Write]:
        """Return the writes of a process for a parent of another shard."""
        return [one for one in self.writes if one.by is not one.leader]


async def _patiently(caught: asyncio.Future[Replica]) -> Replica:
    async with asyncio.timeout(TIMEOUT):
        return await caught


@asynccontextmanager
async def team(stage: Stage, folder: Path, *, shards: int = 1, size: int = 2) -> AsyncIterator[Team]:
    """Run so many replicas until the end of the block."""
    together = Team(stage, folder, stage.client._transport, shards)
    try:
        for _ in range(size):
            await together.add()
        yield together
    finally:
        await together.end()
