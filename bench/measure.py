"""
One round over one server: start it, run all measurements, stop it.

Every step has a limit of requests and of time, so a round ends however slow the
server is.
"""

import json
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

from bench.usage import processor_seconds, resident_bytes
from bench.workloads import roll_out
from tests.bed.build import LOAD_GENERATOR, built
from tests.bed.embedded import embedded_server
from tests.bed.real import real_server
from tests.bed.server import Server, Which
from tests.bed.trouble import BedError

CLIENTS = (1, 32)
OBJECTS = 500
LISTED = 5_000
WATCHERS = 100
NAMESPACES = 3
MEBIBYTE = 1 << 20

Result = dict[str, float]
Results = dict[str, Result]


def measure(which: Which, *, seconds: float) -> Results:
    """
    Return the results of a new server by the name of the measurement.

    Requests of one kind run for `seconds`. Both servers store objects on disk, in the
    same file system, and sync each write.
    """
    results: Results = {}
    with _started(which) as server:
        results["start to ready"] = {"seconds": server.ready_after}
        results["start to first account"] = {"seconds": server.whole_after}
        time.sleep(2.0)
        results["memory at rest"] = {"MiB": resident_bytes(server.pids) / MEBIBYTE}
        _requests(server, results, seconds)
        _watchers(server, results, seconds)
        _list(server, results)
        results["memory after load"] = {"MiB": resident_bytes(server.pids) / MEBIBYTE}
        results["namespace deletion"] = {"seconds": _namespace_deletion(server)}
    results["1,000 pods"] = roll_out(which)
    return results


@contextmanager
def _started(which: Which) -> Iterator[Server]:
    data = Path(tempfile.mkdtemp(prefix="lamina-bench-"))
    try:
        with real_server() if which == "real" else embedded_server(data=data, pods=True) as server:
            yield server
    finally:
        shutil.rmtree(data, ignore_errors=True)


def _requests(server: Server, results: Results, seconds: float) -> None:
    _namespace(server, "load")
    _load(server, "create", namespace="load", prefix="kept", clients=16, count=OBJECTS, seconds=60)
    for clients in CLIENTS:
        prefix = f"new{clients}"
        results[f"create, {clients}"] = _load(
            server, "create", namespace="load", prefix=prefix, clients=clients, seconds=seconds
        )
        for operation in ("get", "patch", "apply"):
            results[f"{operation}, {clients}"] = _load(
                server, operation, namespace="load", prefix="kept", clients=clients, seconds=seconds
            )


def _watchers(server: Server, results: Results, seconds: float) -> None:
    for writers in CLIENTS:
        namespace = f"watched-{writers}"
        _namespace(server, namespace)
        results[f"watch, {writers}"] = _load(
            server, "watch", namespace=namespace, prefix="event", clients=writers, seconds=seconds
        )


def _list(server: Server, results: Results) -> None:
    _namespace(server, "listed")
    _load(server, "create", namespace="listed", prefix="item", clients=32, count=LISTED, seconds=120)
    results["list of 5,000"] = _load(server, "list", namespace="listed", prefix="item", count=20, seconds=20)


def _namespace_deletion(server: Server) -> float:
    """Return the median of the seconds from a delete request until the namespace is gone."""
    api, spent = server.api(), []
    for number in range(NAMESPACES):
        path = f"/api/v1/namespaces/ends-{number}"
        _namespace(server, f"ends-{number}")
        api.post(f"{path}/configmaps", {"metadata": {"name": "one"}})
        started = time.monotonic()
        api.delete(path)
        while api.get(path).code != 404:
            if time.monotonic() - started > 60:
                raise BedError(f"the {server.name} server did not delete a namespace within 60 s")
            time.sleep(0.005)
        spent.append(time.monotonic() - started)
    return sorted(spent)[NAMESPACES // 2]


def _namespace(server: Server, name: str) -> None:
    made = server.api().post("/api/v1/namespaces", {"metadata": {"name": name}})
    if made.code != 201:
        raise BedError(f"the {server.name} server did not create namespace {name}: {made.text}")


def _load(
    server: Server,
    operation: str,
    *,
    namespace: str,
    prefix: str,
    seconds: float,
    clients: int = 1,
    count: int | None = None,
) -> Result:
    """Run the load generator once, and return its result with the server's processor time per request."""
    before = processor_seconds(server.pids)
    done = subprocess.run(
        [
            built(LOAD_GENERATOR),
            f"--address={urlsplit(server.url).netloc}",
            f"--ca={server.ca_file}",
            f"--op={operation}",
            f"--namespace={namespace}",
            f"--prefix={prefix}",
            f"--clients={clients}",
            f"--watchers={WATCHERS}",
            f"--objects={OBJECTS}",
            f"--time={seconds}s",
            *([f"--count={count}"] if count else []),
        ],
        input=server.token + "\n",
        capture_output=True,
        text=True,
        timeout=seconds + 120,
        check=False,
    )
    if done.returncode != 0:
        raise BedError(f"load of {operation} on the {server.name} server: {done.stderr.strip()}")
    result: Result = json.loads(done.stdout)
    used = processor_seconds(server.pids) - before
    result["server_cpu_us"] = 1e6 * used / result["requests"] if result["requests"] else 0.0
    return result
