"""
Holds the Leases by which the originals of the families elect their leaders.

A family and its original write the same objects. Each is held back by the other through
the original's Lease: while another process holds it the family waits, and a Lease that is
lost stops the family's writes as the loss of its own does.

All replicas of one deployment share one identity, and each that leads a shard renews the
Lease for itself. Shards are led by different replicas at the same time, so no single one
of them could hold it; and a change of leaders leaves no moment at which the original
could take it. For the same reason it is not released at the end, and expires.

Where the namespace of a Lease does not exist, or is being deleted and has no Lease, no
original can hold it there, and the family runs; it takes the Lease as soon as the
namespace exists.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Mapping, Sequence
from time import monotonic

from lamina.core.model.upstream_lease import UpstreamLease
from lamina.errors import AlreadyExists, Conflict, Forbidden, LaminaError, NotFound
from lamina.logs import Logger
from lamina.objects import meta
from lamina.objects.types import Ref
from lamina.runtime.controller.leader_election import LeaderElection
from lamina.runtime.controller.leader_election_lock import LeaseClient, LeaseConfig, LeaseLock, lease_ref

_RANDOM = random.Random()
"""Not the shared instance: another thread may seed it."""
_LATE = "it was not renewed in time"
_TERMINATING = "NamespaceTerminating"
"""The cause with which a server refuses to create an object in a namespace that is being deleted."""
_REMEDY = "grant the right with `lamina rbac`, or run with --no-upstream-lease where no original runs"


class UpstreamLock:
    """The Lease of an original: held, or not needed while its namespace does not exist."""

    def __init__(
        self,
        client: LeaseClient,
        lease: UpstreamLease,
        identity: str,
        config: LeaseConfig,
        clock: Callable[[], float],
    ) -> None:
        self.lease, self.reported = lease, ""
        """`reported` is the last message about it that was logged, while the situation is the same."""
        self._client, self._clock, self._deadline = client, clock, config.renew_deadline
        self._lock = LeaseLock(client, lease_ref(lease.namespace, lease.name), identity, config, clock)
        self._absent_at: float | None = None
        """When the namespace was last found not to exist, or to be deleted without the Lease."""
        self.is_terminating = False
        """Whether the namespace is being deleted, where the Lease is not needed."""

    @property
    def ref(self) -> Ref:
        """Return the Lease."""
        return self._lock.ref

    @property
    def holder(self) -> str:
        """Return the other holder, as it was last read."""
        return self._lock.holder

    @property
    def confirmed_at(self) -> float | None:
        """Return when it was last renewed, or found not to be needed; None where another may have it."""
        return self._lock.renewed_at if self._lock.renewed_at is not None else self._absent_at

    @property
    def is_held(self) -> bool:
        """Say whether the original is held back at this moment."""
        at = self.confirmed_at
        return at is not None and self._clock() - at < self._deadline

    @property
    def is_needed(self) -> bool:
        """Say whether it may exist in its namespace, as far as is known."""
        return self._absent_at is None

    def forget(self) -> None:
        """Stop counting on it: it was not confirmed in time, or another replica leads."""
        self._lock.renewed_at = self._absent_at = None

    async def acquire_or_renew(self) -> None:
        """Acquire or renew the Lease, if it may exist in its namespace."""
        began = self._clock()
        if not self._lock.is_held:
            try:
                namespace = await self._client.get(Ref("v1", "Namespace", "", self.lease.namespace))
            except NotFound:
                self._not_needed(began, is_terminating=False)
                return
            if not meta.is_deleting(namespace):
                self._absent_at = None
        try:
            await self._lock.acquire_or_renew()
        except Forbidden as error:
            # It is created only where it does not exist, and then no other process can create it either.
            if not any(cause.reason == _TERMINATING for cause in error.causes):
                raise
            self._not_needed(began, is_terminating=True)
            return
        self._absent_at = None

    def _not_needed(self, at: float, *, is_terminating: bool) -> None:
        self._lock.renewed_at, self._absent_at, self.is_terminating = None, at, is_terminating


class UpstreamLeases:
    """The Leases of the originals of some families. `on_started_leading` is called when one is gained."""

    def __init__(
        self,
        client: LeaseClient,
        identity: str,
        leases: Mapping[str, Sequence[UpstreamLease]],
        config: LeaseConfig,
        log: Logger,
        own: LeaderElection | None = None,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        # A deployment may be told to use the Lease of the original as its own.
        own_refs = own.refs if own is not None else ()
        self._config, self._log, self._own, self._clock = config, log, own, clock
        self.on_started_leading: Callable[[], None] = lambda: None
        self._locks = {
            family: tuple(
                UpstreamLock(client, one, identity, config, clock)
                for one in needed
                if lease_ref(one.namespace, one.name) not in own_refs
            )
            for family, needed in leases.items()
        }

    def holds(self, family: str) -> bool:
        """Say whether the originals of a family are held back at this moment."""
        return all(lock.is_held for lock in self._locks[family])

    def leadership(self, family: str) -> FamilyLeadership:
        """Return the leadership of a family: of its owners by their shards, and of all its Leases."""
        return FamilyLeadership(family, self, self._own)

    async def run(self) -> None:
        """Renew held Leases and acquire free ones, while this replica leads, until cancelled."""
        async with asyncio.TaskGroup() as group:
            for locks in self._locks.values():
                for lock in locks:
                    group.create_task(self._run_lock(lock))
            # Without a Lease, too: it ends with the other tasks of the process.
            await asyncio.Event().wait()

    async def _run_lock(self, lock: UpstreamLock) -> None:
        period = self._config.retry_period
        while True:
            if self._own is not None and not self._own.held:
                # The replica that leads renews it. This one takes it as soon as it leads.
                lock.forget()
                await asyncio.sleep(period / 10)
                continue
            await self._attempt(lock)
            await asyncio.sleep(period * _RANDOM.uniform(0.8, 1.2))

    async def _attempt(self, lock: UpstreamLock) -> None:
        """Acquire or renew a Lease once, and log what changed."""
        before, was_needed = lock.confirmed_at, lock.is_needed
        trouble = await self._renew(lock)
        if not lock.is_held:
            if before is not None:
                self._log.warning("upstream lease lost", lease=str(lock.ref), because=trouble or _LATE)
                lock.forget()
            elif trouble and trouble != lock.reported:
                self._log.warning("waiting for upstream lease", lease=str(lock.ref), because=trouble)
            lock.reported = trouble or lock.reported
            return
        lock.reported = ""
        if before is None or was_needed != lock.is_needed:
            self._report_gain(lock)
        # If it expired while it was being renewed, the family's owners were not reconciled for a moment.
        if before is None or self._clock() - before >= self._config.renew_deadline:
            self.on_started_leading()

    def _report_gain(self, lock: UpstreamLock) -> None:
        if lock.is_needed:
            self._log.info("Successfully acquired upstream lease", lease=str(lock.ref))
            return
        state = "is being deleted and has no Lease" if lock.is_terminating else "does not exist"
        because = f"the namespace {lock.lease.namespace} {state}, so {lock.lease.upstream} does not run there"
        self._log.info("upstream lease not needed", lease=str(lock.ref), because=because)

    async def _renew(self, lock: UpstreamLock) -> str:
        """Acquire or renew a Lease, and return why it could not be done; nothing if it could."""
        try:
            async with asyncio.timeout(self._config.request_timeout):
                await lock.acquire_or_renew()
        except TimeoutError:
            return f"no answer within {self._config.request_timeout:g} seconds"
        except (Conflict, AlreadyExists):
            # Another replica of this deployment, or the original, was quicker: the next attempt shows which.
            return ""
        except Forbidden as error:
            return f"{error}; {_REMEDY}"
        except LaminaError as error:
            return str(error)
        if lock.is_held:
            return ""
        return f"{lock.holder} holds it, and works as {lock.lease.upstream}" if lock.holder else ""


class FamilyLeadership:
    """Whether this replica leads the owners of a family."""

    def __init__(self, family: str, upstream: UpstreamLeases, own: LeaderElection | None) -> None:
        self._family, self._upstream, self._own = family, upstream, own

    def holds(self, uid: str) -> bool:
        """Say whether this replica holds the shard of this uid, and the Leases of the family's original."""
        return (self._own is None or self._own.holds(uid)) and self._upstream.holds(self._family)
