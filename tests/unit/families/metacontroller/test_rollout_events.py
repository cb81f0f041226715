"""A change of the condition Updated is an event, and so is the progress of a rollout, in quarters."""

from datetime import UTC, datetime

import pytest

from lamina.core.rollout.step import Standing, Step
from lamina.families.metacontroller.sync.rollout import Rollout, rollout_events
from lamina.objects.types import Condition, Made

NOW = datetime(2026, 1, 1, tzinfo=UTC)
LATEST, MOVING, WAITING, STALLED = (
    "OnLatestRevision",
    "RolloutProgressing",
    "RolloutWaiting",
    "RolloutStalled",
)


def updated(reason: str) -> Condition:
    return Condition(
        type="Updated", status=str(reason == LATEST), reason=reason, message=f"message of {reason}"
    )


def rollout(reason: str, total: int = 2, had: int = 0, moved: int = 1, held: int = 0) -> Rollout:
    """A step of a rollout to which `had` of all children had come, and that moves some more."""
    standing = {
        f"Pod {place}": Standing.SETTLED if place < had else Standing.WAITING for place in range(total)
    } | {f"Pod held {place}": Standing.HELD for place in range(held)}
    move = tuple(f"Pod {place}" for place in range(had, had + moved)) if reason == MOVING else ()
    step = Step(because="", move=move, standing=standing)
    return Rollout(stages=(), children=(), waiting=frozenset(), condition=updated(reason), step=step)


def parent(reason: str) -> Made:
    conditions = [updated(reason)] if reason else []
    metadata = {"name": "cats", "namespace": "default", "uid": "u", "generation": 3}
    return {"apiVersion": "v1", "kind": "CatSet", "metadata": metadata, "status": {"conditions": conditions}}


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ("",      LATEST,  None),
        (LATEST,  LATEST,  None),
        (WAITING, LATEST,  ("Normal", "RolloutComplete")),
        (LATEST,  MOVING,  ("Normal", MOVING)),
        (MOVING,  MOVING,  ("Normal", MOVING)),
        (MOVING,  WAITING, None),
        (WAITING, STALLED, ("Warning", STALLED)),
        ("",      STALLED, ("Warning", STALLED)),
        (STALLED, STALLED, None),
        (MOVING,  "RolloutPaused", None),
    ],
)  # fmt: skip
def test_a_rollout_that_moves_stalls_or_is_complete_is_an_event(
    before: str, after: str, expected: tuple[str, str] | None
) -> None:
    found = [emit.event for emit in rollout_events(parent(before), rollout(after), NOW)]

    assert [(one["type"], one["reason"]) for one in found] == ([expected] if expected else [])
    shown = f"message of {after} (1 of 2)" if after == MOVING else f"message of {after}"
    assert all(one["message"] == shown for one in found)


@pytest.mark.parametrize(
    ("total", "at_once", "reported"),
    [
        (40, 1, ["1 of 40", "10 of 40", "20 of 40", "30 of 40", "40 of 40"]),
        (40, 15, ["15 of 40", "30 of 40", "40 of 40"]),
        (3, 1, ["1 of 3", "2 of 3", "3 of 3"]),
        (1, 1, ["1 of 1"]),
    ],
)
def test_the_progress_of_a_rollout_is_reported_in_quarters(
    total: int, at_once: int, reported: list[str]
) -> None:
    shown = [
        emit.event["message"]
        for had in range(0, total, at_once)
        for emit in rollout_events(
            parent(WAITING if had else LATEST), rollout(MOVING, total, had, min(at_once, total - had)), NOW
        )
    ]

    assert shown == [f"message of {MOVING} ({one})" for one in reported]


def test_the_first_step_to_a_revision_is_reported_whatever_is_on_it_already() -> None:
    edited = {**parent(WAITING), "status": {**parent(WAITING)["status"], "observedGeneration": 2}}

    (told,) = rollout_events(edited, rollout(MOVING, 40, 15, 1), NOW)

    assert told.event["message"] == f"message of {MOVING} (16 of 40)"


def test_children_that_are_held_back_are_no_part_of_the_progress() -> None:
    moving = rollout(MOVING, 4, 2, 2, held=36)

    (told,) = rollout_events(parent(WAITING), moving, NOW)

    assert told.event["message"] == f"message of {MOVING} (4 of 4)"
