"""
The functions of regular expressions; the expressions themselves are Go's.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from lamina.cel.errors import EvaluationError
from lamina.objects import go_regexp

_MOST: Final = (1 << 31) - 1


def compiled(pattern: str) -> Any:
    """Return a compiled pattern; an invalid one is an error with the message of Go's regexp."""
    try:
        return go_regexp.compiled(pattern)
    except go_regexp.InvalidRegexp as invalid:
        raise EvaluationError(str(invalid)) from None


def tester(pattern: str) -> Callable[[str], bool]:
    """Return a test whether a pattern matches; faster than a search for the position."""
    try:
        return go_regexp.tester(pattern)
    except go_regexp.InvalidRegexp as invalid:
        raise EvaluationError(str(invalid)) from None


def matches(text: str, pattern: str) -> bool:
    """Say whether a pattern matches anywhere in a text."""
    return tester(pattern)(text)


def _search(pattern: Any, text: str) -> Any:
    # A lone surrogate has no UTF-8 encoding.
    return pattern.search(text.encode("utf-8", "replace").decode())


def find(text: str, pattern: str) -> str:
    """Return the first match, or an empty string."""
    found = _search(compiled(pattern), text)
    return found.group(0) if found else ""


def find_all(text: str, pattern: str, limit: int = -1) -> list[str]:
    """Return the non-overlapping matches, at most `limit` of them unless that is negative."""
    expression = compiled(pattern)
    found: list[str] = []
    for match in _all(expression, text):
        if 0 <= limit <= len(found):
            break
        found.append(match.group(0))
    return found


def _all(pattern: Any, text: str) -> Any:
    # As in Go, an empty match directly after another match does not count.
    last = -1
    for match in pattern.finditer(text.encode("utf-8", "replace").decode()):
        if match.end() == match.start() == last:
            continue
        last = match.end()
        yield match


def extract(text: str, pattern: str) -> str | None:
    """Return the first match of a pattern's group, or of the pattern where it has none."""
    expression = _single_group(pattern)
    found = _search(expression, text)
    if found is None:
        return None
    if expression.groups == 0:
        return str(found.group(0))
    return found.group(1) or None


def extract_all(text: str, pattern: str) -> list[str]:
    """Return all matches of a pattern's group, or of the pattern where it has none."""
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
        # As in cel-go, an invalid replacement is only an error where the pattern matches.
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
