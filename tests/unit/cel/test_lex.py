"""The lexer."""

from __future__ import annotations

import pytest

from lamina.cel.lex import tokenize
from lamina.cel.unescape import EscapeError, bytes_of, text_of


def words(text: str) -> list[tuple[str, str]]:
    tokens = tokenize(text)
    assert not tokens.issues
    return [(token.kind, token.text) for token in [*tokens][:-1]]


@pytest.mark.parametrize(
    ("text", "kinds"),
    [
        ("1", ["NUM_INT"]),
        ("0x1F", ["NUM_INT"]),
        ("1u 0xFFu 7U", ["NUM_UINT"] * 3),
        ("1.5 .5 1e3 1.5e-3 2E+4", ["NUM_FLOAT"] * 5),
        ("1.", ["NUM_INT", "."]),
        ("1.e5", ["NUM_INT", ".", "IDENTIFIER"]),
        ("0xu", ["NUM_INT", "IDENTIFIER"]),
        ("a._b1", ["IDENTIFIER", ".", "IDENTIFIER"]),
        ("true in null", ["true", "in", "null"]),
        ("trueish inner", ["IDENTIFIER", "IDENTIFIER"]),
        ("'a' \"b\" '''c''' r'd' R\"e\"", ["STRING"] * 5),
        ("b'a' B\"b\" br'c' bR'''d'''", ["BYTES"] * 4),
        ("rb'a'", ["IDENTIFIER", "STRING"]),
        ("''''''", ["STRING"]),
        ("'''a", None),
        ("a.`b-c d`", ["IDENTIFIER", ".", "ESC_IDENTIFIER"]),
        ("a<=b>=c!=d", ["IDENTIFIER", "<=", "IDENTIFIER", ">=", "IDENTIFIER", "!=", "IDENTIFIER"]),
        ("a // b\n/ c", ["IDENTIFIER", "/", "IDENTIFIER"]),
        ("// nothing", []),
        ("  \t\r\n\f", []),
    ],
)
def test_the_longest_word_that_fits_is_taken(text: str, kinds: list[str] | None) -> None:
    if kinds is None:
        assert tokenize(text).issues
    else:
        assert [kind for kind, _ in words(text)] == kinds


def test_a_token_knows_where_it_starts() -> None:
    tokens = tokenize("é + 'x'"[1:])
    assert [token.at for token in tokens] == [1, 3, 6]


@pytest.mark.parametrize(
    ("text", "complaint", "at"),
    [
        ("a & b", "'& '", 2),
        ("a = b", "'= '", 2),
        ("$", "'$'", 0),
        ("'abc", "''abc'", 0),
        ("'a\\qb'", "''a\\q'", 0),
        ("'a\nb", "''a\\n'", 0),
        ("`", "'`'", 0),
    ],
)
def test_what_starts_no_word_is_shown_as_far_as_it_was_read(text: str, complaint: str, at: int) -> None:
    issues = tokenize(text).issues
    assert issues[0].message == f"Syntax error: token recognition error at: {complaint}"
    assert issues[0].at == at


@pytest.mark.parametrize(
    ("literal", "text"),
    [
        (r"'\a\b\f\n\r\t\v\\\'\"\`\?'", "\a\b\f\n\r\t\v\\'\"`?"),
        (r"'\x41\X42\u00e9\U0001F600\101'", "ABé😀A"),
        (r"r'\x41'", r"\x41"),
        ('"""a"b\n"""', 'a"b\n'),
        ("'''a\r\nb\rc'''", "a\nb\nc"),
        ("''", ""),
    ],
)
def test_a_string_stands_for_its_text(literal: str, text: str) -> None:
    assert text_of(literal) == text


@pytest.mark.parametrize(
    ("literal", "value"),
    [
        (r"b'\xff\377'", b"\xff\xff"),
        ("b'é'", "é".encode()),
        (r"br'\xff'", rb"\xff"),
        (r"b'\n'", b"\n"),
    ],
)
def test_escapes_in_bytes_are_bytes(literal: str, value: bytes) -> None:
    assert bytes_of(literal) == value


def test_half_a_surrogate_pair_is_no_character() -> None:
    with pytest.raises(EscapeError, match="invalid unicode code point"):
        text_of(r"'\ud800'")


def test_bytes_have_no_code_points() -> None:
    with pytest.raises(EscapeError, match="unable to unescape string"):
        bytes_of(r"b'\u00e9'")
