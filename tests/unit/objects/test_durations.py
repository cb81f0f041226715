"""Durations are parsed as in Go's time package."""

from datetime import timedelta

import pytest

from lamina.objects.durations import SECOND, nanoseconds, parse_duration, seconds_with_days


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("34s", 34.0), ("1h30m", 5400.0), ("1.5s", 1.5), ("100ms", 0.1), (".5s", 0.5), ("1.h", 3600.0), ("+2s", 2.0),
     ("1h1m1s1ms1us1ns", 3661.001001001), ("1µs", 1e-6), ("0", 0.0), ("-0", 0.0), ("0s", 0.0), ("-1s", -1.0)],
)  # fmt: skip
def test_durations_are_those_of_go(text: str, seconds: float) -> None:
    assert nanoseconds(text) / SECOND == pytest.approx(seconds)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", 'invalid duration ""'),
        ("-", 'invalid duration "-"'),
        ("s", 'invalid duration "s"'),
        (".s", 'invalid duration ".s"'),
        (" 5s", 'invalid duration " 5s"'),
        ("µs", r'invalid duration "\xc2\xb5s"'),
        ('"', r'invalid duration "\""'),
        ("2562047h47m16.854775808s", 'invalid duration "2562047h47m16.854775808s"'),
        ("9" * 5000 + "s", 'invalid duration "' + "9" * 5000 + 's"'),
        ("5µx", r'unknown unit "\xc2\xb5x" in duration "5\xc2\xb5x"'),
        ("99999999999h", 'invalid duration "99999999999h"'),
        ("5", 'missing unit in duration "5"'),
        ("5s5", 'missing unit in duration "5s5"'),
        ("1e3s", 'unknown unit "e" in duration "1e3s"'),
        ("1 s", 'unknown unit " s" in duration "1 s"'),
    ],
)
def test_what_is_no_duration_is_complained_about_as_go_does(text: str, complaint: str) -> None:
    with pytest.raises(ValueError) as nonsense:
        nanoseconds(text)

    assert str(nonsense.value) == f"time: {complaint}"


def test_the_longest_durations_fit_64_bits() -> None:
    assert nanoseconds("2562047h47m16.854775807s") == 2**63 - 1
    assert nanoseconds("-2562047h47m16.854775808s") == -(2**63)


def test_a_duration_for_users_is_refused_in_their_words() -> None:
    assert parse_duration("1m30.5s") == timedelta(seconds=90.5)
    assert parse_duration("-2ms") == timedelta(milliseconds=-2)
    with pytest.raises(ValueError, match='^expected a duration such as "10s" or "1m30s", got "5"$'):
        parse_duration("5")


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("20s", 20), ("1h30m", 5400), ("2d", 172800), ("1.5d", 129600), ("1d12h", 129600), ("90", 90), (" 5s ", 5), ("0", 0)],
)  # fmt: skip
def test_days_and_bare_seconds_are_durations_too(text: str, seconds: float) -> None:
    assert seconds_with_days(text) == seconds


@pytest.mark.parametrize("text", ["", "d", "12h1d", "1d-5h", "soon", "1dd"])
def test_other_texts_with_days_are_refused(text: str) -> None:
    with pytest.raises(ValueError):
        seconds_with_days(text)
