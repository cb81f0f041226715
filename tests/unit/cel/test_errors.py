"""The text of errors."""

from __future__ import annotations

from lamina.cel.ast import Source
from lamina.cel.errors import CheckError, EvaluationError, Issue


def test_a_complaint_points_at_its_place() -> None:
    shown = Issue(4, "undeclared reference to 'x'").shown(Source("1 + x"))
    assert shown == "ERROR: <input>:1:5: undeclared reference to 'x'\n | 1 + x\n | ....^"


def test_only_the_line_in_question_is_shown() -> None:
    shown = Issue(8, "no").shown(Source("1 +\n2 + x\n", name="rule"))
    assert shown == "ERROR: rule:2:5: no\n | 2 + x\n | ....^"


def test_wide_characters_get_wide_dots() -> None:
    assert Issue(3, "no").shown(Source("'日'日")).endswith(" | '日'日\n | .．.＾")


def test_tabs_are_shown_as_blanks() -> None:
    assert Issue(1, "no").shown(Source("\tx")).endswith("\n |  x\n | .^")


def test_what_has_no_place_is_shown_without_one() -> None:
    assert Issue(-1, "too long").shown(Source("x")) == "ERROR: <input>:-1:0: too long"


def test_a_line_that_is_too_long_to_read_is_left_out() -> None:
    assert Issue(0, "no").shown(Source("x" * 20_000)) == "ERROR: <input>:1:1: no"


def test_more_than_a_hundred_complaints_are_counted() -> None:
    error = CheckError(Source("x"), [Issue(0, "no")] * 103)
    assert str(error).endswith("\n3 more errors were truncated")


def test_the_first_suggestion_is_the_hint() -> None:
    error = CheckError(Source("a b"), [Issue(2, "no", "second"), Issue(0, "no", "first")])
    assert error.hint == "first"


def test_an_evaluation_error_shows_its_place_where_it_is_known() -> None:
    assert EvaluationError("no such key: a").shown == "no such key: a"
    placed = EvaluationError("no such key: a", at=1, source=Source("x.a"))
    assert placed.shown == "ERROR: <input>:1:2: no such key: a\n | x.a\n | .^"
