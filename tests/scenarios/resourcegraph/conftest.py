"""Scenarios of resource graphs, each on a stage of its own."""

from collections.abc import AsyncIterator
from pathlib import Path
from uuid import uuid4

import pytest_asyncio

from lamina.client.client import Client
from lamina.control_plane.install import install
from tests.scenarios.resourcegraph.stage import FAMILY, Stage


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def served(reached: tuple[Client, Path]) -> tuple[Client, Path]:
    """The server under test with the kinds of the family on it: a client, and the kubeconfig for other processes."""
    await install(reached[0], [FAMILY])
    return reached


@pytest_asyncio.fixture(loop_scope="session")
async def stage(served: tuple[Client, Path]) -> AsyncIterator[Stage]:
    """A namespace and an API group for a scenario; the controllers do not run yet."""
    stage = Stage(served[0], uuid4().hex[:8])
    await stage.begin()
    try:
        yield stage
    finally:
        await stage.end()
