"""
Random bytes on a connection.

The transport is a fake, so that thousands of examples take seconds; bytes and their
fragmentation are random.
"""

import asyncio
import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from itertools import pairwise

from hypothesis import example, given
from hypothesis import strategies as st

from lamina.server.api.authn import Authenticator
from lamina.server.http.connection import Connection
from lamina.server.http.connection_context import ConnectionContext, Timeouts
from lamina.server.http.request import Request, Response
from lamina.server.identity import ADMIN
from tests.server.raw_http import TOKEN

HEAD = re.compile(rb"HTTP/1\.[01] (\d{3}) [^\r\n]*\r\n((?:[A-Za-z-]+: [^\r\n]*\r\n)*)\r\n")


class Pretend(asyncio.Transport):
    """A fake transport, whose buffer is full now and then."""

    def __init__(self, connection: Connection, timeout: int) -> None:
        super().__init__()
        self.connection = connection
        self.written = b""
        self.open = True
        self.full = False
        self._limit = timeout
        self._unread = 0

    def write(self, data: bytes | bytearray | memoryview) -> None:
        assert self.open
        self.written += data
        self._unread += len(data)
        if self._unread > self._limit and not self.full:
            self.full = True
            self.connection.pause_writing()

    def read_all(self) -> None:
        """Drain the buffer, as if the peer had read it."""
        self._unread = 0
        if self.full:
            self.full = False
            self.connection.resume_writing()

    def close(self) -> None:
        self.open = False

    def abort(self) -> None:
        self.open = False

    def is_closing(self) -> bool:
        return not self.open

    def get_extra_info(self, name: str, default: object = None) -> object:
        return default

    def get_write_buffer_size(self) -> int:
        return 0

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        pass

    def pause_reading(self) -> None:
        pass

    def resume_reading(self) -> None:
        pass


class Echo:
    """Responds with the request, at once or later, depending on the path."""

    def __init__(self) -> None:
        self.handled: list[str] = []

    def handle_nowait(self, request: Request) -> Response | None:
        return None if request.path.startswith("/later") else self._answer(request)

    async def handle(self, request: Request) -> Response:
        await asyncio.sleep(0)
        return self._answer(request)

    def _answer(self, request: Request) -> Response:
        self.handled.append(f"{request.method} {request.path}")
        return Response(200, f"{request.method} {request.path} {len(request.body)}".encode())


@dataclass
class Outcome:
    """The result of one example."""

    open: bool
    answers: list[tuple[int, bytes]]
    handled: list[str] = field(default_factory=list)


async def converse(pieces: list[bytes], limit: int) -> Outcome:
    handler = Echo()
    context = ConnectionContext(handler, Authenticator({TOKEN: ADMIN}), Timeouts(refused=0.0))
    connection = Connection(context)
    transport = Pretend(connection, limit)
    connection.connection_made(transport)
    for piece in pieces:
        if transport.open:
            connection.data_received(piece)
        await _settle(context, transport)
    await _settle(context, transport)
    outcome = Outcome(transport.open, _answers(transport.written, handler.handled), handler.handled)
    # It must not wait forever.
    connection.close_if_overdue(asyncio.get_running_loop().time() + 10_000)
    assert not transport.open
    connection.connection_lost(None)
    assert not context.connections and not context.tasks
    return outcome


async def _settle(context: ConnectionContext, transport: Pretend) -> None:
    for _ in range(1000):
        transport.read_all()
        await asyncio.sleep(0)
        if not context.tasks and not transport.full:
            break
    await asyncio.sleep(0.0005 if transport.written.endswith(b"}") else 0)


def _answers(written: bytes, handled: list[str]) -> list[tuple[int, bytes]]:
    """Parse the output: whole responses in order, and nothing else."""
    answers = []
    expected = iter(handled)
    while written:
        head = HEAD.match(written)
        assert head is not None, written[:200]
        status, headers = int(head[1]), head[2].lower()
        length = re.search(rb"content-length: (\d+)", headers)
        written = written[head.end() :]
        if status == 100:
            continue
        assert length is not None
        size = 0 if status == 200 and next(expected).startswith("HEAD ") else int(length[1])
        answers.append((status, written[:size]))
        assert len(answers[-1][1]) == size
        written = written[size:]
    return answers


def cut(data: bytes, places: list[int]) -> list[bytes]:
    edges = sorted({0, len(data), *(place % (len(data) + 1) for place in places)})
    return [data[start:end] for start, end in pairwise(edges)]


