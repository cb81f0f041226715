"""
Which replica works for whom.

Owners are dealt out to shards by their uid, and each shard is one Lease: whoever
holds it works for its owners, and nobody else does. One shard is plain leader
election. A replica that cannot renew in time stops by itself, before anybody
else may take over; one that was frozen finds on waking that its time is up.

Time is measured on a clock of this machine that nobody sets. What another
replica wrote is judged by how long it has stood unchanged, never by its stamp.
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

_DICE = random.Random()
"""Our own: whoever seeds or checks the one that everybody shares may do so in another thread."""


class Keeper(Protocol):
    """What keeping leases takes: the client's plainest verbs."""

    async def get(self, ref: Ref) -> Made: ...

    async def create(self, obj: Obj, *, manager: str | None = None) -> Made: ...

    async def update(self, obj: Obj, *, manager: str | None = None) -> Made: ...


class Terms(Struct, frozen=True, kw_only=True):
    """How leases are kept: where, how many, and how long each lasts, in seconds."""

    namespace: str = "default"
    name: str = "lamina"
    shards: int = 1
    lasts: float = 15.0
    deadline: float = 10.0
    """How long after the last renewal a holder goes on; shorter than a lease lasts."""
    retry: float = 2.0


class _Shard(Struct):
    number: int
    ref: Ref
    seen: str = ""
    """What the lease said when it last changed."""
    seen_at: float = 0.0
    renewed_at: float | None = None
    """When we last renewed it, while it is ours."""
    signed: bool = False
    """Whether it may have our name on it: we wrote that, or asked to, and have seen no other since."""


