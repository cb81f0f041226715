"""A child process that runs a hooks file, seen from the process that calls it."""

from __future__ import annotations

import asyncio
import sys
from asyncio.subprocess import PIPE, Process
from contextlib import suppress
from pathlib import Path
from typing import Any

from lamina.core.questions import Call
from lamina.errors import HookError, SettingsError
from lamina.hooks.frames import SIZE, frame, opened
from lamina.objects.types import Made

_PATIENCE = 30.0
_FAREWELL = 2.0
_BUFFER = 1 << 20


class Child:
    """
    One child and the calls it has been handed.

    A call that is given up on stays counted as `stuck` until the child answers
    it after all: nobody can stop a function from outside.
    """

    def __init__(self, path: Path, process: Process) -> None:
        self.path = path
        self.manifests: tuple[Made, ...] = ()
        self.stuck: set[int] = set()
        self.ended = asyncio.Event()
        self._process = process
        self._waiting: dict[int, asyncio.Future[tuple[dict[str, Any], bytes]]] = {}
        self._idle = asyncio.Event()
        self._idle.set()
        self._last = 0
        self._reading: asyncio.Task[None] | None = None

    @classmethod
    async def start(cls, path: Path) -> Child:
        """Start a child and have it load the file; SettingsError, with the file's traceback, where it cannot."""
        try:
            process = await asyncio.create_subprocess_exec(
                # Not from the folder we are in: what lies about there is none of the child's modules.
                *(sys.executable, "-P", "-m", "lamina.hooks.child", str(path)),
                stdin=PIPE,
                stdout=PIPE,
                limit=_BUFFER,
            )
        except OSError as trouble:
            raise SettingsError(f"{path} does not load: no process can be started: {trouble}") from None
        child = cls(path, process)
        try:
            async with asyncio.timeout(_PATIENCE):
                head, _ = await child._read()
        except TimeoutError:
            await child.end()
            raise SettingsError(f"{path} is still loading after {_PATIENCE:g}s") from None
        except (asyncio.IncompleteReadError, OSError):
            code = await process.wait()
            raise SettingsError(f"{path} does not load: its process ended with code {code}") from None
        except BaseException:
            await child.end()
            raise
        if "failed" in head:
            await child.end()
            raise SettingsError(f"{path.name} does not load: {head['failed']}")
        child.manifests = tuple(head["ready"])
        child._reading = asyncio.create_task(child._listen())
        return child

    @property
    def names(self) -> tuple[str, ...]:
        """Return what its controllers are called."""
        return tuple(one["metadata"]["name"] for one in self.manifests)

    async def call(self, name: str, purpose: str, call: Call) -> bytes:
        """Return what a hook answers; whoever does not want to wait any longer cancels."""
        self._last += 1
        number = self._last
        head = {"id": number, "hook": name, "purpose": purpose, "seconds": call.seconds}
        answer: asyncio.Future[tuple[dict[str, Any], bytes]] = asyncio.get_running_loop().create_future()
        self._waiting[number] = answer
        self._idle.clear()
        try:
            assert self._process.stdin is not None
            if self.ended.is_set():
                raise HookError(self._obituary(purpose, name))
            try:
                self._process.stdin.write(frame(head, call.body))
                await self._process.stdin.drain()
            except (OSError, RuntimeError):
                raise HookError(self._obituary(purpose, name)) from None
            said, body = await answer
        except asyncio.CancelledError:
            if not answer.done() or answer.cancelled():
                self.stuck.add(number)
            raise
        finally:
            del self._waiting[number]
            if not self._waiting:
                self._idle.set()
        if "died" in said:
            raise HookError(self._obituary(purpose, name))
        if "because" in said:
            raise HookError(f"{purpose} hook {name} {said['because']}", after=said["after"])
        return body

    def _obituary(self, purpose: str, name: str) -> str:
        code = self._process.returncode
        how = (
            f" with code {code}" if code is not None and code >= 0 else f" by signal {-code}" if code else ""
        )
        return f"{purpose} hook {name} could not answer: the process of {self.path.name} ended{how}"

    async def _read(self) -> tuple[dict[str, Any], bytes]:
        assert self._process.stdout is not None
        size = await self._process.stdout.readexactly(SIZE)
        return opened(await self._process.stdout.readexactly(int.from_bytes(size, "big")))

    async def _listen(self) -> None:
        try:
            while True:
                head, body = await self._read()
                number = head["id"]
                self.stuck.discard(number)
                waiting = self._waiting.get(number)
                if waiting is not None and not waiting.done():
                    waiting.set_result((head, body))
        except (asyncio.IncompleteReadError, OSError):
            with suppress(TimeoutError):
                async with asyncio.timeout(_FAREWELL):
                    await self._process.wait()
        finally:
            self.ended.set()
            for waiting in self._waiting.values():
                if not waiting.done():
                    waiting.set_result(({"died": True}, b""))

    async def retire(self) -> None:
        """Wait until nobody waits for an answer any more, and end."""
        await self._idle.wait()
        await self.end()

    async def end(self) -> None:
        """End the child: ask it to, and make it. Whoever is called off in the meantime leaves none behind."""
        ending = asyncio.ensure_future(self._end())
        try:
            await asyncio.shield(ending)
        except asyncio.CancelledError:
            self._kill()
            await ending
            raise

    def _kill(self) -> None:
        with suppress(ProcessLookupError):
            self._process.kill()

    async def _end(self) -> None:
        if self._process.stdin is not None:
            self._process.stdin.close()
        try:
            async with asyncio.timeout(_FAREWELL):
                await self._process.wait()
        except TimeoutError:
            self._kill()
            await self._process.wait()
        if self._reading is not None:
            self._reading.cancel()
            await asyncio.gather(self._reading, return_exceptions=True)
