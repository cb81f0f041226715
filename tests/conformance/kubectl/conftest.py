"""
The stage for kubectl.

On the embedded server the kubectl that `make test` found or built is used; a
real one is talked to with both pinned minors.
"""

import pytest

from tests.bed.fixtures import chosen_server, server
from tests.bed.kubectl import PINNED, Kubectl, kubectl_command
from tests.bed.server import Server
from tests.conformance.transcript.kinds import define_kinds
from tests.conformance.transcript.play import Stage
from tests.conformance.transcript.reach import HttpWire

__all__ = ["server"]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run what needs a stage once for each kubectl."""
    if "which_kubectl" in metafunc.fixturenames:
        several = list(PINNED) if chosen_server() == "real" else [""]
        metafunc.parametrize("which_kubectl", several, ids=[one or "kubectl" for one in several])


@pytest.fixture(scope="session")
def reached(server: Server) -> HttpWire:
    """The chosen server, with the kinds of the stories."""
    wire = HttpWire(server.url, str(server.ca_file), server.token)
    define_kinds(wire)
    return wire


@pytest.fixture
def stage(server: Server, reached: HttpWire, which_kubectl: str) -> Stage:
    """The chosen server and a kubectl for it."""
    return Stage(
        wire=reached,
        embedded=chosen_server() == "embedded",
        kubectl=Kubectl(kubectl_command(which_kubectl or None), server.kubeconfig),
        url=server.url,
    )
