"""Stories about a fleet, each on a stage of its own."""

from collections.abc import AsyncIterator
from pathlib import Path
from uuid import uuid4

import pytest_asyncio

from lamina.app import App
from lamina.client.client import Client
from lamina.client.http import HttpTransport
from lamina.client.kubeconfig import read_kubeconfig
from lamina.core.family import Family
from lamina.families.manifestwork.family import family
from lamina.product import install
from lamina.settings import Settings
from tests.bed.either import start_server
from tests.bed.fixtures import chosen_server
from tests.scenarios.manifestwork.stage import Stage

FAMILY: Family = family()


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def served() -> AsyncIterator[tuple[Client, Path]]:
    """The server under test with the kinds of a hub on it: a client, and the way there for others."""
    if chosen_server() == "real":
        with start_server("real") as server:
            client = Client(HttpTransport(read_kubeconfig(server.kubeconfig)))
            await install(client, [FAMILY])
            yield client, server.kubeconfig
            await client.close()
        return
    async with App(Settings(ephemeral=True, port=0, simulate="off")) as app:
        client = app.client()
        await install(client, [FAMILY])
        yield client, app.kubeconfig


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def kubeconfig(served: tuple[Client, Path]) -> Path:
    """The way to the server under test, for another process."""
    return served[1]


@pytest_asyncio.fixture(loop_scope="session")
async def stage(served: tuple[Client, Path]) -> AsyncIterator[Stage]:
    """A hub that does not run yet, and agents for whatever clusters the story has."""
    stage = Stage(served[0], uuid4().hex[:8])
    try:
        yield stage
    finally:
        await stage.end()
