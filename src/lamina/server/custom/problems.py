"""
What a value may do wrong by its schema, in the words of the real server.

The server first collects problems of its schema library, each with a text and
perhaps a path, and drops a text it has seen; only then do they become causes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import Enum
from typing import Any, NamedTuple

from lamina.errors import Cause
from lamina.objects.printing import json_text, quoted
from lamina.server import fields
from lamina.server.custom.golang import is_integer, ordered, plain


class Sort(Enum):
    """Which cause a problem becomes."""

    INVALID = "invalid"
    TYPE = "type"
    REQUIRED = "required"
    UNSUPPORTED = "unsupported"
    TOO_LONG = "too long"
    TOO_MANY = "too many"
    COMPOSITE = "composite"
    """No branch of a junctor fits: said of the object as a whole."""


class Problem(NamedTuple):
    """One thing wrong with the value at `path`; `limit` is what it goes beyond."""

    sort: Sort
    path: str
    text: str
    value: Any = ""
    limit: Any = None


class Outcome:
    """
    What came of looking at a value.

    `matches` counts what was in order; of the branches that fail, the one with
    most of it is taken to be the one that was meant.
    """

    __slots__ = ("_texts", "matches", "problems")

    def __init__(self) -> None:
        self.problems: list[Problem] = []
        self.matches = 0
        self._texts: set[str] = set()

    def add(self, problem: Problem) -> None:
        if problem.text not in self._texts:
            self._texts.add(problem.text)
            self.problems.append(problem)

    def take(self, other: Outcome) -> None:
        """Take over what came of looking at a part."""
        self.matches += other.matches
        for problem in other.problems:
            self.add(problem)


def wrong_type(path: str, wanted: str, found: str) -> Problem:
    text = f"{path} in body must be of type {wanted}: {quoted(found)}"
    return Problem(Sort.TYPE, path, text, found)


def missing(path: str) -> Problem:
    return Problem(Sort.REQUIRED, path, f"{path} in body is required")


def not_listed(path: str, value: Any, values: Sequence[Any]) -> Problem:
    shown = " ".join(_loosely(one) for one in values)
    return Problem(Sort.UNSUPPORTED, path, f"{path} in body should be one of [{shown}]", value, values)


def _loosely(value: Any) -> str:
    return value if isinstance(value, str) else json_text(ordered(value))


def too_long(path: str, most: int) -> Problem:
    return Problem(Sort.TOO_LONG, path, f"{path} in body should be at most {most} chars long", limit=most)


def too_many(path: str, count: int, most: int, of: str) -> Problem:
    return Problem(Sort.TOO_MANY, path, f"{path} in body should have at most {most} {of}", count, most)


def improper(path: str, value: Any, text: str) -> Problem:
    """Return a problem of no special sort; `text` goes on after the path."""
    return Problem(Sort.INVALID, path, f"{path} in body {text}", value)


def composite(text: str) -> Problem:
    return Problem(Sort.COMPOSITE, "", text)


def shown_value(value: Any) -> Any:
    """Return a value as a cause shows it: objects by field name, integers beyond 64 bits as floats."""
    if isinstance(value, dict | list):
        return ordered(value)
    if isinstance(value, int) and not isinstance(value, bool) and not is_integer(value):
        return float(value)
    return value


def as_causes(problems: Iterable[Problem], base: str) -> list[Cause]:
    """Return the causes of problems below `base`, which is empty for the object as a whole."""
    return [_cause(problem, base) for problem in problems]


def _cause(problem: Problem, base: str) -> Cause:
    below = problem.path.removeprefix(".")
    path = (f"{base}.{below}" if base and below else base or below) or "<nil>"
    value = shown_value(problem.value)
    match problem.sort:
        case Sort.REQUIRED:
            return fields.required(path)
        case Sort.UNSUPPORTED:
            allowed = [one if isinstance(one, str) else json_text(ordered(one)) for one in problem.limit]
            return fields.not_supported(path, value, allowed)
        case Sort.TOO_LONG:
            return fields.too_long(path, problem.limit)
        case Sort.TOO_MANY:
            return fields.too_many(path, value, problem.limit)
        case Sort.TYPE:
            return fields.type_invalid(path, value, problem.text)
        case _:
            return fields.invalid(path, value, problem.text)


def bound(value: float, limit: float, exclusive: bool, *, upper: bool) -> str:
    """Return how a number had to relate to a limit."""
    than = ("less" if upper else "greater") + " than"
    return f"should be {than} {'' if exclusive else 'or equal to '}{plain(limit)}"
