"""Durations and timestamps are read and written as Go does it."""

from __future__ import annotations

import pytest

from lamina.cel.errors import EvaluationError
from lamina.cel.export import duration_text
from lamina.cel.times import Duration, parse_duration, parse_timestamp, timestamp, zone


@pytest.mark.parametrize(
    ("text", "nanoseconds", "printed", "spelt"),
    [
        ("0",         0,                    "0s",       "0s"),
        ("1h30m",     5_400_000_000_000,    "5400s",    "1h30m0s"),
        ("-1.5s",     -1_500_000_000,       "-1.5s",    "-1.5s"),
        ("1.5ms",     1_500_000,            "0.0015s",  "1.5ms"),
        ("2us",       2_000,                "0.000002s", "2µs"),
        ("2µs",       2_000,                "0.000002s", "2µs"),
        ("1h0.5m",    3_630_000_000_000,    "3630s",    "1h0m30s"),
        (".5s",       500_000_000,          "0.5s",     "500ms"),
        ("1.s",       1_000_000_000,        "1s",       "1s"),
        ("7ns",       7,                    "0.000000007s", "7ns"),
    ],
)  # fmt: skip
def test_a_duration_is_read_and_printed(text: str, nanoseconds: int, printed: str, spelt: str) -> None:
    found = parse_duration(text)

    assert found == Duration(nanoseconds)
    assert str(found) == printed
    assert duration_text(found) == spelt


@pytest.mark.parametrize("text", ["", "1", "1d", "h", ".s", "1h-5m", "--1s", "1 h", "300000000h", "1e3s"])
def test_what_is_no_duration_is_none(text: str) -> None:
    assert parse_duration(text) is None


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("2020-01-01T00:00:00Z",            "2020-01-01T00:00:00Z"),
        ("2020-01-01T00:00:00.120Z",        "2020-01-01T00:00:00.12Z"),
        ("2020-01-01T00:00:00.123456789Z",  "2020-01-01T00:00:00.123456789Z"),
        ("2020-01-01T01:00:00+01:00",       "2020-01-01T01:00:00+01:00"),
        ("2020-01-01T00:00:00+00:00",       "2020-01-01T00:00:00Z"),
        ("0001-01-01T00:00:00Z",            "0001-01-01T00:00:00Z"),
        ("9999-12-31T23:59:59.999999999Z",  "9999-12-31T23:59:59.999999999Z"),
        ("0000-12-31T23:00:00-01:00",       "0000-12-31T23:00:00-01:00"),
    ],
)  # fmt: skip
def test_a_timestamp_keeps_its_offset_and_its_nanoseconds(text: str, printed: str) -> None:
    assert str(parse_timestamp(text)) == printed


@pytest.mark.parametrize(
    "text",
    [
        "",
        "2020-01-01",
        "2020-13-01T00:00:00Z",
        "2020-02-30T00:00:00Z",
        "2020-01-01t00:00:00Z",
        "2020-01-01T00:00:00",
    ],
)
def test_what_is_no_timestamp_is_none(text: str) -> None:
    assert parse_timestamp(text) is None


def test_time_before_year_one_and_after_9999_is_no_time() -> None:
    with pytest.raises(EvaluationError, match="timestamp overflow"):
        parse_timestamp("0001-01-01T00:00:00+01:00")
    with pytest.raises(EvaluationError, match="timestamp overflow"):
        timestamp(253402300800 * 1_000_000_000)


@pytest.mark.parametrize(
    ("name", "hours"),
    [("UTC", 10), ("", 10), ("Europe/Berlin", 11), ("-08:00", 2), ("+05:30", 15), ("02:00", 12)],
)
def test_a_zone_is_a_name_or_an_offset(name: str, hours: int) -> None:
    found = parse_timestamp("2020-01-01T10:00:00Z")

    assert found is not None
    assert found.local(zone(name))[0].hour == hours


@pytest.mark.parametrize("name", ["Europe/Nowhere", "../etc/passwd", "x:y", "99:00", "\0"])
def test_an_unknown_zone_is_an_error(name: str) -> None:
    with pytest.raises(EvaluationError):
        zone(name)


def test_the_ends_of_the_calendar_can_be_looked_at_from_any_zone() -> None:
    first, last = parse_timestamp("0001-01-01T00:00:00Z"), parse_timestamp("9999-12-31T23:59:59Z")

    assert first is not None and last is not None
    moment, years = first.local(zone("-08:00"))
    assert (moment.year + years, moment.month, moment.day) == (0, 12, 31)
    moment, years = last.local(zone("+08:00"))
    assert (moment.year + years, moment.month, moment.day) == (10000, 1, 1)
