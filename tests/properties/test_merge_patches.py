"""What is true of every patch."""

from copy import deepcopy
from typing import Any

import jsonpatch
import jsonpointer
from hypothesis import given, settings
from hypothesis import strategies as st

from lamina.errors import ApiError
from lamina.merge.patches import create_merge_patch, json_patch, merge_patch, strategic_merge
from lamina.merge.schema import compile_schema
from lamina.objects.diff import diff, is_same

_SCALARS = st.one_of(st.none(), st.booleans(), st.integers(-3, 3), st.sampled_from(["", "a", "b", "/", "~"]))
_KEYS = st.sampled_from(["a", "b", "c/d", "e~f", "metadata"])
JSON = st.recursive(
    _SCALARS,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(_KEYS, inner, max_size=3)),
    max_leaves=10,
)
OBJECTS = st.dictionaries(_KEYS, JSON, max_size=4)
_STEPS = st.sampled_from(["a", "b", "c~1d", "e~0f", "0", "1", "2", "-", "metadata"])
POINTERS = st.lists(_STEPS, min_size=1, max_size=3).map(lambda steps: "/" + "/".join(steps))
OPERATIONS = st.one_of(
    st.fixed_dictionaries(
        {"op": st.sampled_from(["add", "replace", "test"]), "path": POINTERS, "value": JSON}
    ),
    st.fixed_dictionaries({"op": st.just("remove"), "path": POINTERS}),
    st.fixed_dictionaries({"op": st.sampled_from(["move", "copy"]), "path": POINTERS, "from": POINTERS}),
)


@settings(deadline=None)
@given(OBJECTS, st.lists(OPERATIONS, max_size=4))
def test_where_the_standard_allows_a_json_patch_the_result_is_the_standards(
    obj: Any, steps: list[Any]
) -> None:
    """Where it does not, we may: a missing field is replaced, and a test for null finds nothing."""
    before = deepcopy(obj)
    try:
        expected = jsonpatch.apply_patch(obj, steps, in_place=False)
    except (jsonpatch.JsonPatchException, jsonpointer.JsonPointerException, TypeError, KeyError, IndexError):
        return
    # The package asked takes a place in a text for a place in a list, and 1 for True.
    try:
        result = json_patch(obj, steps)
    except ApiError as refused:
        assert "missing path" in str(refused.hint) or "test failed" in str(refused.hint)
        return
    assert result == expected
    assert obj == before


@settings(deadline=None)
@given(OBJECTS, OBJECTS)
def test_the_patch_between_two_objects_leads_from_one_to_the_other(one: Any, two: Any) -> None:
    two = _without_nulls(two)

    assert is_same(merge_patch(one, create_merge_patch(one, two)), two)
    assert create_merge_patch(two, two) == {}


@settings(deadline=None)
@given(OBJECTS, OBJECTS)
def test_a_merge_patch_done_twice_is_a_merge_patch_done_once(obj: Any, patch: Any) -> None:
    once = merge_patch(obj, patch)

    assert merge_patch(once, patch) == once


@settings(deadline=None)
@given(OBJECTS, OBJECTS)
def test_two_objects_are_the_same_when_nothing_differs(one: Any, two: Any) -> None:
    assert is_same(one, two) is (diff(one, two) == ())


_ITEM = {
    "type": "object",
    "properties": {"a": {}, "b": {"type": "array", "x-kubernetes-patch-strategy": "merge", "items": {}}},
}
_SCHEMA = compile_schema(
    {
        "type": "object",
        "properties": {
            "a": {"type": "array", "x-kubernetes-patch-strategy": "merge", "x-kubernetes-patch-merge-key": "a", "items": _ITEM},
            "b": {"type": "array", "x-kubernetes-patch-strategy": "merge", "items": {"type": "string"}},
            "metadata": {"type": "object", "x-kubernetes-patch-strategy": "replace"},
        },
    }
)  # fmt: skip
_DIRECTIVES = st.sampled_from(
    [
        "$patch",
        "$retainKeys",
        "$setElementOrder/a",
        "$setElementOrder/b",
        "$setElementOrder",
        "$deleteFromPrimitiveList/b",
    ]
)
_PATCH_VALUES = st.recursive(
    st.one_of(_SCALARS, st.sampled_from(["delete", "replace", "merge"])),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.one_of(_KEYS, _DIRECTIVES), inner, max_size=3)
    ),
    max_leaves=10,
)


@settings(deadline=None)
@given(OBJECTS, _PATCH_VALUES)
def test_any_strategic_patch_gives_an_object_or_is_refused_and_changes_nothing_it_was_given(
    obj: Any, patch: Any
) -> None:
    before = deepcopy((obj, patch))
    try:
        result = strategic_merge(obj, patch, _SCHEMA)
    except ApiError as refused:
        assert 400 <= refused.code < 500
    else:
        assert isinstance(result, dict)
    assert (obj, patch) == before


@settings(deadline=None)
@given(OBJECTS, st.one_of(JSON, st.lists(OPERATIONS)))
def test_any_json_patch_is_done_or_refused(obj: Any, patch: Any) -> None:
    try:
        json_patch(obj, patch)
    except ApiError as refused:
        assert 400 <= refused.code < 500


def _without_nulls(value: Any) -> Any:
    """A merge patch cannot leave a null behind."""
    if isinstance(value, dict):
        return {key: _without_nulls(held) for key, held in value.items() if held is not None}
    if isinstance(value, list):
        return [_without_nulls(held) for held in value]
    return value
