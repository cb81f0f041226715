"""
Regular expressions, in RE2's syntax and with its promise: matching takes no longer than the text is long.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final

import re2

from lamina.cel.errors import EvaluationError

_OPTIONS = re2.Options()
_OPTIONS.log_errors = False
_TEST_ONLY = re2.Options()
_TEST_ONLY.log_errors = False
_TEST_ONLY.never_capture = True
_MOST: Final = (1 << 31) - 1
_GO_WORDS: Final = {
    "missing ]": "missing closing ]",
    "missing )": "missing closing )",
    "trailing \\": "trailing backslash at end of expression",
    "no argument for repetition operator": "missing argument to repetition operator",
    "invalid repetition size": "invalid repeat count",
    "bad repetition operator": "invalid nested repetition operator",
    "invalid perl operator": "invalid or unsupported Perl syntax",
    "invalid named capture group": "invalid named capture",
    "pattern too large - compile failed": "expression too large",
}


@lru_cache(maxsize=1024)
def compiled(pattern: str) -> Any:
    """Return a compiled pattern; one that RE2 refuses is an error, in the words of Go's implementation."""
    try:
        return re2.compile(pattern, options=_OPTIONS)
    except UnicodeError:
        raise EvaluationError(f"error parsing regexp: invalid UTF-8: `{pattern}`") from None
    except re2.error as refused:
        raise EvaluationError(f"error parsing regexp: {_reason(refused)}") from None


def _reason(refused: Exception) -> str:
    said = refused.args[0] if refused.args else ""
    text = said.decode("utf-8", "replace") if isinstance(said, bytes) else str(said)
    words, _, part = text.partition(": ")
    return f"{_GO_WORDS.get(words, words)}" + (f": `{part}`" if part else "")


@lru_cache(maxsize=1024)
def tester(pattern: str) -> Callable[[str], bool]:
    """Return a test for texts in which a pattern is found; it is quicker than asking where."""
    compiled(pattern)
    expression: Any = re2.compile(pattern.encode(), options=_TEST_ONLY)
    # The wrapper makes a generator and a match; what it wraps only says where, in a fraction of the time.
    wrapped = getattr(expression, "_regexp", None)
    if wrapped is None:
        return lambda text: expression.search(text.encode("utf-8", "replace")) is not None
    match, anywhere = wrapped.Match, wrapped.Anchor.UNANCHORED

    def test(text: str) -> bool:
        data = text.encode("utf-8", "replace")
        return bool(match(anywhere, data, 0, len(data))[0][0] >= 0)

    return test


def matches(text: str, pattern: str) -> bool:
    """Return whether a pattern is found anywhere in a text."""
    return tester(pattern)(text)


def _search(pattern: Any, text: str) -> Any:
    # A lone surrogate has no UTF-8 form, and so no place in a text of characters.
    return pattern.search(text.encode("utf-8", "replace").decode())


def find(text: str, pattern: str) -> str:
    """Return the first match, or nothing."""
    found = _search(compiled(pattern), text)
    return found.group(0) if found else ""


def find_all(text: str, pattern: str, limit: int = -1) -> list[str]:
    """Return the matches that do not overlap, at most `limit` of them unless that is negative."""
    expression = compiled(pattern)
    found: list[str] = []
    for match in _all(expression, text):
        if 0 <= limit <= len(found):
            break
        found.append(match.group(0))
    return found


def _all(pattern: Any, text: str) -> Any:
    # As Go has it: an empty match right after the match before it does not count.
    last = -1
    for match in pattern.finditer(text.encode("utf-8", "replace").decode()):
        if match.end() == match.start() == last:
            continue
        last = match.end()
        yield match


def extract(text: str, pattern: str) -> str | None:
    """Return what the group of a pattern matched first, or its whole match where it has none."""
    expression = _single_group(pattern)
    found = _search(expression, text)
    if found is None:
        return None
    if expression.groups == 0:
        return str(found.group(0))
    return found.group(1) or None


def extract_all(text: str, pattern: str) -> list[str]:
    """Return what the group of a pattern matched each time, or its whole matches where it has none."""
    expression = _single_group(pattern)
    if expression.groups == 0:
        return [match.group(0) for match in _all(expression, text)]
    return [match.group(1) for match in _all(expression, text) if match.group(1)]


def _single_group(pattern: str) -> Any:
    expression = compiled(pattern)
    if expression.groups > 1:
        raise EvaluationError(f'regular expression has more than one capturing group: "{pattern}"')
    return expression


def replace(text: str, pattern: str, replacement: str, limit: int = -1) -> str:
    """Return a text with matches replaced, at most `limit` of them; `\\1` in the replacement is a group."""
    if limit == 0:
        return text
    if limit > _MOST:
        raise EvaluationError("integer overflow")
    expression = compiled(pattern)
    parts: list[str | int] | None = None
    made: list[str] = []
    end = 0
    for count, match in enumerate(_all(expression, text)):
        if 0 < limit <= count:
            break
        # A replacement that makes no sense is only noticed where there is something to replace.
        parts = _replacement(replacement, expression.groups) if parts is None else parts
        made.append(text[end : match.start()])
        made.extend(part if isinstance(part, str) else (match.group(part) or "") for part in parts)
        end = match.end()
    made.append(text[end:])
    return "".join(made)


def _replacement(text: str, groups: int) -> list[str | int]:
    parts: list[str | int] = []
    place = 0
    while place < len(text):
        if text[place] != "\\":
            end = text.find("\\", place)
            end = len(text) if end < 0 else end
            parts.append(text[place:end])
            place = end
            continue
        following = text[place + 1 : place + 2]
        if following == "\\":
            parts.append("\\")
        elif following.isascii() and following.isdigit():
            if int(following) > groups:
                raise EvaluationError(
                    f"replacement string references group {following} but regex has only {groups} group(s)"
                )
            parts.append(int(following))
        elif not following:
            raise EvaluationError(f"invalid replacement string: '{text}' \\ not allowed at end")
        else:
            raise EvaluationError(
                f"invalid replacement string: '{text}' \\ must be followed by a digit or \\"
            )
        place += 2
    return parts
