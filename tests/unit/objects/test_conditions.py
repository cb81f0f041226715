"""A condition keeps its transition time while its status stays the same."""

from datetime import UTC, datetime

from lamina.objects.conditions import (
    find,
    is_current,
    is_true,
    is_true_now,
    with_condition,
    without_condition,
)
from lamina.objects.types import Made

_EARLY, _LATE = datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 1, 2, 3, 4, 5, 678900, tzinfo=UTC)


def test_a_new_reason_is_no_transition() -> None:
    first = with_condition([], "Ready", "True", now=_EARLY, reason="Started")

    second = with_condition(first, "Ready", "True", now=_LATE, reason="Going", message="well")

    assert second[0]["lastTransitionTime"] == "2026-01-01T00:00:00Z"
    assert second[0]["reason"] == "Going"


def test_a_new_status_is_a_transition_in_whole_seconds() -> None:
    first = with_condition([], "Ready", "True", now=_EARLY)

    second = with_condition(first, "Ready", "False", now=_LATE, generation=3)

    assert second[0]["lastTransitionTime"] == "2026-01-02T03:04:05Z"
    assert second[0]["observedGeneration"] == 3


def test_a_condition_keeps_its_place_among_the_others() -> None:
    several = with_condition(with_condition([], "A", "True", now=_EARLY), "B", "True", now=_EARLY)

    changed = with_condition(several, "A", "False", now=_LATE)

    assert [one["type"] for one in changed] == ["A", "B"]
    assert not is_true(changed, "A")
    assert is_true(changed, "B")
    assert find(without_condition(changed, "A"), "A") is None


def test_a_condition_is_true_now_only_in_the_current_generation() -> None:
    def obj(status: str, observed: int) -> Made:
        found = {"type": "Ready", "status": status, "observedGeneration": observed}
        return {"metadata": {"generation": 2}, "status": {"conditions": [found]}}

    assert is_true_now(obj("True", 2), "Ready")
    assert not is_true_now(obj("True", 1), "Ready")
    assert not is_true_now(obj("False", 2), "Ready")
    assert not is_true_now(obj("True", 2), "Other")
    assert is_current({"type": "Ready", "status": "True"}, {"metadata": {}})
