"""Numbers and lengths of time, as strategies say them."""

import re
from datetime import timedelta
from typing import Any

import pytest

from lamina.errors import SpecError
from lamina.families.manifestwork.api import PlacementRef, placement_ref
from lamina.families.manifestwork.crds.replicaset import DEADLINE
from lamina.families.manifestwork.hub.strategy import Group, Strategy, strategy


def understood(kind: str, **block: Any) -> Strategy:
    name = kind[:1].lower() + kind[1:]
    return strategy(placement_ref({"name": "p", "rolloutStrategy": {"type": kind, name: block}}, 0))


@pytest.mark.parametrize(
    ("value", "total", "expected"),
    [
        (0,      5,   0),
        (2,      5,   2),
        (5,      5,   5),
        (10,     3,   3),     # more than there are: all of them, not none
        (-1,     5,   0),
        ("0%",   5,   0),
        ("20%",  5,   1),
        ("21%",  5,   2),     # rounded up
        ("7%",   100, 7),     # exactly, where floats say 8
        ("28%",  25,  7),
        ("29%",  100, 29),
        ("100%", 7,   7),
        ("50%",  4,   2),
    ],
)  # fmt: skip
def test_how_many_may_fail(value: Any, total: int, expected: int) -> None:
    assert Strategy(type="Progressive", max_failures=value).tolerated(total) == expected


@pytest.mark.parametrize(
    ("value", "total", "expected"),
    [
        (None,   6, 6),
        (2,      6, 2),
        (6,      6, 6),
        (7,      6, 6),
        (0,      6, 6),
        ("0%",   6, 6),
        ("10%",  6, 1),
        ("50%",  5, 3),
        ("100%", 6, 6),
    ],
)  # fmt: skip
def test_how_many_go_at_once(value: Any, total: int, expected: int) -> None:
    assert Strategy(type="Progressive", max_concurrency=value).at_once(total) == expected


@pytest.mark.parametrize("value", ["5", "few", "5.5%", "-1%", "%"])
def test_a_text_that_is_no_percentage_fails_the_placement(value: str) -> None:
    with pytest.raises(SpecError, match="rolloutStrategy.progressive.maxFailures"):
        understood("Progressive", maxFailures=value)
    with pytest.raises(SpecError, match="rolloutStrategy.progressive.maxConcurrency"):
        understood("Progressive", maxConcurrency=value)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("None", None), ("", None), ("0s", 0), ("5s", 5), ("10m", 600), ("2h", 7200),
        ("1h30m", 5400), ("1m30s", 90), ("500ms", 0.5), ("1m1.5s", 61.5), ("1s.5s", 1.5), ("1s1.s", 2),
    ],
)  # fmt: skip
def test_deadlines(text: str, expected: float | None) -> None:
    wanted = timedelta(seconds=expected) if expected is not None else None
    assert not text or re.search(DEADLINE, text)
    assert understood("Progressive", progressDeadline=text).deadline == wanted


@pytest.mark.parametrize(
    "text",
    [
        "2d",
        "0",
        "10g",
        "5|",
        "10sX",
        "1h30",
        "1h0",
        "1h-3m",
        "1.5h",
        "100us",
        "1h.s",
        "none",
        "aNone",
        "5 s",
        "-5s",
    ],
)
def test_what_is_no_deadline_is_refused(text: str) -> None:
    assert not re.search(DEADLINE, text)
    with pytest.raises(SpecError, match="progressDeadline"):
        understood("Progressive", progressDeadline=text)


@pytest.mark.parametrize(("text", "seconds"), [("0", 0), ("90s", 90), ("1h30m", 5400), ("", 0), ("1.5m", 90)])
def test_soaks(text: str, seconds: int) -> None:
    assert understood("Progressive", minSuccessTime=text).soak == timedelta(seconds=seconds)


def test_a_soak_means_nothing_to_all_and_blocks_of_other_kinds_mean_nothing() -> None:
    assert understood("All", minSuccessTime="5m").soak == timedelta(0)
    other = {"name": "p", "rolloutStrategy": {"type": "All", "progressive": {"progressDeadline": "nonsense"}}}
    assert strategy(placement_ref(other, 0)).deadline is None


def test_what_is_not_said_is_as_documented() -> None:
    assert strategy(PlacementRef(name="p")) == Strategy()
    assert understood("Progressive").at_once(9) == 9
    assert not understood("Progressive").aborts


@pytest.mark.parametrize(("value", "aborts"), [("AbortAll", True), ("", False), (None, False)])
def test_only_one_failure_strategy_aborts_a_rollout(value: Any, aborts: bool) -> None:
    said = {"name": "p", "rolloutStrategy": {"type": "All", "failureStrategy": value}}
    assert strategy(placement_ref(said, 0)).aborts is aborts


def test_mandatory_groups_are_known_by_name_or_by_index_and_the_name_wins() -> None:
    how = understood(
        "Progressive",
        mandatoryDecisionGroups=[{"groupName": "canary", "groupIndex": 3}, {"groupIndex": 1}],
    )

    assert how.is_mandatory(Group(index=0, name="canary"))
    assert how.is_mandatory(Group(index=5, name="canary"))
    assert how.is_mandatory(Group(index=1))
    assert not how.is_mandatory(Group(index=3, name="other"))
    assert not how.is_mandatory(Group(index=0))
