"""
One server with `lamina run` as another process, and the requests that both have handled so far.

Requests are those in the server's metrics, without those of the benchmark itself.
"""

import json
import re
import ssl
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from http.client import HTTPSConnection
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from bench.usage import processor_seconds, resident_bytes
from tests.bed.server import Server
from tests.bed.trouble import BedError
from tests.bed.wire import Api

ROOT = Path(__file__).parents[1]
TIMEOUT = 300.0
"""Timeout of one operation, in seconds."""
_REQUESTS = re.compile(r"^apiserver_request_total\{(.*?)\} (\S+)$", re.MULTILINE)
_LABELS = re.compile(r'(\w+)="([^"]*)"')
_LINES = 8


class BenchRequest(NamedTuple):
    """One request of the benchmark itself."""

    method: str
    path: str
    body: object

    @property
    def what(self) -> str:
        """Return the name under which the server counts it."""
        parts = self.path.split("/")
        if self.method == "POST":
            return f"POST {parts[-1]}"
        if parts[-1] == "status":
            return f"{self.method} {parts[-3]}/status"
        return f"{self.method} {parts[-2]}"


@dataclass(frozen=True, slots=True)
class Mark:
    """The counters at the start of an operation."""

    at: float
    requests: Counter[str]
    processor: float
    served: float
    calls: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Spent:
    """The cost of an operation."""

    seconds: float
    requests: Counter[str]
    """By verb; without watches and Events."""
    events: int
    processor: float
    resident: int
    calls: int
    """The number of hook calls, or of reconciles."""
    served: float = 0.0
    """The processor time of the server itself."""
    names: Counter[str] = field(default_factory=Counter)
    """All requests by name, as `POST configmaps`; with Events."""

    @property
    def writes(self) -> int:
        return sum(count for verb, count in self.requests.items() if verb not in ("GET", "LIST"))


@dataclass
class MeasuredServer:
    """
    One server and one `lamina run`.

    `about` names the counted resources: a real server has other clients, of other
    resources. `calls` returns a count besides requests, such as that of hook calls.
    """

    server: Server
    pid: int
    about: Collection[str]
    calls: Callable[[], int]
    others: Collection[str] = ()
    """Requests of other clients that are not counted, as `PATCH works`."""
    sent: Callable[[], Counter[str]] | None = None
    """The number of requests that `lamina run` has sent, by name; None to count them at the server."""
    api: Api = field(init=False)
    _own: Counter[str] = field(default_factory=Counter)
    """The requests of the benchmark itself."""

    def __post_init__(self) -> None:
        self.api = self.server.api()

    def requests(self) -> Counter[str]:
        """Return the number of requests by name, as `POST configmaps`, without those of the benchmark."""
        if self.sent is not None:
            return self.sent()
        found: Counter[str] = Counter()
        for labels, count in _REQUESTS.findall(self.api.get("/metrics").text):
            named = dict(_LABELS.findall(labels))
            below = named.get("subresource")
            what = f"{named.get('resource')}/{below}" if below else named.get("resource", "")
            asked = f"{named.get('verb')} {what}"
            if what in self.about and named.get("verb") != "WATCH" and asked not in self.others:
                found[asked] += int(float(count))
        return found - self._own

    def mark(self) -> Mark:
        processor, served = processor_seconds([self.pid]), processor_seconds(self.server.pids)
        return Mark(time.monotonic(), self.requests(), processor, served, self.calls())

    def spent(self, since: Mark, *, until: float | None = None) -> Spent:
        """Return the cost since a mark."""
        ended = until or time.monotonic()
        processor = processor_seconds([self.pid]) - since.processor
        served = processor_seconds(self.server.pids) - since.served
        verbs: Counter[str] = Counter()
        events = 0
        names = self.requests() - since.requests
        for name, count in names.items():
            verb, resource = name.split()
            if resource == "events":
                events += count
            else:
                verbs[verb] += count
        return Spent(
            seconds=ended - since.at,
            requests=verbs,
            events=events,
            processor=processor,
            resident=resident_bytes([self.pid]),
            calls=self.calls() - since.calls,
            served=served,
            names=names,
        )

    def until_written(self, since: Mark, what: Counter[str], is_so: Callable[[], bool]) -> float:
        """
        Wait until the server has counted these writes and the condition holds; return the time.

        The condition is checked last, since listing all objects repeatedly would be most of the load.
        """
        while time.monotonic() - since.at < TIMEOUT:
            written = self.requests() - since.requests
            if all(written[name] >= count for name, count in what.items()):
                ended = time.monotonic()
                if is_so():
                    return ended
            time.sleep(0.25)
        raise BedError(f"the operation was not done within {TIMEOUT:.0f} s")

    def until_quiet(self) -> None:
        """Wait until the count of `calls` has not changed for a second."""
        # Rarely, since the response costs the measured process time.
        calls = -1
        while (now := self.calls()) != calls:
            calls = now
            time.sleep(1.0)

    def get(self, path: str, counted: str) -> Any:
        """Return the object at a path; `counted` is the name of the request in the server's metrics."""
        self._own[counted] += 1
        return self.api.get(path).json

    def values(self, label: str) -> list[str]:
        """Return the values of the ConfigMaps with a label."""
        path = f"/api/v1/namespaces/default/configmaps?labelSelector={label}"
        return [one["data"]["value"] for one in self.get(path, "LIST configmaps")["items"]]

    def send(self, request: BenchRequest) -> None:
        """Send one request."""
        self.send_each(1, lambda number: request)

    def send_each(self, count: int, ask: Callable[[int], BenchRequest], *, apart: float = 0.0) -> None:
        """
        Send a request for every number, over a few keep-alive connections.

        With `apart`, requests are sent one after another, with that many seconds between them.
        """
        self._own.update(ask(number).what for number in range(count))
        lines = 1 if apart else min(count, _LINES)
        with ThreadPoolExecutor(lines) as pool:
            for work in [
                pool.submit(self._some, ask, range(first, count, lines), apart) for first in range(lines)
            ]:
                work.result()

    def _some(self, ask: Callable[[int], BenchRequest], numbers: Sequence[int], apart: float) -> None:
        parts = urlsplit(self.server.url)
        tls = ssl.create_default_context(cafile=str(self.server.ca_file))
        with closing(HTTPSConnection(parts.hostname or "", parts.port, context=tls, timeout=60)) as line:
            for number in numbers:
                asked = ask(number)
                content = "application/merge-patch+json" if asked.method == "PATCH" else "application/json"
                head = {"Authorization": f"Bearer {self.server.token}", "Content-Type": content}
                line.request(asked.method, asked.path, json.dumps(asked.body), head)
                with line.getresponse() as answer:
                    content = answer.read().decode()
                if answer.status not in (200, 201):
                    raise BedError(f"the server refused a request of the benchmark: {content}")
                time.sleep(apart)


@contextmanager
def running(
    server: Server, family: str, *more: str, command: Sequence[str] = ("-m", "lamina")
) -> Iterator[int]:
    """Run `lamina run` with one family until the end of the block, and yield its process ID."""
    run = subprocess.Popen(
        [sys.executable, *command, "run", "--families", family, "--no-leader-election", "--kubeconfig",
         str(server.kubeconfig), "--log", "error", *more],
        cwd=ROOT, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        assert run.stderr is not None
        if not (said := run.stderr.readline()).startswith("lamina runs"):
            raise BedError(f"`lamina run` did not start: {said}{run.stderr.read()}")
        yield run.pid
    finally:
        run.terminate()
        run.wait()
