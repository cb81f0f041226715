"""Where one cluster is on its way, from what its agent says."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from lamina.families.manifestwork.hub.work import read_work
from lamina.families.manifestwork.hub.work_status import RolloutState, rollout_status
from lamina.families.manifestwork.labels import DISPATCHED
from lamina.objects.times import stamp
from lamina.objects.types import Made

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
T, F, U = "True", "False", "Unknown"
TO_APPLY, PROGRESSING, FAILED, SUCCEEDED = RolloutState
G = 7
"""The generation of every work here; conditions are about it unless they say otherwise."""


def ago(seconds: int) -> datetime:
    return NOW - timedelta(seconds=seconds)


def work(dispatched: datetime | None = None, **said: Any) -> Made:
    """A work whose agent says these conditions: a status, or a status with a generation and an age in seconds."""
    conditions = []
    for name, value in said.items():
        if value is None:
            continue
        status, generation, age = value if isinstance(value, tuple) else (value, G, 60)
        conditions.append(
            {
                "type": name,
                "status": status,
                "observedGeneration": generation,
                "lastTransitionTime": stamp(ago(age)),
                "reason": "Said",
                "message": "",
            }
        )
    annotations = {DISPATCHED: stamp(dispatched)} if dispatched is not None else {}
    return {
        "apiVersion": "work.open-cluster-management.io/v1",
        "kind": "ManifestWork",
        "metadata": {"name": "w", "namespace": "c1", "generation": G, "annotations": annotations},
        "spec": {},
        "status": {"conditions": conditions},
    }


def state(obj: Made, *, rule: bool = True) -> tuple[RolloutState, datetime | None]:
    found = rollout_status(read_work(obj), reports_progress=rule, now=NOW)
    return found.state, found.since


@pytest.mark.parametrize(
    ("applied",    "progressing",  "degraded",    "expected"),
    [
        (None,         None,           None,          TO_APPLY),
        ((T, 6, 9),    T,              None,          TO_APPLY),
        (F,            T,              None,          TO_APPLY),
        (U,            F,              None,          TO_APPLY),
        (T,            None,           None,          TO_APPLY),
        (T,            (F, 6, 9),      None,          TO_APPLY),
        (T,            T,              (F, 6, 9),     TO_APPLY),
        (T,            F,              (T, 6, 9),     TO_APPLY),
        (T,            T,              T,             FAILED),
        (T,            T,              F,             PROGRESSING),
        (T,            T,              None,          PROGRESSING),
        (T,            F,              None,          SUCCEEDED),
        (T,            F,              F,             SUCCEEDED),
        (T,            F,              U,             SUCCEEDED),
        (T,            U,              F,             PROGRESSING),
        # A failure is one however it comes.
        (T,            F,              T,             FAILED),
        (T,            U,              T,             FAILED),
    ],
)  # fmt: skip
def test_the_first_rule_that_holds_decides(
    applied: Any, progressing: Any, degraded: Any, expected: RolloutState
) -> None:
    said = {"Applied": applied, "Progressing": progressing, "Degraded": degraded}

    assert state(work(**said))[0] is expected
    if expected is TO_APPLY:
        # Sent at a known time, it has only so long.
        assert state(work(ago(30), **said)) == (PROGRESSING, ago(30))


def test_available_never_matters_where_there_is_a_rule() -> None:
    assert state(work(Applied=T, Progressing=F, Available=F))[0] is SUCCEEDED
    assert state(work(Applied=T, Progressing=T, Available=T))[0] is PROGRESSING


@pytest.mark.parametrize(
    ("available",  "degraded", "expected"),
    [
        (None,         None,       PROGRESSING),
        (F,            None,       PROGRESSING),
        ((T, 6, 9),    None,       PROGRESSING),
        (T,            None,       SUCCEEDED),
        (T,            F,          SUCCEEDED),
        (T,            T,          FAILED),
    ],
)  # fmt: skip
def test_a_template_without_a_rule_goes_by_what_is_applied_and_available(
    available: Any, degraded: Any, expected: RolloutState
) -> None:
    assert state(work(Applied=T, Available=available, Degraded=degraded), rule=False)[0] is expected


def test_without_a_rule_success_counts_from_the_later_of_the_two() -> None:
    assert state(work(Applied=(T, G, 50), Available=(T, G, 20)), rule=False) == (SUCCEEDED, ago(20))


def test_without_a_rule_an_agent_that_reports_progress_by_itself_is_believed() -> None:
    assert state(work(Applied=T, Available=T, Progressing=T), rule=False)[0] is PROGRESSING


def test_time_counts_from_the_condition_that_decides() -> None:
    said: dict[str, Any] = {"Applied": (T, G, 50), "Progressing": (T, G, 40), "Degraded": (T, G, 10)}

    assert state(work(**said)) == (FAILED, ago(10))
    assert state(work(**{**said, "Degraded": (F, G, 10)})) == (PROGRESSING, ago(40))
    assert state(work(**{**said, "Degraded": None, "Progressing": (F, G, 40)})) == (SUCCEEDED, ago(40))


def test_a_condition_older_than_its_work_counts_from_when_the_work_was_sent() -> None:
    """Its status was the same before, so its time is that of an older revision: no soak, no deadline is over yet."""
    assert state(work(ago(3), Applied=T, Progressing=(F, G, 900))) == (SUCCEEDED, ago(3))
    assert state(work(ago(3), Applied=T, Progressing=(T, G, 900))) == (PROGRESSING, ago(3))
    assert state(work(ago(3), Applied=T, Progressing=T, Degraded=(T, G, 900))) == (FAILED, ago(3))


def test_a_spoke_whose_clock_runs_ahead_has_no_more_time_than_others() -> None:
    assert state(work(ago(3), Applied=T, Progressing=(T, G, -600))) == (PROGRESSING, ago(3))


def test_what_is_counted_is_not_what_an_older_work_was_and_one_that_names_no_generation_counts() -> None:
    said: Made = {"Applied": T, "Available": (T, 0, 9), "Progressing": F, "Degraded": (T, 6, 9)}

    assert read_work(work(**said)).is_true == (True, True, False, False)
    # Decisions are stricter: a rollout does not proceed on a condition that may be stale.
    assert state(work(Applied=T, Available=(T, 0, 9)), rule=False)[0] is PROGRESSING
