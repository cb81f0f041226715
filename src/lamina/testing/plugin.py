"""
The pytest plugin: the fixtures `cluster`, `clusters`, `blocking_cluster` and `clock`.

Lamina is imported when a test uses one of them, not at the start of pytest.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, ExitStack, contextmanager
from os import PathLike
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from lamina.clock import ManualClock
    from lamina.testing.cluster import Cluster, MakeClusters
    from lamina.testing.sync_cluster import SyncCluster

try:
    from pytest_asyncio import fixture as async_fixture
except ImportError:  # pragma: no cover
    # Without pytest-asyncio, tests use anyio or `blocking_cluster`.
    async_fixture = pytest.fixture  # type: ignore[assignment]  # takes what we give it


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers",
        "lamina(**settings): settings of the clusters of a test: families, hooks, simulate, nodes",
    )


_CLUSTERS: pytest.StashKey[list[Cluster]] = pytest.StashKey()
_KNOWN = ("families", "hooks", "simulate", "nodes")


def _settings(request: pytest.FixtureRequest) -> dict[str, Any]:
    """Return the settings from the marks of a test; its own take precedence over those of class and module."""
    settings: dict[str, Any] = {}
    for mark in request.node.iter_markers("lamina"):
        if mark.args:
            raise pytest.UsageError(f"a lamina mark takes keywords, as nodes=3, got {mark.args}")
        settings = {**mark.kwargs, **settings}
    for name in settings.keys() - set(_KNOWN):
        raise pytest.UsageError(f"unknown setting {name}: a lamina mark takes {', '.join(_KNOWN)}")
    if isinstance(hooks := settings.get("hooks"), str | PathLike):
        settings["hooks"] = [hooks]
    _check(settings)
    return settings


def _check(settings: dict[str, Any]) -> None:
    families, nodes = settings.get("families", "none"), settings.get("nodes", 1)
    if not isinstance(families, str):
        raise pytest.UsageError(
            f"families of a lamina mark: expected text, as families='metacontroller', got {families!r}"
        )
    if not isinstance(nodes, int):
        raise pytest.UsageError(f"nodes of a lamina mark: expected a number, as nodes=3, got {nodes!r}")
    if settings.get("hooks") and families == "none":
        raise pytest.UsageError(
            "hooks of a lamina mark need a family that calls them, as families='metacontroller'"
        )


@contextmanager
def _usage_errors() -> Iterator[None]:
    """Turn a SettingsError into a UsageError with its hint."""
    from lamina.errors import SettingsError

    try:
        yield
    except SettingsError as error:
        raise pytest.UsageError(": ".join(filter(None, (str(error), error.hint)))) from None


def _check_loop() -> None:
    import asyncio

    try:
        asyncio.get_running_loop()
    except RuntimeError:
        raise pytest.UsageError(
            "a cluster needs an asyncio event loop: set this backend for anyio, or use blocking_cluster"
        ) from None


@pytest.fixture
def clock() -> ManualClock:
    """The manual clock of the test's clusters."""
    from lamina.clock import ManualClock

    return ManualClock()


def _join(request: pytest.FixtureRequest, stack: AsyncExitStack, cluster: Cluster) -> None:
    """Make the clusters of a test advance together."""
    clusters = request.node.stash.setdefault(_CLUSTERS, [])
    clusters.append(cluster)
    # pytest keeps the stash of a test until the session ends.
    stack.callback(clusters.remove, cluster)

    async def together() -> None:
        # Work of one cluster can cause work in another: one round per cluster lets it pass through all of them.
        for _ in clusters:
            for one in clusters:
                await one.embedded.settled()

    cluster.together = together


@async_fixture
async def cluster(request: pytest.FixtureRequest, clock: ManualClock) -> AsyncIterator[Cluster]:
    """A cluster in this process, for this test only."""
    from lamina.testing.cluster import Cluster

    _check_loop()
    async with AsyncExitStack() as stack:
        with _usage_errors():
            started = await stack.enter_async_context(Cluster(clock=clock, **_settings(request)))
        _join(request, stack, started)
        yield started


@async_fixture
async def clusters(request: pytest.FixtureRequest, clock: ManualClock) -> AsyncIterator[MakeClusters]:
    """Starts clusters that advance together: `hub, east = await clusters("hub", "east")`."""
    from lamina.testing.cluster import Cluster

    async with AsyncExitStack() as stack:

        async def make(*names: str, **settings: Any) -> tuple[Cluster, ...]:
            _check_loop()
            merged = {**_settings(request), **settings}
            with _usage_errors():
                started = [
                    await stack.enter_async_context(Cluster(name, clock=clock, **merged)) for name in names
                ]
            for one in started:
                _join(request, stack, one)
            return tuple(started)

        yield make


@pytest.fixture
def blocking_cluster(request: pytest.FixtureRequest) -> Iterator[SyncCluster]:
    """A cluster in a thread, for tests and programs that block."""
    from lamina.testing.sync_cluster import SyncCluster

    with ExitStack() as stack:
        with _usage_errors():
            started = stack.enter_context(SyncCluster(**_settings(request)))
        yield started
