"""
A kit for tests, ours and our users': clusters in this process, a clock to wind, builders, failures, and the sieve.

The fixtures come with the installation; docs/testing.md shows them at work.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lamina.faults import Cut, Expire, Refuse, Silence, Slow, Stale
    from lamina.testing.blocking import BlockingCluster
    from lamina.testing.cluster import Cluster, MakeClusters

_WHERE = {
    "BlockingCluster": "lamina.testing.blocking",
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
    "BlockingCluster",
    "Cluster",
    "Cut",
    "Expire",
    "MakeClusters",
    "Refuse",
    "Silence",
    "Slow",
    "Stale",
]


def __getattr__(name: str) -> Any:
    """Load what is asked for: pytest looks in here before every run, and most runs need none of it."""
    if name not in _WHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_WHERE[name]), name)