def run(work: Callable[[], Awaitable[Outcome]]) -> Outcome:
    async def running() -> Outcome:
        return await work()

    return asyncio.run(running())


WORDS = st.sampled_from(
    [b"GET ", b"POST ", b"/", b"/later", b" HTTP/1.1\r\n", b" HTTP/1.0\r\n", b"Host: x\r\n", b"\r\n", b"\n", b"\r",
     b"Content-Length: 5\r\n", b"Content-Length: 99999999\r\n", b"Transfer-Encoding: chunked\r\n", b"0\r\n\r\n",
     b"5\r\nhello\r\n", b"Expect: 100-continue\r\n", b"Connection: close\r\n", b"Connection: keep-alive\r\n",
     b"Connection: Upgrade\r\nUpgrade: x\r\n", b"Authorization: Bearer sesame\r\n", b"Authorization: Bearer x\r\n",
     b"hello", b": ", b"\0", b"\xff", b" ", b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", b"HEAD /later HTTP/1.1\r\nHost: x\r\n\r\n"]
)  # fmt: skip
PLACES = st.lists(st.integers(0, 2000), max_size=12)
LIMITS = st.sampled_from([0, 100, 1_000_000])


@given(data=st.binary(max_size=300), places=PLACES, limit=LIMITS)
def test_noise_is_refused_or_waited_out(data: bytes, places: list[int], limit: int) -> None:
    outcome = run(lambda: converse(cut(data, places), limit))

    assert len(outcome.answers) <= len(outcome.handled) + 1


@given(words=st.lists(st.one_of(WORDS, st.binary(max_size=8)), max_size=25), places=PLACES, limit=LIMITS)
@example(
    [b"GET ", b"/", b" HTTP/1.1\r\n", b"Host: x\r\n", b"Connection: close\r\n", b"\r\n", b"hello"], [], 0
)
def test_what_nearly_is_http_gets_an_answer_a_request_and_one_refusal_at_most(
    words: list[bytes], places: list[int], limit: int
) -> None:
    outcome = run(lambda: converse(cut(b"".join(words), places), limit))

    statuses = [status for status, _ in outcome.answers]
    served = [status for status in statuses if status in (200, 401)]
    assert statuses[: len(served)] == served
    assert statuses.count(200) == len(outcome.handled)
    assert len(statuses) - len(served) <= 1
    if len(statuses) > len(served):
        assert not outcome.open


@st.composite
def requests(draw: st.DrawFn) -> tuple[bytes, tuple[str, bytes]]:
    """A valid request, and its response."""
    method = draw(st.sampled_from(["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD"]))
    path = draw(st.sampled_from(["/", "/later", "/a/b", "/later/x"]))
    body = draw(st.binary(max_size=60))
    head = f"{method} {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {TOKEN}\r\n".encode()
    head += draw(st.sampled_from([b"", b"Connection: keep-alive\r\n", b"X: " + b"y" * 200 + b"\r\n"]))
    answer = f"{method} {path} {len(body)}".encode() if method != "HEAD" else b""
    if draw(st.booleans()):
        size = draw(st.integers(1, 20))
        pieces = [body[start : start + size] for start in range(0, len(body), size)]
        chunks = b"".join(b"%x\r\n%b\r\n" % (len(piece), piece) for piece in pieces)
        sent = head + b"Transfer-Encoding: chunked\r\n\r\n" + chunks + b"0\r\n\r\n"
    else:
        leave = draw(st.sampled_from([b"", b"Expect: 100-continue\r\n"]))
        sent = head + leave + b"Content-Length: %d\r\n\r\n" % len(body) + body
    return sent, (f"{method} {path}", answer)


@given(
    made=st.lists(requests(), max_size=30),
    places=PLACES,
    limit=LIMITS,
    end=st.sampled_from(
        [b"", b"\r\n", b"\0", b"GET /half HTTP/1.1\r\nHo", b"POST / HTTP/1.1\r\nContent-Length: -1\r\n"]
    ),
)
def test_every_request_gets_its_own_answer_in_its_turn(
    made: list[tuple[bytes, tuple[str, bytes]]], places: list[int], limit: int, end: bytes
) -> None:
    data = b"".join(sent for sent, _ in made) + end

    outcome = run(lambda: converse(cut(data, places), limit))

    assert outcome.handled == [handled for _, (handled, _) in made]
    assert outcome.answers[: len(made)] == [(200, answer) for _, (_, answer) in made]
    refused = end[:1] == b"\0" or end.startswith(b"POST")
    assert [status for status, _ in outcome.answers[len(made) :]] == ([400] if refused else [])
    assert outcome.open is not refused
