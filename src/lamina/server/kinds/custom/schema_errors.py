"""
Schema validation errors, with kube-apiserver's messages.

kube-apiserver first collects the errors of its schema library, each with a text and perhaps
a path, and drops repeated texts; then they become causes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import Enum
from typing import Any, NamedTuple

from lamina.errors import Cause
from lamina.objects.go_quote import json_text, quoted
from lamina.server import field_errors
from lamina.server.kinds.custom.go_values import is_integer, ordered, plain


class ProblemType(Enum):
    """The type of cause that a problem becomes."""

    INVALID = "invalid"
    TYPE = "type"
    REQUIRED = "required"
    UNSUPPORTED = "unsupported"
    TOO_LONG = "too long"
    TOO_MANY = "too many"
    COMPOSITE = "composite"
    """No branch of a junctor matches: reported for the whole object."""


class Problem(NamedTuple):
    """One error of the value at `path`; `limit` is the limit that it exceeds."""

    sort: ProblemType
    path: str
    text: str
    value: Any = ""
    limit: Any = None


class ValidationOutcome:
    """
    The result of validating a value.

    `matches` counts the checks that passed; of the branches that fail, the one with the
    most matches is reported.
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

    def extend(self, other: ValidationOutcome) -> None:
        """Add the result of a nested value."""
        self.matches += other.matches
        for problem in other.problems:
            self.add(problem)


def wrong_type(path: str, wanted: str, found: str) -> Problem:
    text = f"{path} in body must be of type {wanted}: {quoted(found)}"
    return Problem(ProblemType.TYPE, path, text, found)


def missing(path: str) -> Problem:
    return Problem(ProblemType.REQUIRED, path, f"{path} in body is required")


def not_in_enum(path: str, value: Any, values: Sequence[Any]) -> Problem:
    shown = " ".join(_go_value(one) for one in values)
    return Problem(ProblemType.UNSUPPORTED, path, f"{path} in body should be one of [{shown}]", value, values)


def _go_value(value: Any) -> str:
    return value if isinstance(value, str) else json_text(ordered(value))


def too_long(path: str, maximum: int) -> Problem:
    return Problem(
        ProblemType.TOO_LONG, path, f"{path} in body should be at most {maximum} chars long", limit=maximum
    )


def too_many(path: str, count: int, maximum: int, of: str) -> Problem:
    return Problem(
        ProblemType.TOO_MANY, path, f"{path} in body should have at most {maximum} {of}", count, maximum
    )


def other_problem(path: str, value: Any, text: str) -> Problem:
    """Return a problem of no special type; `text` follows the path."""
    return Problem(ProblemType.INVALID, path, f"{path} in body {text}", value)


def composite(text: str) -> Problem:
    return Problem(ProblemType.COMPOSITE, "", text)


def shown_value(value: Any) -> Any:
    """Return a value as a cause prints it: fields sorted by name, integers beyond 64 bits as floats."""
    if isinstance(value, dict | list):
        return ordered(value)
    if isinstance(value, int) and not isinstance(value, bool) and not is_integer(value):
        return float(value)
    return value


def as_causes(problems: Iterable[Problem], base: str) -> list[Cause]:
    """Return the causes of problems below `base`, which is empty for the whole object."""
    return [_cause(problem, base) for problem in problems]


def _cause(problem: Problem, base: str) -> Cause:
    below = problem.path.removeprefix(".")
    path = (f"{base}.{below}" if base and below else base or below) or "<nil>"
    value = shown_value(problem.value)
    match problem.sort:
        case ProblemType.REQUIRED:
            return field_errors.required(path)
        case ProblemType.UNSUPPORTED:
            allowed = [one if isinstance(one, str) else json_text(ordered(one)) for one in problem.limit]
            return field_errors.not_supported(path, value, allowed)
        case ProblemType.TOO_LONG:
            return field_errors.too_long(path, problem.limit)
        case ProblemType.TOO_MANY:
            return field_errors.too_many(path, value, problem.limit)
        case ProblemType.TYPE:
            return field_errors.type_invalid(path, value, problem.text)
        case _:
            return field_errors.invalid(path, value, problem.text)


def bound(value: float, limit: float, exclusive: bool, *, upper: bool) -> str:
    """Return the relation to a limit, as a text."""
    than = ("less" if upper else "greater") + " than"
    return f"should be {than} {'' if exclusive else 'or equal to '}{plain(limit)}"
