"""
What a process spends its time on, for whoever asks: `/debug/pprof`.

The profile is what `go tool pprof` and everything else that reads its format
understand. Only the thread that does the work is looked at, and only while it
works: what it waits for costs nothing.
"""

from __future__ import annotations

import asyncio
import gzip
import sys
import threading
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from types import CoroutineType, FrameType
from typing import Generic, NamedTuple, TypeVar

from aiohttp import web

from lamina.errors import SettingsError
from lamina.runtime.probes import address

_ROOT = "/debug/pprof"
_EACH = 0.01
_LONGEST = 600.0
_INDEX = f"""\
{_ROOT}/profile?seconds=30  processor time of the event loop, by stack; with debug=1 as text
{_ROOT}/goroutine           what every task waits for, as text
{_ROOT}/cmdline             how this process was started
"""
_NONE = "there is no such profile of this process: see {root}/ for those there are\n"

Thing = TypeVar("Thing")


class Place(NamedTuple):
    """One line of a program that runs."""

    function: str
    file: str
    line: int


Stack = tuple[Place, ...]
"""Where a program is: the innermost place first."""


@asynccontextmanager
async def profiled(text: str) -> AsyncIterator[str]:
    """Serve profiles of this process at an address until the end of the block; yields where. `0` serves none."""
    where = address(text)
    if where is None:
        yield ""
        return
    app = web.Application()
    for path, handler in _pages(threading.get_ident()).items():
        app.router.add_get(f"{_ROOT}/{path}", handler)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    try:
        try:
            await web.TCPSite(runner, where[0] or None, where[1]).start()
        except OSError as taken:
            raise SettingsError(f"cannot listen on {text}: {taken.strerror}") from None
        host, port, *_ = runner.addresses[0]
        yield f"{host}:{port}"
    finally:
        await runner.cleanup()


_Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


def _pages(thread: int) -> Mapping[str, _Handler]:
    async def index(request: web.Request) -> web.Response:
        return web.Response(text=_INDEX)

    async def profile(request: web.Request) -> web.Response:
        seconds = _seconds(request.query.get("seconds", "30"))
        if seconds is None:
            return web.Response(status=400, text=f"seconds: expected a number up to {_LONGEST:.0f}\n")
        stop = threading.Event()
        try:
            spent = await asyncio.to_thread(sampled, thread, seconds, stop)
        finally:
            # Whoever asked may have gone.
            stop.set()
        if request.query.get("debug", "0") != "0":
            return web.Response(text=folded(spent))
        return web.Response(body=as_pprof(spent, seconds), content_type="application/octet-stream")

    async def tasks(request: web.Request) -> web.Response:
        return web.Response(text="\n".join(_shown(task) for task in asyncio.all_tasks()))

    async def cmdline(request: web.Request) -> web.Response:
        return web.Response(text="\0".join(sys.argv))

    async def none(request: web.Request) -> web.Response:
        return web.Response(status=404, text=_NONE.format(root=_ROOT))

    return {"": index, "profile": profile, "goroutine": tasks, "cmdline": cmdline, "{other}": none}


def _seconds(text: str) -> float | None:
    try:
        seconds = float(text)
    except ValueError:
        return None
    return seconds if 0 < seconds <= _LONGEST else None


def sampled(thread: int, seconds: float, stop: threading.Event | None = None) -> Counter[Stack]:
    """Look at a thread for a while, and return how many nanoseconds of its own it spent where."""
    stop = stop or threading.Event()
    clock = time.pthread_getcpuclockid(thread)
    spent: Counter[Stack] = Counter()
    end, before = time.monotonic() + seconds, time.clock_gettime_ns(clock)
    while time.monotonic() < end and not stop.wait(_EACH):
        now = time.clock_gettime_ns(clock)
        frame = sys._current_frames().get(thread)
        if now > before and frame is not None:
            spent[tuple(_walked(frame))] += now - before
        before = now
    return spent


def _walked(frame: FrameType | None) -> Iterator[Place]:
    while frame is not None:
        yield Place(frame.f_code.co_qualname, frame.f_code.co_filename, frame.f_lineno)
        frame = frame.f_back


def folded(spent: Mapping[Stack, int]) -> str:
    """Return a line a stack, outermost first, and its microseconds: what flame graphs are drawn from."""
    lines = [
        f"{';'.join(place.function for place in reversed(stack))} {nanoseconds // 1000}\n"
        for stack, nanoseconds in sorted(spent.items(), key=lambda one: -one[1])
    ]
    return "".join(lines)


def _shown(task: asyncio.Task[object]) -> str:
    """Return what a task waits for, outermost first."""
    lines = [f"task {task.get_name()}"]
    inner: object = task.get_coro()
    while isinstance(inner, CoroutineType):
        if inner.cr_frame is not None:
            code = inner.cr_frame.f_code
            lines.append(f"    {code.co_qualname} {code.co_filename}:{inner.cr_frame.f_lineno}")
        inner = inner.cr_await
    return "\n".join([*lines, ""])


# The format of pprof: a gzipped message of protocol buffers


def as_pprof(spent: Mapping[Stack, int], seconds: float) -> bytes:
    """Return a profile as pprof reads it."""
    words = _Numbers("", "samples", "count", "cpu", "nanoseconds")
    functions: _Numbers[tuple[str, str]] = _Numbers()
    places: _Numbers[Place] = _Numbers()
    samples = b""
    for stack, nanoseconds in spent.items():
        ids = _packed([places.of(place) + 1 for place in stack])
        values = _packed([max(1, round(nanoseconds / (_EACH * 1e9))), nanoseconds])
        samples += _part(2, _part(1, ids) + _part(2, values))
    locations = b""
    for number, place in enumerate(places.known, 1):
        function = functions.of((place.function, place.file)) + 1
        locations += _part(4, _number(1, number) + _part(4, _number(1, function) + _number(2, place.line)))
    named = b""
    for number, (name, file) in enumerate(functions.known, 1):
        word = words.of(name)
        said = _number(1, number) + _number(2, word) + _number(3, word) + _number(4, words.of(file))
        named += _part(5, said)
    counted, timed = _number(1, 1) + _number(2, 2), _number(1, 3) + _number(2, 4)
    table = b"".join(_part(6, word.encode()) for word in words.known)
    how = _number(10, int(seconds * 1e9)) + _part(11, timed) + _number(12, int(_EACH * 1e9))
    return gzip.compress(_part(1, counted) + _part(1, timed) + samples + locations + named + table + how)


class _Numbers(Generic[Thing]):
    """Numbers for things, in the order they came."""

    def __init__(self, *known: Thing) -> None:
        self._numbers = {one: number for number, one in enumerate(known)}

    def of(self, what: Thing) -> int:
        return self._numbers.setdefault(what, len(self._numbers))

    @property
    def known(self) -> Sequence[Thing]:
        return list(self._numbers)


def _varint(number: int) -> bytes:
    made = bytearray()
    while number > 127:
        made.append(number & 127 | 128)
        number >>= 7
    made.append(number)
    return bytes(made)


def _number(field: int, number: int) -> bytes:
    return _varint(field << 3) + _varint(number)


def _part(field: int, body: bytes) -> bytes:
    return _varint(field << 3 | 2) + _varint(len(body)) + body


def _packed(numbers: Sequence[int]) -> bytes:
    return b"".join(map(_varint, numbers))
