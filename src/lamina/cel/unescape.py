"""The values of string and bytes literals."""

from __future__ import annotations

import re
from typing import Final

_SIMPLE: Final = {
    "a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v",
    "\\": "\\", "'": "'", '"': '"', "`": "`", "?": "?",
}  # fmt: skip
_ESCAPE: Final = re.compile(
    r"\\(?:([abfnrtv\\'\"`?])|([0-3][0-7]{2})|[xX]([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8}))"
)


class EscapeError(ValueError):
    """An invalid escape sequence."""


def text_of(literal: str) -> str:
    """Return the text of a string literal, without quotes, prefix and escapes."""
    body, raw = _body(literal)
    return body if raw or "\\" not in body else _ESCAPE.sub(_character, body)


def bytes_of(literal: str) -> bytes:
    """Return the bytes of a bytes literal; octal and hex escapes are bytes, not characters."""
    body, raw = _body(literal[1:])
    if raw or "\\" not in body:
        return body.encode("utf-8", "surrogatepass")
    parts: list[bytes] = []
    at = 0
    for escape in _ESCAPE.finditer(body):
        parts.append(body[at : escape.start()].encode("utf-8", "surrogatepass"))
        simple, octal, hexadecimal, *_ = escape.groups()
        if simple:
            parts.append(_SIMPLE[simple].encode())
        elif octal or hexadecimal:
            parts.append(bytes((int(octal, 8) if octal else int(hexadecimal, 16),)))
        else:
            raise EscapeError("unable to unescape string")
        at = escape.end()
    parts.append(body[at:].encode("utf-8", "surrogatepass"))
    return b"".join(parts)


def _body(literal: str) -> tuple[str, bool]:
    raw = literal[0] in "rR"
    quoted = literal[1:] if raw else literal
    around = 3 if len(quoted) >= 6 and quoted.startswith(("'''", '"""')) else 1
    return quoted[around:-around].replace("\r\n", "\n").replace("\r", "\n"), raw


def _character(escape: re.Match[str]) -> str:
    simple, octal, *others = escape.groups()
    if simple:
        return _SIMPLE[simple]
    code = int(octal, 8) if octal else int(next(digits for digits in others if digits), 16)
    if code > 0x10FFFF or 0xD800 <= code <= 0xDFFF:
        raise EscapeError("invalid unicode code point")
    return chr(code)
