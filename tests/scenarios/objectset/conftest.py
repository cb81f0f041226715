"""Scenarios of ObjectSets, each on a stage of its own."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from uuid import uuid4

import pytest_asyncio

from lamina.client.client import Client
from lamina.control_plane.install import install
from tests.scenarios.objectset.stage import FAMILY, Stage


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def served(reached: tuple[Client, Path]) -> tuple[Client, Path]:
    """The server under test with the kinds of the family on it: a client, and the kubeconfig for other processes."""
    await install(reached[0], [FAMILY])
    return reached


@asynccontextmanager
async def _staged(stage: Stage) -> AsyncIterator[Stage]:
    await stage.begin()
    try:
        yield stage
    finally:
        await stage.end()


@pytest_asyncio.fixture(loop_scope="session")
async def stage(served: tuple[Client, Path]) -> AsyncIterator[Stage]:
    """A namespace for ObjectSets; their controllers do not run yet."""
    async with _staged(Stage(served[0], uuid4().hex[:8])) as stage:
        yield stage


@pytest_asyncio.fixture(loop_scope="session")
async def cluster_stage(served: tuple[Client, Path]) -> AsyncIterator[Stage]:
    """The same with ClusterObjectSets, whose objects are in two namespaces in turn."""
    async with _staged(Stage(served[0], uuid4().hex[:8], is_cluster=True)) as stage:
        yield stage


@pytest_asyncio.fixture(loop_scope="session")
async def class_stage(served: tuple[Client, Path]) -> AsyncIterator[Stage]:
    """The same with phases of the class `default`, which ObjectSetPhases have."""
    async with _staged(Stage(served[0], uuid4().hex[:8], phase_class="default")) as stage:
        yield stage
