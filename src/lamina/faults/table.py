"""
The faults in force, and what they do to one request.

Empty, a table is false and costs nothing. A fault that is taken back lets go
of whoever it holds.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from itertools import count

from msgspec import Struct, field
from msgspec.structs import replace

from lamina.errors import (
    ApiError,
    InternalError,
    TooManyRequests,
    Unavailable,
    from_status,
)
from lamina.faults.fault import Cut, Fault, Refuse, Silence, Slow, Stale, checked
from lamina.faults.request import Asked
from lamina.faults.streams import cut_short, held_back


class Entry(Struct):
    """A fault in force: how many requests it was about, and how many of them it met."""

    fault: Fault
    came: int = 0
    met: int = 0
    gone: asyncio.Event = field(default_factory=asyncio.Event)


class Faults:
    """What is to go wrong, in the order it was asked for."""

    def __init__(self) -> None:
        self._entries: dict[str, Entry] = {}
        self.in_force: Mapping[str, Entry] = self._entries
        """The same, by id, for whoever has to know in no time whether there are any."""
        self._numbers = count(1)
        self.added: Callable[[Entry], None] = lambda entry: None
        """Is told of every fault that comes."""

    def __bool__(self) -> bool:
        return bool(self._entries)

    @property
    def entries(self) -> Sequence[Entry]:
        return tuple(self._entries.values())

    def add(self, fault: Fault) -> Fault:
        """Put a fault in force, in the place of the one with its id, and return it with the id it is known by."""
        checked(fault)
        if not fault.id:
            fault = replace(fault, id=self._free_name(type(fault).__name__.lower()))
        self.remove(fault.id)
        entry = Entry(fault)
        if not (isinstance(fault, Cut) and not fault.events):
            self._entries[fault.id] = entry
        self.added(entry)
        return fault

    def _free_name(self, word: str) -> str:
        return next(name for number in self._numbers if (name := f"{word}-{number}") not in self._entries)

    def remove(self, name: str) -> bool:
        """Take a fault back, and say whether it was there."""
        entry = self._entries.pop(name, None)
        if entry is not None:
            entry.gone.set()
        return entry is not None

    def clear(self) -> None:
        for name in list(self._entries):
            self.remove(name)

    def meet(self, request: Asked) -> Meeting:
        """Return what a request meets with."""
        return Meeting(request, [entry for entry in self._entries.values() if hits(entry, request)])


def hits(entry: Entry, request: Asked) -> bool:
    """Say whether a fault hits a request, and count it."""
    fault = entry.fault
    if not fault.is_about(request) or (fault.times and entry.met >= fault.times):
        return False
    number, entry.came = entry.came, entry.came + 1
    if not fault.takes(number):
        return False
    entry.met += 1
    return True


class Meeting:
    """The faults that one request meets with, and what they do to it, step by step."""

    def __init__(self, request: Asked, entries: Sequence[Entry]) -> None:
        self.request, self.entries = request, entries

    async def before(self) -> None:
        """Hold a request up, or raise what it is refused with, before it is carried out."""
        for entry in self.entries:
            match entry.fault:
                case Silence(after=False):
                    await entry.gone.wait()
                case Slow(seconds=seconds):
                    await _pause(entry, seconds)
                case Refuse(after=False) as refuse:
                    raise refusal(refuse)

    async def after(self) -> None:
        """Do the same once it has been carried out, so that nobody knows that it was."""
        for entry in self.entries:
            match entry.fault:
                case Silence(after=True):
                    await entry.gone.wait()
                case Refuse(after=True) as refuse:
                    raise refusal(refuse)

    def find(self, kind: type[Fault]) -> Entry | None:
        """Return the first fault of a sort."""
        return next((entry for entry in self.entries if isinstance(entry.fault, kind)), None)

    @property
    def touches_streams(self) -> bool:
        return any(isinstance(entry.fault, Cut | Stale) for entry in self.entries)

    async def stream(self, source: AsyncIterator[bytes]) -> AsyncGenerator[bytes, None]:
        """Yield a watch as it is with these faults: cut short, or late."""
        async with AsyncExitStack() as closing:
            pieces = source
            for entry in self.entries:
                _close_in_the_end(closing, pieces)
                match entry.fault:
                    case Cut(events=events):
                        pieces = cut_short(pieces, events, opens=self.request.opens)
                    case Stale(seconds=seconds, versions=None):
                        pieces = held_back(pieces, seconds, entry.gone, opens=self.request.opens)
            _close_in_the_end(closing, pieces)
            async for piece in pieces:
                yield piece


def _close_in_the_end(closing: AsyncExitStack, pieces: AsyncIterator[bytes]) -> None:
    close = getattr(pieces, "aclose", None)
    if close is not None:
        closing.push_async_callback(close)


async def _pause(entry: Entry, seconds: float) -> None:
    """Wait, unless the fault is taken back before."""
    try:
        async with asyncio.timeout(seconds):
            await entry.gone.wait()
    except TimeoutError:
        pass


def refusal(refuse: Refuse) -> ApiError:
    """Return what a request is refused with."""
    why = f"fault {refuse.id} asked for it" if refuse.id else "a fault asked for it"
    after = refuse.retry_after
    match refuse.code:
        case 429:
            after = 1 if after is None else after
            error: ApiError = TooManyRequests(f"Too many requests, please try again later: {why}")
        case 500:
            error = InternalError(f"Internal error occurred: {why}")
        case 503:
            error = Unavailable(f"the server is currently unable to handle the request: {why}")
        case code:
            error = from_status({"message": f"the server answered {code}: {why}"}, code)
    error.retry_after = after or None
    return error
