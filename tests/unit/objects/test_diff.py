"""What differs between two objects."""

from typing import Any

import pytest

from lamina.objects.diff import ABSENT, Change, diff, is_same


@pytest.mark.parametrize(
    ("before", "after", "changes"),
    [
        ({"a": 1}, {"a": 1}, []),
        ({"a": 1}, {"a": 2}, [(("a",), 1, 2)]),
        ({"a": 1}, {"a": True}, [(("a",), 1, True)]),
        ({"a": {"b": 1}}, {"a": {}}, [(("a", "b"), 1, ABSENT)]),
        ({}, {"a": {"b": 1}}, [(("a",), ABSENT, {"b": 1})]),
        ({"l": [1, 2]}, {"l": [1, 3, 4]}, [(("l", 1), 2, 3), (("l", 2), ABSENT, 4)]),
        ({"a": None}, {}, [(("a",), None, ABSENT)]),
        ({"b": 1, "a": 1}, {"c": 1, "a": 2}, [(("b",), 1, ABSENT), (("a",), 1, 2), (("c",), ABSENT, 1)]),
    ],
)
def test_changes_are_told_place_by_place(before: Any, after: Any, changes: list[Any]) -> None:
    assert diff(before, after) == tuple(Change(path=p, before=b, after=a) for p, b, a in changes)


def test_a_change_reads_like_a_sentence() -> None:
    sentences = [str(change) for change in diff({"a": 1, "b": {"c": 2}}, {"b": {"c": 3}, "d": "x"})]

    assert sentences == ["a: removed 1", "b.c: 2 became 3", "d: added 'x'"]


@pytest.mark.parametrize(
    ("one", "two", "same"),
    [
        (1, 1.0, True),
        (1, True, False),
        (0, False, False),
        ([1, {"a": True}], [1, {"a": True}], True),
        ([1, {"a": True}], [1, {"a": 1}], False),
        ({"a": 1}, {"a": 1, "b": 2}, False),
        (None, None, True),
        ("a", "b", False),
    ],
)
def test_equal_the_way_json_is(one: Any, two: Any, same: bool) -> None:
    assert is_same(one, two) is same
