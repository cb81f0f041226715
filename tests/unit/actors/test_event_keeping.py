"""How long events are kept."""

from datetime import timedelta
from typing import Any

import pytest

from lamina.actors import events
from lamina.actors.events import EVENTS, last_written, moment_of
from lamina.core.plan import Delete
from lamina.objects import meta
from lamina.objects.times import stamp
from lamina.objects.types import Made
from lamina.paper import Paper, planned, settle
from lamina.paper.kinds import EVENT, make


def event(paper: Paper, name: str, *, ago: timedelta = timedelta(0), **more: Any) -> Made:
    return paper.create(make(EVENT, name, creationTimestamp=stamp(paper.now - ago), **more))


@pytest.mark.parametrize(
    ("ago", "left"),
    [
        (timedelta(0), timedelta(hours=1)),
        (timedelta(minutes=59), timedelta(minutes=1)),
    ],
)
def test_an_event_is_looked_at_again_when_its_hour_is_over(ago: timedelta, left: timedelta) -> None:
    paper = Paper()
    made = event(paper, "e", ago=ago)

    plan = planned(paper, EVENTS, moment_of(last_written(made)))

    assert (plan.actions, plan.look_again) == ((), left)


def test_an_event_goes_an_hour_after_it_was_written_and_only_if_it_is_still_that_one() -> None:
    paper = Paper()
    made = event(paper, "e", ago=timedelta(hours=1))

    (deed,) = planned(paper, EVENTS, moment_of(last_written(made))).actions

    assert deed == Delete(ref=meta.ref(made), uid=meta.uid(made), version=meta.resource_version(made))


def test_an_event_that_was_counted_again_starts_its_hour_again() -> None:
    paper = Paper()
    counted = [{"manager": "kubelet", "time": stamp(paper.now - timedelta(minutes=10))}]
    made = event(paper, "e", ago=timedelta(hours=5), managedFields=counted)

    plan = planned(paper, EVENTS, moment_of(last_written(made)))

    assert (plan.actions, plan.look_again) == ((), timedelta(minutes=50))


def test_events_of_one_minute_are_looked_at_together_and_go_one_after_the_other() -> None:
    paper = Paper()
    over, due = (
        event(paper, name, ago=timedelta(hours=1) - left)
        for name, left in (("a", timedelta(0)), ("b", timedelta(seconds=20)))
    )
    assert moment_of(last_written(over)) == moment_of(last_written(due))

    plan = planned(paper, EVENTS, moment_of(last_written(over)))

    assert [deed.ref for deed in plan.actions] == [meta.ref(over)]
    assert plan.look_again == timedelta(seconds=20)


def test_too_many_events_lose_their_oldest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events, "KEPT", 20)
    paper = Paper()
    for number in range(20):
        event(paper, f"e{number:02}", ago=timedelta(minutes=30 - number))
    settle(paper, EVENTS)
    assert paper.journal == []

    event(paper, "new")
    settle(paper, EVENTS)

    assert sorted(meta.name(one) for one in paper.listed(EVENT)) == [f"e{n:02}" for n in range(3, 20)] + [
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
