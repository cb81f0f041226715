"""
The lexer.

The tokens are those of the language definition; the longest match is taken. A
character that starts no token is reported as cel-go's lexer does, with the text from
the start of the incomplete token, and lexing continues after it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import accumulate
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
    ( [A-Za-z_][A-Za-z0-9_]*+(?!["'])
    | \.(?![0-9])
    | [(),\[\]{{}}?:+*%\-]
    | [<>!]=?|==|&&|\|\||/(?!/)
    | {_TEXT}
    | [0-9]+\.[0-9]+(?:[eE][+-]?[0-9]+)?|[0-9]+[eE][+-]?[0-9]+|\.[0-9]+(?:[eE][+-]?[0-9]+)?
    | 0x[0-9a-fA-F]+[uU]?|[0-9]+[uU]?
    | [bB](?:{_TEXT})
    | //[^\n]*
    | `[A-Za-z0-9_.\-/\ ]+`
    | [A-Za-z_][A-Za-z0-9_]*
    )
    """,
    re.VERBOSE,
)
"""It has one group, so that `split` returns tokens and the text between them alternately."""
_BLANK: Final = "\t \r\n\f"
_BLANKS: Final = re.compile(rf"[{_BLANK}]*")
_BEGUN_TEXT: Final = {
    '"': re.compile(rf'"(?:{_ESCAPE}|[^\\"\n\r])*'),
    "'": re.compile(rf"'(?:{_ESCAPE}|[^\\'\n\r])*"),
}
_BEGUN_ESCAPE: Final = re.compile(r"\\(?:[0-3][0-7]?|[xX][0-9a-fA-F]?|u[0-9a-fA-F]{0,3}|U[0-9a-fA-F]{0,7})?")
_BEGUN_FIELD: Final = re.compile(r"`[A-Za-z0-9_.\-/ ]*")
_SIGNS: Final = (
    "==", "!=", "<=", ">=", "&&", "||", ".", "/", "<", ">", "[", "]", "{", "}", "(", ")", ",", "-", "!", "?", ":", "+",
    "*", "%",
)  # fmt: skip
_KINDS: Final = {word: word for word in (*_SIGNS, "true", "false", "null", "in")}
"""Signs and keywords, which are their own kinds."""
_COMMENT: Final = "//"


class Token(NamedTuple):
    """One token: its kind (for signs and keywords, the text), its offset and its text."""

    kind: str
    at: int
    text: str


class Tokens:
    """
    The tokens of a text, the last of them EOF: their kinds, texts and offsets.

    Three lists rather than one, because most accesses need one of the three.
    """

    __slots__ = ("issues", "kinds", "starts", "texts")

    def __init__(self, kinds: list[str], texts: list[str], starts: list[int], issues: list[Issue]) -> None:
        self.kinds, self.texts, self.starts, self.issues = kinds, texts, starts, issues

    def __iter__(self) -> Iterator[Token]:
        return map(Token, self.kinds, self.starts, self.texts)


def tokenize(text: str) -> Tokens:
    """Return the tokens of a text, and the lexical errors."""
    parts = _WORDS.split(text)
    issues: list[Issue] = []
    if "".join(parts[::2]).strip(_BLANK):
        parts, issues = _readable(text)
    starts = [*accumulate(map(len, parts))][::2]
    known = _KINDS.get
    texts = parts[1::2]
    kinds = [known(word) or (IDENTIFIER if word.isidentifier() else _kind(word)) for word in texts]
    if _COMMENT in kinds:
        kept = [place for place, kind in enumerate(kinds) if kind != _COMMENT]
        kinds, texts = [kinds[place] for place in kept], [texts[place] for place in kept]
        starts = [*(starts[place] for place in kept), len(text)]
    kinds.append(EOF)
    texts.append(EOF)
    return Tokens(kinds, texts, starts, issues)


def _kind(word: str) -> str:
    """Return the kind of a token that is no identifier, sign or keyword."""
    first, last = word[0], word[-1]
    if first == "/":
        return _COMMENT
    if first == "`":
        return ESCAPED
    if last in "\"'":
        return BYTES if first in "bB" else STRING
    if last in "uU":
        return UINT
    if word.startswith("0x"):
        return INT
    return INT if word.isdigit() else FLOAT


def _readable(text: str) -> tuple[list[str], list[Issue]]:
    """Return the tokens of a text with lexical errors, and the text between them."""
    parts: list[str] = []
    issues: list[Issue] = []
    behind, at = 0, _after_blanks(text, 0)
    while at < len(text):
        found = _WORDS.match(text, at)
        if found is not None:
            parts += [text[behind:at], found.group()]
            behind = stop = found.end()
        else:
            stop = min(end_of_unrecognized(text, at) + 1, len(text))
            shown = text[at:stop].replace("\t", "\\t").replace("\n", "\\n").replace("\r", "\\r")
            issues.append(Issue(at, f"Syntax error: token recognition error at: '{shown}'"))
        at = _after_blanks(text, stop)
    return [*parts, text[behind:]], issues


def _after_blanks(text: str, start: int) -> int:
    blanks = _BLANKS.match(text, start)
    return blanks.end() if blanks else start


def end_of_unrecognized(text: str, start: int) -> int:
    """Return the offset of the first character that cannot continue the token begun at `start`."""
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
