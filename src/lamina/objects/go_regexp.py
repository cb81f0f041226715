"""
Regular expressions as in Go: RE2, with the errors of Go's package regexp.

Matching time is linear in the text.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final

import re2

_MAX_MEMORY: Final = 64 << 20
_MESSAGES: Final = {
    "bad repetition operator": "invalid nested repetition operator",
    "invalid named capture group": "invalid named capture",
    "invalid perl operator": "invalid or unsupported Perl syntax",
    "invalid repetition size": "invalid repeat count",
    "missing )": "missing closing )",
    "missing ]": "missing closing ]",
    "no argument for repetition operator": "missing argument to repetition operator",
    "pattern too large - compile failed": "expression too large",
    "trailing \\": "trailing backslash at end of expression",
}
"""RE2's messages and Go's for the same errors, where they differ."""
_WHOLE: Final = ("expression too large",)
"""The errors that are about the whole pattern; RE2 does not name a part of it, and neither does Go."""


def _options(*, captures: bool) -> Any:
    options = re2.Options()
    options.log_errors = False
    options.max_mem = _MAX_MEMORY
    options.never_capture = not captures
    return options


_CAPTURES: Final = _options(captures=True)
_TEST_ONLY: Final = _options(captures=False)
_any_byte: Final = re2.compile(r"(?s)^(?:[^\\]|\\[^CQ]|\\Q.*?\\E)*\\C").search


class InvalidRegexp(ValueError):
    """An invalid pattern, with Go's message."""


@lru_cache(maxsize=1024)
def compiled(pattern: str) -> Any:
    """Return a compiled pattern; raises InvalidRegexp."""
    try:
        if _any_byte(pattern):
            # Valid in RE2, but not in Go's implementation.
            raise InvalidRegexp("error parsing regexp: invalid escape sequence: `\\C`")
        return re2.compile(pattern, options=_CAPTURES)
    except UnicodeError:
        raise InvalidRegexp(f"error parsing regexp: invalid UTF-8: `{pattern}`") from None
    except re2.error as refused:
        raise InvalidRegexp(f"error parsing regexp: {_message(refused, pattern)}") from None


@lru_cache(maxsize=1024)
def tester(pattern: str) -> Callable[[str], bool]:
    """Return a test whether a pattern matches anywhere in a text, without its position; raises InvalidRegexp."""
    compiled(pattern)
    # Bytes, because the library is several times slower when it has to count characters.
    expression: Any = re2.compile(pattern.encode(), options=_TEST_ONLY)
    # The wrapper creates a generator and a match object; the wrapped method is much faster.
    wrapped = getattr(expression, "_regexp", None)
    if wrapped is None:
        return lambda text: expression.search(text.encode("utf-8", "replace")) is not None
    match, anywhere = wrapped.Match, wrapped.Anchor.UNANCHORED

    def test(text: str) -> bool:
        data = text.encode("utf-8", "replace")
        return bool(match(anywhere, data, 0, len(data))[0][0] >= 0)

    return test


def _message(refused: Exception, pattern: str) -> str:
    reason = refused.args[0] if refused.args else ""
    text = reason.decode("utf-8", "replace") if isinstance(reason, bytes) else str(reason)
    words, _, part = text.partition(": ")
    message = _MESSAGES.get(words, words)
    return f"{message}: `{pattern if message in _WHOLE else part}`"
