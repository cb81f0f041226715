"""The conditions of one object while they are written anew."""

from datetime import UTC, datetime, timedelta
from enum import StrEnum

import pytest

from lamina.core.model.condition_list import ConditionList
from lamina.objects.types import Made

NOW = datetime(2026, 1, 1, tzinfo=UTC)
OBJ: Made = {
    "metadata": {"generation": 3},
    "status": {
        "conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": "2025-01-01T00:00:00Z"}]
    },
}


def test_a_condition_is_about_the_current_generation() -> None:
    made = ConditionList(OBJ, NOW)

    made.set("Paused", "True", "Asked", "by the user")

    assert made.get("Paused") == {
        "type": "Paused",
        "status": "True",
        "reason": "Asked",
        "message": "by the user",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
        "observedGeneration": 3,
    }


def test_a_condition_stays_in_its_place_and_the_object_as_it_was() -> None:
    made = ConditionList(OBJ, NOW)

    made.set("Paused", "True", "Asked")
    made.set("Ready", "False", "Broken")

    assert [(one["type"], one["status"]) for one in made.found] == [("Ready", "False"), ("Paused", "True")]
    assert OBJ["status"]["conditions"][0]["status"] == "True"


def test_conditions_are_removed_by_name() -> None:
    made = ConditionList(OBJ, NOW)

    made.remove("Absent", "Ready")

    assert made.found == []
    assert made.get("Ready") is None


@pytest.mark.parametrize(("name", "holds"), [("Ready", True), ("Paused", False)])
def test_only_a_condition_that_is_there_and_true_holds(name: str, holds: bool) -> None:
    assert ConditionList(OBJ, NOW).is_true(name) == holds


def test_a_message_is_as_long_as_the_schema_of_conditions_allows() -> None:
    made = ConditionList({}, NOW)

    made.set("A", "True", "Long", "x" * 40000)
    made.set("B", "True", "Short", "x" * 32768)

    first, second = (one["message"] for one in made.found)
    assert len(first) == len(second) == 32768
    assert first.endswith("...")
    assert second.endswith("x")


def test_a_condition_is_there_only_while_it_holds() -> None:
    made = ConditionList(OBJ, NOW)

    made.set_while(True, "Paused", "by the user")
    paused = made.get("Paused")
    made.set_while(False, "Paused", "by the user")

    assert paused is not None
    assert (paused["status"], paused["reason"], paused["message"]) == ("True", "Paused", "by the user")
    assert made.get("Paused") is None


@pytest.mark.parametrize(
    ("name", "delay", "left"),
    [
        ("Ready", timedelta(days=366), timedelta(days=1)),
        ("Ready", timedelta(days=365), None),
        ("Ready", timedelta(0), None),
        ("Absent", timedelta(days=366), None),
    ],
)
def test_the_time_that_a_condition_has_still_to_stay(
    name: str, delay: timedelta, left: timedelta | None
) -> None:
    assert ConditionList(OBJ, NOW).time_left(name, delay) == left


def test_a_condition_that_was_just_set_has_all_of_its_time_left() -> None:
    made = ConditionList(OBJ, NOW)

    made.set("Paused", "True", "Asked")

    assert made.time_left("Paused", timedelta(seconds=5)) == timedelta(seconds=5)


def test_a_reason_of_an_enumeration_becomes_a_plain_string() -> None:
    class Reason(StrEnum):
        BROKEN = "Broken"

    made = ConditionList(OBJ, NOW)

    made.set("Ready", "False", Reason.BROKEN)

    assert type(made.found[0]["reason"]) is str
