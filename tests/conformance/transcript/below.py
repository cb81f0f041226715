"""A cluster of a server with several, below a path prefix."""

from collections.abc import Mapping

from tests.bed.wire import Answer
from tests.conformance.transcript.reach import Stream, Wire


class Below:
    """Sends requests to a path prefix."""

    def __init__(self, wire: Wire, path: str) -> None:
        self._wire, self._path = wire, path

    def call(self, method: str, path: str, headers: Mapping[str, str], body: bytes | None) -> Answer:
        return self._wire.call(method, f"{self._path}{path}", headers, body)

    def open(self, path: str, headers: Mapping[str, str]) -> Answer | Stream:
        return self._wire.open(f"{self._path}{path}", headers)


def second_cluster(wire: Wire, name: str = "second") -> tuple[Wire, str]:
    """Add a cluster to a server, and return a connection to it and its administrator's token."""
    told = wire.call("PUT", f"/clusters/{name}", {}, None)
    assert told.code in (200, 201), told.text
    return Below(wire, f"/clusters/{name}"), told.json["token"]
