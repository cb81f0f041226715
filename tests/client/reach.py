"""
Fixtures for every way to reach a server.

The server is the embedded one, in process and over HTTP, or a real one if
LAMINA_TEST_SERVER is `real`. It is started once per session, so each test uses its own
namespace. A conftest.py imports the fixtures by name.
"""

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import suppress
from uuid import uuid4

import pytest
import pytest_asyncio

from lamina.app import App
from lamina.client.client import Client
from lamina.client.kubeconfig.read import read_kubeconfig
from lamina.client.transport.http import HttpTransport
from lamina.errors import Conflict, NotFound
from lamina.objects.types import Ref
from lamina.settings import Settings
from tests.bed.fixtures import chosen_server
from tests.bed.server import Server

__all__ = ["client", "namespace", "pytest_generate_tests", "ways"]

Ways = Mapping[str, Callable[[], Client]]


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def ways(request: pytest.FixtureRequest) -> AsyncIterator[Ways]:
    """The ways to reach the server under test."""
    if chosen_server() == "real":
        server: Server = request.getfixturevalue("shared_server")
        yield {"http": lambda: Client(HttpTransport(read_kubeconfig(server.kubeconfig)))}
        return
    async with App(Settings(ephemeral=True, port=0, simulate="off")) as app:
        yield {
            "inprocess": app.client,
            "http": lambda: Client(HttpTransport(read_kubeconfig(app.kubeconfig))),
        }


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run tests with a client once for each way to reach the server."""
    if "way" in metafunc.fixturenames:
        metafunc.parametrize("way", ["http"] if chosen_server() == "real" else ["inprocess", "http"])


@pytest_asyncio.fixture(loop_scope="session")
async def client(way: str, ways: Ways) -> AsyncIterator[Client]:
    """A client of the server under test."""
    made = ways[way]()
    yield made
    await made.close()


@pytest_asyncio.fixture(loop_scope="session")
async def namespace(client: Client) -> AsyncIterator[str]:
    """A namespace of the test; it is deleted at the end, without waiting."""
    name = f"t-{uuid4().hex[:10]}"
    await client.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    yield name
    with suppress(NotFound, Conflict):
        await client.delete(Ref("v1", "Namespace", "", name))
