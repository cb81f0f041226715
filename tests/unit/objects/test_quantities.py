"""Quantities are read and written as Kubernetes does it."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina.objects.quantities import canonical_quantity, milli_quantity, quantity, thousandths


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
        ("1e-999999999", "1e-9"),
        ("0e-999999999", "0"),
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
        (".e-20", "unable to parse numeric part of quantity"),
        ("9" * 5000, "unable to parse numeric part of quantity"),
        ("1e999999999", "unable to parse numeric part of quantity"),
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


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("250m", 250),
        ("16Gi", 16 * 1024**3 * 1000),
        ("2e3", 2_000_000),
        ("1n", 1),
        ("-1500u", -1),
        ("lots", 0),
        ("", 0),
    ],
)
def test_thousandths_are_rounded_up(text: str, expected: int) -> None:
    assert thousandths(text) == expected
