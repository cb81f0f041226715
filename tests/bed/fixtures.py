"""
Fixtures for tests that use a server from outside.

The server is the embedded one, or the real one if LAMINA_TEST_SERVER is `real`. It is
started once per session and shared, so each test uses its own namespace and kinds. A
conftest.py imports the fixtures by name; tests that need running pods import
`server_with_pods` as `server`. The two shared ones are defined at the root.
"""

import os
from collections.abc import Iterator
from typing import cast, get_args
from uuid import uuid4

import pytest

from tests.bed.either import start_server
from tests.bed.kubectl import Kubectl, kubectl_command
from tests.bed.processes import end_tidily_on_signals
from tests.bed.server import Server, Which
from tests.bed.wire import Api

__all__ = [
    "api",
    "chosen_server",
    "kubectl",
    "namespace",
    "server",
    "server_with_pods",
    "shared_server",
    "shared_server_with_pods",
]


def chosen_server() -> Which:
    """Return the server that the environment selects."""
    which = os.environ.get("LAMINA_TEST_SERVER", "embedded")
    if which not in get_args(Which):
        raise pytest.UsageError(f'LAMINA_TEST_SERVER: expected "embedded" or "real", got "{which}"')
    return cast(Which, which)


@pytest.fixture(scope="session")
def shared_server() -> Iterator[Server]:
    """The server of this process, ready."""
    end_tidily_on_signals()
    with start_server(chosen_server()) as started:
        yield started


@pytest.fixture(scope="session")
def shared_server_with_pods() -> Iterator[Server]:
    """The server with progressing workloads: both servers have the same nodes, scheduler and stages."""
    end_tidily_on_signals()
    with start_server(chosen_server(), pods=True) as started:
        yield started


@pytest.fixture(scope="session")
def server(shared_server: Server) -> Server:
    """The server under test."""
    return shared_server


@pytest.fixture(scope="session")
def server_with_pods(shared_server_with_pods: Server) -> Server:
    """The server under test, with running pods."""
    return shared_server_with_pods


@pytest.fixture
def api(server: Server) -> Api:
    """Plain HTTP to the server, as an administrator."""
    return server.api()


@pytest.fixture
def namespace(api: Api) -> Iterator[str]:
    """A namespace of the test; it is deleted at the end, without waiting."""
    name = f"t-{uuid4().hex[:10]}"
    made = api.post("/api/v1/namespaces", {"metadata": {"name": name}})
    assert made.code == 201, made.text
    yield name
    api.delete(f"/api/v1/namespaces/{name}")


@pytest.fixture
def kubectl(server: Server, namespace: str) -> Kubectl:
    """kubectl as an administrator, in the test's namespace."""
    return Kubectl(kubectl_command(), server.kubeconfig, namespace)
