"""Sets of a Job's indexes: read leniently by the controller, strictly by the API server."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina.objects.index_set import checked_count, overlap, parse, to_text


@pytest.mark.parametrize(
    ("indexes", "text"),
    [
        ((), ""),
        ((3,), "3"),
        ((3, 4), "3,4"),
        ((3, 4, 5), "3-5"),
        ((0, 1, 2, 5, 7, 8), "0-2,5,7,8"),
    ],
)
def test_three_in_a_row_are_an_interval(indexes: tuple[int, ...], text: str) -> None:
    assert to_text(indexes) == text


@given(st.sets(st.integers(0, 60)))
def test_a_text_is_read_back(indexes: set[int]) -> None:
    assert parse(to_text(indexes), 61) == indexes


@given(st.sets(st.integers(0, 60)), st.integers(0, 60))
def test_indexes_beyond_the_completions_are_left_out(indexes: set[int], completions: int) -> None:
    assert parse(to_text(indexes), completions) == {index for index in indexes if index < completions}


@pytest.mark.parametrize(
    ("text", "found"), [(None, ()), ("x,2", (2,)), ("1-2-3,4", (4,)), ("5-3", ()), ("3-3", (3,))]
)
def test_intervals_that_cannot_be_read_are_skipped(text: str | None, found: tuple[int, ...]) -> None:
    assert parse(text, 10) == set(found)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", (0, "")),
        ("1,3-5,7", (5, "")),
        ("3,1", (0, "non-increasing order, previous: 3, current: 1")),
        ("3-3", (0, "non-increasing order, previous: 3, current: 3")),
        ("x", (0, 'cannot convert string to integer for index: "x"')),
        ("8", (0, 'too large index: "8"')),
    ],
)
def test_the_message_is_that_of_the_api_server(text: str, expected: tuple[int, str]) -> None:
    assert checked_count(text, 8) == expected


def test_the_lowest_shared_index_is_the_overlap() -> None:
    assert overlap("0-3,6", "2,5-7", 8) == 2
    assert overlap("0-3", "4", 8) is None
    assert overlap("0-3", "x", 8) is None
