"""Expressions in strings: where they begin and end."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina.errors import SpecError
from lamina.graph.language.template_strings import Expression, extract
from tests.bed.scenarios import check


@pytest.mark.parametrize(
    ("text", "sources"),
    [
        ("", []),
        ("plain", []),
        ("$a {b}", []),
        ("${a}", ["a"]),
        ("${}", [""]),
        ("x-${a}-${b.c}", ["a", "b.c"]),
        ("${a}${b}", ["a", "b"]),
        ("$${a}", ["a"]),
        ('${{"a": {"b": 1}}}', ['{"a": {"b": 1}}']),
        ('${"}" + a}', ['"}" + a']),
        (r'${"\"}" + a}', [r'"\"}" + a']),
        (r'${"\\"} tail }', [r'"\\"']),
        ("${a", []),
        ("${a} ${b", ["a"]),
        ('${"a} ${b}', ["b"]),
        ("${\n  a\n}", ["\n  a\n"]),
        ("é${'ü'}", ["'ü'"]),
    ],
)
def test_expressions_end_at_the_brace_that_closes_them(text: str, sources: list[str]) -> None:
    assert [one.source for one in extract(text).expressions] == sources


def test_parts_are_in_order_with_their_positions() -> None:
    parts = extract("a ${b} c ${d}")

    assert parts.parts == ("a ", Expression("b", 4), " c ", Expression("d", 11))
    assert parts.standalone is None
    assert [parts.text[one.start : one.end] for one in parts.expressions] == ["b}", "d}"]


@pytest.mark.parametrize(
    ("text", "is_standalone"),
    [("${a}", True), ("${a}\n", False), (" ${a}", False), ("${a}${b}", False), ("a", False), ("", False)],
)
def test_a_standalone_expression_is_the_whole_string(text: str, is_standalone: bool) -> None:
    assert extract(text).standalone == (Expression("a", 2) if is_standalone else None)


@check("RG-22")
def test_a_literal_of_an_expression_may_hold_another() -> None:
    assert extract('echo ${"${HOME}"}').parts == ("echo ", Expression('"${HOME}"', 7))


@pytest.mark.parametrize("text", ["${a ${b} }", "${${a}}", "x ${outer(${inner})}"])
def test_nested_expressions_are_refused(text: str) -> None:
    with pytest.raises(SpecError, match="nested expressions are not allowed unless inside string literals"):
        extract(text)


def test_upstream_does_not_refuse_an_expression_right_behind_a_literal() -> None:
    assert [one.source for one in extract('${"a"${b}}').expressions] == ['"a"${b}']


@pytest.mark.parametrize(
    ("text", "sources"),
    [
        # Single quotes count only where the reading without them is not possible.
        ("${a == '}'}", ["a == '}'"]),
        ("${'{' + a}", ["'{' + a"]),
        ("${a + '\"'} b", ["a + '\"'"]),
        ("${'${' + a}", ["'${' + a"]),
        (r"${a + '\'}'}", [r"a + '\'}'"]),
        ("it's ${a} isn't", ["a"]),
        ("${a['b']}", ["a['b']"]),
        ("${'{}'}", ["'{}'"]),
        # Neither reading is possible: the first one stays.
        ("${a'}'}", ["a'"]),
    ],
)
def test_single_quotes_are_honoured_where_they_must_be(text: str, sources: list[str]) -> None:
    assert [one.source for one in extract(text).expressions] == sources


def test_a_string_of_expressions_without_an_end_is_refused_rather_than_read_for_ever() -> None:
    with pytest.raises(SpecError, match="too many"):
        extract('${"' * 100_000)
    assert extract("${" + "a" * 2_000_000).is_plain


TOKENS = st.lists(st.sampled_from(["${", *"${}\"'\\a \né"]), max_size=30).map("".join)


@given(TOKENS)
def test_the_parts_of_a_string_are_the_string(text: str) -> None:
    try:
        parts = extract(text)
    except SpecError as refused:
        assert "nested expressions" in str(refused)
        return

    shown = [f"${{{part.source}}}" if isinstance(part, Expression) else part for part in parts.parts]
    assert "".join(shown) == text
    for one in parts.expressions:
        assert text[one.start - 2 : one.end] == f"${{{one.source}}}"
    assert parts.is_plain is (not parts.expressions)
