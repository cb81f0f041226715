"""Quantities, times and bytes, as Go reads and writes them."""

from __future__ import annotations

import re
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina.server.builtin.amounts import class_of_service, needed_together, total
from lamina.server.builtin.values import (
    canonical_bytes,
    canonical_micro_time,
    canonical_quantity,
    canonical_time,
    milli_quantity,
    quantity,
)


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ("1024Mi", "1Gi"),
        ("1536Mi", "1536Mi"),
        ("1.5Gi", "1536Mi"),
        ("0.5Mi", "512Ki"),
        ("0.5Ki", "512"),
        ("0.5", "500m"),
        (".5", "500m"),
        ("5.", "5."),
        ("1.500", "1.500"),
        ("1.5000", "1500m"),
        ("1000", "1k"),
        ("1000m", "1"),
        ("100000", "100k"),
        ("1e3", "1e3"),
        ("1e5", "100e3"),
        ("123e4", "1230e3"),
        ("1E3", "1E3"),
        ("1E", "1E"),
        ("+5", "+5"),
        ("-5", "-5"),
        ("-0", "0"),
        ("00", "0"),
        ("0Mi", "0"),
        ("0.5n", "1n"),
        ("1e-10", "1e-9"),
        ("9223372036854775807Ki", "9223372036854775807"),
        (" 1 ", "1"),
        (5, "5"),
        (0.25, "250m"),
    ],
)
def test_a_quantity_is_written_in_its_canonical_form(written: object, shown: str) -> None:
    assert canonical_quantity(written) == shown


@pytest.mark.parametrize(
    ("written", "why"),
    [
        ("", "quantities must match the regular expression"),
        ("abc", "quantities must match the regular expression"),
        ("1 Gi", "quantities must match the regular expression"),
        ("1.2.3", "quantities must match the regular expression"),
        (True, "quantities must match the regular expression"),
        ([1], "quantities must match the regular expression"),
        ("1e", "unable to parse quantity's suffix"),
        ("1Kii", "unable to parse quantity's suffix"),
    ],
)
def test_what_is_no_quantity_is_refused(written: object, why: str) -> None:
    with pytest.raises(ValueError, match=re.escape(why)):
        canonical_quantity(written)


@pytest.mark.parametrize(
    ("written", "shown"), [("1n", "1m"), ("0.0001", "1m"), ("-1u", "-1m"), ("1.5", "1500m"), ("1Gi", "1Gi")]
)
def test_amounts_of_resources_are_rounded_up_to_thousandths(written: str, shown: str) -> None:
    assert milli_quantity(written) == shown


@given(st.integers(-(10**11), 10**11), st.sampled_from(["", "m", "k", "M", "Ki", "Mi", "e3"]))
def test_writing_a_quantity_keeps_its_amount_and_is_stable(number: int, suffix: str) -> None:
    shown = canonical_quantity(f"{number}{suffix}")

    assert quantity(shown).amount == quantity(f"{number}{suffix}").amount
    assert canonical_quantity(shown) == shown


@given(st.integers(0, 10**6), st.integers(0, 10**6))
def test_a_sum_of_quantities_is_the_sum_of_their_amounts(one: int, other: int) -> None:
    summed = total(quantity(f"{one}m"), quantity(f"{other}Ki"))

    assert summed.amount == Fraction(one, 1000) + other * 1024


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ("2026-01-01T00:00:00Z", "2026-01-01T00:00:00Z"),
        ("2026-01-01T02:00:00.9+02:00", "2026-01-01T00:00:00Z"),
        ("2025-12-31T23:59:59,5-00:30", "2026-01-01T00:29:59Z"),
        ("2026-01-01T5:00:00Z", "2026-01-01T05:00:00Z"),
        ("0001-01-01T00:00:00Z", None),
    ],
)
def test_a_time_is_cut_to_seconds_and_put_into_utc(written: str, shown: str | None) -> None:
    assert canonical_time(written) == shown


