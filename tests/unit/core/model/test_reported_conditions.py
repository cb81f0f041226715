"""Rules of states that are about conditions."""

import pytest

from lamina.core.model.reported_conditions import (
    DELETING,
    OUTDATED,
    UNREPORTED,
    ReportedConditions,
    message,
    reports,
)
from lamina.core.model.state import State, decide
from lamina.objects.types import Condition, Made

RULES = (
    DELETING,
    UNREPORTED,
    OUTDATED,
    reports(State.DEGRADED, "Ready", "False", "Broken", "Refused"),
    reports(State.PROGRESSING, "Ready", "False"),
    reports(State.HEALTHY, "Ready", "True"),
)


def obj(*found: Condition, deleting: bool = False) -> Made:
    metadata = {"generation": 2, **({"deletionTimestamp": "2026-01-01T00:00:00Z"} if deleting else {})}
    return {"metadata": metadata, "status": {"conditions": [*found]}}


def ready(status: str, reason: str = "", generation: int = 2) -> Condition:
    return {"type": "Ready", "status": status, "reason": reason, "observedGeneration": generation}


@pytest.mark.parametrize(
    ("found", "state"),
    [
        (obj(), State.UNKNOWN),
        (obj(deleting=True), State.DELETING),
        (obj(ready("True"), deleting=True), State.DELETING),
        (obj(ready("True", generation=1)), State.PENDING),
        (obj(ready("True")), State.HEALTHY),
        (obj(ready("False")), State.PROGRESSING),
        (obj(ready("False", "Other")), State.PROGRESSING),
        (obj(ready("False", "Broken")), State.DEGRADED),
        (obj(ready("False", "Refused")), State.DEGRADED),
        (obj(ready("Unknown")), State.UNKNOWN),
    ],
)
def test_the_first_rule_that_holds_decides(found: Made, state: State) -> None:
    assert decide(RULES, ReportedConditions(found)) is state


def test_one_condition_about_the_current_generation_is_enough() -> None:
    other: Condition = {"type": "Other", "status": "True", "observedGeneration": 1}

    assert ReportedConditions(obj(other, ready("True"))).is_current
    assert not ReportedConditions(obj(other)).is_current


def test_a_rule_says_what_it_is_about() -> None:
    assert reports(State.HEALTHY, "Ready", "True").upstream == "Ready is True"
    assert RULES[3].upstream == "Ready is False, reason Broken or Refused"


def test_a_condition_is_found_by_its_type() -> None:
    assert ReportedConditions(obj(ready("True"))).get("Ready") == ready("True")
    assert ReportedConditions(obj(ready("True"))).get("Other") is None


@pytest.mark.parametrize(
    ("state", "found", "words"),
    [
        (State.UNKNOWN, obj(), "its controller has not reported a status yet"),
        (
            State.PENDING,
            obj(ready("True", generation=1)),
            "its controller has not observed the latest spec yet",
        ),
        (State.DELETING, obj(deleting=True), "is being deleted"),
        (State.DELETING, obj({"type": "Ready", "status": "False", "message": "no"}), "no"),
        (State.HEALTHY, obj({"type": "Ready", "status": "True", "message": "yes"}), "yes"),
        (State.HEALTHY, obj({"type": "Ready", "status": "True"}), ""),
        (State.HEALTHY, obj(), ""),
    ],
)
def test_a_state_has_a_message(state: State, found: Made, words: str) -> None:
    assert message(found, state, ("Absent", "Ready")) == words
