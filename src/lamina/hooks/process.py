"""A child process that runs a hooks file, and the calls to it."""

from __future__ import annotations

import asyncio
import sys
from asyncio.subprocess import PIPE, Process
from contextlib import suppress
from pathlib import Path
from typing import Any

from lamina.core.model.queries import Call
from lamina.errors import HookError, SettingsError
from lamina.hooks.framing import SIZE, frame, parse_frame
from lamina.hooks.output import HookLog, relay_lines
from lamina.objects.types import Made

_START_TIMEOUT = 30.0
_STOP_TIMEOUT = 2.0
_BUFFER = 1 << 20


class Child:
    """
    One child process and its pending calls.

    A call whose caller stopped waiting counts as `stuck` until the child answers it,
    because a thread cannot be stopped from outside.
    """

    def __init__(self, path: Path, process: Process, log: HookLog) -> None:
        self.path = path
        self._log = log
        self.manifests: tuple[Made, ...] = ()
        self.stuck: set[int] = set()
        self.ended = asyncio.Event()
        self._process = process
        self._pending: dict[int, asyncio.Future[tuple[dict[str, Any], bytes]]] = {}
        self._idle = asyncio.Event()
        self._idle.set()
        self._last = 0
        self._reading: asyncio.Task[None] | None = None
        self._relaying: asyncio.Task[None] | None = None

    @classmethod
    async def start(cls, path: Path, log: HookLog) -> Child:
        """Start a child and load the file; SettingsError with the file's traceback if it does not load."""
        try:
            process = await asyncio.create_subprocess_exec(
                # Not in the current folder: its modules must not shadow the child's.
                *(sys.executable, "-P", "-m", "lamina.hooks.child", str(path)),
                stdin=PIPE,
                stdout=PIPE,
                stderr=PIPE if log.is_json else None,
                limit=_BUFFER,
            )
        except OSError as error:
            raise SettingsError(f"{path} does not load: cannot start a process: {error}") from None
        child = cls(path, process, log)
        if process.stderr is not None:
            child._relaying = asyncio.create_task(relay_lines(process.stderr, log))
        try:
            async with asyncio.timeout(_START_TIMEOUT):
                head, _ = await child._read()
        except TimeoutError:
            await child.end()
            raise SettingsError(f"{path} is still loading after {_START_TIMEOUT:g}s") from None
        except (asyncio.IncompleteReadError, OSError):
            code = await process.wait()
            await child._end_relay()
            raise SettingsError(f"{path} does not load: its process ended with code {code}") from None
        except BaseException:
            await child.end()
            raise
        if "failed" in head:
            await child.end()
            raise SettingsError(f"{path.name} does not load: {head['failed']}")
        child.manifests = tuple(head["ready"])
        child._reading = asyncio.create_task(child._read_responses())
        return child

    @property
    def names(self) -> tuple[str, ...]:
        """Return what its controllers are called."""
        return tuple(one["metadata"]["name"] for one in self.manifests)

    async def call(self, name: str, purpose: str, call: Call) -> bytes:
        """Return a hook's response; a caller that stops waiting cancels."""
        self._last += 1
        number = self._last
        head = {"id": number, "hook": name, "purpose": purpose, "seconds": call.seconds}
        result: asyncio.Future[tuple[dict[str, Any], bytes]] = asyncio.get_running_loop().create_future()
        self._pending[number] = result
        self._idle.clear()
        try:
            assert self._process.stdin is not None
            if self.ended.is_set():
                raise HookError(self._end_message(purpose, name))
            try:
                self._process.stdin.write(frame(head, call.body))
                await self._process.stdin.drain()
            except (OSError, RuntimeError):
                raise HookError(self._end_message(purpose, name)) from None
            answer, response = await result
        except asyncio.CancelledError:
            if not result.done() or result.cancelled():
                self.stuck.add(number)
            raise
        finally:
            del self._pending[number]
            if not self._pending:
                self._idle.set()
        if "died" in answer:
            raise HookError(self._end_message(purpose, name))
        if "because" in answer:
            raise HookError(f"{purpose} hook {name} {answer['because']}", after=answer["after"])
        return response

    def _end_message(self, purpose: str, name: str) -> str:
        code = self._process.returncode
        how = (
            f" with code {code}" if code is not None and code >= 0 else f" by signal {-code}" if code else ""
        )
        return f"{purpose} hook {name} got no response: the process of {self.path.name} ended{how}"

    async def _read(self) -> tuple[dict[str, Any], bytes]:
        assert self._process.stdout is not None
        size = await self._process.stdout.readexactly(SIZE)
        return parse_frame(await self._process.stdout.readexactly(int.from_bytes(size, "big")))

    async def _read_responses(self) -> None:
        try:
            while True:
                head, body = await self._read()
                number = head["id"]
                if head.get("traceback"):
                    self._log.relay(head["traceback"], "hook raised")
                self.stuck.discard(number)
                pending = self._pending.get(number)
                if pending is not None and not pending.done():
                    pending.set_result((head, body))
        except (asyncio.IncompleteReadError, OSError):
            with suppress(TimeoutError):
                async with asyncio.timeout(_STOP_TIMEOUT):
                    await self._process.wait()
        finally:
            self.ended.set()
            for pending in self._pending.values():
                if not pending.done():
                    pending.set_result(({"died": True}, b""))

    async def retire(self) -> None:
        """Wait until no caller waits for a response, then end."""
        await self._idle.wait()
        await self.end()

    async def end(self) -> None:
        """End the child: ask it to exit, and kill it after a timeout. Cancellation does not leave a child behind."""
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
            async with asyncio.timeout(_STOP_TIMEOUT):
                await self._process.wait()
        except TimeoutError:
            self._kill()
            await self._process.wait()
        if self._reading is not None:
            self._reading.cancel()
            await asyncio.gather(self._reading, return_exceptions=True)
        await self._end_relay()

    async def _end_relay(self) -> None:
        """Log the rest of the output; a program that a hook started may keep it open."""
        if self._relaying is not None:
            await asyncio.wait((self._relaying,), timeout=_STOP_TIMEOUT)
            self._relaying.cancel()
            await asyncio.gather(self._relaying, return_exceptions=True)
