"""
The controllers of kube-controller-manager, kube-scheduler and kubelet, for clusters that run none.

Each is a Controller value, run by the same worker as the families. They plan
from a view, without I/O.
"""

from collections.abc import Sequence
from functools import lru_cache

from lamina.actors.crd_finalizer import DEFINITIONS
from lamina.actors.csr_signing import signing
from lamina.actors.event_ttl import EVENTS
from lamina.actors.garbage import GARBAGE
from lamina.actors.namespaces import NAMESPACES
from lamina.actors.nodes import nodes
from lamina.actors.scheduling import SCHEDULING
from lamina.actors.service_accounts import accounts
from lamina.actors.stages import Stage, stages_controller
from lamina.actors.taint_eviction import EVICTING
from lamina.actors.workloads import CONTROLLERS
from lamina.core.model.controller import AnyController

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
    "signing",
]

WORKLOADS: tuple[AnyController, ...] = (*CONTROLLERS, EVICTING)


def embedded_actors(ca_bundle: str) -> tuple[AnyController, ...]:
    """Return the controllers that the embedded server always needs; `ca_bundle` is its CA certificate in PEM."""
    return (GARBAGE, NAMESPACES, DEFINITIONS, accounts(ca_bundle), EVENTS)


def machines(stages: Sequence[Stage], count: int) -> tuple[AnyController, ...]:
    """Return the controllers that simulate machines: nodes, the scheduler, and the kubelets' stages."""
    return _machines(tuple(stages), count)


@lru_cache(maxsize=8)
def _machines(stages: tuple[Stage, ...], count: int) -> tuple[AnyController, ...]:
    """Return the same values for equal stages, so that caches keyed by a controller hold."""
    return (nodes(count), SCHEDULING, stages_controller(stages))
