"""
The active faults, and what they do to a request.

An empty table is false and costs nothing. Removing a fault releases the requests
that it holds back.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from itertools import count

from msgspec import Struct, field
from msgspec.structs import replace

from lamina.errors import ApiError, InternalError, TooManyRequests, Unavailable, from_status
from lamina.faults.fault import Cut, Fault, Refuse, Silence, Slow, Stale, checked
from lamina.faults.request import RequestAttributes
from lamina.faults.watch_faults import cut_short, delayed


class Entry(Struct):
    """An active fault: how many requests it selected, and how many of them it was applied to."""

    fault: Fault
    came: int = 0
    met: int = 0
    removed: asyncio.Event = field(default_factory=asyncio.Event)


class Faults:
    """The active faults, in the order in which they were added."""

    def __init__(self) -> None:
        self._entries: dict[str, Entry] = {}
        self.in_force: Mapping[str, Entry] = self._entries
        """The faults by id; callers test it for emptiness on the hot path."""
        self._numbers = count(1)
        self.added: Callable[[Entry], None] = lambda entry: None
        """Called with every fault that is added."""

    def __bool__(self) -> bool:
        return bool(self._entries)

    @property
    def entries(self) -> Sequence[Entry]:
        return tuple(self._entries.values())

    def add(self, fault: Fault) -> Fault:
        """Activate a fault, replacing the one with its id, and return it with its id."""
        checked(fault)
        if not fault.id:
            fault = replace(fault, id=self._unused_id(type(fault).__name__.lower()))
        self.remove(fault.id)
        entry = Entry(fault)
        if not (isinstance(fault, Cut) and not fault.events):
            self._entries[fault.id] = entry
        self.added(entry)
        return fault

    def _unused_id(self, word: str) -> str:
        return next(name for number in self._numbers if (name := f"{word}-{number}") not in self._entries)

    def remove(self, name: str) -> bool:
        """Remove a fault, and return whether it was active."""
        entry = self._entries.pop(name, None)
        if entry is not None:
            entry.removed.set()
        return entry is not None

    def clear(self) -> None:
        for name in list(self._entries):
            self.remove(name)

    def match(self, request: RequestAttributes) -> RequestFaults:
        """Return the faults that apply to a request."""
        return RequestFaults(request, [entry for entry in self._entries.values() if applies(entry, request)])


def applies(entry: Entry, request: RequestAttributes) -> bool:
    """Return whether a fault applies to a request, and count it."""
    fault = entry.fault
    if not fault.selects(request) or (fault.times and entry.met >= fault.times):
        return False
    number, entry.came = entry.came, entry.came + 1
    if not fault.applies_to(number):
        return False
    entry.met += 1
    return True


class RequestFaults:
    """The faults that apply to one request, and their effects in order."""

    def __init__(self, request: RequestAttributes, entries: Sequence[Entry]) -> None:
        self.request, self.entries = request, entries

    async def before(self) -> None:
        """Delay or refuse a request before it is processed."""
        for entry in self.entries:
            match entry.fault:
                case Silence(after=False):
                    await entry.removed.wait()
                case Slow(seconds=seconds):
                    await _pause(entry, seconds)
                case Refuse(after=False) as refuse:
                    raise refusal(refuse)

    async def after(self) -> None:
        """Delay or refuse the response after the request was processed, so that the client cannot know that it was."""
        for entry in self.entries:
            match entry.fault:
                case Silence(after=True):
                    await entry.removed.wait()
                case Refuse(after=True) as refuse:
                    raise refusal(refuse)

    def find(self, kind: type[Fault]) -> Entry | None:
        """Return the first fault of a type."""
        return next((entry for entry in self.entries if isinstance(entry.fault, kind)), None)

    @property
    def touches_streams(self) -> bool:
        return any(isinstance(entry.fault, Cut | Stale) for entry in self.entries)

    async def stream(self, source: AsyncIterator[bytes]) -> AsyncGenerator[bytes, None]:
        """Yield a watch with these faults applied: cut short or delayed."""
        async with AsyncExitStack() as closing:
            pieces = source
            for entry in self.entries:
                _close_at_exit(closing, pieces)
                match entry.fault:
                    case Cut(events=events):
                        pieces = cut_short(pieces, events, opens=self.request.opens)
                    case Stale(seconds=seconds, versions=None):
                        pieces = delayed(pieces, seconds, entry.removed, opens=self.request.opens)
            _close_at_exit(closing, pieces)
            async for piece in pieces:
                yield piece


def _close_at_exit(closing: AsyncExitStack, pieces: AsyncIterator[bytes]) -> None:
    close = getattr(pieces, "aclose", None)
    if close is not None:
        closing.push_async_callback(close)


async def _pause(entry: Entry, seconds: float) -> None:
    """Wait, unless the fault is removed before."""
    try:
        async with asyncio.timeout(seconds):
            await entry.removed.wait()
    except TimeoutError:
        pass


def refusal(refuse: Refuse) -> ApiError:
    """Return the error that a request is refused with."""
    message = f"injected by fault {refuse.id}" if refuse.id else "injected by a fault"
    after = refuse.retry_after
    match refuse.code:
        case 429:
            after = 1 if after is None else after
            error: ApiError = TooManyRequests(f"Too many requests, please try again later: {message}")
        case 500:
            error = InternalError(f"Internal error occurred: {message}")
        case 503:
            error = Unavailable(f"the server is currently unable to handle the request: {message}")
        case code:
            error = from_status({"message": f"the server answered {code}: {message}"}, code)
    error.retry_after = after or None
    return error
