"""
Stand-ins for the parts of a cluster that nobody else runs here.

They are made of the parts that every controller is made of, and run by the
same loop. None of them awaits or fetches.
"""

from collections.abc import Sequence
from functools import lru_cache

from lamina.actors.accounts import accounts
from lamina.actors.definitions import DEFINITIONS
from lamina.actors.events import EVENTS
from lamina.actors.evicting import EVICTING
from lamina.actors.garbage import GARBAGE
from lamina.actors.namespaces import NAMESPACES
from lamina.actors.nodes import nodes
from lamina.actors.scheduling import SCHEDULING
from lamina.actors.stages import Stage, staging
from lamina.actors.workloads import CONTROLLERS
from lamina.core.controller import AnyController

__all__ = [
    "DEFINITIONS",
    "EVENTS",
    "EVICTING",
    "GARBAGE",
    "NAMESPACES",
    "SCHEDULING",
    "WORKLOADS",
    "accounts",
    "embedded_actors",
    "machines",
]

WORKLOADS: tuple[AnyController, ...] = (*CONTROLLERS, EVICTING)


def embedded_actors(authority: str) -> tuple[AnyController, ...]:
    """Return everything that the embedded server cannot do without; `authority` is its certificate in PEM."""
    return (GARBAGE, NAMESPACES, DEFINITIONS, accounts(authority), EVENTS)


def machines(stages: Sequence[Stage], count: int) -> tuple[AnyController, ...]:
    """Return what stands in for machines: so many nodes, who puts pods on them, and what becomes of those there."""
    return _machines(tuple(stages), count)


@lru_cache(maxsize=8)
def _machines(stages: tuple[Stage, ...], count: int) -> tuple[AnyController, ...]:
    """Return the same values for the same stages: what they come down to is then worked out once."""
    return (nodes(count), SCHEDULING, staging(stages))
