"""The managed clusters of a simulated hub: their latency, their failures, and the outcome of their workloads."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from fnmatch import fnmatchcase
from typing import Any

from msgspec import Struct

from lamina.core.model.agents import WorkloadOutcome
from lamina.objects.digest import sha256
from lamina.objects.types import Obj
from lamina.simulation.fleet.workload_outcome import WorkloadOutcomes
from lamina.simulation.injected_faults import Failures

_HEALTHY = WorkloadOutcome()
_SPREAD = 0.5
"""How much longer than the fastest a cluster takes at most, as a factor."""


class FleetFaults(Struct, frozen=True, kw_only=True):
    """The fleet of one simulation that began at `since`; see `lamina.core.model.agents.SimulatedFleet`."""

    since: datetime
    ready_after: timedelta
    failures: Failures
    outcomes: WorkloadOutcomes

    def fault(self, cluster: str, now: datetime) -> str:
        return self.failures.fault_of(cluster, now - self.since)

    def latency(self, cluster: str) -> timedelta:
        # It depends on the name alone, so that the same simulation has the same result every time.
        return self.ready_after * (1 + _SPREAD * int(sha256(cluster.encode())[:8], 16) / 2**32)

    def outcome(self, cluster: str, manifests: Sequence[Obj], *, was_healthy: bool) -> WorkloadOutcome:
        images = set(_images(manifests))
        failing = tuple(
            one
            for one in self.failures.images_failing_on(cluster)
            if any(fnmatchcase(image, one.image) for image in images)
        )
        if not images or (was_healthy and not failing):
            return _HEALTHY
        return self.outcomes.of(manifests, failing)


def _images(value: Any) -> Iterator[str]:
    """Yield the images of all containers in a value, however deep."""
    if isinstance(value, Mapping):
        for name, held in value.items():
            if name in ("containers", "initContainers") and isinstance(held, list):
                yield from (
                    str(one.get("image")) for one in held if isinstance(one, Mapping) and "image" in one
                )
            else:
                yield from _images(held)
    elif isinstance(value, list | tuple):
        for held in value:
            yield from _images(held)
