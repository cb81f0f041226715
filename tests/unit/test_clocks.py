"""
Objects have one clock.

Every file that reads another one is named here, with what it measures there: time
between machines, or the duration of an operation of ours. Every file is listed with
its reason; writing timestamps of objects, or waiting for them, is none.
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
    "cli/commands/agent.py": "a certificate is valid by the clocks of other machines",
    "cli/commands/uninstall.py": "leases between processes, and the timeout of a command",
    "cli/options/metrics_flags.py": "how long a server has not answered",
    "cli/rollout_wait.py": "the timeout of a command",
    "control_plane/join.py": "a certificate is valid by the clocks of other machines",
    "control_plane/membership.py": "waits for an agent on another machine",
    "runtime/metrics/access.py": "how long an answer about a token is kept",
    "runtime/metrics/reachability.py": "how long a server has not answered",
    "cli/kro_commands/annotation_edit.py": "waits for a controller to report a result",
    "runtime/cache/published_schemas.py": "asks a server again after a while, whatever time objects have",
    "cli/commands/down.py": "waits for a process to end",
    "cli/commands/clock.py": "servers without a clock of their own have the system time",
    "cli/commands/simulate.py": "a simulation begins with the system time",
    "cli/commands/up.py": "waits for a process to start, and says when it did",
    "client/transport/faulty.py": "the timeout of a request that a fault holds back",
    "client/client.py": "waits as long as Retry-After says",
    "client/transport/inprocess.py": "the timeout of a request that a fault holds back",
    "client/transport/ratelimited.py": "the rate of requests",
    "control_plane/cluster.py": "the timeout of controllers that never become idle",
    "faults/watch_faults.py": "watches that are late",
    "faults/table.py": "responses that are late",
    "hooks/child.py": "the timeout of a hook",
    "hooks/supervisor.py": "pauses before a process is started again",
    "hooks/process.py": "the timeout of a hook",
    "control_plane/cluster_controllers.py": "the timeout of a hub that does not answer",
    "control_plane/install.py": "waits for a server to serve a kind",
    "ratelimit.py": "the rate of a token bucket",
    "runtime/hooks/client.py": "the timeout of a webhook, and how long its answer is cached",
    "runtime/cache/discovery.py": "the interval of discovery",
    "runtime/controller/leader_election.py": "leases between processes",
    "runtime/controller/leader_election_lock.py": "leases between processes",
    "runtime/controller/leader_election_upstream.py": "leases between processes",
    "runtime/controller/manager.py": "yields to other tasks",
    "runtime/metrics/prometheus.py": "durations for metrics",
    "runtime/hooks/http.py": "durations for metrics",
    "runtime/metrics/pprof.py": "durations for metrics",
    "runtime/controller/workqueue.py": "how long keys waited for a worker",
    "runtime/cluster/cache_view.py": "the timeout of a watch event that is late",
    "runtime/cache/reflector.py": "the backoff of a watch",
    "runtime/controller/event_broadcaster.py": "the rate of events",
    "runtime/controller/concurrency.py": "yields to other tasks",
    "runtime/metrics/rest.py": "durations for metrics",
    "runtime/controller/worker.py": "durations for metrics, and the timeout of a first list",
    "control_plane/clock_offset.py": "keeps how far its clock is ahead of the system's",
    "server/api/admin.py": "says how far its clock is ahead of the system's",
    "server/kinds/builtin/kinds.py": "the time of a write where a test passes none",
    "server/api/dispatch.py": "durations for metrics",
    "admission/ca.py": "certificates are valid by the clocks of other machines",
    "admission/keep_registered.py": "how often a registration is checked",
    "admission/webhook_server.py": "how often a certificate and a registration are checked",
    "control_plane/clusters.py": "the retry of a cluster's removal",
    "client/kubeconfig/credentials.py": "how often a file with a token is read",
    "client/kubeconfig/exec_plugin.py": "when a credential expires, which its program states in system time",
    "client/transport/cancellable.py": "the timeout of a request",
    "client/transport/http.py": "yields to the event loop, which closes the connection",
    "client/transport/write_pool.py": "timeouts of servers and of idle connections",
    "runtime/cluster/cluster.py": "the backoff of a cluster that does not answer",
    "server/tls/certificates.py": "certificates are valid by the clocks of other machines",
    "server/tls/x509.py": "certificates are valid by the clocks of other machines",
    "server/http/connection.py": "timeouts of clients",
    "server/faults.py": "responses that are stale",
    "server/storage/watch_cursor.py": "how long a watch waits",
    "server/http/response_head.py": "the Date of an HTTP response",
    "server/storage/compaction_timer.py": "how long old versions are kept before compaction",
    "server/http/listener.py": "timeouts of clients",
    "server/storage/log_store.py": "how long a request waits for a version to come",
    "server/api/nonresource.py": "the max-age of an HTTP response",
    "server/api/fast_get.py": "durations for metrics",
    "server/admission/kind_hooks.py": "how long a request waits for an account",
    "server/verbs/watch.py": "the timeout of a watch, and its bookmarks",
    "testing/waiting.py": "how long a test waits",
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
