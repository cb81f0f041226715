"""
Fixtures for workload tests: a server with running pods.

The embedded server has its own controllers, the real one has the real ones; both have the
same nodes, scheduler and stages.
"""

import pytest

from tests.bed.fixtures import chosen_server
from tests.bed.fixtures import server_with_pods as server
from tests.bed.kubectl import PINNED, Kubectl, kubectl_command
from tests.bed.server import Server
from tests.conformance.transcript.kinds import define_kinds
from tests.conformance.transcript.play import Stage
from tests.conformance.transcript.reach import HttpWire

__all__ = ["server"]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run each test once per kubectl."""
    if "which_kubectl" in metafunc.fixturenames:
        metafunc.parametrize("which_kubectl", list(PINNED))


@pytest.fixture(scope="session")
def reached(server: Server) -> HttpWire:
    """The selected server, with the kinds of the stories."""
    wire = HttpWire(server.url, str(server.ca_file), server.token)
    define_kinds(wire)
    return wire


@pytest.fixture
def stage(server: Server, reached: HttpWire, which_kubectl: str) -> Stage:
    """The selected server and a kubectl for it."""
    return Stage(
        wire=reached,
        embedded=chosen_server() == "embedded",
        kubectl=Kubectl(kubectl_command(which_kubectl), server.kubeconfig),
        url=server.url,
    )
