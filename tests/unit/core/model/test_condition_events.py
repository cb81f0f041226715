"""A status and the events of its transitions, written together."""

from datetime import UTC, datetime
from typing import Any

import pytest

from lamina.core.model.condition_events import ConditionEvents
from lamina.core.model.plan import Action, Emit, Patch, Stage, in_stages
from lamina.objects.types import Made

NOW = datetime(2026, 1, 1, tzinfo=UTC)
EVENTS = ConditionEvents(
    by="ex",
    warnings=("Broken",),
    messages={"Archived": "nothing is left"},
    ends={"Paused": ("Resumed", "it goes on")},
    final="Archived",
    is_silent=lambda one: "/" in one["type"],
)


def condition(name: str, status: str = "True", reason: str = "Fine", message: str = "so") -> Made:
    return {"type": name, "status": status, "reason": reason, "message": message}


def obj(*found: Made, **status: Any) -> Made:
    return {
        "apiVersion": "ex.com/v1",
        "kind": "Stack",
        "metadata": {"name": "web", "namespace": "team", "uid": "u", "resourceVersion": "7"},
        "status": {"conditions": [*found], **status},
    }


def report(before: Made, *after: Made, **status: Any) -> tuple[Action, ...]:
    return EVENTS.report(before, {"conditions": [*after], **status}, NOW)


def events(before: Made, *after: Made) -> list[tuple[str, str, str]]:
    """Return the type, the reason and the message of each event."""
    emitted = [one for one in report(before, *after) if isinstance(one, Emit)]
    return [(one.event["type"], one.event["reason"], one.event["message"]) for one in emitted]


def test_a_status_that_is_as_it_was_is_not_written() -> None:
    assert report(obj(condition("Ready")), condition("Ready")) == ()


def test_a_status_is_written_before_its_events() -> None:
    written = report(obj(), condition("Ready"))

    assert [type(one) for one in written] == [Patch, Emit]
    assert isinstance(written[0], Patch)
    assert written[0].subresource == "status"


def test_empty_fields_are_left_out() -> None:
    assert report(obj(condition("Ready")), condition("Ready"), names=[], count=None, hash="") == ()
    assert len(report(obj(condition("Ready")), condition("Ready"), count=0)) == 1


@pytest.mark.parametrize(
    ("after", "found"),
    [
        (condition("Ready"), []),
        (condition("Ready", message="other words"), []),
        (condition("Ready", "False"), [("Normal", "Fine", "so")]),
        (condition("Ready", reason="Other"), [("Normal", "Other", "so")]),
        (condition("Ready", "False", "Broken"), [("Warning", "Broken", "so")]),
        (condition("ex.com/Copied"), []),
    ],
)
def test_a_transition_is_another_status_or_reason(after: Made, found: list[tuple[str, str, str]]) -> None:
    assert events(obj(condition("Ready")), after) == found


def test_a_condition_without_a_message_has_one_as_an_event() -> None:
    assert events(obj(), condition("Archived", reason="Archived", message="")) == [
        ("Normal", "Archived", "nothing is left")
    ]


def test_the_end_of_a_condition_is_an_event() -> None:
    assert events(obj(condition("Paused")), condition("Ready")) == [
        ("Normal", "Fine", "so"),
        ("Normal", "Resumed", "it goes on"),
    ]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (condition("Paused", "Unknown"), condition("Ready")),
        (condition("Paused"), condition("Archived")),
        (condition("Paused"), condition("Paused", "Unknown")),
        (condition("Other"), condition("Ready")),
    ],
    ids=["it was not true", "the final one replaces it", "it is still there", "its end says nothing"],
)
def test_the_end_of_a_condition_is_no_event_where(before: Made, after: Made) -> None:
    assert "Resumed" not in [reason for _, reason, _ in events(obj(before), after)]


def test_events_of_the_same_transition_at_another_version_are_others() -> None:
    first, second = (
        EVENTS.report({**obj(), "metadata": {**obj()["metadata"], "resourceVersion": version}}, status, NOW)[
            1
        ]
        for version, status in (
            ("7", {"conditions": [condition("Ready")]}),
            ("8", {"conditions": [condition("Ready")]}),
        )
    )

    assert isinstance(first, Emit)
    assert isinstance(second, Emit)
    assert first.event["metadata"]["name"] != second.event["metadata"]["name"]
    assert first.event["source"] == {"component": "ex"}


def test_stages_without_actions_are_left_out_of_a_plan() -> None:
    actions = report(obj(), condition("Ready"))

    plan = in_stages([Stage("nothing", ()), Stage("report", actions)], because="so")

    assert [one.name for one in plan.stages] == ["report"]
    assert plan.because == "so"
    assert in_stages([], because="nothing").stages == ()
