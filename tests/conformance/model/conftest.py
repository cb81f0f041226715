"""The servers of the randomized tests."""

from collections.abc import Iterator

import pytest

from tests.bed.fixtures import chosen_server, server
from tests.bed.server import Server
from tests.conformance.model.beacons import define_beacons
from tests.conformance.transcript.inside import in_process
from tests.conformance.transcript.kinds import define_kinds
from tests.conformance.transcript.reach import HttpWire, Wire

__all__ = ["server"]


@pytest.fixture(scope="session")
def ours() -> Iterator[Wire]:
    """The embedded server, in this process."""
    with in_process() as wire:
        define_kinds(wire)
        define_beacons(wire)
        yield wire


@pytest.fixture(scope="session")
def theirs(server: Server) -> Iterator[Wire]:
    """The selected server over HTTP."""
    wire = HttpWire(server.url, str(server.ca_file), server.token, share=True)
    define_kinds(wire)
    define_beacons(wire)
    yield wire
    wire.close()


@pytest.fixture(scope="session")
def wire(request: pytest.FixtureRequest) -> Wire:
    """The selected server; the embedded one without HTTP."""
    name = "theirs" if chosen_server() == "real" else "ours"
    chosen: Wire = request.getfixturevalue(name)
    return chosen