class Leases:
    """The shards this replica holds. `gained` is called when there are owners to look at anew."""

    def __init__(
        self,
        keeper: Keeper,
        identity: str,
        terms: Terms,
        log: Logger,
        gained: Callable[[], None] = lambda: None,
    ) -> None:
        self._keeper, self._identity, self._terms, self._log = keeper, identity, terms, log
        self.gained = gained
        self._shards = [_Shard(number, self._ref(number)) for number in range(terms.shards)]

    def _ref(self, number: int) -> Ref:
        name = self._terms.name if self._terms.shards == 1 else f"{self._terms.name}-{number}"
        return Ref("coordination.k8s.io/v1", "Lease", self._terms.namespace, name)

    def holds(self, uid: str) -> bool:
        """Say whether the owner with this uid is ours to work for, at this very moment."""
        return self._is_held(self._shards[shard_of(uid, len(self._shards))])

    @property
    def held(self) -> tuple[int, ...]:
        """Return the numbers of the shards that are ours now."""
        return tuple(shard.number for shard in self._shards if self._is_held(shard))

    @property
    def names(self) -> tuple[str, ...]:
        """Return what the leases are called, by the numbers of their shards."""
        return tuple(shard.ref.name for shard in self._shards)

    @property
    def _patience(self) -> float:
        """Return how long an answer is waited for: there is time for another try before the deadline."""
        return self._terms.deadline / 2

    def _is_held(self, shard: _Shard) -> bool:
        return shard.renewed_at is not None and monotonic() - shard.renewed_at < self._terms.deadline

    async def run(self) -> None:
        """Keep what is ours, and take what is free, until cancelled; then give everything back."""
        try:
            async with asyncio.TaskGroup() as group:
                for shard in self._shards:
                    group.create_task(self._keep(shard))
        finally:
            await asyncio.shield(asyncio.gather(*map(self._give_back, self._shards)))

    async def _keep(self, shard: _Shard) -> None:
        self._log.info("Attempting to acquire leader lease", lease=str(shard.ref))
        while True:
            had = self._is_held(shard)
            if not had and shard.renewed_at is not None:
                self._log.warning("lease lost", lease=str(shard.ref), because="it was not renewed in time")
                shard.renewed_at = None
            if not had:
                # Whoever has little comes before whoever has much.
                await asyncio.sleep(self._terms.retry * 0.1 * len(self.held))
            before = shard.renewed_at
            try:
                async with asyncio.timeout(self._patience):
                    await self._attempt(shard)
            except TimeoutError:
                self._log.warning(
                    "lease not renewed",
                    lease=str(shard.ref),
                    because=f"no answer within {self._patience:g} seconds",
                )
            except (Conflict, AlreadyExists):
                # Somebody else was quicker.
                self._log.debug("lease taken", lease=str(shard.ref))
            except LaminaError as trouble:
                self._log.warning("lease not renewed", lease=str(shard.ref), because=str(trouble))
            # One that ran out while it was being renewed was nobody's for a moment, and so were its owners.
            lapsed = before is None or monotonic() - before >= self._terms.deadline
            if self._is_held(shard) and lapsed:
                self._log.info("Successfully acquired lease", lease=str(shard.ref))
                self.gained()
            await asyncio.sleep(self._terms.retry * _DICE.uniform(0.8, 1.2))

    async def _attempt(self, shard: _Shard) -> None:
        """Take a lease that is free, or renew one that is ours."""
        began = monotonic()
        try:
            there = await self._keeper.get(shard.ref)
        except NotFound:
            shard.signed = True
            await self._keeper.create(self._lease(shard, None), manager=self._terms.name)
            shard.renewed_at = began
            return
        spec = there.get("spec") or {}
        holder = spec.get("holderIdentity") or ""
        said = f"{holder} {spec.get('renewTime')} {there['metadata'].get('resourceVersion')}"
        if said != shard.seen:
            # Seen when the answer came, however long that took: another's lease is not older than we know.
            shard.seen, shard.seen_at = said, monotonic()
        # A name that no other replica has: whose time ran out, and nobody took over, need not wait for itself.
        ours = holder == self._identity
        lasts = spec.get("leaseDurationSeconds") or self._terms.lasts
        if not ours and holder and began - shard.seen_at < lasts:
            shard.renewed_at, shard.signed = None, False
            return
        shard.signed = True
        await self._keeper.update(self._lease(shard, there), manager=self._terms.name)
        # It counts from before the request was sent: the server may have taken its time.
        shard.renewed_at = began

    def _lease(self, shard: _Shard, there: Obj | None) -> Made:
        now = micro_stamp(datetime.now(UTC))
        old = (there or {}).get("spec") or {}
        same = old.get("holderIdentity") == self._identity
        spec = {
            "holderIdentity": self._identity,
            "leaseDurationSeconds": max(1, math.ceil(self._terms.lasts)),
            "acquireTime": old.get("acquireTime") if same and old.get("acquireTime") else now,
            "renewTime": now,
            "leaseTransitions": (old.get("leaseTransitions") or 0) + (0 if same or there is None else 1),
        }
        if there is not None:
            return {**there, "spec": {**old, **spec}}
        metadata = {"name": shard.ref.name, "namespace": shard.ref.namespace}
        return {
            "apiVersion": shard.ref.api_version,
            "kind": shard.ref.kind,
            "metadata": metadata,
            "spec": spec,
        }

    async def _give_back(self, shard: _Shard) -> None:
        """Let others have a lease at once."""
        shard.renewed_at = None
        if not shard.signed:
            return
        with suppress(LaminaError, TimeoutError):
            async with asyncio.timeout(self._patience):
                # A renewal that was called off may still have been heard: what is there is looked at, and not guessed.
                there = await self._keeper.get(shard.ref)
                if (there.get("spec") or {}).get("holderIdentity") == self._identity:
                    spec = {**there["spec"], "holderIdentity": "", "leaseDurationSeconds": 1}
                    await self._keeper.update({**there, "spec": spec}, manager=self._terms.name)


def shard_of(uid: str, shards: int) -> int:
    """Return the shard an owner belongs to: the same in every replica, whatever its version of Python."""
    if shards == 1:
        return 0
    return int.from_bytes(hashlib.sha256(uid.encode()).digest()[:8], "big") % shards
