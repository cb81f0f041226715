"""A family and its original never work at the same time: the original's Lease decides which of them does."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
import structlog
from structlog.testing import capture_logs

from lamina.client.client import Client
from lamina.core.model.upstream_lease import UpstreamLease
from lamina.errors import Forbidden, Unreachable
from lamina.objects.types import Made, Ref
from lamina.runtime.controller.leader_election import LeaderElection
from lamina.runtime.controller.leader_election_lock import LeaseConfig
from lamina.runtime.controller.leader_election_upstream import UpstreamLeases
from lamina.testing.waiting import eventually
from tests.runtime.cluster import embedded

CONFIG = LeaseConfig(namespace="default", name="lamina", retry_period=0.01)
LEASE = UpstreamLease(upstream="Metacontroller", namespace="default", name="metacontroller")
REF = Ref("coordination.k8s.io/v1", "Lease", "default", "metacontroller")


class Wound:
    """A clock that stands still until it is wound."""

    def __init__(self) -> None:
        self.time = 100.0

    def __call__(self) -> float:
        return self.time


class Line:
    """The way of one replica to the server: it may be cut, or every request refused."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self.trouble: Exception | None = None
        self.requests: list[str] = []

    def __getattr__(self, verb: str) -> Callable[..., Any]:
        async def ask(*args: Any, **settings: Any) -> Made:
            if self.trouble is not None:
                raise self.trouble
            answer: Made = await getattr(self._client, verb)(*args, **settings)
            # The line may have been cut meanwhile.
            if self.trouble is not None:
                raise self.trouble
            self.requests.append(verb)
            return answer

        return ask


class Original:
    """An original's process, as far as its Lease shows it."""

    def __init__(self, client: Client, identity: str = "metacontroller-0_1234") -> None:
        self._client, self._identity, self.renewals = client, identity, 0

    def _spec(self, identity: str) -> Made:
        self.renewals += 1
        time = f"2026-01-01T00:00:00.{self.renewals:06d}Z"
        return {"holderIdentity": identity, "leaseDurationSeconds": 15, "renewTime": time}

    async def take(self) -> None:
        """Create the Lease as its holder."""
        metadata = {"name": REF.name, "namespace": REF.namespace}
        await self._client.create(
            {
                "apiVersion": REF.api_version,
                "kind": "Lease",
                "metadata": metadata,
                "spec": self._spec(self._identity),
            }
        )

    async def seize(self) -> None:
        """Write itself into the Lease, as if the time of its holder had run out."""
        await self._client.patch(REF, {"spec": self._spec(self._identity)})

    async def release(self) -> None:
        await self._client.patch(REF, {"spec": self._spec("")})


@pytest.fixture
async def client() -> AsyncIterator[Client]:
    async with embedded() as app:
        yield app.client()


@asynccontextmanager
async def holding(
    client: Any,
    clock: Callable[[], float],
    *,
    own: LeaderElection | None = None,
    lease: UpstreamLease = LEASE,
    config: LeaseConfig = CONFIG,
) -> AsyncIterator[UpstreamLeases]:
    """Run the Leases of a family's original, and those of the deployment, until the end of the block."""
    leases = {"metacontroller": (lease,), "objectset": ()}
    upstream = UpstreamLeases(client, config.deployment, leases, config, structlog.get_logger(), own, clock)
    tasks = [asyncio.create_task(one.run()) for one in (upstream, own) if one is not None]
    try:
        yield upstream
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def elected(
    client: Any, name: str, clock: Callable[[], float], config: LeaseConfig = CONFIG
) -> LeaderElection:
    return LeaderElection(client, name, config, structlog.get_logger(), clock=clock)


async def holder(client: Client) -> str:
    lease = await client.get(REF)
    return str(lease["spec"].get("holderIdentity") or "")


async def test_a_family_waits_while_its_original_leads_and_says_so_once(client: Client) -> None:
    original, line = Original(client), Line(client)
    await original.take()
    with capture_logs() as said:
        async with holding(line, Wound()) as upstream:
            await eventually(lambda: len(line.requests) >= 10)
            assert not upstream.holds("metacontroller")
            assert not upstream.leadership("metacontroller").holds("some uid")
            assert upstream.holds("objectset"), "another family does not wait"

            await original.release()
            await eventually(lambda: upstream.leadership("metacontroller").holds("some uid"))
            assert await holder(client) == "default/lamina (lamina)"

    waiting = [one for one in said if one["event"] == "waiting for upstream lease"]
    assert [(one["log_level"], one["lease"], one["because"]) for one in waiting] == [
        ("warning", str(REF), "metacontroller-0_1234 holds it, and works as Metacontroller")
    ]
    assert [one["event"] for one in said][-1] == "Successfully acquired upstream lease"


async def test_a_lease_of_an_original_that_died_is_taken_when_its_time_is_over(client: Client) -> None:
    clock, line = Wound(), Line(client)
    await Original(client).take()
    async with holding(line, clock) as upstream:
        await eventually(lambda: len(line.requests) >= 4)
        clock.time += 14.9
        seen = len(line.requests)
        await eventually(lambda: len(line.requests) >= seen + 4)
        assert not upstream.holds("metacontroller")

        clock.time += 0.1
        await eventually(lambda: upstream.holds("metacontroller"))


