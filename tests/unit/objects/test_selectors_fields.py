"""Field selectors: terms, escapes, and errors."""

import pytest
from hypothesis import given
from hypothesis.strategies import booleans, sampled_from, text

from lamina.errors import BadRequest
from lamina.objects.field_selectors import FieldSelector, Term, parse_field_selector


@pytest.mark.parametrize(
    ("selector", "terms"),
    [
        ("",                           []),
        (",,",                         []),
        ("metadata.name=x,",           [("metadata.name", True, "x")]),
        ("a==b",                       [("a", True, "b")]),
        ("a!=b,c=d",                   [("a", False, "b"), ("c", True, "d")]),
        ("c=d,a=b",                    [("a", True, "b"), ("c", True, "d")]),
        ("a=",                         [("a", True, "")]),
        (r"a=b\,c",                    [("a", True, "b,c")]),
        (r"a=b\=c\\d",                 [("a", True, "b=c\\d")]),
    ],
)  # fmt: skip
def test_a_field_selector_is_a_list_of_terms(selector: str, terms: list[tuple[str, bool, str]]) -> None:
    assert [tuple(term) for term in parse_field_selector(selector)] == terms


@pytest.mark.parametrize(
    ("selector", "told"),
    [
        ("a", "invalid selector: 'a'; can't understand 'a'"),
        ("a=b=c", "invalid field selector: unescaped character in value: 61"),
        ("a=b\\", "invalid field selector: invalid escape sequence: \\"),
        ("a=\\x", "invalid field selector: invalid escape sequence: \\x"),
    ],
)
def test_a_field_selector_that_makes_no_sense_is_refused(selector: str, told: str) -> None:
    with pytest.raises(BadRequest) as refused:
        parse_field_selector(selector)

    assert refused.value.message == told


def test_a_field_selector_asks_for_all_of_its_terms() -> None:
    selector = parse_field_selector("status.phase=Running,spec.nodeName!=east")
    pod = {"status.phase": "Running", "spec.nodeName": "west"}

    assert selector.matches(lambda field: pod[field])
    assert not selector.matches(lambda field: {**pod, "spec.nodeName": "east"}[field])
    assert selector.exact("status.phase") == "Running"
    assert selector.exact("spec.nodeName") is None


@given(sampled_from(["a", "b.c"]), booleans(), text(max_size=12))
def test_any_value_survives_being_written_and_read(field: str, equal: bool, value: str) -> None:
    selector = FieldSelector((Term(field, equal, value),))

    assert parse_field_selector(str(selector)) == selector
