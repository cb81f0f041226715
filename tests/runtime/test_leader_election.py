"""Which replica reconciles which owners."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from time import monotonic
from typing import Any
from uuid import uuid4

import pytest
import structlog

from lamina.app import App
from lamina.client.client import Client
from lamina.errors import NotFound, Unreachable
from lamina.objects.types import Made, Obj, Ref
from lamina.runtime.controller.leader_election import LeaderElection, shard_of
from lamina.runtime.controller.leader_election_lock import LeaseConfig
from lamina.testing.waiting import eventually
from tests.runtime.cluster import embedded

TERMS = LeaseConfig(lease_duration=1, renew_deadline=0.5, retry_period=0.05)


@pytest.fixture
async def client() -> AsyncIterator[Client]:
    async with embedded() as app:
        assert isinstance(app, App)
        yield app.client()


class Replica:
    """One process among several, whose way to the server can be cut."""

    def __init__(
        self,
        client: Client,
        name: str,
        terms: LeaseConfig = TERMS,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self.cut = False
        self.delay: Callable[[], bool] | None = None
        """What a renewal waits for, once."""
        self.gains = self.updates = 0
        self._client = client
        self.leases = LeaderElection(self, name, terms, structlog.get_logger(), self._gained, clock)
        self._task: asyncio.Task[None] | None = None

    def _gained(self) -> None:
        self.gains += 1

    def __getattr__(self, verb: str) -> Callable[..., Any]:
        async def ask(*args: Any, **settings: Any) -> Made:
            if self.cut:
                raise Unreachable("the line is cut")
            if verb == "update" and self.delay is not None:
                await eventually_held_once(self.delay)
                self.delay = None
            answer: Made = await getattr(self._client, verb)(*args, **settings)
            self.updates += verb == "update"
            return answer

        return ask

    def start(self) -> "Replica":
        self._task = asyncio.create_task(self.leases.run())
        return self

    async def stop(self) -> None:
        assert self._task is not None
        self._task.cancel()
        with suppress(asyncio.CancelledError):
            await self._task

    def holds(self) -> bool:
        return bool(self.leases.held)


async def eventually_held_once(condition: Callable[[], bool], *replicas: Replica) -> None:
    """Wait for a condition, and check all the time that no two replicas hold one shard."""

    def check() -> bool:
        held = [number for replica in replicas for number in replica.leases.held]
        assert len(held) == len(set(held)), "two replicas hold one shard"
        return condition()

    await eventually(check, interval=0.005)


async def test_one_leads_and_the_other_takes_over_when_it_leaves(client: Client) -> None:
    one, two = Replica(client, "one").start(), Replica(client, "two").start()
    await eventually_held_once(lambda: one.holds() or two.holds(), one, two)
    leader, other = (one, two) if one.holds() else (two, one)

    await leader.stop()
    await eventually_held_once(other.holds, one, two)

    assert other.gains == 1
    assert not leader.holds()
    await other.stop()


async def test_a_leader_that_is_cut_off_stops_before_another_replica_takes_over(client: Client) -> None:
    one, two = Replica(client, "one").start(), Replica(client, "two").start()
    await eventually_held_once(lambda: one.holds() or two.holds(), one, two)
    leader, other = (one, two) if one.holds() else (two, one)

    leader.cut = True
    await eventually_held_once(other.holds, one, two)

    leader.cut = False
    await leader.stop()
    await other.stop()


async def test_a_leader_that_was_frozen_finds_that_its_time_is_up(client: Client) -> None:
    """A process that was suspended past its lease must not write when it resumes, before any event arrives."""
    terms = LeaseConfig(lease_duration=60, renew_deadline=30, retry_period=20)
    frozen_for = [0]
    one = Replica(client, "one", terms, lambda: monotonic() + frozen_for[0]).start()
    await eventually_held_once(one.holds)

    frozen_for[0] = 30

    assert not one.holds()
    assert not one.leases.holds("anybody")
    await one.stop()


async def test_owners_are_reconciled_again_after_a_lease_lapsed_during_its_renewal(
    client: Client,
) -> None:
    """A renewal takes longer than the rest of the lease: changes in between were skipped."""
    one = Replica(client, "one").start()
    await eventually_held_once(lambda: one.gains == 1, one)

    one.delay = lambda: not one.holds()
    await eventually_held_once(lambda: one.gains == 2, one)

    await one.stop()


async def test_a_renewal_that_is_not_answered_is_tried_again(client: Client) -> None:
    """Waiting for an answer that never comes must end before another replica takes the lease."""
    one = Replica(client, "one").start()
    await eventually_held_once(lambda: one.gains == 1, one)
    lost: list[str] = []

    def never() -> bool:
        lost.append("a renewal")
        return len(lost) > 10_000

    one.delay = never
    await eventually_held_once(lambda: bool(lost), one)
    one.delay = None
    await eventually_held_once(lambda: one.updates >= 2, one)

    await one.stop()


async def test_a_lease_is_given_back_although_its_time_had_run_out(client: Client) -> None:
    one = Replica(
        client, "one", LeaseConfig(lease_duration=60, renew_deadline=0.2, retry_period=0.05)
    ).start()
    await eventually_held_once(one.holds)
    one.cut = True
    await eventually_held_once(lambda: one.leases._shards[0].renewed_at is None)

    one.cut = False
    await one.stop()

    lease = await client.get(Ref("coordination.k8s.io/v1", "Lease", "default", "lamina"))
    assert not lease["spec"].get("holderIdentity")


async def test_shards_are_spread_and_all_are_held(client: Client) -> None:
    terms = LeaseConfig(name="many", shards=6, lease_duration=1, renew_deadline=0.5, retry_period=0.05)
    one, two = Replica(client, "one", terms).start(), Replica(client, "two", terms).start()

    await eventually_held_once(lambda: len(one.leases.held) + len(two.leases.held) == 6, one, two)
    await one.stop()
    await eventually_held_once(lambda: len(two.leases.held) == 6, one, two)

    await two.stop()


def test_an_owner_has_the_same_shard_everywhere() -> None:
    assert shard_of("11111111-2222-3333-4444-555555555555", 8) == 7
    assert shard_of("anything", 1) == 0
    shares = [shard_of(str(uuid4()), 4) for _ in range(4000)]
    assert all(800 < shares.count(number) < 1200 for number in range(4))


class Late:
    """A server with one lease, whose first answer to a renewal is lost, long after the deadline."""

    def __init__(self) -> None:
        self.time, self.renewals = 100.0, 0
        self.lease: Made | None = None

    async def get(self, ref: Ref) -> Made:
        if self.lease is None:
            raise NotFound("there is none yet")
        self.time += 0.1
        return dict(self.lease)

    async def create(self, obj: Obj, *, manager: str | None = None) -> Made:
        return self._stored(obj)

    async def update(self, obj: Obj, *, manager: str | None = None) -> Made:
        self.renewals += 1
        if self.renewals == 1:
            self.time += 11.0
            raise Unreachable("no answer")
        return self._stored(obj)

    def _stored(self, obj: Obj) -> Made:
        self.lease = {**obj, "metadata": {**obj["metadata"], "resourceVersion": str(self.renewals)}}
        return dict(self.lease)


async def test_a_late_replica_does_not_wait_for_a_lease_that_it_holds_itself() -> None:
    server, gains = Late(), []
    leases = LeaderElection(
        server,
        "me",
        LeaseConfig(retry_period=0.001),
        structlog.get_logger(),
        lambda: gains.append(server.time),
        lambda: server.time,
    )
    running = asyncio.create_task(leases.run())

    await eventually_held_once(lambda: len(gains) == 2)

    running.cancel()
    with suppress(asyncio.CancelledError):
        await running
    # The lease ran out and no replica took over: it is held again after one retry, not a whole lease later.
    assert gains[1] - gains[0] < 12


class Waits:
    """A server on which another replica leads and renews, and whose first answer takes longer than a lease lasts."""

    def __init__(self) -> None:
        self.time = 100.0
        self.asked = self.taken = 0

    async def get(self, ref: Ref) -> Made:
        self.asked += 1
        self.time += 20.0 if self.asked == 1 else 0.1
        spec = {"holderIdentity": "somebody", "leaseDurationSeconds": 15, "renewTime": "then"}
        return {"metadata": {"name": ref.name, "resourceVersion": "1"}, "spec": spec}

    async def create(self, obj: Obj, *, manager: str | None = None) -> Made:
        raise AssertionError("it is there")

    async def update(self, obj: Obj, *, manager: str | None = None) -> Made:
        self.taken += 1
        return dict(obj)


async def test_a_lease_is_not_older_than_it_has_been_known() -> None:
    """However long the answer took: the leader may have renewed a moment before it came."""
    server = Waits()
    terms = LeaseConfig(retry_period=0.001)
    leases = LeaderElection(server, "me", terms, structlog.get_logger(), clock=lambda: server.time)
    running = asyncio.create_task(leases.run())

    await eventually_held_once(lambda: server.asked >= 5)

    running.cancel()
    with suppress(asyncio.CancelledError):
        await running
    assert server.taken == 0