_SECONDS = "2006-01-02T15:04:05Z07:00"
_MICRO = "2006-01-02T15:04:05.000000Z07:00"


@pytest.mark.parametrize(
    ("written", "message"),
    [
        ("x", f'parsing time "x" as "{_SECONDS}": cannot parse "x" as "2006"'),
        ("2026-01-01", f'parsing time "2026-01-01" as "{_SECONDS}": cannot parse "" as "T"'),
        ("2026-13-01T00:00:00Z", 'parsing time "2026-13-01T00:00:00Z": month out of range'),
        ("2026-02-30T00:00:00Z", 'parsing time "2026-02-30T00:00:00Z": day out of range'),
        ("2026-01-01T00:00:00Zx", 'parsing time "2026-01-01T00:00:00Zx": extra text: "x"'),
        (
            "2026-01-01T00:00:00+25:00",
            'parsing time "2026-01-01T00:00:00+25:00": time zone offset hour out of range',
        ),
    ],
)
def test_what_is_no_time_is_refused_in_the_words_of_go(written: str, message: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        canonical_time(written)


def test_a_micro_time_has_exactly_six_digits() -> None:
    assert canonical_micro_time("2026-01-01T01:00:00.123456+01:00") == "2026-01-01T00:00:00.123456Z"

    message = f'parsing time "2026-01-01T00:00:00.000Z" as "{_MICRO}": cannot parse ".000Z" as ".000000"'
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        canonical_micro_time("2026-01-01T00:00:00.000Z")


@given(st.binary(max_size=40))
def test_bytes_come_back_as_they_went(data: bytes) -> None:
    import base64

    text = base64.b64encode(data).decode()

    assert canonical_bytes(text) == text
    assert canonical_bytes("\n".join(text)) == text


@pytest.mark.parametrize(
    ("written", "byte"),
    [("!bad", 0), ("YWJ", 0), ("YQ=", 3), ("YQ=a", 2), ("YQ==x", 4), ("dcba=", 4), ("YWé", 2)],
)
def test_what_is_no_base64_is_refused_at_its_first_wrong_byte(written: str, byte: int) -> None:
    with pytest.raises(ValueError, match=f"^illegal base64 data at input byte {byte}$"):
        canonical_bytes(written)


def _container(
    requests: dict[str, str] | None = None, limits: dict[str, str] | None = None
) -> dict[str, object]:
    given = {"requests": requests, "limits": limits}
    return {"name": "c", "resources": {name: amounts for name, amounts in given.items() if amounts}}


BOTH = {"cpu": "1", "memory": "1Gi"}


@pytest.mark.parametrize(
    ("containers", "expected"),
    [
        ([_container()], "BestEffort"),
        ([_container({"cpu": "0"})], "BestEffort"),
        ([_container({"example.com/gpu": "1"})], "BestEffort"),
        ([_container({"cpu": "1"})], "Burstable"),
        ([_container(BOTH, BOTH)], "Guaranteed"),
        ([_container(BOTH, {"cpu": "1000m", "memory": "1024Mi"})], "Guaranteed"),
        ([_container(BOTH, {"cpu": "2", "memory": "1Gi"})], "Burstable"),
        ([_container(BOTH, BOTH), _container()], "Burstable"),
    ],
)
def test_the_class_of_service_follows_from_requests_and_limits(
    containers: list[object], expected: str
) -> None:
    assert class_of_service({"containers": containers}) == expected


def test_init_containers_matter_where_they_need_more_than_what_runs_later() -> None:
    spec = {
        "containers": [_container({"cpu": "100m", "memory": "1Gi"}), _container({"cpu": "200m"})],
        "initContainers": [
            {**_container({"cpu": "50m"}), "restartPolicy": "Always"},
            _container({"cpu": "1", "memory": "512Mi"}),
        ],
    }

    assert needed_together(spec, "requests") == {"cpu": "1050m", "memory": "1Gi"}
