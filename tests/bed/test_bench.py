"""The arithmetic of the benchmark."""

import os
from collections import Counter

import pytest

from bench.measured_server import BenchRequest, Spent
from bench.metacontroller import HEAD, Row, growth
from bench.report import table
from bench.table import ROWS, busiest_load, comparison, failures, middle, ratio
from bench.usage import process_tree, processor_seconds, resident_bytes


@pytest.mark.parametrize(
    ("figure",        "theirs", "ours", "better"),
    [
        ("start to ready", 6.0,   1.0,    6.0),
        ("create, 1 client", 100.0, 250.0,  2.5),
        ("memory at rest", 400.0, 800.0,  0.5),
        ("list of 5,000",  10.0,  0.0,    None),
    ],
)  # fmt: skip
def test_a_ratio_above_one_is_to_our_credit(
    figure: str, theirs: float, ours: float, better: float | None
) -> None:
    [row] = [row for row in ROWS if row.label == figure]

    assert (
        ratio(row, {row.measurement: {row.figure: theirs}}, {row.measurement: {row.figure: ours}}) == better
    )


def test_the_table_has_every_row_and_says_where_we_fall_short() -> None:
    real = {row.measurement: {one.figure: 8.0 for one in ROWS} for row in ROWS}
    ours = {row.measurement: {one.figure: 4.0 for one in ROWS} for row in ROWS}
    lines = comparison(real, ours).splitlines()

    assert len(lines) == len(ROWS) + 1
    [start] = [line for line in lines if line.startswith("start to ready")]
    assert start.split()[-3:] == ["2.00x", "6x", "short"]


def test_rounds_are_reduced_to_their_middle() -> None:
    rounds = [{"get, 1": {"rate": rate}} for rate in (1.0, 100.0, 3.0)]

    assert middle(rounds) == {"get, 1": {"rate": 3.0}}


def test_failed_requests_are_said() -> None:
    assert failures({"get, 1": {"errors": 2.0}, "get, 32": {"errors": 0.0}}, "real") == [
        "real: 2 requests failed in get, 1"
    ]


def test_usage_of_this_process_is_found() -> None:
    assert os.getpid() in process_tree([os.getpid()])
    assert resident_bytes([os.getpid()]) > 1 << 20
    assert processor_seconds([os.getpid()]) > 0


def test_the_load_generator_says_how_busy_it_was() -> None:
    rounds = [{"get, 1": {"client_cpu_us": 20.0, "rate": 10_000.0}, "memory at rest": {"MiB": 1.0}}]

    assert busiest_load(rounds) == 0.2


def spent(requests: int, reads: int = 0) -> Spent:
    return Spent(
        seconds=2.0,
        requests=Counter(POST=requests, GET=reads),
        events=3,
        processor=0.5,
        resident=64 << 20,
        calls=7,
    )


def test_more_requests_than_a_tenth_above_the_least_are_said() -> None:
    rows = [
        Row(work=f"{reads} reads, from nothing", size=1, least=100, spent=spent(100, reads))
        for reads in (10, 11)
    ]
    few, many = (line.split() for line in table(HEAD, rows).splitlines()[1:])

    assert few[4:8] == ["2.0", "110", "100", "1.10x"]
    assert many[7:9] == ["1.11x", "over"]
    assert growth(rows[:1]).strip() == "10 reads, from nothing: 5,000 us of CPU a write, 50 writes a second"


def test_what_was_not_done_in_time_is_said() -> None:
    assert "timed out" in table(HEAD, [Row(work="much", size=1, least=1, spent=None)])


def test_requests_are_named_as_the_server_counts_them() -> None:
    assert BenchRequest("POST", "/api/v1/namespaces/default/configmaps", {}).what == "POST configmaps"
    assert BenchRequest("PATCH", "/api/v1/namespaces/default/configmaps/a", {}).what == "PATCH configmaps"
    assert (
        BenchRequest("PATCH", "/apis/a/v1/namespaces/default/works/b/status", {}).what == "PATCH works/status"
    )
