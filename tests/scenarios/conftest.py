"""One server for the stories of all families: each has kinds and namespaces of its own."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest_asyncio

from lamina.app import App
from lamina.client.client import Client
from lamina.client.kubeconfig.read import read_kubeconfig
from lamina.client.transport.http import HttpTransport
from lamina.settings import Settings
from tests.bed.either import start_server
from tests.bed.fixtures import chosen_server


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def reached() -> AsyncIterator[tuple[Client, Path]]:
    """The server under test: a client, and the way there for others."""
    if chosen_server() == "real":
        with start_server("real") as server:
            client = Client(HttpTransport(read_kubeconfig(server.kubeconfig)))
            yield client, server.kubeconfig
            await client.close()
        return
    async with App(Settings(ephemeral=True, port=0, simulate="off")) as app:
        yield app.client(), app.kubeconfig
