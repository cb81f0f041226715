"""
Leader election by Leases, with shards.

Owners are assigned to shards by their uid, and each shard is one Lease: only the
replica that holds it reconciles its owners. With one shard this is plain leader
election. A replica that cannot renew in time stops before another may acquire
the Lease; one that was suspended finds on waking that its deadline has passed.
"""

from __future__ import annotations

import asyncio
import hashlib
import random
from collections.abc import Callable
from time import monotonic

from lamina.errors import AlreadyExists, Conflict, LaminaError
from lamina.logs import Logger
from lamina.objects.types import Ref
from lamina.runtime.controller.leader_election_lock import LeaseClient, LeaseConfig, LeaseLock, lease_ref

_RANDOM = random.Random()
"""Not the shared instance: another thread may seed it."""


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
        self._config, self._log, self._clock = config, log, clock
        self.on_started_leading = on_started_leading
        self._shards = [
            # Identities are unique among replicas.
            LeaseLock(client, lease_ref(config.namespace, name), identity, config, clock)
            for name in lease_names(config.name, config.shards)
        ]

    def holds(self, uid: str) -> bool:
        """Say whether this replica holds the shard of this uid at this moment."""
        return self._shards[shard_of(uid, len(self._shards))].is_held

    @property
    def held(self) -> tuple[int, ...]:
        """Return the numbers of the shards that this replica holds."""
        return tuple(number for number, shard in enumerate(self._shards) if shard.is_held)

    @property
    def names(self) -> tuple[str, ...]:
        """Return the names of the Leases, by the numbers of their shards."""
        return tuple(shard.ref.name for shard in self._shards)

    @property
    def refs(self) -> tuple[Ref, ...]:
        """Return the Leases, by the numbers of their shards."""
        return tuple(shard.ref for shard in self._shards)

    async def run(self) -> None:
        """Renew held Leases and acquire free ones until cancelled; then release all of them."""
        try:
            async with asyncio.TaskGroup() as group:
                for shard in self._shards:
                    group.create_task(self._run_shard(shard))
        finally:
            await asyncio.shield(asyncio.gather(*(shard.release() for shard in self._shards)))

    async def _run_shard(self, shard: LeaseLock) -> None:
        self._log.info("Attempting to acquire leader lease", lease=str(shard.ref))
        while True:
            was_held = shard.is_held
            if not was_held and shard.renewed_at is not None:
                self._log.warning("lease lost", lease=str(shard.ref), because="it was not renewed in time")
                shard.renewed_at = None
            if not was_held:
                # A replica with few shards is ahead of one with many.
                await asyncio.sleep(self._config.retry_period * 0.1 * len(self.held))
            before = shard.renewed_at
            try:
                async with asyncio.timeout(self._config.request_timeout):
                    await shard.acquire_or_renew()
            except TimeoutError:
                self._log.warning(
                    "lease not renewed",
                    lease=str(shard.ref),
                    because=f"no answer within {self._config.request_timeout:g} seconds",
                )
            except (Conflict, AlreadyExists):
                # Another replica was quicker.
                self._log.debug("lease taken", lease=str(shard.ref))
            except LaminaError as error:
                self._log.warning("lease not renewed", lease=str(shard.ref), because=str(error))
            # If it expired while it was being renewed, its owners were not reconciled for a moment.
            lapsed = before is None or self._clock() - before >= self._config.renew_deadline
            if shard.is_held and lapsed:
                self._log.info("Successfully acquired lease", lease=str(shard.ref))
                self.on_started_leading()
            await asyncio.sleep(self._config.retry_period * _RANDOM.uniform(0.8, 1.2))


def lease_names(name: str, shards: int) -> tuple[str, ...]:
    """Return the names of the Leases, by the numbers of their shards."""
    return (name,) if shards == 1 else tuple(f"{name}-{number}" for number in range(shards))


def shard_of(uid: str, shards: int) -> int:
    """Return the shard of an owner: the same in every replica and version of Python."""
    if shards == 1:
        return 0
    return int.from_bytes(hashlib.sha256(uid.encode()).digest()[:8], "big") % shards
