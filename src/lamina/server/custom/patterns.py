"""Regular expressions as the server has them: RE2, found anywhere in the text."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Final

import re2

_OPTIONS: Final = re2.Options()
_OPTIONS.log_errors = False
_OPTIONS.max_mem = 64 << 20

_COMPLAINTS: Final = {
    "bad repetition operator": "invalid nested repetition operator",
    "invalid character class range": "invalid character class range",
    "invalid character class": "invalid character class",
    "invalid escape sequence": "invalid escape sequence",
    "invalid named capture group": "invalid named capture",
    "invalid perl operator": "invalid or unsupported Perl syntax",
    "invalid repetition size": "invalid repeat count",
    "missing )": "missing closing )",
    "missing ]": "missing closing ]",
    "missing argument to repetition operator": "missing argument to repetition operator",
    "no argument for repetition operator": "missing argument to repetition operator",
    "trailing \\": "trailing backslash at end of expression",
    "unexpected )": "unexpected )",
}
"""What RE2 says, and what Go says of the same mistake."""


_any_byte: Final = re2.compile(r"^(?:[^\\]|\\[^CQ]|\\Q.*?\\E)*\\C").search


class BadPattern(ValueError):
    """A pattern that is none, in the words of Go."""


@lru_cache(maxsize=1024)
def searcher(pattern: str) -> Callable[[str], bool]:
    """Return a function that says whether a text has a pattern in it; raises BadPattern where that is none."""
    if _any_byte(pattern):
        # RE2 has it, Go's version of RE2 has not.
        raise BadPattern("error parsing regexp: invalid escape sequence: `\\C`")
    try:
        # Bytes on both sides: the library is several times faster when it need not count characters.
        search = re2.compile(pattern.encode(), options=_OPTIONS).search
    except (re2.error, UnicodeError) as problem:
        raise BadPattern(_worded(problem, pattern)) from None
    return lambda text: search(text.encode("utf-8", "surrogatepass")) is not None


def _worded(problem: Exception, pattern: str) -> str:
    said = problem.args[0] if problem.args else b""
    text = said.decode("utf-8", "replace") if isinstance(said, bytes) else str(said)
    for told, word in _COMPLAINTS.items():
        if text.startswith(told):
            part = text[len(told) :].removeprefix(": ") or ("" if told.startswith("trailing") else pattern)
            return f"error parsing regexp: {word}: `{part}`"
    return f"error parsing regexp: {text}"
