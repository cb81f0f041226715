"""Merge patch, and its creation."""

from typing import Any

import pytest

from lamina.errors import BadRequest
from lamina.merge.patches import create_merge_patch, merge_patch


@pytest.mark.parametrize(
    ("target", "patch", "result"),
    [
        ({"a": "b"}, {"a": "c"}, {"a": "c"}),
        ({"a": "b"}, {"b": "c"}, {"a": "b", "b": "c"}),
        ({"a": "b"}, {"a": None}, {}),
        ({"a": "b", "b": "c"}, {"a": None}, {"b": "c"}),
        ({"a": ["b"]}, {"a": "c"}, {"a": "c"}),
        ({"a": "c"}, {"a": ["b"]}, {"a": ["b"]}),
        ({"a": {"b": "c"}}, {"a": {"b": "d", "c": None}}, {"a": {"b": "d"}}),
        ({"a": [{"b": "c"}]}, {"a": [1]}, {"a": [1]}),
        ({"a": "foo"}, {"a": {"bb": {"ccc": None}}}, {"a": {"bb": {}}}),
        ({"e": None}, {"a": 1}, {"e": None, "a": 1}),
        ([1, 2], {"a": "b", "c": None}, {"a": "b"}),
        ({}, {"a": {"bb": {"ccc": None}}}, {"a": {"bb": {}}}),
        ({"e": None}, {"e": {"x": None, "y": 1}}, {"e": {"y": 1}}),
    ],
)
def test_objects_merge_nulls_delete_and_all_else_replaces(target: Any, patch: Any, result: Any) -> None:
    assert merge_patch(target, patch) == result


@pytest.mark.parametrize("before", [{}, {"a": [1]}, {"a": 1}])
def test_objects_in_a_list_lose_their_nulls_and_the_list_keeps_its_own(before: Any) -> None:
    assert merge_patch(before, {"a": [{"b": None, "c": 1}, None]}) == {"a": [{"c": 1}, None]}


@pytest.mark.parametrize(
    ("patch", "called"),
    [([], "array"), ("x", "string"), (1, "number"), (True, "bool"), (None, "null")],
)
def test_a_patch_is_an_object(patch: Any, called: str) -> None:
    with pytest.raises(BadRequest) as refused:
        merge_patch({}, patch)

    assert refused.value.message == (
        f"error decoding patch: json: cannot unmarshal {called} into Go value of type map[string]interface {{}}"
    )


def test_nothing_that_was_given_is_changed_and_the_top_of_the_result_is_new() -> None:
    target = {"metadata": {"name": "x", "labels": {"a": "1"}}, "data": {"k": {"v": 1}}}
    patch = {"metadata": {"labels": {"b": "2"}}, "data": {"k": {"v": None}}}

    result = merge_patch(target, patch)
    result["metadata"]["name"] = "y"
    result["more"] = 1

    assert target == {"metadata": {"name": "x", "labels": {"a": "1"}}, "data": {"k": {"v": 1}}}
    assert patch == {"metadata": {"labels": {"b": "2"}}, "data": {"k": {"v": None}}}


@pytest.mark.parametrize(
    ("before", "after", "patch"),
    [
        ({"a": 1}, {"a": 1}, {}),
        ({"a": 1}, {"a": True}, {"a": True}),
        ({"a": {"b": 1, "c": 2}}, {"a": {"b": 1, "c": 3}}, {"a": {"c": 3}}),
        ({"a": {"b": 1}}, {"a": {}}, {"a": {"b": None}}),
        ({"a": 1}, {}, {"a": None}),
        ({}, {"a": [1]}, {"a": [1]}),
        ({"a": [1, 2]}, {"a": [1]}, {"a": [1]}),
        ({"a": {"b": 1}}, {"a": [1]}, {"a": [1]}),
    ],
)
def test_the_patch_between_two_objects_holds_what_differs(before: Any, after: Any, patch: Any) -> None:
    assert create_merge_patch(before, after) == patch
    assert merge_patch(before, patch) == after
