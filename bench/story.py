"""
One server with Metacontroller on it, and what has been asked of everybody so far.

`lamina run` is a process of its own. Requests are those the server counted,
without what the benchmark asked for itself.
"""

import json
import re
import ssl
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from http.client import HTTPSConnection
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit
from urllib.request import urlopen

from bench.usage import processor_seconds, resident_bytes
from tests.bed.either import start_server
from tests.bed.server import Server, Which
from tests.bed.trouble import BedError
from tests.bed.wire import Api

ROOT = Path(__file__).parents[1]
PATIENCE = 300.0
"""How long one piece of work may take, in seconds."""
_REQUESTS = re.compile(r"^apiserver_request_total\{(.*?)\} (\S+)$", re.MULTILINE)
_LINES = 8
_ABOUT = (
    "sets",
    "configmaps",
    "compositecontrollers",
    "decoratorcontrollers",
    "controllerrevisions",
    "events",
)
"""What is counted; a real server has others at work, on other things."""


class Asked(NamedTuple):
    """One request of the benchmark's own."""

    method: str
    path: str
    body: object

    @property
    def what(self) -> str:
        """Return it as the server counts it."""
        return f"{self.method} {self.path.split('/')[-1 if self.method == 'POST' else -2]}"


@dataclass(frozen=True, slots=True)
class Mark:
    """Where everything stood when some work began."""

    at: float
    requests: Counter[str]
    processor: float
    calls: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Spent:
    """What some work took."""

    seconds: float
    requests: Counter[str]
    """By verb; without watches and Events."""
    events: int
    processor: float
    resident: int
    calls: int

    @property
    def writes(self) -> int:
        return sum(count for verb, count in self.requests.items() if verb not in ("GET", "LIST"))


@dataclass
class Story:
    """One server, one `lamina run`, one hook."""

    server: Server
    pid: int
    hook: str
    api: Api = field(init=False)
    _own: Counter[str] = field(default_factory=Counter)
    """What the benchmark has asked for itself."""

    def __post_init__(self) -> None:
        self.api = self.server.api()

    def requests(self) -> Counter[str]:
        """Return how many requests the server has counted, as `POST configmaps`, without the benchmark's own."""
        found: Counter[str] = Counter()
        for labels, count in _REQUESTS.findall(self.api.get("/metrics").text):
            named = dict(re.findall(r'(\w+)="([^"]*)"', labels))
            if named.get("resource") in _ABOUT and named.get("verb") != "WATCH":
                found[f"{named['verb']} {named['resource']}"] += int(float(count))
        return found - self._own

    def calls(self) -> int:
        """Return how often the hook was called."""
        with urlopen(self.hook) as answer:
            return int(answer.read())

    def mark(self) -> Mark:
        return Mark(time.monotonic(), self.requests(), processor_seconds([self.pid]), self.calls())

    def spent(self, since: Mark, *, until: float | None = None) -> Spent:
        """Return what was spent since then."""
        ended = until or time.monotonic()
        processor = processor_seconds([self.pid]) - since.processor
        verbs: Counter[str] = Counter()
        events = 0
        for name, count in (self.requests() - since.requests).items():
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
        )

    def until_written(self, since: Mark, what: Counter[str], is_so: Callable[[], bool]) -> float:
        """
        Wait until so much has been written and everything is as it should be; return when that was.

        Writes are counted first: a list of everything, again and again, would be most of the work.
        """
        while time.monotonic() - since.at < PATIENCE:
            written = self.requests() - since.requests
            if all(written[name] >= count for name, count in what.items()):
                ended = time.monotonic()
                if is_so():
                    return ended
            time.sleep(0.25)
        raise BedError(f"it was not done within {PATIENCE:.0f} s")

    def until_quiet(self) -> None:
        """Wait until the hook has not been called for a second."""
        calls, since = self.calls(), time.monotonic()
        while time.monotonic() - since < 1.0:
            time.sleep(0.1)
            if (now := self.calls()) != calls:
                calls, since = now, time.monotonic()

    def values(self, label: str) -> list[str]:
        """Return what the ConfigMaps with a label hold."""
        self._own["LIST configmaps"] += 1
        listed = self.api.get(f"/api/v1/namespaces/default/configmaps?labelSelector={label}").json["items"]
        return [one["data"]["value"] for one in listed]

    def each(self, count: int, ask: Callable[[int], Asked]) -> None:
        """Ask for something for every number, over a few connections that are kept."""
        self._own.update(ask(number).what for number in range(count))
        with ThreadPoolExecutor(_LINES) as pool:
            for work in [
                pool.submit(self._some, ask, range(first, count, _LINES)) for first in range(_LINES)
            ]:
                work.result()

    def _some(self, ask: Callable[[int], Asked], numbers: Sequence[int]) -> None:
        parts = urlsplit(self.server.url)
        tls = ssl.create_default_context(cafile=str(self.server.ca_file))
        with closing(HTTPSConnection(parts.hostname or "", parts.port, context=tls, timeout=60)) as line:
            for number in numbers:
                asked = ask(number)
                content = "application/merge-patch+json" if asked.method == "PATCH" else "application/json"
                head = {"Authorization": f"Bearer {self.server.token}", "Content-Type": content}
                line.request(asked.method, asked.path, json.dumps(asked.body), head)
                with line.getresponse() as answer:
                    said = answer.read()
                if answer.status not in (200, 201):
                    raise BedError(f"the server refused what the benchmark asked for: {said.decode()}")


@contextmanager
def staged(which: Which) -> Iterator[Story]:
    """A fresh server, the hook, and `lamina run`."""
    with start_server(which) as server:
        hook = subprocess.Popen(
            [sys.executable, "-m", "bench.hook"], cwd=ROOT, stdout=subprocess.PIPE, text=True
        )
        assert hook.stdout is not None
        port = hook.stdout.readline().strip()
        run = subprocess.Popen(
            [sys.executable, "-m", "lamina", "run", "--families", "metacontroller", "--no-leader-election", "--kubeconfig",
             str(server.kubeconfig), "--log", "error"],
            cwd=ROOT, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        try:
            assert run.stderr is not None
            run.stderr.readline()
            yield Story(server, run.pid, f"http://127.0.0.1:{port}")
        finally:
            for process in (run, hook):
                process.terminate()
                process.wait()
