"""
CPU profiles of this process, served at `/debug/pprof`.

The profile has the format of `go tool pprof`. It samples the thread of the event
loop, and only while that uses the processor.
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
from lamina.runtime.metrics.healthz import address

_ROOT = "/debug/pprof"
_INTERVAL = 0.01
_MAX_SECONDS = 600.0
_INDEX = f"""\
{_ROOT}/profile?seconds=30  processor time of the event loop, by stack; with debug=1 as text
{_ROOT}/goroutine           what every task waits for, as text
{_ROOT}/cmdline             how this process was started
"""
_NOT_FOUND = "there is no such profile of this process: see {root}/ for those there are\n"

Value = TypeVar("Value")


class Location(NamedTuple):
    """One line of one function."""

    function: str
    file: str
    line: int


Stack = tuple[Location, ...]
"""The innermost location first."""


@asynccontextmanager
async def profiled(text: str) -> AsyncIterator[str]:
    """Serve profiles of this process until the end of the block; yields the address. `0` serves none."""
    parsed = address(text)
    if parsed is None:
        yield ""
        return
    app = web.Application()
    for path, handler in _pages(threading.get_ident()).items():
        app.router.add_get(f"{_ROOT}/{path}", handler)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    try:
        try:
            await web.TCPSite(runner, parsed[0] or None, parsed[1]).start()
        except OSError as error:
            raise SettingsError(f"cannot listen on {text}: {error.strerror}") from None
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
            return web.Response(status=400, text=f"seconds: expected a number up to {_MAX_SECONDS:.0f}\n")
        stop = threading.Event()
        try:
            spent = await asyncio.to_thread(sampled, thread, seconds, stop)
        finally:
            # The client may have disconnected.
            stop.set()
        if request.query.get("debug", "0") != "0":
            return web.Response(text=folded(spent))
        return web.Response(body=as_pprof(spent, seconds), content_type="application/octet-stream")

    async def tasks(request: web.Request) -> web.Response:
        return web.Response(text="\n".join(_described(task) for task in asyncio.all_tasks()))

    async def cmdline(request: web.Request) -> web.Response:
        return web.Response(text="\0".join(sys.argv))

    async def not_found(request: web.Request) -> web.Response:
        return web.Response(status=404, text=_NOT_FOUND.format(root=_ROOT))

    return {"": index, "profile": profile, "goroutine": tasks, "cmdline": cmdline, "{other}": not_found}


def _seconds(text: str) -> float | None:
    try:
        seconds = float(text)
    except ValueError:
        return None
    return seconds if 0 < seconds <= _MAX_SECONDS else None


def sampled(thread: int, seconds: float, stop: threading.Event | None = None) -> Counter[Stack]:
    """Sample a thread for a while, and return the CPU nanoseconds of each stack."""
    stop = stop or threading.Event()
    clock = time.pthread_getcpuclockid(thread)
    spent: Counter[Stack] = Counter()
    end, before = time.monotonic() + seconds, time.clock_gettime_ns(clock)
    while time.monotonic() < end and not stop.wait(_INTERVAL):
        now = time.clock_gettime_ns(clock)
        frame = sys._current_frames().get(thread)
        if now > before and frame is not None:
            spent[tuple(_frames(frame))] += now - before
        before = now
    return spent


def _frames(frame: FrameType | None) -> Iterator[Location]:
    while frame is not None:
        yield Location(frame.f_code.co_qualname, frame.f_code.co_filename, frame.f_lineno)
        frame = frame.f_back


def folded(spent: Mapping[Stack, int]) -> str:
    """Return a line for each stack, outermost first, with its microseconds: the folded format of flame graphs."""
    lines = [
        f"{';'.join(location.function for location in reversed(stack))} {nanoseconds // 1000}\n"
        for stack, nanoseconds in sorted(spent.items(), key=lambda one: -one[1])
    ]
    return "".join(lines)


def _described(task: asyncio.Task[object]) -> str:
    """Return the stack of a task, outermost first."""
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
    """Return a profile in pprof's format."""
    strings = _Numbers("", "samples", "count", "cpu", "nanoseconds")
    functions: _Numbers[tuple[str, str]] = _Numbers()
    locations: _Numbers[Location] = _Numbers()
    samples = b""
    for stack, nanoseconds in spent.items():
        ids = _packed([locations.of(location) + 1 for location in stack])
        values = _packed([max(1, round(nanoseconds / (_INTERVAL * 1e9))), nanoseconds])
        samples += _field(2, _field(1, ids) + _field(2, values))
    location_table = b""
    for number, location in enumerate(locations.known, 1):
        function = functions.of((location.function, location.file)) + 1
        location_table += _field(
            4, _number(1, number) + _field(4, _number(1, function) + _number(2, location.line))
        )
    named = b""
    for number, (name, file) in enumerate(functions.known, 1):
        string = strings.of(name)
        message = _number(1, number) + _number(2, string) + _number(3, string) + _number(4, strings.of(file))
        named += _field(5, message)
    counted, timed = _number(1, 1) + _number(2, 2), _number(1, 3) + _number(2, 4)
    table = b"".join(_field(6, string.encode()) for string in strings.known)
    footer = _number(10, int(seconds * 1e9)) + _field(11, timed) + _number(12, int(_INTERVAL * 1e9))
    return gzip.compress(
        _field(1, counted) + _field(1, timed) + samples + location_table + named + table + footer
    )


class _Numbers(Generic[Value]):
    """Numbers values in the order in which they are added."""

    def __init__(self, *known: Value) -> None:
        self._numbers = {one: number for number, one in enumerate(known)}

    def of(self, what: Value) -> int:
        return self._numbers.setdefault(what, len(self._numbers))

    @property
    def known(self) -> Sequence[Value]:
        return list(self._numbers)


def _varint(number: int) -> bytes:
    encoded = bytearray()
    while number > 127:
        encoded.append(number & 127 | 128)
        number >>= 7
    encoded.append(number)
    return bytes(encoded)


def _number(field: int, number: int) -> bytes:
    return _varint(field << 3) + _varint(number)


def _field(field: int, body: bytes) -> bytes:
    return _varint(field << 3 | 2) + _varint(len(body)) + body


def _packed(numbers: Sequence[int]) -> bytes:
    return b"".join(map(_varint, numbers))
