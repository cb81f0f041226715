"""
One server with a family at work on it, and what has been asked of everybody so far.

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
PATIENCE = 300.0
"""How long one piece of work may take, in seconds."""
_REQUESTS = re.compile(r"^apiserver_request_total\{(.*?)\} (\S+)$", re.MULTILINE)
_LABELS = re.compile(r'(\w+)="([^"]*)"')
_LINES = 8


class Asked(NamedTuple):
    """One request of the benchmark's own."""

    method: str
    path: str
    body: object

    @property
    def what(self) -> str:
        """Return it as the server counts it."""
        parts = self.path.split("/")
        if self.method == "POST":
            return f"POST {parts[-1]}"
        if parts[-1] == "status":
            return f"{self.method} {parts[-3]}/status"
        return f"{self.method} {parts[-2]}"


@dataclass(frozen=True, slots=True)
class Mark:
    """Where everything stood when some work began."""

    at: float
    requests: Counter[str]
    processor: float
    served: float
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
    """How often the hook was called, or a pass was made."""
    served: float = 0.0
    """The processor time of the server itself."""

    @property
    def writes(self) -> int:
        return sum(count for verb, count in self.requests.items() if verb not in ("GET", "LIST"))


@dataclass
class Story:
    """
    One server and one `lamina run`.

    `about` names what is counted: a real server has others at work, on other
    things. `calls` says how often whatever is counted beside requests has happened.
    """

    server: Server
    pid: int
    about: Collection[str]
    calls: Callable[[], int]
    others: Collection[str] = ()
    """What somebody else asks for, and is not counted, as `PATCH works`."""
    api: Api = field(init=False)
    _own: Counter[str] = field(default_factory=Counter)
    """What the benchmark has asked for itself."""

    def __post_init__(self) -> None:
        self.api = self.server.api()

    def requests(self) -> Counter[str]:
        """Return how many requests the server has counted, as `POST configmaps`, without the benchmark's own."""
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
        """Return what was spent since then."""
        ended = until or time.monotonic()
        processor = processor_seconds([self.pid]) - since.processor
        served = processor_seconds(self.server.pids) - since.served
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
            served=served,
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
        """Wait until nothing that is counted has happened for a second."""
        # Asked seldom: to answer is work, and counted as theirs.
        calls = -1
        while (now := self.calls()) != calls:
            calls = now
            time.sleep(1.0)

    def get(self, path: str, counted: str) -> Any:
        """Return what is at a path; the server counts it under that name."""
        self._own[counted] += 1
        return self.api.get(path).json

    def values(self, label: str) -> list[str]:
        """Return what the ConfigMaps with a label hold."""
        path = f"/api/v1/namespaces/default/configmaps?labelSelector={label}"
        return [one["data"]["value"] for one in self.get(path, "LIST configmaps")["items"]]

    def ask(self, asked: Asked) -> None:
        """Ask for one thing."""
        self.each(1, lambda number: asked)

    def each(self, count: int, ask: Callable[[int], Asked], *, apart: float = 0.0) -> None:
        """
        Ask for something for every number, over a few connections that are kept.

        Where they are to be so many seconds `apart`, they go one after another.
        """
        self._own.update(ask(number).what for number in range(count))
        lines = 1 if apart else min(count, _LINES)
        with ThreadPoolExecutor(lines) as pool:
            for work in [
                pool.submit(self._some, ask, range(first, count, lines), apart) for first in range(lines)
            ]:
                work.result()

    def _some(self, ask: Callable[[int], Asked], numbers: Sequence[int], apart: float) -> None:
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
                time.sleep(apart)


@contextmanager
def running(server: Server, family: str, *more: str) -> Iterator[int]:
    """Run `lamina run` with one family until the end of the block, and say which process that is."""
    run = subprocess.Popen(
        [sys.executable, "-m", "lamina", "run", "--families", family, "--no-leader-election", "--kubeconfig",
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
