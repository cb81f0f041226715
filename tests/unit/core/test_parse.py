"""Parts of objects are parsed into types, and errors name the field."""

from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Struct

from lamina.core.parse import emptied, read, template_selector, without_nulls
from lamina.errors import SpecError


class Part(Struct, rename="camel", kw_only=True):
    name: str
    max_size: int = 1


class Spec(Struct, rename="camel", kw_only=True):
    mode: Literal["Fast", "Slow"] = "Fast"
    parts: tuple[Part, ...] = ()
    by_name: dict[str, Part] = {}


VALUES = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.text(max_size=2)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=2), inner, max_size=3)
    ),
    max_leaves=10,
)


@pytest.mark.parametrize("value", [None, {}, {"mode": None}, {"parts": None}, {"unheard": 1}])
def test_what_is_missing_null_or_unknown_leaves_the_default(value: Any) -> None:
    assert read(value, Spec) == Spec()


def test_fields_are_parsed_by_their_names_in_kubernetes() -> None:
    found = read({"parts": [{"name": "a", "maxSize": 3}], "byName": {"b": {"name": "b"}}}, Spec)

    assert found == Spec(parts=(Part(name="a", max_size=3),), by_name={"b": Part(name="b")})


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({"mode": "Faster"},                       "spec.mode: invalid enum value 'Faster'"),
        ({"mode": 1},                              "spec.mode: expected `str`, got `int`"),
        ({"parts": "a"},                           "spec.parts: expected `array`, got `str`"),
        ({"parts": [{}]},                          "spec.parts[0]: object missing required field `name`"),
        ({"parts": [{"name": "a"}, {"name": 1}]},  "spec.parts[...].name: expected `str`, got `int`"),
        ({"parts": [{"name": "a", "maxSize": "b"}]}, "spec.parts[...].maxSize: expected `int`, got `str`"),
        ({"byName": {"a": {"name": None}}},        "spec.byName[...]: object missing required field `name`"),
        ([],                                       "spec: expected `object`, got `array`"),
        ("x",                                      "spec: expected `object`, got `str`"),
    ],
)  # fmt: skip
def test_an_error_names_the_field(value: Any, message: str) -> None:
    with pytest.raises(SpecError) as refused:
        read(value, Spec)

    assert str(refused.value).replace("[0]", "[...]").replace("[1]", "[...]") == message.replace(
        "[0]", "[...]"
    )


def test_an_error_names_the_part_of_the_object_that_was_read() -> None:
    with pytest.raises(SpecError, match=r"^spec\.template\.mode: "):
        read({"mode": 1}, Spec, "spec.template")


@given(value=VALUES)
def test_no_null_field_is_left_and_nothing_else_is_lost(value: Any) -> None:
    made = without_nulls(value)

    assert _nulls(made) == 0
    assert without_nulls(made) == made
    if not _nulls(value):
        assert made == value


def _nulls(value: Any) -> int:
    """Return how many fields of objects are null; null items of lists are values."""
    if isinstance(value, dict):
        return sum(1 if one is None else _nulls(one) for one in value.values())
    return sum(map(_nulls, value)) if isinstance(value, list) else 0


@given(value=VALUES)
def test_the_value_that_is_parsed_is_not_changed(value: Any) -> None:
    before = repr(value)
    without_nulls(value)

    assert repr(value) == before


@pytest.mark.parametrize(
    ("value", "path", "found"),
    [
        ({"a": 1}, (), {}),
        ({"x": {"a": 1}, "y": 2}, ("x",), {"x": {}, "y": 2}),
        ({"x": [{"o": {"a": 1}, "p": 1}, {"p": 2}]}, ("x", "*", "o"), {"x": [{"o": {}, "p": 1}, {"p": 2}]}),
        ([{"a": 1}, {"b": 2}], ("*",), [{}, {}]),
        ({"y": 2}, ("x", "*"), {"y": 2}),
        ({"x": "no list"}, ("x", "*"), {"x": "no list"}),
        ({"x": [1, None]}, ("x", "*"), {"x": [1, None]}),
        ("no object", ("x",), "no object"),
        ({"x": None}, ("x", "*", "y"), {"x": None}),
    ],
)
def test_objects_at_a_path_are_emptied_and_the_rest_is_left(
    value: Any, path: tuple[str, ...], found: Any
) -> None:
    assert emptied(value, path) == found


def test_a_value_is_not_changed_by_emptying_it() -> None:
    value = {"x": [{"o": {"a": 1}}]}

    emptied(value, ("x", "*", "o"))

    assert value == {"x": [{"o": {"a": 1}}]}


# Selectors of templates


@pytest.mark.parametrize(
    ("selector", "message"),
    [
        ({"matchLabels": {"app": "web"}}, ""),
        ({"matchExpressions": [{"key": "app", "operator": "Exists"}]}, ""),
        ({}, "spec.selector: selects everything; name at least one label of the template"),
        ({"matchLabels": {"app": "other"}},
         "spec.template.metadata.labels: do not match spec.selector; add the labels that it selects"),
        ({"matchExpressions": [{"key": "app", "operator": "Is"}]},
         'spec.selector: "Is" is not a valid label selector operator'),
    ],
)  # fmt: skip
def test_a_selector_matches_the_labels_of_its_template(selector: Any, message: str) -> None:
    labels = {"app": "web", "tier": "front"}

    if not message:
        assert template_selector(selector, labels).matches(labels)
        return
    with pytest.raises(SpecError) as refused:
        template_selector(selector, labels)
    assert str(refused.value) == message
