"""What is written means what was read."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Struct

from lamina.cel.environment import PLAIN
from lamina.cel.errors import CelError
from lamina.cel.parse import parse
from lamina.cel.unparse import unparse
from tests.unit.cel.expressions import expressions


def bare(node: Any) -> Any:
    """Return a tree without ids and places."""
    if isinstance(node, tuple):
        return tuple(map(bare, node))
    if not isinstance(node, Struct):
        return (type(node).__name__, repr(node))
    return (
        type(node).__name__,
        *(bare(getattr(node, field)) for field in node.__struct_fields__ if field not in ("id", "at")),
    )


@given(expressions)
def test_reading_what_was_written_gives_the_same_tree(text: str) -> None:
    parsed = parse(text, PLAIN)
    written = unparse(parsed)
    again = parse(written, PLAIN)
    assert bare(again.expr) == bare(parsed.expr), written
    assert unparse(again) == written


@given(st.one_of(st.text(max_size=60), st.binary(max_size=60).map(lambda raw: raw.decode("latin-1"))))
def test_nothing_but_a_cel_error_comes_of_any_text(text: str) -> None:
    try:
        parse(text, PLAIN)
    except CelError as error:
        assert str(error).startswith("ERROR: <input>:")


words = st.sampled_from(
    [
        "a",
        "b.c",
        "1",
        "2.0",
        "'s'",
        "(",
        ")",
        "[",
        "]",
        "{",
        "}",
        ".",
        ",",
        "?",
        ":",
        "+",
        "-",
        "*",
        "!",
        "==",
        "<",
        "in",
        "&&",
        "||",
        "f(",
        "true",
        "null",
        "`x`",
        "A{",
        "$",
        "b'y'",
        "3u",
        "has(",
        ".all(x,",
        "\\",
        '"',
        "'",
        "\n",
    ]
)


@given(st.lists(words, max_size=25))
def test_nothing_but_a_cel_error_comes_of_any_words(some: list[str]) -> None:
    for separator in ("", " "):
        try:
            parse(separator.join(some), PLAIN)
        except CelError as error:
            assert error.args


@pytest.mark.parametrize("text", ["a.`b-c`.`d e`", "A{`b-c`: 1}"])
def test_quoted_fields_stay_quoted(text: str) -> None:
    assert unparse(parse(text, PLAIN)) == text


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("((a)+(b))*c", "(a + b) * c"),
        ("a+(b+c)", "a + (b + c)"),
        ("a&&(b||c)", "a && (b || c)"),
        ("a ? (b ? c : d) : (e ? f : g)", "a ? (b ? c : d) : e ? f : g"),
        ("-(1)", "-(1)"),
        ("!(a && b)", "!(a && b)"),
        ("(-1).abs()", "-1.abs()"),
        ("'it\\'s \"x\"\\n'", '"it\'s \\"x\\"\\n"'),
        ("has(a.b)", "has(a.b)"),
        ("l.filter(x, x in m)", "l.filter(x, x in m)"),
        ("1e3", "1000.0"),
        ("b'\\xff\"'", 'b"\\377\\042"'),
    ],
)
def test_parentheses_are_written_where_they_are_needed(text: str, written: str) -> None:
    assert unparse(parse(text, PLAIN)) == written
