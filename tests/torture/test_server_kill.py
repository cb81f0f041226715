"""
kill -9 under load and restart, repeatedly.

Writers record acknowledged writes; a watch resumes after each restart. The server is killed at
random times and started again on the same data. At the end every acknowledged write is there,
no version was used twice, and the watch got every change once, in order.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import ssl
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp
import pytest

from lamina.client.kubeconfig.read import Access, read_kubeconfig
from lamina.testing.waiting import SECONDS, eventually

ROUNDS = 50
WRITERS = 8
PATH = "/api/v1/namespaces/default/configmaps"


class Server:
    """`lamina up` on a folder, killed without warning and started again on the same port."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._port = 0
        self.kubeconfig = folder / "kubeconfig"
        self.process: asyncio.subprocess.Process | None = None

    async def start(self) -> Access:
        self.kubeconfig.unlink(missing_ok=True)
        self.process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "lamina", "up", "--data", str(self._folder / "state"), "--port", str(self._port),
            "--kubeconfig", str(self.kubeconfig), "--history", "1h",
            stderr=asyncio.subprocess.DEVNULL,
            env={**os.environ, "XDG_DATA_HOME": str(self._folder / "data")},
        )  # fmt: skip

        def is_ready() -> bool:
            assert self.process is not None and self.process.returncode is None
            return self.kubeconfig.exists()

        await eventually(is_ready)
        access = read_kubeconfig(self.kubeconfig)
        self._port = int(access.server.rpartition(":")[2])
        return access

    async def kill(self) -> None:
        assert self.process is not None
        self.process.send_signal(signal.SIGKILL)
        await self.process.wait()


async def connected(access: Access) -> aiohttp.ClientSession:
    context = ssl.create_default_context(cadata=access.authority.decode())
    return aiohttp.ClientSession(
        access.server,
        connector=aiohttp.TCPConnector(ssl=context),
        headers={"Authorization": f"Bearer {access.token}"},
        timeout=aiohttp.ClientTimeout(total=None, sock_connect=5),
    )


async def write(session: aiohttp.ClientSession, writer: int, turn: int, acknowledged: dict[str, int]) -> None:
    """Create and change objects until the server is killed, and record acknowledged writes."""
    number = 0
    while True:
        name = f"w{writer}-{turn}-{number}"
        number += 1
        try:
            async with session.post(PATH, json={"metadata": {"name": name}, "data": {"v": "1"}}) as answer:
                made = await answer.json()
                assert answer.status == 201, made
                acknowledged[name] = int(made["metadata"]["resourceVersion"])
            async with session.patch(
                f"{PATH}/{name}",
                data=json.dumps({"data": {"v": "2"}}),
                headers={"Content-Type": "application/merge-patch+json"},
            ) as answer:
                made = await answer.json()
                assert answer.status == 200, made
                acknowledged[name] = int(made["metadata"]["resourceVersion"])
        except (aiohttp.ClientError, OSError):
            return


async def events(session: aiohttp.ClientSession, version: int) -> AsyncIterator[dict[str, object]]:
    async with session.get(PATH, params={"watch": "1", "resourceVersion": str(version)}) as answer:
        assert answer.status == 200
        rest = b""
        async for chunk in answer.content.iter_any():
            *lines, rest = (rest + chunk).split(b"\n")
            for line in lines:
                yield json.loads(line)


async def follow(session: aiohttp.ClientSession, seen: list[tuple[int, str]]) -> None:
    """Resume after the last event, and record events until the server is killed."""
    try:
        async for event in events(session, seen[-1][0]):
            assert event["type"] in ("ADDED", "MODIFIED"), event
            metadata = event["object"]["metadata"]  # type: ignore[index]
            seen.append((int(metadata["resourceVersion"]), metadata["name"]))
    except (aiohttp.ClientError, OSError):
        return


@pytest.mark.parametrize("rounds", [ROUNDS])
async def test_every_acknowledged_write_survives_and_watches_resume(tmp_path: Path, rounds: int) -> None:
    server = Server(tmp_path)
    acknowledged: dict[str, int] = {}
    access = await server.start()
    async with await connected(access) as session, session.get(PATH) as answer:
        start = int((await answer.json())["metadata"]["resourceVersion"])
    seen = [(start, "")]
    for turn in range(rounds):
        async with (
            asyncio.timeout(SECONDS),
            await connected(access) as session,
            asyncio.TaskGroup() as group,
        ):
            group.create_task(follow(session, seen))
            for writer in range(WRITERS):
                group.create_task(write(session, writer, turn, acknowledged))
            # Enough writes that some are in progress, at another point each time.
            wanted = len(acknowledged) + 20 + turn
            await eventually(lambda: len(acknowledged), wanted.__le__, interval=0.001)
            await server.kill()
        access = await server.start()
    async with asyncio.timeout(SECONDS), await connected(access) as session:
        async with session.get(PATH) as answer:
            listed = await answer.json()
        stored = {
            item["metadata"]["name"]: int(item["metadata"]["resourceVersion"]) for item in listed["items"]
        }
        newest = int(listed["metadata"]["resourceVersion"])
        if seen[-1][0] < max(stored.values()):
            async for event in events(session, seen[-1][0]):
                metadata = event["object"]["metadata"]  # type: ignore[index]
                seen.append((int(metadata["resourceVersion"]), metadata["name"]))
                if seen[-1][0] >= max(stored.values()):
                    break
    await server.kill()

    lost = {name: version for name, version in acknowledged.items() if stored.get(name, 0) < version}
    assert not lost
    assert len(acknowledged) > rounds * 20
    versions = [version for version, _ in seen]
    assert versions == sorted(set(versions)), "every change once, in the order of the log"
    assert max(stored.values()) <= newest
    told = {name: version for version, name in seen[1:]}
    assert {name: told[name] for name in stored if name.startswith("w")} == {
        name: version for name, version in stored.items() if name.startswith("w")
    }
