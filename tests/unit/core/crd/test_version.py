"""Whether a cluster has the current version of a definition."""

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina.core.crd.version import MARK, is_there, marked
from lamina.objects import meta
from lamina.objects.types import Made

VALUES = st.recursive(
    st.one_of(st.booleans(), st.integers(0, 3), st.sampled_from(["a", "b"])),
    lambda inner: st.one_of(
        st.lists(inner, max_size=2), st.dictionaries(st.sampled_from("xyz"), inner, max_size=2)
    ),
    max_leaves=6,
)


def definition(**spec: Any) -> Made:
    return {"kind": "CustomResourceDefinition", "metadata": {"name": "widgets.ex.com"}, "spec": spec}


def test_a_definition_keeps_its_other_annotations() -> None:
    given_one = {**definition(a=1), "metadata": {"name": "w", "annotations": {"note": "x"}}}

    found = meta.annotations(marked(given_one))

    assert found["note"] == "x" and len(found[MARK]) == 16


@given(one=VALUES, other=VALUES)
def test_equal_hashes_mean_equal_definitions(one: Any, other: Any) -> None:
    first, second = (meta.annotations(marked(definition(a=value)))[MARK] for value in (one, other))

    assert (first == second) is (repr(one) == repr(other) or one is other or _same(one, other))


def _same(one: Any, other: Any) -> bool:
    """Say whether two values are the same JSON: true is no 1."""
    if type(one) is not type(other):
        return False
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(_same(one[key], other[key]) for key in one)
    if isinstance(one, list):
        return len(one) == len(other) and all(map(_same, one, other))
    return bool(one == other)


@given(value=VALUES)
def test_a_definition_that_was_applied_is_there(value: Any) -> None:
    wanted = marked(definition(a=value))

    assert is_there(copy.deepcopy(wanted), wanted)


def test_defaults_that_a_server_adds_change_nothing() -> None:
    wanted = marked(definition(names={"kind": "Widget"}, versions=[{"name": "v1"}]))
    found = copy.deepcopy(wanted)
    found["spec"]["names"]["singular"] = "widget"
    found["spec"]["versions"][0]["served"] = True
    found["status"] = {"conditions": []}

    assert is_there(found, wanted)


@pytest.mark.parametrize(
    "change",
    [
        lambda one: one["spec"].pop("names"),
        lambda one: one["spec"]["names"].update(kind="Gadget"),
        lambda one: one["spec"]["versions"].append({"name": "v2"}),
        lambda one: one["spec"]["versions"].clear(),
        lambda one: one["spec"].update(versions={"v1": True}),
        lambda one: one["spec"].update(names="Widget"),
        lambda one: one["metadata"]["annotations"].pop(MARK),
    ],
)
def test_a_definition_that_lacks_something_is_not_there(change: Any) -> None:
    wanted = marked(definition(names={"kind": "Widget"}, versions=[{"name": "v1"}]))
    found = copy.deepcopy(wanted)
    change(found)

    assert not is_there(found, wanted)


def test_a_field_that_was_dropped_from_ours_makes_another_version() -> None:
    old, new = marked(definition(a=1, b=2)), marked(definition(a=1))

    assert not is_there(old, new)
