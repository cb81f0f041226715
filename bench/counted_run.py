"""`lamina run` with one family, whose requests are counted where they are sent, so that dry runs are told from writes."""

import json
import re
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from functools import partial
from urllib.request import urlopen

from bench.counted_lamina import DRY_RUN
from bench.measured_server import TIMEOUT, MeasuredServer, running
from tests.bed.either import start_server
from tests.bed.processes import free_ports
from tests.bed.server import Server, Which
from tests.bed.trouble import BedError

_LOOK = 0.25


@contextmanager
def counted(which: Which, family: str, about: Collection[str], controllers: str) -> Iterator[MeasuredServer]:
    """Start a server with `lamina run`, counted as by `counted_run`."""
    with start_server(which) as server, counted_run(server, family, about, controllers) as target:
        yield target


@contextmanager
def counted_run(
    server: Server, family: str, about: Collection[str], controllers: str
) -> Iterator[MeasuredServer]:
    """
    Start `lamina run` on a server; requests are counted that are about these resources.

    Reconciles are counted of controllers whose names begin with `controllers`.
    """
    [counter, served] = free_ports(2)
    metrics = f"127.0.0.1:{served}"
    command = ("-m", "bench.counted_lamina", str(counter))
    passes = re.compile(
        rf'^controller_runtime_reconcile_total\{{controller="{controllers}.*?\}} (\S+)$', re.MULTILINE
    )
    with running(server, family, "--metrics-address", metrics, command=command) as pid:
        yield MeasuredServer(
            server,
            pid,
            tuple(about),
            partial(_reconciles, f"http://{metrics}/metrics", passes),
            sent=partial(_sent, f"http://127.0.0.1:{counter}", about),
        )


def _reconciles(url: str, passes: re.Pattern[str]) -> int:
    with urlopen(url) as answer:
        return sum(int(float(count)) for count in passes.findall(answer.read().decode()))


def _sent(url: str, about: Collection[str]) -> Counter[str]:
    with urlopen(url) as answer:
        found = Counter[str](json.loads(answer.read()))
    return Counter({name: count for name, count in found.items() if name.split()[1] in about})


def until(target: MeasuredServer, is_so: Callable[[], bool]) -> float:
    """
    Wait until a condition holds, and return the time of the last request before it was found to hold.

    It is checked only while no requests are sent: to list all objects repeatedly would be most of the load.
    """
    started = changed = time.monotonic()
    seen: Counter[str] = Counter()
    while time.monotonic() - started < TIMEOUT:
        time.sleep(_LOOK)
        now = target.requests()
        if now != seen:
            seen, changed = now, time.monotonic()
        elif is_so():
            return changed
    raise BedError(f"the operation was not done within {TIMEOUT:.0f} s")


def class_of(name: str, writes: Callable[[str], str]) -> str:
    """Return the class of a request by its name: that of what it writes, or that it writes nothing."""
    verb, what = name.split()
    if what == "events":
        return "events"
    if verb == DRY_RUN:
        return "dry runs"
    if verb in ("GET", "LIST"):
        return "reads"
    return "status" if what.endswith("/status") else writes(what)


def better(theirs: float, ours: float) -> str:
    """Return how many times less ours is, where both are known."""
    return f"{theirs / ours:.1f}x" if theirs and ours else ""
