"""The table of what a rollout over many clusters costs."""

from collections import Counter

import pytest

from bench.fleet import HEAD, Row, growth, slowest
from bench.measured_server import Spent
from bench.report import table


def spent(requests: int) -> Spent:
    return Spent(
        seconds=2.0,
        requests=Counter(PUT=requests),
        events=2,
        processor=0.5,
        resident=64 << 20,
        calls=7,
        served=1.5,
    )


def test_more_requests_than_a_handful_beside_one_a_cluster_are_said() -> None:
    rows = [Row(work="an-edit", size=100, most=112, spent=spent(requests)) for requests in (112, 113)]
    few, many = (line.split() for line in table(HEAD, rows).splitlines()[1:])

    assert few[:8] == ["an-edit", "2.0", "112", "112", "2", "7", "0.50", "64"]
    assert many[2:5] == ["113", "112", "over"]


def test_growth_is_of_what_concerns_every_cluster() -> None:
    rows = [
        Row(work="an edit", size=100, most=112, spent=spent(100)),
        Row(work="at rest", size=100, most=0, spent=spent(0)),
        Row(work="too slow", size=100, most=112, spent=None),
    ]

    assert growth(rows).strip() == "an edit: 5,000 us of CPU a cluster, 50 clusters a second"
    assert "timed out" in table(HEAD, rows)


@pytest.mark.parametrize(
    ("looks", "one"), [([3.0], 3.0), ([1.0] * 99 + [9.0], 1.0), ([1.0] * 98 + [9.0] * 2, 9.0)]
)
def test_the_slowest_look_in_a_hundred_is_shown(looks: list[float], one: float) -> None:
    assert slowest(looks) == one
