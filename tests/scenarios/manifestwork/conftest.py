"""Stories about a fleet, each on a stage of its own."""

from collections.abc import AsyncIterator
from pathlib import Path
from uuid import uuid4

import pytest_asyncio

from lamina.client.client import Client
from lamina.control_plane.install import install
from lamina.core.model.family import Family
from lamina.families.manifestwork.family import family
from tests.scenarios.manifestwork.stage import Stage

FAMILY: Family = family()


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def served(reached: tuple[Client, Path]) -> tuple[Client, Path]:
    """The server under test with the kinds of a hub on it: a client, and the way there for others."""
    await install(reached[0], [FAMILY])
    return reached


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
