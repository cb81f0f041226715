"""Which replica works for whom."""

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
from lamina.runtime.leases import Leases, Terms, shard_of
from tests.runtime.cluster import embedded

TERMS = Terms(lasts=1, deadline=0.5, retry=0.05)


@pytest.fixture
async def client() -> AsyncIterator[Client]:
    async with embedded() as app:
        assert isinstance(app, App)
        yield app.client()


class Replica:
    """One process among several, whose way to the server can be cut."""

    def __init__(self, client: Client, name: str, terms: Terms = TERMS) -> None:
        self.cut = False
        self.delay: Callable[[], bool] | None = None
        """What a renewal waits for, once."""
        self.gains = self.updates = 0
        self._client = client
        self.leases = Leases(self, name, terms, structlog.get_logger(), self._gained)
        self._task: asyncio.Task[None] | None = None

    def _gained(self) -> None:
        self.gains += 1

    def __getattr__(self, verb: str) -> Callable[..., Any]:
        async def ask(*args: Any, **settings: Any) -> Made:
            if self.cut:
                raise Unreachable("the line is cut")
            if verb == "update" and self.delay is not None:
                await until(self.delay)
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


async def until(is_so: Callable[[], bool], *replicas: Replica) -> None:
    """Wait, and see to it that no two replicas ever hold one shard."""
    async with asyncio.timeout(60):
        while not is_so():
            held = [number for replica in replicas for number in replica.leases.held]
            assert len(held) == len(set(held)), "two replicas hold one shard"
            await asyncio.sleep(0.005)


async def test_one_leads_and_the_other_takes_over_when_it_leaves(client: Client) -> None:
    one, two = Replica(client, "one").start(), Replica(client, "two").start()
    await until(lambda: one.holds() or two.holds(), one, two)
    leader, other = (one, two) if one.holds() else (two, one)

    await leader.stop()
    await until(other.holds, one, two)

    assert other.gains == 1
    assert not leader.holds()
    await other.stop()


async def test_a_leader_that_is_cut_off_stops_before_anybody_takes_over(client: Client) -> None:
    one, two = Replica(client, "one").start(), Replica(client, "two").start()
    await until(lambda: one.holds() or two.holds(), one, two)
    leader, other = (one, two) if one.holds() else (two, one)

    leader.cut = True
    await until(other.holds, one, two)

    leader.cut = False
    await leader.stop()
    await other.stop()


async def test_a_leader_that_was_frozen_finds_that_its_time_is_up(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process that sleeps past its lease must not write on waking, before it has heard any news."""
    one = Replica(client, "one", Terms(lasts=60, deadline=30, retry=20)).start()
    await until(one.holds)

    monkeypatch.setattr("lamina.runtime.leases.monotonic", lambda: monotonic() + 30)

    assert not one.holds()
    assert not one.leases.holds("anybody")
    await one.stop()


async def test_owners_that_nobody_had_while_a_lease_was_being_renewed_are_looked_at_again(
    client: Client,
) -> None:
    """A renewal takes longer than what is left of the lease: what happened in between was passed over."""
    one = Replica(client, "one").start()
    await until(lambda: one.gains == 1, one)

    one.delay = lambda: not one.holds()
    await until(lambda: one.gains == 2, one)

    await one.stop()


async def test_a_renewal_that_is_not_answered_is_tried_again(client: Client) -> None:
    """An answer that never comes must not be waited for until the lease is somebody else's."""
    one = Replica(client, "one").start()
    await until(lambda: one.gains == 1, one)
    lost: list[str] = []

    def never() -> bool:
        lost.append("a renewal")
        return len(lost) > 10_000

    one.delay = never
    await until(lambda: bool(lost), one)
    one.delay = None
    await until(lambda: one.updates >= 2, one)

    await one.stop()


async def test_a_lease_is_given_back_although_its_time_had_run_out(client: Client) -> None:
    one = Replica(client, "one", Terms(lasts=60, deadline=0.2, retry=0.05)).start()
    await until(one.holds)
    one.cut = True
    await until(lambda: one.leases._shards[0].renewed_at is None)

    one.cut = False
    await one.stop()

    lease = await client.get(Ref("coordination.k8s.io/v1", "Lease", "default", "lamina"))
    assert not lease["spec"].get("holderIdentity")


async def test_shards_are_spread_and_all_are_held(client: Client) -> None:
    terms = Terms(name="many", shards=6, lasts=1, deadline=0.5, retry=0.05)
    one, two = Replica(client, "one", terms).start(), Replica(client, "two", terms).start()

    await until(lambda: len(one.leases.held) + len(two.leases.held) == 6, one, two)
    await one.stop()
    await until(lambda: len(two.leases.held) == 6, one, two)

    await two.stop()


def test_an_owner_has_the_same_shard_everywhere() -> None:
    assert shard_of("11111111-2222-3333-4444-555555555555", 8) == 7
    assert shard_of("anything", 1) == 0
    shares = [shard_of(str(uuid4()), 4) for _ in range(4000)]
    assert all(800 < shares.count(number) < 1200 for number in range(4))


class Late:
    """A server with one lease, whose first answer to a renewal comes to nobody, long after the deadline."""

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


async def test_who_was_late_does_not_wait_for_a_lease_that_has_its_own_name_on_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    server, gains = Late(), []
    monkeypatch.setattr("lamina.runtime.leases.monotonic", lambda: server.time)
    leases = Leases(
        server, "me", Terms(retry=0.001), structlog.get_logger(), lambda: gains.append(server.time)
    )
    running = asyncio.create_task(leases.run())

    await until(lambda: len(gains) == 2)

    running.cancel()
    with suppress(asyncio.CancelledError):
        await running
    # Its time ran out, and nobody took over: a try later it is back, and not a whole lease.
    assert gains[1] - gains[0] < 12


class Waits:
    """A server on which somebody else leads and renews, and whose first answer takes longer than a lease lasts."""

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


async def test_a_lease_is_not_older_than_it_has_been_known(monkeypatch: pytest.MonkeyPatch) -> None:
    """However long the answer took: whoever leads may have renewed a moment before it came."""
    server = Waits()
    monkeypatch.setattr("lamina.runtime.leases.monotonic", lambda: server.time)
    leases = Leases(server, "me", Terms(retry=0.001), structlog.get_logger())
    running = asyncio.create_task(leases.run())

    await until(lambda: server.asked >= 5)

    running.cancel()
    with suppress(asyncio.CancelledError):
        await running
    assert server.taken == 0
