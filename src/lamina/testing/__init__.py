"""
Tools for tests of controllers and hooks: clusters in this process, a manual clock, builders, faults, crash explorer.

The pytest fixtures are installed with Lamina; docs/testing.md shows how to use them.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lamina.faults import Cut, Expire, Refuse, Silence, Slow, Stale
    from lamina.testing.cluster import Cluster, MakeClusters
    from lamina.testing.sync_cluster import SyncCluster

_WHERE = {
    "SyncCluster": "lamina.testing.sync_cluster",
    "Cluster": "lamina.testing.cluster",
    "Cut": "lamina.faults",
    "Expire": "lamina.faults",
    "MakeClusters": "lamina.testing.cluster",
    "Refuse": "lamina.faults",
    "Silence": "lamina.faults",
    "Slow": "lamina.faults",
    "Stale": "lamina.faults",
}

__all__ = [
    "Cluster",
    "Cut",
    "Expire",
    "MakeClusters",
    "Refuse",
    "Silence",
    "Slow",
    "Stale",
    "SyncCluster",
]


def __getattr__(name: str) -> Any:
    """Import on first use: pytest imports this package at every start, and most runs use nothing of it."""
    if name not in _WHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_WHERE[name]), name)
