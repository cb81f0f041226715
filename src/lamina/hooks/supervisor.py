"""
The hooks files of a process, and the child processes that run them.

A file that changes is loaded in a new child, and the old child finishes its calls. A
file that does not load changes nothing. A child that exits, or has too many stuck
calls, is replaced at the next call.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Coroutine, Sequence
from functools import partial
from pathlib import Path
from time import monotonic
from typing import Any, NamedTuple, TypeAlias

from lamina.core.model.queries import Call
from lamina.errors import HookError, HookUnreachable, SettingsError
from lamina.hooks.output import HookLog
from lamina.hooks.process import Child
from lamina.hooks.sdk import SCHEME
from lamina.objects import meta
from lamina.objects.types import Made

STUCK = 8
_POLL = 1.0
_MIN_BACKOFF, _MAX_BACKOFF, _STABLE = 0.1, 30.0, 10.0

_Stamp: TypeAlias = tuple[int, int, int] | None


class Declared(NamedTuple):
    """The controllers that files declared before a change, and those they declare now."""

    before: tuple[Made, ...]
    now: tuple[Made, ...]


class File:
    """One hooks file, and the child process that runs it."""

    def __init__(self, path: Path, log: HookLog) -> None:
        self.path = path.absolute()
        self._log = log.bind(file=str(path))
        self._child: Child | None = None
        self._started_at = 0.0
        self._delay = _MIN_BACKOFF
        self._stamp: _Stamp = None
        self._starting = asyncio.Lock()
        self._closed = False
        self._leaving: set[asyncio.Task[None]] = set()
        self.manifests: tuple[Made, ...] = ()

    async def start(self) -> None:
        """Load the file for the first time; SettingsError if it does not load."""
        self._stamp = _stamp(self.path)
        self._take(await Child.start(self.path, self._log))

    @property
    def has_changed(self) -> bool:
        return _stamp(self.path) != self._stamp

    async def reload(self) -> bool:
        """Load the file as it is now; if it does not load, log that and keep the running child."""
        self._stamp = _stamp(self.path)
        try:
            child = await Child.start(self.path, self._log)
        except SettingsError as error:
            self._log.error("cannot load hooks, the previous ones stay active", because=str(error))
            return False
        self._retire()
        self._take(child)
        self._log.info("hooks loaded", controllers=" ".join(child.names))
        return True

    async def call(self, name: str, purpose: str, call: Call) -> bytes:
        """Return the response of a hook in this file."""
        child = await self._running_child(purpose, name)
        try:
            return await child.call(name, purpose, call)
        except asyncio.CancelledError:
            if len(child.stuck) >= STUCK and child is self._child:
                self._log.warning("hooks process restarted", because=f"{len(child.stuck)} calls are stuck")
                self._retire()
            raise

    async def _running_child(self, purpose: str, name: str) -> Child:
        async with self._starting:
            if self._closed:
                # A child that starts now would outlive this process.
                raise HookError(f"{purpose} hook {name} could not be called: {self.path.name} is closed")
            child = self._child
            if child is not None and not child.ended.is_set():
                return child
            if child is not None:
                self._on_exit(child)
            wait = self._started_at + self._delay - monotonic()
            if wait > 0:
                raise HookError(
                    f"{purpose} hook {name} could not be called: the process of {self.path.name} ended, "
                    "and is started again shortly"
                )
            self._stamp = _stamp(self.path)
            try:
                child = await Child.start(self.path, self._log)
            except SettingsError as error:
                self._started_at = monotonic()
                self._delay = min(self._delay * 2, _MAX_BACKOFF)
                raise HookError(f"{purpose} hook {name} could not be called: {error}") from None
            self._take(child)
            return child

    def _on_exit(self, child: Child) -> None:
        """Handle the exit of a child: if it ran only for a short time, the restart backs off."""
        lived = monotonic() - self._started_at
        self._delay = _MIN_BACKOFF if lived > _STABLE else min(self._delay * 2, _MAX_BACKOFF)
        self._started_at = monotonic()
        self._child = None
        self._later(child.end())
        self._log.error("hooks ended", because="the process exited")

    def _take(self, child: Child) -> None:
        self._child, self._started_at, self.manifests = child, monotonic(), child.manifests

    def _retire(self) -> None:
        if self._child is not None:
            self._later(self._child.retire())
            self._child, self._started_at = None, monotonic() - _MAX_BACKOFF

    def _later(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._leaving.add(task)
        task.add_done_callback(self._leaving.discard)

    async def close(self) -> None:
        """End the child at once, and wait for the ones that are ending; later calls are refused."""
        self._closed = True
        async with self._starting:
            child, self._child = self._child, None
        for task in self._leaving:
            task.cancel()
        await asyncio.gather(*self._leaving, return_exceptions=True)
        if child is not None:
            await child.end()


class Hooks:
    """The hooks of this process's hooks files, by URL: `hook:NAME/PURPOSE`."""

    def __init__(self, paths: Sequence[Path], log: HookLog) -> None:
        self._files = [File(path, log) for path in paths]
        self._log = log
        self._asked = asyncio.Event()

    async def start(self) -> None:
        """Load every file; SettingsError if one does not load, or if two declare the same name."""
        try:
            for file in self._files:
                await file.start()
            self._unique()
        except BaseException:
            await self.close()
            raise

    @property
    def manifests(self) -> tuple[Made, ...]:
        """Return the controller objects that the files declare."""
        return tuple(manifest for file in self._files for manifest in file.manifests)

    def _unique(self) -> None:
        seen: dict[str, Path] = {}
        for file in self._files:
            for manifest in file.manifests:
                name = meta.name(manifest)
                if name in seen:
                    raise SettingsError(f"both {seen[name]} and {file.path} declare {name}")
                seen[name] = file.path

    def find(self, url: str) -> _Local | None:
        """Return the function that calls the hook at a URL, None if the URL is not of a local hook."""
        if not url.startswith(SCHEME):
            return None
        name, _, purpose = url.removeprefix(SCHEME).partition("/")
        for file in self._files:
            if any(meta.name(manifest) == name for manifest in file.manifests):
                return partial(file.call, name, purpose)
        return partial(self._missing, name, purpose)

    async def _missing(self, name: str, purpose: str, call: Call) -> bytes:
        have = ", ".join(str(file.path) for file in self._files)
        files = f"no hook of {have}" if have else "this process has no hooks file"
        raise HookUnreachable(f"{purpose} hook {name} does not run here: {files}")

    def reload(self) -> None:
        """Check every file now, whether or not its stamp changed."""
        self._asked.set()

    async def changes(self) -> AsyncGenerator[Declared, None]:
        """Yield the declared controllers whenever a file was loaded again; polls every second, and on request."""
        while True:
            try:
                async with asyncio.timeout(_POLL):
                    await self._asked.wait()
            except TimeoutError:
                pass
            asked = self._asked.is_set()
            self._asked.clear()
            before = self.manifests
            loaded = [await file.reload() for file in self._files if asked or file.has_changed]
            if any(loaded):
                try:
                    self._unique()
                except SettingsError as error:
                    self._log.error("two hooks files declare the same controller", because=str(error))
                    continue
                yield Declared(before, self.manifests)

    async def close(self) -> None:
        for file in self._files:
            await file.close()


_Local: TypeAlias = "partial[Coroutine[Any, Any, bytes]]"


def _stamp(path: Path) -> _Stamp:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino
