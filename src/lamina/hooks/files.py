"""
The hooks files of a process: which child runs each, and which edition of it.

A file that changes gets a new child, and the old one finishes what it was
asked. A file that does not load changes nothing. A child that dies, or has too
many calls stuck in it, is replaced when the next call comes.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Coroutine, Sequence
from functools import partial
from pathlib import Path
from time import monotonic
from typing import Any, NamedTuple, TypeAlias

from lamina.core.questions import Call
from lamina.errors import HookError, SettingsError
from lamina.hooks.process import Child
from lamina.hooks.sdk import SCHEME
from lamina.logs import Logger
from lamina.objects import meta
from lamina.objects.types import Made

STUCK = 8
_LOOK = 1.0
_SOONEST, _LATEST, _LASTING = 0.1, 30.0, 10.0

_Stamp: TypeAlias = tuple[int, int, int] | None


class Declared(NamedTuple):
    """What files declared before they changed, and what they declare now."""

    before: tuple[Made, ...]
    now: tuple[Made, ...]


class File:
    """One hooks file, and the child that runs it."""

    def __init__(self, path: Path, log: Logger) -> None:
        self.path = path.absolute()
        self._log = log.bind(file=str(path))
        self._child: Child | None = None
        self._born = 0.0
        self._delay = _SOONEST
        self._stamp: _Stamp = None
        self._starting = asyncio.Lock()
        self._leaving: set[asyncio.Task[None]] = set()
        self.manifests: tuple[Made, ...] = ()

    async def start(self) -> None:
        """Load the file for the first time; SettingsError where that fails."""
        self._stamp = _stamp(self.path)
        self._take(await Child.start(self.path))

    @property
    def has_changed(self) -> bool:
        return _stamp(self.path) != self._stamp

    async def reload(self) -> bool:
        """Run the file as it is now; where it does not load, go on as before and say so."""
        self._stamp = _stamp(self.path)
        try:
            child = await Child.start(self.path)
        except SettingsError as wrong:
            self._log.error("hooks not loaded, the old ones go on", because=str(wrong))
            return False
        self._retire()
        self._take(child)
        self._log.info("hooks loaded", controllers=" ".join(child.names))
        return True

    async def call(self, name: str, purpose: str, call: Call) -> bytes:
        """Return what a hook of this file answers."""
        child = await self._living(purpose, name)
        try:
            return await child.call(name, purpose, call)
        except asyncio.CancelledError:
            if len(child.stuck) >= STUCK and child is self._child:
                self._log.warning("hooks started anew", because=f"{len(child.stuck)} calls are stuck")
                self._retire()
            raise

    async def _living(self, purpose: str, name: str) -> Child:
        async with self._starting:
            child = self._child
            if child is not None and not child.ended.is_set():
                return child
            if child is not None:
                self._bury(child)
            wait = self._born + self._delay - monotonic()
            if wait > 0:
                raise HookError(
                    f"{purpose} hook {name} could not be asked: the process of {self.path.name} ended, "
                    "and is started again shortly"
                )
            self._stamp = _stamp(self.path)
            try:
                child = await Child.start(self.path)
            except SettingsError as wrong:
                self._born = monotonic()
                self._delay = min(self._delay * 2, _LATEST)
                raise HookError(f"{purpose} hook {name} could not be asked: {wrong}") from None
            self._take(child)
            return child

    def _bury(self, child: Child) -> None:
        """Take note of a child that ended by itself: one that did so early is not replaced at once."""
        lived = monotonic() - self._born
        self._delay = _SOONEST if lived > _LASTING else min(self._delay * 2, _LATEST)
        self._born = monotonic()
        self._child = None
        self._later(child.end())
        self._log.error("hooks ended", because="their process died")

    def _take(self, child: Child) -> None:
        self._child, self._born, self.manifests = child, monotonic(), child.manifests

    def _retire(self) -> None:
        if self._child is not None:
            self._later(self._child.retire())
            self._child, self._born = None, monotonic() - _LATEST

    def _later(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._leaving.add(task)
        task.add_done_callback(self._leaving.discard)

    async def close(self) -> None:
        """End the child at once, and wait for those that were leaving."""
        child, self._child = self._child, None
        for task in self._leaving:
            task.cancel()
        await asyncio.gather(*self._leaving, return_exceptions=True)
        if child is not None:
            await child.end()


class Hooks:
    """The hooks that run beside this process, found by their address: `hook:NAME/PURPOSE`."""

    def __init__(self, paths: Sequence[Path], log: Logger) -> None:
        self._files = [File(path, log) for path in paths]
        self._log = log
        self._asked = asyncio.Event()

    async def start(self) -> None:
        """Load every file; SettingsError where one does not load, or two declare the same name."""
        try:
            for file in self._files:
                await file.start()
            self._unique()
        except BaseException:
            await self.close()
            raise

    @property
    def manifests(self) -> tuple[Made, ...]:
        """Return the controllers that the files declare, as objects to be applied."""
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
        """Return the hook at an address, if the address is one of ours."""
        if not url.startswith(SCHEME):
            return None
        name, _, purpose = url.removeprefix(SCHEME).partition("/")
        for file in self._files:
            if any(meta.name(manifest) == name for manifest in file.manifests):
                return partial(file.call, name, purpose)
        return partial(self._missing, name, purpose)

    async def _missing(self, name: str, purpose: str, call: Call) -> bytes:
        have = ", ".join(str(file.path) for file in self._files)
        files = f"it is in none of {have}" if have else "this process was given no hooks file"
        raise HookError(f"{purpose} hook {name} does not run here: {files}")

    def reload(self) -> None:
        """Look at every file now, whether or not it seems to have changed."""
        self._asked.set()

    async def changes(self) -> AsyncGenerator[Declared, None]:
        """Yield what is declared whenever a file was loaded anew; looks every second, and when asked."""
        while True:
            try:
                async with asyncio.timeout(_LOOK):
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
                except SettingsError as wrong:
                    self._log.error("two hooks files declare the same", because=str(wrong))
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
