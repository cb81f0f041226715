"""The servers that stories run on: the selected one over HTTP, and the embedded one in process."""

from collections.abc import Iterator

import pytest

from tests.bed.fixtures import chosen_server, server
from tests.bed.server import Server
from tests.conformance.transcript.inside import in_process
from tests.conformance.transcript.kinds import define_kinds
from tests.conformance.transcript.play import Stage
from tests.conformance.transcript.reach import HttpWire

__all__ = ["server"]


@pytest.fixture(scope="session")
def over_http(server: Server) -> Stage:
    """The selected server at its address."""
    wire = HttpWire(server.url, str(server.ca_file), server.token)
    define_kinds(wire)
    return Stage(wire=wire, embedded=chosen_server() == "embedded")


@pytest.fixture(scope="session")
def inside() -> Iterator[Stage]:
    """The embedded server in this process."""
    with in_process() as wire:
        define_kinds(wire)
        yield Stage(wire=wire, embedded=True)
