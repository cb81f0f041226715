"""
The fixtures, for pytest: `cluster`, `clusters`, `blocking_cluster` and `clock`.

Nothing of Lamina is loaded before a test asks for one of them.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, ExitStack, contextmanager
from os import PathLike
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from lamina.clock import ManualClock
    from lamina.testing.blocking import BlockingCluster
    from lamina.testing.cluster import Cluster, MakeClusters

try:
    from pytest_asyncio import fixture as async_fixture
except ImportError:  # pragma: no cover
    # Whoever does not await needs no plugin for it, and has the fixture that blocks.
    async_fixture = pytest.fixture  # type: ignore[assignment]  # takes what we give it


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers",
        "lamina(**settings): how the clusters of a test are set up: families, hooks, simulate, nodes",
    )


_CLUSTERS: pytest.StashKey[list[Cluster]] = pytest.StashKey()
_KNOWN = ("families", "hooks", "simulate", "nodes")


def _settings(request: pytest.FixtureRequest) -> dict[str, Any]:
    """Return what the marks of a test say: those of its class and module too, where it says nothing else."""
    said: dict[str, Any] = {}
    for mark in request.node.iter_markers("lamina"):
        if mark.args:
            raise pytest.UsageError(f"a lamina mark names its settings, as in nodes=3, and got {mark.args}")
        said = {**mark.kwargs, **said}
    for name in said.keys() - set(_KNOWN):
        raise pytest.UsageError(f"there is no setting {name}: a lamina mark takes {', '.join(_KNOWN)}")
    if isinstance(hooks := said.get("hooks"), str | PathLike):
        said["hooks"] = [hooks]
    _check(said)
    return said


def _check(said: dict[str, Any]) -> None:
    families, nodes = said.get("families", "none"), said.get("nodes", 1)
    if not isinstance(families, str):
        raise pytest.UsageError(
            f"families of a lamina mark is a text, as in families='metacontroller', and got {families!r}"
        )
    if not isinstance(nodes, int):
        raise pytest.UsageError(f"nodes of a lamina mark is a number, as in nodes=3, and got {nodes!r}")
    if said.get("hooks") and families == "none":
        raise pytest.UsageError(
            "hooks of a lamina mark need a family that calls them, as in families='metacontroller'"
        )


@contextmanager
def _explained() -> Iterator[None]:
    """Have whoever is refused read what to do instead."""
    from lamina.errors import SettingsError

    try:
        yield
    except SettingsError as refused:
        raise pytest.UsageError(": ".join(filter(None, (str(refused), refused.hint)))) from None


def _check_loop() -> None:
    import asyncio

    try:
        asyncio.get_running_loop()
    except RuntimeError:
        raise pytest.UsageError(
            "a cluster lives in a loop of asyncio: give anyio that backend, or use blocking_cluster"
        ) from None


@pytest.fixture
def clock() -> ManualClock:
    """A clock that stands still until somebody winds it."""
    from lamina.clock import ManualClock

    return ManualClock()


def _join(request: pytest.FixtureRequest, stack: AsyncExitStack, made: Cluster) -> None:
    """Have the time of a cluster pass together with that of all others that its test has."""
    those = request.node.stash.setdefault(_CLUSTERS, [])
    those.append(made)
    # Whatever a test has is kept until the session ends, and a cluster is not to be.
    stack.callback(those.remove, made)

    async def together() -> None:
        # What one does may give another something to do: all of them, until none of them moved any.
        for _ in those:
            for one in those:
                await one.embedded.settled()

    made.together = together


@async_fixture
async def cluster(request: pytest.FixtureRequest, clock: ManualClock) -> AsyncIterator[Cluster]:
    """A whole control plane in this process, for this test alone."""
    from lamina.testing.cluster import Cluster

    _check_loop()
    async with AsyncExitStack() as stack:
        with _explained():
            made = await stack.enter_async_context(Cluster(clock=clock, **_settings(request)))
        _join(request, stack, made)
        yield made


@async_fixture
async def clusters(request: pytest.FixtureRequest, clock: ManualClock) -> AsyncIterator[MakeClusters]:
    """Makes as many as a story needs, whose time passes together: `hub, east = await clusters("hub", "east")`."""
    from lamina.testing.cluster import Cluster

    async with AsyncExitStack() as stack:

        async def make(*names: str, **settings: Any) -> tuple[Cluster, ...]:
            _check_loop()
            wanted = {**_settings(request), **settings}
            with _explained():
                fresh = [
                    await stack.enter_async_context(Cluster(name, clock=clock, **wanted)) for name in names
                ]
            for one in fresh:
                _join(request, stack, one)
            return tuple(fresh)

        yield make


@pytest.fixture
def blocking_cluster(request: pytest.FixtureRequest) -> Iterator[BlockingCluster]:
    """A control plane in a thread, for tests and programs that do not await."""
    from lamina.testing.blocking import BlockingCluster

    with ExitStack() as stack:
        with _explained():
            made = stack.enter_context(BlockingCluster(**_settings(request)))
        yield made
