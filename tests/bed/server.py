"""A running server, as the bed uses it."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Literal, Self

from tests.bed.processes import Program
from tests.bed.wire import Api

Which = Literal["embedded", "real"]


@dataclass(slots=True, kw_only=True)
class Server:
    """
    A server that is ready, and how to reach it as an administrator.

    `ready_after` is the seconds from its start until it was ready; `whole_after`, until the
    default service account existed.
    """

    name: Which
    url: str
    kubeconfig: Path
    ca_file: Path
    token: str
    programs: tuple[Program, ...]
    ready_after: float
    whole_after: float
    clean_up: Callable[[], None]
    stopped: bool = field(default=False, init=False)

    @property
    def pids(self) -> tuple[int, ...]:
        """The process ids of the server."""
        return tuple(program.process.pid for program in self.programs)

    def api(self) -> Api:
        """Return a connection of the administrator."""
        return Api(self.url, str(self.ca_file), self.token)

    def api_as(self, token: str | None) -> Api:
        """Return a connection with a bearer token, or without credentials."""
        return Api(self.url, str(self.ca_file), token)

    def stop(self) -> None:
        """End every process of the server, the last one first, and remove its files."""
        if self.stopped:
            return
        self.stopped = True
        for program in reversed(self.programs):
            program.stop()
        self.clean_up()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()


def is_ready(api: Api) -> bool:
    """Return whether the server is ready; one that does not respond is not."""
    try:
        return api.get("/readyz", timeout=10.0).code == 200
    except OSError:
        return False


def has_default_account(api: Api) -> bool:
    """Return whether pods can be created in the default namespace."""
    try:
        return api.get("/api/v1/namespaces/default/serviceaccounts/default", timeout=10.0).code == 200
    except OSError:
        return False


def has_node(api: Api) -> bool:
    """Return whether there is a schedulable node."""
    try:
        found = api.get("/api/v1/nodes/sim-0", timeout=10.0)
    except OSError:
        return False
    return found.code == 200 and not found.json["spec"].get("taints")


class Stopwatch:
    """Seconds since its creation."""

    def __init__(self) -> None:
        self._started = time.monotonic()

    def __call__(self) -> float:
        return time.monotonic() - self._started
