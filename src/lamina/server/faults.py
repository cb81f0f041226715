"""
What to break on request, before routing; knows no kind.

Stands beside a server and is asked only while its table has something in it.
What it breaks is what a client sees: answers that do not come, come late, are
refusals or show the past, and watches that end. Whatever is carried out is
carried out by the server, and whatever is said is said in its words.

Two sorts of requests are never broken: those for the server's own pages below
`/lamina/`, and those of `lamina chaos` itself, by whom everything can be mended.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import NamedTuple

from lamina.errors import ApiError
from lamina.faults import Asked, Cut, Expire, Faults, Silence, Stale, asked
from lamina.faults.table import Entry, Meeting, hits
from lamina.server.past import forgetful, past
from lamina.server.plane import Plane
from lamina.server.rendering import in_form
from lamina.server.request import Answer, Request, error_answer
from lamina.server.store import Store

MENDER = "lamina-chaos"
"""What whoever mends things calls itself; such requests meet no fault."""
_MARKS = 20
"""How many marks are set within the time that an answer is behind."""

Serve = Callable[[Request, Plane], Awaitable[Answer]]


class Asking(NamedTuple):
    """A request, as far as faults tell requests apart; what it asks for is found out when there is a fault."""

    method: str
    path: str
    query: str
    user: str

    @classmethod
    def of(cls, request: Request) -> Asking:
        return cls(request.method, request.path, request.query, request.user.name)

    @property
    def asked(self) -> Asked:
        request = Request(self.method, self.path, self.query)
        first = {name: values[0] for name, values in request.parameters.items()}
        return asked(self.method, self.path, first, self.user)


def is_spared(request: Request) -> bool:
    """Say whether a request meets no fault, whatever the table says."""
    return request.path.startswith("/lamina/") or request.headers.get("user-agent") == MENDER


class Trouble:
    """Breaks the answers of one server, as its table of faults says."""

    def __init__(self, plane: Plane) -> None:
        self._plane = plane
        self._behind: dict[str, _Behind] = {}

    async def handle(self, request: Request, faults: Faults, serve: Serve) -> Answer:
        """Answer a request as badly as is asked for."""
        meeting = faults.meet(Asking.of(request).asked)
        if not meeting.entries:
            return await serve(request, self._plane)
        try:
            # Whoever leaves while nobody listens was never heard.
            request.held, request.silenced = True, meeting.find(Silence) is not None
            await meeting.before()
            request.held = False
            answer = await serve(request, self._shown_to(request, meeting))
            try:
                request.held = True
                await meeting.after()
                request.held = False
            except BaseException:
                await _close(answer)
                raise
        except ApiError as refused:
            return in_form(request, error_answer(refused))
        if not isinstance(answer.body, bytes) and meeting.touches_streams:
            answer.body = meeting.stream(answer.body)
        return answer

    def _shown_to(self, request: Request, meeting: Meeting) -> Plane:
        """Return what a request is shown of the control plane."""
        if meeting.find(Expire) is not None:
            return forgetful(self._plane)
        stale = meeting.find(Stale)
        if stale is None or stale.fault.id not in self._behind:
            return self._plane
        version = self._behind[stale.fault.id].version
        wanted = request.parameter("resourceVersion")
        if wanted.isdecimal():
            # However late it is, nobody is shown less than they know already.
            version = min(max(version, int(wanted)), self._plane.store.version)
        return past(self._plane, version)

    def begin(self, entry: Entry) -> None:
        """Take note of a fault that has come; watches that it is about come back and meet it."""
        fault = entry.fault
        self._behind = {name: one for name, one in self._behind.items() if not one.is_over}
        if isinstance(fault, Stale):
            self._behind[fault.id] = _Behind(self._plane.store, entry, fault)
        if isinstance(fault, Cut | Stale | Silence):
            for watcher, about in list(self._plane.watchers.items()):
                if about is not None and hits(entry, about.asked):
                    watcher.end()


class _Behind:
    """Which version stale answers show: the one of when the fault came, or of a while ago."""

    def __init__(self, store: Store, entry: Entry, fault: Stale) -> None:
        self._store, self._entry = store, entry
        self._seconds, self._versions = fault.seconds, fault.versions
        self._loop = asyncio.get_running_loop()
        self._marks = deque([(self._loop.time(), store.version)])
        if self._seconds is not None:
            self._wait(self._seconds)

    @property
    def is_over(self) -> bool:
        return self._entry.gone.is_set()

    @property
    def version(self) -> int:
        if self._versions is not None:
            return max(1, self._store.version - self._versions)
        if self._seconds is not None:
            self._forget(self._loop.time() - self._seconds)
        return self._marks[0][1]

    def _wait(self, seconds: float) -> None:
        self._loop.call_later(seconds / _MARKS, self._mark, seconds)

    def _mark(self, seconds: float) -> None:
        if not self.is_over:
            now = self._loop.time()
            self._forget(now - seconds)
            self._marks.append((now, self._store.version))
            self._wait(seconds)

    def _forget(self, before: float) -> None:
        """Keep the newest of the marks from before a moment, and those after it."""
        while len(self._marks) > 1 and self._marks[1][0] <= before:
            self._marks.popleft()


async def _close(answer: Answer) -> None:
    close = getattr(answer.body, "aclose", None)
    if close is not None and isinstance(answer.body, AsyncIterator):
        await close()
