"""
From text to tokens.

The words are those of the language definition; the longest one that fits is
taken. A character that starts no word is reported as cel-go's lexer reports it,
with everything from the start of the word that could not be finished, and
reading goes on behind it.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from lamina.cel.errors import Issue

EOF: Final = "<EOF>"
IDENTIFIER: Final = "IDENTIFIER"
ESCAPED: Final = "ESC_IDENTIFIER"
INT: Final = "NUM_INT"
UINT: Final = "NUM_UINT"
FLOAT: Final = "NUM_FLOAT"
STRING: Final = "STRING"
BYTES: Final = "BYTES"

_ESCAPE: Final = r"""\\(?:[abfnrtv"'\\?`]|[0-3][0-7]{2}|[xX][0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8})"""
_TEXT: Final = "|".join(
    (
        rf'"""(?:{_ESCAPE}|[^\\])*?"""',
        rf"'''(?:{_ESCAPE}|[^\\])*?'''",
        rf'"(?:{_ESCAPE}|[^\\"\n\r])*"',
        rf"'(?:{_ESCAPE}|[^\\'\n\r])*'",
        r'[rR]"""[\s\S]*?"""',
        r"[rR]'''[\s\S]*?'''",
        r'[rR]"[^"\n\r]*"',
        r"[rR]'[^'\n\r]*'",
    )
)
_WORDS: Final = re.compile(
    rf"""
    [\t\ \r\n\f]*
    (?: (?P<IDENTIFIER>(?![bB]?[rR]?["'])[A-Za-z_][A-Za-z0-9_]*)
      | (?P<sign>==|!=|<=|>=|&&|\|\||\.(?![0-9])|/(?!/)|[<>\[\]{{}}(),\-!?:+*%])
      | (?P<STRING>{_TEXT})
      | (?P<NUM_FLOAT>[0-9]+\.[0-9]+(?:[eE][+-]?[0-9]+)?|[0-9]+[eE][+-]?[0-9]+|\.[0-9]+(?:[eE][+-]?[0-9]+)?)
      | (?P<NUM_UINT>0x[0-9a-fA-F]+[uU]|[0-9]+[uU])
      | (?P<NUM_INT>0x[0-9a-fA-F]+|[0-9]+)
      | (?P<BYTES>[bB](?:{_TEXT}))
      | (?P<comment>//[^\n]*)
      | (?P<ESC_IDENTIFIER>`[A-Za-z0-9_.\-/\ ]+`)
      | (?P<word>[A-Za-z_][A-Za-z0-9_]*)
      | (?P<end>\Z)
    )
    """,
    re.VERBOSE,
)
_BLANK: Final = re.compile(r"[\t \r\n\f]*")
_BEGUN_TEXT: Final = {
    '"': re.compile(rf'"(?:{_ESCAPE}|[^\\"\n\r])*'),
    "'": re.compile(rf"'(?:{_ESCAPE}|[^\\'\n\r])*"),
}
_BEGUN_ESCAPE: Final = re.compile(r"\\(?:[0-3][0-7]?|[xX][0-9a-fA-F]?|u[0-9a-fA-F]{0,3}|U[0-9a-fA-F]{0,7})?")
_BEGUN_FIELD: Final = re.compile(r"`[A-Za-z0-9_.\-/ ]*")
_WORDS_OF_THEIR_OWN: Final = frozenset({"true", "false", "null", "in"})


class Token(NamedTuple):
    """One word: its kind (for signs and keywords, itself), where it starts, and how it is written."""

    kind: str
    at: int
    text: str


def tokenize(text: str) -> tuple[list[Token], list[Issue]]:
    """Return the tokens of a text, the last of them EOF, and what could not be read."""
    tokens: list[Token] = []
    issues: list[Issue] = []
    append, new = tokens.append, tuple.__new__
    start, done = 0, False
    while not done:
        done = True
        for found in _WORDS.finditer(text, start):
            if found.start() != start:
                done = False
                break
            kind = found.lastgroup
            assert kind is not None
            word, start = found.group(kind), found.end()
            if kind == IDENTIFIER or kind == "word":
                kind = word if word in _WORDS_OF_THEIR_OWN else IDENTIFIER
            elif kind == "sign":
                kind = word
            elif kind == "end":
                break
            elif kind == "comment":
                continue
            append(new(Token, (kind, start - len(word), word)))
        if not done:
            start = _skip(text, start, issues)
    append(Token(EOF, len(text), EOF))
    return tokens, issues


def _skip(text: str, start: int, issues: list[Issue]) -> int:
    """Complain about what starts no word, and return where to go on."""
    blank = _BLANK.match(text, start)
    at = blank.end() if blank else start
    stop = unreadable(text, at)
    shown = text[at : stop + 1].replace("\t", "\\t").replace("\n", "\\n").replace("\r", "\\r")
    issues.append(Issue(at, f"Syntax error: token recognition error at: '{shown}'"))
    return min(stop + 1, len(text))


def unreadable(text: str, start: int) -> int:
    """Return the place of the first character that cannot continue the word begun at `start`."""
    first = text[start]
    if first in _BEGUN_TEXT:
        begun = _BEGUN_TEXT[first].match(text, start)
        stop = begun.end() if begun else start + 1
        escape = _BEGUN_ESCAPE.match(text, stop)
        return escape.end() if escape else stop
    if first == "`":
        begun = _BEGUN_FIELD.match(text, start)
        return begun.end() if begun else start + 1
    return start + 1 if first in "&|=" else start
