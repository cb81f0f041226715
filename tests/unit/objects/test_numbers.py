"""Numbers in labels and annotations, which any user may write."""

import pytest

from lamina.objects.numbers import positive


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("7", 7),
        ("10", 10),
        ("9" * 18, 10**18 - 1),
        ("9" * 19, 0),
        ("1" * 5000, 0),
        ("0", 0),
        ("07", 0),
        ("", 0),
        (" 7", 0),
        ("7\n", 0),
        ("+1", 0),
        ("-1", 0),
        ("1e3", 0),
        ("1.5", 0),
        ("abc", 0),
        ("²", 0),
        ("٣", 0),
    ],
)
def test_a_positive_integer_is_written_in_one_way(text: str, number: int) -> None:
    assert positive(text) == number
