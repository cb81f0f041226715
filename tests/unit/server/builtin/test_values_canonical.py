"""Times and bytes in Go's format, and sums of quantities."""

from __future__ import annotations

import re
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina.objects.quantities import quantity
from lamina.server.kinds.builtin.amounts import pod_total, qos_class, total
from lamina.server.kinds.builtin.values import canonical_bytes, canonical_micro_time, canonical_time


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
    assert qos_class({"containers": containers}) == expected


def test_init_containers_matter_where_they_need_more_than_what_runs_later() -> None:
    spec = {
        "containers": [_container({"cpu": "100m", "memory": "1Gi"}), _container({"cpu": "200m"})],
        "initContainers": [
            {**_container({"cpu": "50m"}), "restartPolicy": "Always"},
            _container({"cpu": "1", "memory": "512Mi"}),
        ],
    }

    assert pod_total(spec, "requests") == {"cpu": "1050m", "memory": "1Gi"}
