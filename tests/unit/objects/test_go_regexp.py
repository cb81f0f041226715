"""Regular expressions as Go's package regexp has them; each message was compared with Go's own."""

import pytest

from lamina.cel.errors import EvaluationError
from lamina.cel.library import patterns
from lamina.objects import go_regexp
from lamina.objects.go_regexp import InvalidRegexp, compiled


@pytest.mark.parametrize(
    ("pattern", "message"),
    [
        ("[", "missing closing ]: `[`"),
        ("(", "missing closing ): `(`"),
        ("a)", "unexpected ): `a)`"),
        ("*", "missing argument to repetition operator: `*`"),
        ("a**", "invalid nested repetition operator: `**`"),
        ("a{2,1}", "invalid repeat count: `{2,1}`"),
        ("a{1001}", "invalid repeat count: `{1001}`"),
        ("\\", "trailing backslash at end of expression: ``"),
        ("[a\\", "trailing backslash at end of expression: ``"),
        (r"\C", r"invalid escape sequence: `\C`"),
        (r"[\C]", r"invalid escape sequence: `\C`"),
        ("\\Q(\n\\E\\C", r"invalid escape sequence: `\C`"),
        (r"\8", r"invalid escape sequence: `\8`"),
        ("(?P<n", "invalid named capture: `(?P<n`"),
        ("(?i", "invalid or unsupported Perl syntax: `(?i`"),
        ("(?=a)", "invalid or unsupported Perl syntax: `(?=`"),
        ("[b-a]", "invalid character class range: `b-a`"),
        (r"\pX", r"invalid character class range: `\pX`"),
    ],
)
def test_an_invalid_pattern_is_refused_with_the_message_of_go(pattern: str, message: str) -> None:
    with pytest.raises(InvalidRegexp) as refused:
        compiled(pattern)

    assert str(refused.value) == f"error parsing regexp: {message}"
    with pytest.raises(EvaluationError) as failed:
        patterns.tester(pattern)
    assert str(failed.value) == str(refused.value)


@pytest.mark.parametrize("pattern", [r"\Q\C\E", r"\Q\C", r"\\C", "(?P<n>a)", "(?<n>a)", r"\z"])
def test_a_pattern_that_go_accepts_is_accepted(pattern: str) -> None:
    assert compiled(pattern) is not None


def test_a_pattern_matches_anywhere() -> None:
    assert go_regexp.tester("b+")("abc")
    assert not go_regexp.tester("^b")("abc")
    assert go_regexp.tester("^.$")("ü")
