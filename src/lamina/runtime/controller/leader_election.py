"""
Leader election by Leases, with shards.

Owners are assigned to shards by their uid, and each shard is one Lease: only the
replica that holds it reconciles its owners. With one shard this is plain leader
election. A replica that cannot renew in time stops before another may acquire
the Lease; one that was suspended finds on waking that its deadline has passed.

Time is measured by the monotonic clock. A Lease of another replica expires when
it has not changed for its duration, as client-go decides it: its timestamps are
never compared with the local clock.
"""

from __future__ import annotations

import asyncio
import hashlib
import math
import random
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from time import monotonic
from typing import Protocol

from msgspec import Struct

from lamina.errors import AlreadyExists, Conflict, LaminaError, NotFound
from lamina.logs import Logger
from lamina.objects.times import micro_stamp
from lamina.objects.types import Made, Obj, Ref

_RANDOM = random.Random()
"""Not the shared instance: another thread may seed it."""


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


class _Shard(Struct):
    number: int
    ref: Ref
    record: str = ""
    """The observed record of the Lease."""
    record_seen_at: float = 0.0
    renewed_at: float | None = None
    """When this replica last renewed the Lease, while it holds it."""
    signed: bool = False
    """Whether the Lease may name this replica as its holder: that was written or requested, and no other was seen since."""


class LeaderElection:
    """The shards this replica holds. `on_started_leading` is called when it gains one."""

    def __init__(
        self,
        client: LeaseClient,
        identity: str,
        config: LeaseConfig,
        log: Logger,
        on_started_leading: Callable[[], None] = lambda: None,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self._client, self._identity, self._config, self._log = client, identity, config, log
        self._clock = clock
        self.on_started_leading = on_started_leading
        self._shards = [_Shard(number, self._ref(number)) for number in range(config.shards)]

    def _ref(self, number: int) -> Ref:
        name = lease_names(self._config.name, self._config.shards)[number]
        return Ref("coordination.k8s.io/v1", "Lease", self._config.namespace, name)

    def holds(self, uid: str) -> bool:
        """Say whether this replica holds the shard of this uid at this moment."""
        return self._is_held(self._shards[shard_of(uid, len(self._shards))])

    @property
    def held(self) -> tuple[int, ...]:
        """Return the numbers of the shards that this replica holds."""
        return tuple(shard.number for shard in self._shards if self._is_held(shard))

    @property
    def names(self) -> tuple[str, ...]:
        """Return the names of the Leases, by the numbers of their shards."""
        return tuple(shard.ref.name for shard in self._shards)

    @property
    def _timeout(self) -> float:
        """Return the timeout of a request: it leaves time for a retry before the deadline."""
        return self._config.renew_deadline / 2

    def _is_held(self, shard: _Shard) -> bool:
        return shard.renewed_at is not None and self._clock() - shard.renewed_at < self._config.renew_deadline

    async def run(self) -> None:
        """Renew held Leases and acquire free ones until cancelled; then release all of them."""
        try:
            async with asyncio.TaskGroup() as group:
                for shard in self._shards:
                    group.create_task(self._run_shard(shard))
        finally:
            await asyncio.shield(asyncio.gather(*map(self._release, self._shards)))

    async def _run_shard(self, shard: _Shard) -> None:
        self._log.info("Attempting to acquire leader lease", lease=str(shard.ref))
        while True:
            was_held = self._is_held(shard)
            if not was_held and shard.renewed_at is not None:
                self._log.warning("lease lost", lease=str(shard.ref), because="it was not renewed in time")
                shard.renewed_at = None
            if not was_held:
                # A replica with few shards is ahead of one with many.
                await asyncio.sleep(self._config.retry_period * 0.1 * len(self.held))
            before = shard.renewed_at
            try:
                async with asyncio.timeout(self._timeout):
                    await self._acquire_or_renew(shard)
            except TimeoutError:
                self._log.warning(
                    "lease not renewed",
                    lease=str(shard.ref),
                    because=f"no answer within {self._timeout:g} seconds",
                )
            except (Conflict, AlreadyExists):
                # Another replica was quicker.
                self._log.debug("lease taken", lease=str(shard.ref))
            except LaminaError as error:
                self._log.warning("lease not renewed", lease=str(shard.ref), because=str(error))
            # If it expired while it was being renewed, its owners were not reconciled for a moment.
            lapsed = before is None or self._clock() - before >= self._config.renew_deadline
            if self._is_held(shard) and lapsed:
                self._log.info("Successfully acquired lease", lease=str(shard.ref))
                self.on_started_leading()
            await asyncio.sleep(self._config.retry_period * _RANDOM.uniform(0.8, 1.2))

    async def _acquire_or_renew(self, shard: _Shard) -> None:
        """Acquire a free Lease, or renew a held one."""
        began = self._clock()
        try:
            lease = await self._client.get(shard.ref)
        except NotFound:
            shard.signed = True
            await self._client.create(self._lease(shard, None), manager=self._config.name)
            shard.renewed_at = began
            return
        spec = lease.get("spec") or {}
        holder = spec.get("holderIdentity") or ""
        record = f"{holder} {spec.get('renewTime')} {lease['metadata'].get('resourceVersion')}"
        if record != shard.record:
            # The time of the response, however long it took: the record is at most as old as observed.
            shard.record, shard.record_seen_at = record, self._clock()
        # Identities are unique: a replica whose own Lease expired need not wait for its duration to pass.
        is_ours = holder == self._identity
        lease_duration = spec.get("leaseDurationSeconds") or self._config.lease_duration
        if not is_ours and holder and began - shard.record_seen_at < lease_duration:
            shard.renewed_at, shard.signed = None, False
            return
        shard.signed = True
        await self._client.update(self._lease(shard, lease), manager=self._config.name)
        # It counts from before the request: the response may have been slow.
        shard.renewed_at = began

    def _lease(self, shard: _Shard, lease: Obj | None) -> Made:
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
        metadata = {"name": shard.ref.name, "namespace": shard.ref.namespace}
        return {
            "apiVersion": shard.ref.api_version,
            "kind": shard.ref.kind,
            "metadata": metadata,
            "spec": spec,
        }

    async def _release(self, shard: _Shard) -> None:
        """Release a Lease, so that another replica can acquire it at once."""
        shard.renewed_at = None
        if not shard.signed:
            return
        with suppress(LaminaError, TimeoutError):
            async with asyncio.timeout(self._timeout):
                # A cancelled renewal may have reached the server: the current Lease is read.
                lease = await self._client.get(shard.ref)
                if (lease.get("spec") or {}).get("holderIdentity") == self._identity:
                    spec = {**lease["spec"], "holderIdentity": "", "leaseDurationSeconds": 1}
                    await self._client.update({**lease, "spec": spec}, manager=self._config.name)


def lease_names(name: str, shards: int) -> tuple[str, ...]:
    """Return the names of the Leases, by the numbers of their shards."""
    return (name,) if shards == 1 else tuple(f"{name}-{number}" for number in range(shards))


def shard_of(uid: str, shards: int) -> int:
    """Return the shard of an owner: the same in every replica and version of Python."""
    if shards == 1:
        return 0
    return int.from_bytes(hashlib.sha256(uid.encode()).digest()[:8], "big") % shards
