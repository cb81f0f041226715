"""
Objects have one clock.

Every file that reads another one is named here, with what it measures there: time
between machines, or how long something of our own took. Whoever adds a file says
why; whatever stamps an object or waits for one of its moments has no reason.
"""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "src" / "lamina"

READERS = {
    "datetime": ("now", "utcnow", "today"),
    "date": ("today",),
    "time": ("time", "time_ns", "monotonic", "monotonic_ns", "perf_counter", "gmtime", "localtime", "sleep"),
    "loop": ("time", "call_later", "call_at"),
    "asyncio": ("sleep", "timeout", "timeout_at", "wait_for"),
}

WALL = {
    "clock.py": "is the clock",
    "cli/down.py": "waits for a process to end",
    "cli/clock.py": "servers without a clock of their own have the time everybody has",
    "cli/simulate.py": "a simulation of a cluster on paper begins with the time everybody has",
    "cli/up.py": "waits for a process to start, and says when it did",
    "client/broken.py": "patience with a server that does not answer",
    "client/client.py": "comes back when a server asks it to",
    "client/inprocess.py": "patience with a server that does not answer",
    "client/limited.py": "so many requests a second",
    "embedded.py": "patience with those who never settle",
    "faults/streams.py": "watches that are late",
    "faults/table.py": "answers that are late",
    "hooks/child.py": "patience with a hook",
    "hooks/files.py": "pauses before a process is started again",
    "hooks/process.py": "patience with a hook",
    "product.py": "waits for a server to serve a kind",
    "rates.py": "so many a second",
    "runtime/calls.py": "patience with a webhook, and how long its answer may be kept",
    "runtime/catalogue.py": "pauses between two looks at what is served",
    "runtime/leases.py": "leases between processes",
    "runtime/manager.py": "gives others a turn",
    "runtime/metrics.py": "how long things took",
    "runtime/posting.py": "how long things took",
    "runtime/profiling.py": "how long things took",
    "runtime/queue.py": "how long keys waited for a worker",
    "runtime/sight.py": "patience with a watch that is late",
    "runtime/stream.py": "pauses before a watch is taken up again",
    "runtime/telling.py": "so many events a second",
    "runtime/together.py": "gives others a turn",
    "runtime/traffic.py": "how long things took",
    "runtime/worker.py": "how long things took, and patience with a first look",
    "timekeeping.py": "keeps how far its clock is ahead of everybody's",
    "server/administration.py": "says how far its clock is ahead of everybody's",
    "server/builtin/kinds.py": "the time of whoever writes without saying when, which no server does",
    "server/api.py": "how long things took",
    "admission/authority.py": "TLS is checked by other people's clocks",
    "admission/registered.py": "how often a registration is looked at",
    "admission/serving.py": "how often a certificate and a registration are looked at",
    "clusters.py": "how soon the end of a cluster is tried again",
    "client/credentials.py": "how often a file with a token is read",
    "client/ending.py": "has whoever waits for an answer wait no longer",
    "client/http.py": "gives the loop a turn, in which it hangs up",
    "client/lines.py": "patience with servers, and how long an idle connection is kept",
    "runtime/lookout.py": "how long a cluster that does not answer is left alone",
    "server/certificates.py": "TLS is checked by other people's clocks",
    "server/issuing.py": "TLS is checked by other people's clocks",
    "server/connection.py": "patience with clients",
    "server/faults.py": "answers that are behind",
    "server/follower.py": "how long a watch waits",
    "server/heads.py": "the Date of an HTTP answer",
    "server/housekeeping.py": "how long old versions are kept for those who are behind",
    "server/listener.py": "patience with clients",
    "server/log.py": "how long a request waits for a version to come",
    "server/pages.py": "how long an HTTP answer may be kept",
    "server/reads.py": "how long things took",
    "server/specials.py": "how long a request waits for an account",
    "server/verbs/watch.py": "the timeout of a watch, and its bookmarks",
    "testing/blocking.py": "patience with what a test waits for",
}  # fmt: skip


def reads(tree: ast.AST) -> Iterator[str]:
    """Yield every reading of a clock in a file: as an attribute, or by a name that was imported."""
    for node in ast.walk(tree):
        match node:
            case ast.ImportFrom(module="time" | "asyncio" as module, names=names):
                yield from (f"{module}.{one.name}" for one in names if one.name in READERS[module])
            case ast.Attribute(attr=name, value=ast.Name(id=owner)) if name in READERS.get(owner, ()):
                yield f"{owner}.{name}"
            case ast.Attribute(attr=name, value=ast.Attribute(attr="datetime")) if (
                name in READERS["datetime"]
            ):
                yield f"datetime.{name}"
            case ast.Attribute(attr=name, value=ast.Call() | ast.Attribute(attr="_loop")) if name in READERS[
                "loop"
            ] and _is_loop(node.value):
                yield f"loop.{name}"


def _is_loop(value: ast.expr) -> bool:
    if isinstance(value, ast.Attribute):
        return True
    return isinstance(value, ast.Call) and "loop" in ast.unparse(value.func)


FOUND = {
    path.relative_to(SOURCE).as_posix(): sorted(set(found))
    for path in SOURCE.rglob("*.py")
    if (found := list(reads(ast.parse(path.read_text()))))
}


@pytest.mark.parametrize("path", sorted(FOUND))
def test_a_file_that_reads_another_clock_says_why(path: str) -> None:
    assert path in WALL, f"{path} reads {', '.join(FOUND[path])}: objects have one clock, see lamina/clock.py"


def test_nothing_is_excused_that_needs_no_excuse() -> None:
    assert sorted(WALL.keys() - FOUND.keys()) == []


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("from datetime import datetime\ndatetime.now(UTC)", ["datetime.now"]),
        ("import datetime\ndatetime.datetime.now()", ["datetime.now"]),
        ("from time import monotonic", ["time.monotonic"]),
        ("asyncio.get_running_loop().call_later(1, f)", ["loop.call_later"]),
        ("self._loop.time()", ["loop.time"]),
        ("clock.now(); self._clock.call_at(x, y); plane.now()", []),
    ],
)
def test_a_clock_is_found_however_it_is_read(text: str, found: list[str]) -> None:
    assert list(reads(ast.parse(text))) == found
