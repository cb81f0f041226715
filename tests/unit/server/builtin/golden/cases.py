"""
Objects to send to a real server, and to us.

A case is a kind's path, a body to create, and bodies to change it with, each
sent to the object (PUT) or to one of its endpoints. Bodies are odd on purpose:
zeros, nulls and empty things are what decoding is about.
"""

from __future__ import annotations

from collections.abc import Iterator

from tests.unit.server.builtin.golden import core, network, policies, workloads
from tests.unit.server.builtin.golden.parts import NAMESPACE, Case

__all__ = ["NAMESPACE", "Case", "cases"]


def cases() -> Iterator[Case]:
    """Yield every case."""
    yield from workloads.workloads()
    yield from workloads.pods()
    yield from core.core()
    yield from core.services()
    yield from network.networking()
    yield from network.autoscaling()
    yield from policies.policies()
    yield from policies.storage()
    yield from policies.extensions()
