"""
One Lease: acquired when it is free, renewed while it is held.

Time is measured by the monotonic clock. A Lease of another holder expires when it has
not changed for its duration, as client-go decides it: its timestamps are never compared
with the local clock.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from time import monotonic
from typing import Protocol

from msgspec import Struct

from lamina.errors import LaminaError, NotFound
from lamina.objects.times import micro_stamp
from lamina.objects.types import Made, Obj, Ref

LEASE_VERSION = "coordination.k8s.io/v1"


class LeaseClient(Protocol):
    """The part of a client that leader election uses."""

    async def get(self, ref: Ref) -> Made: ...

    async def create(self, obj: Obj, *, manager: str | None = None) -> Made: ...

    async def update(self, obj: Obj, *, manager: str | None = None) -> Made: ...


class LeaseConfig(Struct, frozen=True, kw_only=True):
    """Where the Leases are, how many, and the times of client-go's LeaderElectionConfig in seconds."""

    namespace: str = "default"
    name: str = "lamina"
    shards: int = 1
    lease_duration: float = 15.0
    renew_deadline: float = 10.0
    """How long after the last renewal a holder goes on; shorter than the lease duration."""
    retry_period: float = 2.0

    @property
    def deployment(self) -> str:
        """Return an identity that all replicas share: those that use the same Leases."""
        return f"{self.namespace}/{self.name} (lamina)"

    @property
    def request_timeout(self) -> float:
        """Return the timeout of a request: it leaves time for a retry before the deadline."""
        return self.renew_deadline / 2


def lease_ref(namespace: str, name: str) -> Ref:
    """Return the reference to a Lease."""
    return Ref(LEASE_VERSION, "Lease", namespace, name)


class LeaseLock:
    """A Lease that this process may hold, under an identity."""

    def __init__(
        self,
        client: LeaseClient,
        ref: Ref,
        identity: str,
        config: LeaseConfig,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self.ref = ref
        self.renewed_at: float | None = None
        """When this process last renewed the Lease, while it holds it."""
        self.holder = ""
        """The other holder, as it was last read; empty where there is none."""
        self._client, self._identity, self._config, self._clock = client, identity, config, clock
        self._record = ""
        """The observed record of the Lease."""
        self._record_seen_at = 0.0
        self._signed = False
        """Whether the Lease may name this identity: that was written or requested, and no other was seen since."""

    @property
    def is_held(self) -> bool:
        """Say whether this process holds the Lease at this moment."""
        return self.renewed_at is not None and self._clock() - self.renewed_at < self._config.renew_deadline

    async def acquire_or_renew(self) -> None:
        """Acquire a free Lease, or renew a held one; where another holds it, `holder` names it."""
        began = self._clock()
        try:
            lease = await self._client.get(self.ref)
        except NotFound:
            self._signed = True
            await self._client.create(self._lease(None), manager=self._config.name)
            self.holder, self.renewed_at = "", began
            return
        spec = lease.get("spec") or {}
        holder = spec.get("holderIdentity") or ""
        record = f"{holder} {spec.get('renewTime')} {lease['metadata'].get('resourceVersion')}"
        if record != self._record:
            # The time of the response, however long it took: the record is at most as old as observed.
            self._record, self._record_seen_at = record, self._clock()
        # An expired Lease with this identity need not be waited for: no other process has it.
        is_ours = holder == self._identity
        lease_duration = spec.get("leaseDurationSeconds") or self._config.lease_duration
        if not is_ours and holder and began - self._record_seen_at < lease_duration:
            self.holder, self.renewed_at, self._signed = holder, None, False
            return
        self._signed = True
        await self._client.update(self._lease(lease), manager=self._config.name)
        # It counts from before the request: the response may have been slow.
        self.holder, self.renewed_at = "", began

    def _lease(self, lease: Obj | None) -> Made:
        now = micro_stamp(datetime.now(UTC))
        old = (lease or {}).get("spec") or {}
        is_renewal = old.get("holderIdentity") == self._identity
        spec = {
            "holderIdentity": self._identity,
            "leaseDurationSeconds": max(1, math.ceil(self._config.lease_duration)),
            "acquireTime": old.get("acquireTime") if is_renewal and old.get("acquireTime") else now,
            "renewTime": now,
            "leaseTransitions": (old.get("leaseTransitions") or 0)
            + (0 if is_renewal or lease is None else 1),
        }
        if lease is not None:
            return {**lease, "spec": {**old, **spec}}
        metadata = {"name": self.ref.name, "namespace": self.ref.namespace}
        return {
            "apiVersion": self.ref.api_version,
            "kind": self.ref.kind,
            "metadata": metadata,
            "spec": spec,
        }

    async def release(self) -> None:
        """Release the Lease, so that another process can acquire it at once."""
        self.renewed_at = None
        if not self._signed:
            return
        with suppress(LaminaError, TimeoutError):
            async with asyncio.timeout(self._config.request_timeout):
                # A cancelled renewal may have reached the server: the current Lease is read.
                lease = await self._client.get(self.ref)
                if (lease.get("spec") or {}).get("holderIdentity") == self._identity:
                    spec = {**lease["spec"], "holderIdentity": "", "leaseDurationSeconds": 1}
                    await self._client.update({**lease, "spec": spec}, manager=self._config.name)
