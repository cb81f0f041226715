"""The encoders extension: base64."""

from __future__ import annotations

import base64
import binascii
import re
from typing import Final

from lamina.cel.declarations import Library
from lamina.cel.errors import EvaluationError
from lamina.cel.library.signature import function, to_functions

_DIGIT: Final = re.compile(r"[A-Za-z0-9+/]*")


def decode(text: str) -> bytes:
    """Return decoded bytes, with or without padding; line ends are skipped, as in Go."""
    joined = text.replace("\r", "").replace("\n", "")
    digits = joined.rstrip("=")
    padding = len(joined) - len(digits)
    found = _DIGIT.match(digits)
    end = found.end() if found else 0
    if end != len(digits) or len(digits) % 4 == 1 or (padding and (len(joined) % 4 or padding > 2)):
        raise EvaluationError(f"illegal base64 data at input byte {end}")
    try:
        return base64.b64decode(digits + "=" * (-len(digits) % 4))
    except (binascii.Error, ValueError):
        raise EvaluationError(f"illegal base64 data at input byte {end}") from None


def encode(value: bytes) -> str:
    return base64.b64encode(value).decode("ascii")


ENCODERS: Final = Library(
    name="encoders",
    functions=to_functions(
        [
            function("base64.decode", "base64_decode_string", "string -> bytes", decode),
            function("base64.encode", "base64_encode_bytes", "bytes -> string", encode),
        ]
    ),
)