async def test_a_family_stops_before_its_original_may_take_over(client: Client) -> None:
    clock, line = Wound(), Line(client)
    gained: list[float] = []
    with capture_logs() as said:
        async with holding(line, clock) as upstream:
            upstream.on_started_leading = lambda: gained.append(clock.time)
            await eventually(lambda: upstream.holds("metacontroller"))
            line.trouble = Unreachable("the line is cut")
            clock.time += CONFIG.renew_deadline

            assert not upstream.holds("metacontroller")
            assert CONFIG.renew_deadline < CONFIG.lease_duration
            await eventually(lambda: any(one["event"] == "upstream lease lost" for one in said))
            line.trouble = None
            await eventually(lambda: len(gained) == 2)

    assert [one["because"] for one in said if one["event"] == "upstream lease lost"] == ["the line is cut"]


async def test_a_lease_that_the_original_took_stops_the_family_at_the_next_renewal(client: Client) -> None:
    async with holding(client, Wound()) as upstream:
        await eventually(lambda: upstream.holds("metacontroller"))

        await Original(client).seize()

        await eventually(lambda: not upstream.holds("metacontroller"))
        assert await holder(client) == "metacontroller-0_1234"


async def test_replicas_and_shards_of_one_deployment_hold_it_together(client: Client) -> None:
    clock, config = Wound(), LeaseConfig(shards=2, retry_period=0.01)
    one, two = elected(client, "one", clock, config), elected(client, "two", clock, config)
    async with (
        holding(client, clock, own=one, config=config) as first,
        holding(client, clock, own=two, config=config) as second,
    ):
        await eventually(lambda: len(one.held) + len(two.held) == 2)
        await eventually(lambda: first.holds("metacontroller") == bool(one.held))
        await eventually(lambda: second.holds("metacontroller") == bool(two.held))
        assert await holder(client) == "default/lamina (lamina)"


async def test_a_replica_that_does_not_lead_leaves_the_lease_alone_and_takes_it_when_it_leads(
    client: Client,
) -> None:
    clock, line = Wound(), Line(client)
    leader = elected(client, "leader", clock)
    leading = asyncio.create_task(leader.run())
    await eventually(lambda: bool(leader.held))
    waiting = elected(line, "waiting", clock)
    async with holding(line, clock, own=waiting) as upstream:
        await eventually(lambda: len(line.requests) >= 4)
        assert not upstream.holds("metacontroller")
        assert not set(line.requests) - {"get"}

        leading.cancel()
        await asyncio.gather(leading, return_exceptions=True)

        await eventually(lambda: upstream.leadership("metacontroller").holds("some uid"))


async def test_another_deployment_waits_as_for_the_original(client: Client) -> None:
    line = Line(client)
    other = LeaseConfig(namespace="default", name="other", retry_period=0.01)
    async with holding(client, Wound()) as first:
        await eventually(lambda: first.holds("metacontroller"))
        async with holding(line, Wound(), config=other) as second:
            await eventually(lambda: len(line.requests) >= 6)
            assert not second.holds("metacontroller")


async def test_a_deployment_whose_own_lease_is_that_of_the_original_does_not_wait_for_itself(
    client: Client,
) -> None:
    clock, config = Wound(), LeaseConfig(namespace="default", name="metacontroller", retry_period=0.01)
    own = elected(client, "one", clock, config)
    async with holding(client, clock, own=own, config=config) as upstream:
        await eventually(lambda: upstream.leadership("metacontroller").holds("some uid"))
        assert await holder(client) == "one"


async def test_without_the_namespace_of_the_original_a_family_runs_until_it_is_there(client: Client) -> None:
    lease = UpstreamLease(upstream="kro", namespace="kro-system", name="metacontroller")
    line = Line(client)
    with capture_logs() as said:
        async with holding(line, Wound(), lease=lease) as upstream:
            await eventually(lambda: upstream.holds("metacontroller"))

            await client.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "kro-system"}})

            await eventually(lambda: "create" in line.requests)
            assert upstream.holds("metacontroller")

    assert [one["event"] for one in said] == [
        "upstream lease not needed",
        "Successfully acquired upstream lease",
    ]
    assert said[0]["because"] == "the namespace kro-system does not exist, so kro does not run there"


async def test_a_family_works_on_while_the_namespace_of_its_original_is_being_deleted(client: Client) -> None:
    lease = UpstreamLease(upstream="kro", namespace="kro-system", name="metacontroller")
    held: Made = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "held", "namespace": "kro-system"},
    }
    held["metadata"]["finalizers"] = ["example.com/held"]
    namespace = Ref("v1", "Namespace", "", "kro-system")
    await client.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "kro-system"}})
    await client.create(held)
    clock, line = Wound(), Line(client)
    with capture_logs() as said:
        async with holding(line, clock, lease=lease) as upstream:
            await eventually(lambda: upstream.holds("metacontroller"))

            await client.delete(namespace)
            await client.delete(REF._replace(namespace="kro-system"))

            await eventually(lambda: len(said) == 2)
            for wound in (1, 2):
                clock.time += CONFIG.renew_deadline - 1
                line.requests.clear()
                await eventually(lambda: len(line.requests) >= 2)
                assert upstream.holds("metacontroller"), wound

    assert [one["event"] for one in said] == [
        "Successfully acquired upstream lease",
        "upstream lease not needed",
    ]
    assert said[1]["because"] == (
        "the namespace kro-system is being deleted and has no Lease, so kro does not run there"
    )


async def test_a_family_that_may_not_read_the_lease_waits_and_says_what_helps(client: Client) -> None:
    line = Line(client)
    line.trouble = Forbidden("leases.coordination.k8s.io is forbidden")
    with capture_logs() as said:
        async with holding(line, Wound()) as upstream:
            await eventually(lambda: bool(said))
            assert not upstream.holds("metacontroller")

    assert "grant the right with `lamina rbac`, or run with --no-upstream-lease" in said[0]["because"]
