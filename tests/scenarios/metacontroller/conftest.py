"""Stories about Metacontroller, each on a stage of its own."""

from collections.abc import AsyncIterator
from pathlib import Path
from uuid import uuid4

import pytest_asyncio

from lamina.client.client import Client
from tests.scenarios.hook import serve
from tests.scenarios.metacontroller.stage import Stage, install, nothing


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def served(reached: tuple[Client, Path]) -> tuple[Client, Path]:
    """The server under test with Metacontroller's kinds on it: a client, and the way there for others."""
    await install(reached[0])
    return reached


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def cluster(served: tuple[Client, Path]) -> Client:
    """A client of the server under test."""
    return served[0]


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def kubeconfig(served: tuple[Client, Path]) -> Path:
    """The way to the server under test, for another process."""
    return served[1]


@pytest_asyncio.fixture(loop_scope="session")
async def stage(cluster: Client) -> AsyncIterator[Stage]:
    """A namespace, a kind called Thing, and a hook that wants nothing until the story says otherwise."""
    name = f"s-{uuid4().hex[:10]}"
    await cluster.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    async with serve(nothing) as hook:
        stage = Stage(cluster, name, hook, f"{name}.example.com")
        await stage.given_kind("Thing")
        try:
            yield stage
        finally:
            await stage.end()
            await cluster.delete(stage.at("Namespace", name, namespace=""))
