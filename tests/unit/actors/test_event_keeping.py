"""The time to live of events."""

from datetime import timedelta
from typing import Any

import pytest

from lamina.actors.event_ttl import EVENTS, controller, key_of, last_written
from lamina.core.model.plan import Delete
from lamina.objects import meta
from lamina.objects.times import stamp
from lamina.objects.types import Made
from lamina.simulation import SimulatedCluster, planned, settle
from lamina.simulation.cluster.kinds import EVENT, make


def event(cluster: SimulatedCluster, name: str, *, ago: timedelta = timedelta(0), **more: Any) -> Made:
    return cluster.create(make(EVENT, name, creationTimestamp=stamp(cluster.now - ago), **more))


@pytest.mark.parametrize(
    ("ago", "left"),
    [
        (timedelta(0), timedelta(hours=1)),
        (timedelta(minutes=59), timedelta(minutes=1)),
    ],
)
def test_an_event_is_looked_at_again_when_its_hour_is_over(ago: timedelta, left: timedelta) -> None:
    cluster = SimulatedCluster()
    made = event(cluster, "e", ago=ago)

    plan = planned(cluster, EVENTS, key_of(last_written(made)))

    assert (plan.actions, plan.requeue_after) == ((), left)


def test_an_event_goes_an_hour_after_it_was_written_and_only_if_it_is_still_that_one() -> None:
    cluster = SimulatedCluster()
    made = event(cluster, "e", ago=timedelta(hours=1))

    (action,) = planned(cluster, EVENTS, key_of(last_written(made))).actions

    assert action == Delete(ref=meta.ref(made), uid=meta.uid(made), version=meta.resource_version(made))


def test_an_event_that_was_counted_again_starts_its_hour_again() -> None:
    cluster = SimulatedCluster()
    counted = [{"manager": "kubelet", "time": stamp(cluster.now - timedelta(minutes=10))}]
    made = event(cluster, "e", ago=timedelta(hours=5), managedFields=counted)

    plan = planned(cluster, EVENTS, key_of(last_written(made)))

    assert (plan.actions, plan.requeue_after) == ((), timedelta(minutes=50))


def test_events_of_one_minute_are_looked_at_together_and_go_one_after_the_other() -> None:
    cluster = SimulatedCluster()
    over, due = (
        event(cluster, name, ago=timedelta(hours=1) - left)
        for name, left in (("a", timedelta(0)), ("b", timedelta(seconds=20)))
    )
    assert key_of(last_written(over)) == key_of(last_written(due))

    plan = planned(cluster, EVENTS, key_of(last_written(over)))

    assert [action.ref for action in plan.actions] == [meta.ref(over)]
    assert plan.requeue_after == timedelta(seconds=20)


def test_too_many_events_lose_their_oldest() -> None:
    cluster, events = SimulatedCluster(), controller(limit=20)
    for number in range(20):
        event(cluster, f"e{number:02}", ago=timedelta(minutes=30 - number))
    settle(cluster, events)
    assert cluster.journal == []

    event(cluster, "new")
    settle(cluster, events)

    assert sorted(meta.name(one) for one in cluster.listed(EVENT)) == [f"e{n:02}" for n in range(3, 20)] + [
        "new"
    ]


def test_of_an_event_only_who_it_is_and_when_it_was_written_is_kept() -> None:
    kept = last_written(
        {**make(EVENT, "e", creationTimestamp="2026-01-01T00:00:00Z"), "message": "long", "count": 3}
    )

    assert kept == {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": "e", "namespace": "default"},
        "lastWritten": "2026-01-01T00:00:00Z",
    }
