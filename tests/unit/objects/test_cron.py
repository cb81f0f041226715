"""Cron schedules: when they are due, and the messages for invalid ones."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina.objects.cron import BadSchedule, Calendar, UnknownTimeZone, parse


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


@pytest.mark.parametrize(
    ("schedule", "after", "due"),
    [
        ("* * * * *",         "2026-01-01T00:00:00", "2026-01-01T00:01"),
        ("* * * * *",         "2026-01-01T00:00:59", "2026-01-01T00:01"),
        ("*/15 * * * *",      "2026-01-01T00:46:00", "2026-01-01T01:00"),
        ("7/20 * * * *",      "2026-01-01T00:08:00", "2026-01-01T00:27"),
        ("5,35 8-10 * * *",   "2026-01-01T10:35:00", "2026-01-02T08:05"),
        ("0 0 1 * *",         "2026-01-31T12:00:00", "2026-02-01T00:00"),
        ("0 0 29 2 *",        "2026-01-01T00:00:00", "2028-02-29T00:00"),
        ("0 12 * jan-mar mon", "2026-03-30T12:00:00", "2027-01-04T12:00"),
        ("0 0 13 * FRI",      "2026-01-01T00:00:00", "2026-01-02T00:00"),
        ("0 0 */2 * FRI",     "2026-01-01T00:00:00", "2026-01-02T00:00"),
        ("0 0 * * ?",         "2026-01-01T00:00:00", "2026-01-02T00:00"),
        ("0 0 ? * 0",         "2026-01-01T00:00:00", "2026-01-04T00:00"),
        ("30 6-16/4 * * 1-5", "2026-01-02T15:00:00", "2026-01-05T06:30"),
        ("@hourly",           "2026-01-01T00:30:00", "2026-01-01T01:00"),
        ("@midnight",         "2026-01-01T00:30:00", "2026-01-02T00:00"),
        ("@weekly",           "2026-01-01T00:30:00", "2026-01-04T00:00"),
        ("@monthly",          "2026-01-01T00:30:00", "2026-02-01T00:00"),
        ("@annually",         "2026-01-01T00:30:00", "2027-01-01T00:00"),
        ("@every 1h30m",      "2026-01-01T00:10:05", "2026-01-01T01:40:05"),
        ("@every 300ms",      "2026-01-01T00:10:05", "2026-01-01T00:10:06"),
        ("@every +1m",        "2026-01-01T00:10:05", "2026-01-01T00:11:05"),
        ("@every -1m",        "2026-01-01T00:10:05", "2026-01-01T00:10:06"),
        ("@every 0",          "2026-01-01T00:10:05", "2026-01-01T00:10:06"),
    ],
)  # fmt: skip
def test_a_schedule_is_next_due(schedule: str, after: str, due: str) -> None:
    assert parse(schedule).after(at(after)) == at(due)


@pytest.mark.parametrize(
    ("schedule", "zone", "after", "due"),
    [
        # Berlin leaves out 02:00 to 03:00 on 29 March, and has it twice on 25 October.
        ("0 9 * * *",  "Europe/Berlin", "2026-01-01T09:00", "2026-01-02T08:00"),
        ("0 9 * * *",  "Europe/Berlin", "2026-07-01T09:00", "2026-07-02T07:00"),
        ("30 2 * * *", "Europe/Berlin", "2026-03-28T12:00", "2026-03-30T00:30"),
        ("30 2 * * *", "Europe/Berlin", "2026-10-24T12:00", "2026-10-25T00:30"),
        ("30 2 * * *", "Europe/Berlin", "2026-10-25T00:30", "2026-10-25T01:30"),
        ("30 2 * * *", "Europe/Berlin", "2026-10-25T01:30", "2026-10-26T01:30"),
        # Beirut leaves out midnight itself.
        ("0 0 * * *",  "Asia/Beirut",   "2026-03-28T12:00", "2026-03-29T21:00"),
        ("15 1 29 3 *", "Asia/Beirut",  "2026-03-01T12:00", "2026-03-28T22:15"),
        ("TZ=Asia/Tokyo 0 9 * * *", "", "2026-01-01T00:00", "2026-01-02T00:00"),
    ],
)  # fmt: skip
def test_a_schedule_goes_by_the_clocks_of_its_zone(schedule: str, zone: str, after: str, due: str) -> None:
    assert parse(schedule, zone).after(at(after)) == at(due)


def test_a_day_that_never_comes_is_never_due() -> None:
    assert parse("0 0 30 2 *").after(at("2026-01-01")) is None


@pytest.mark.parametrize(
    "schedule",
    ["", "* * * *", "* * * * * *", "60 * * * *", "* 5-3 * * *", "*/0 * * * *", "* * 0 * *", "* * * 13 *",
     "* * * * 7", "a * * * *", "-1 * * * *", "@sometimes", "@every", "@every 5", "@every 5 m",
     "@every +", "@every 00", "@every 2562048h", "1-2-3 * * * *"],
)  # fmt: skip
def test_what_is_no_schedule_is_refused(schedule: str) -> None:
    with pytest.raises(BadSchedule):
        parse(schedule)


@pytest.mark.parametrize(
    ("schedule", "wrong"),
    [
        ("* * * * *",               None),
        ("*/5 1-3,7 1 JAN mon-FRI", None),
        ("@hourly",                 None),
        ("@every 1h30m",            None),
        ("? ? ? ? ?",               None),
        ("* * * *",                 "expected exactly 5 fields, found 4: [* * * *]"),
        ("60 * * * *",              "end of range (60) above maximum (59): 60"),
        ("* * 0 * *",               "beginning of range (0) below minimum (1): 0"),
        ("5-1 * * * *",             "beginning of range (5) beyond end of range (1): 5-1"),
        ("*/0 * * * *",             "step of range should be a positive number: */0"),
        ("x * * * *",               'failed to parse int from x: strconv.Atoi: parsing "x": invalid syntax'),
        ("-1 * * * *",              'failed to parse int from : strconv.Atoi: parsing "": invalid syntax'),
        ("@never",                  "unrecognized descriptor: @never"),
        ("@every 2562047h",         None),
        ("@every 2562048h",         'failed to parse duration @every 2562048h: time: invalid duration "2562048h"'),
        ("@every 5",                'failed to parse duration @every 5: time: missing unit in duration "5"'),
        ("TZ=Mars/Olympus * * * * *", "provided bad location Mars/Olympus: unknown time zone Mars/Olympus"),
        ("1-2-3 * * * *",           "too many hyphens: 1-2-3"),
        ("1/2/3 * * * *",           "too many slashes: 1/2/3"),
        ("@every 5y",               'failed to parse duration @every 5y: time: unknown unit "y" in duration "5y"'),
    ],
)  # fmt: skip
def test_the_message_is_that_of_robfig_cron(schedule: str, wrong: str | None) -> None:
    if wrong is None:
        parse(schedule)
    else:
        with pytest.raises(BadSchedule) as refused:
            parse(schedule)
        assert str(refused.value) == wrong


@pytest.mark.parametrize("zone", ["Mars/Olympus", "../etc/passwd", "europe"])
def test_an_unknown_time_zone_is_refused(zone: str) -> None:
    with pytest.raises(UnknownTimeZone):
        parse("* * * * *", zone)


FIELDS = st.one_of(st.just("*"), st.integers(1, 6).map(str), st.integers(2, 4).map("*/{}".format))
MOMENTS = st.datetimes(datetime(2020, 1, 1), datetime(2030, 1, 1), timezones=st.just(UTC))
ZONES = st.sampled_from(["", "Europe/Berlin", "America/New_York", "Asia/Kolkata", "Australia/Sydney"])


@given(st.tuples(FIELDS, FIELDS, FIELDS, FIELDS, FIELDS).map(" ".join), ZONES, MOMENTS)
def test_what_is_due_is_later_and_on_the_minute_and_nothing_before_it_is(
    schedule: str, zone: str, after: datetime
) -> None:
    calendar = parse(schedule, zone)
    assert isinstance(calendar, Calendar)

    due = calendar.after(after)

    assert due is not None and due > after
    assert (due.second, due.microsecond) == (0, 0)
    wall = due.astimezone(calendar.zone)
    assert wall.minute in calendar.minute and wall.hour in calendar.hour and wall.month in calendar.month
    assert calendar.after(due - timedelta(seconds=1)) == due
    halfway = after + (due - after) / 2
    assert calendar.after(halfway) == due
