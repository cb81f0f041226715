"""
What can be wrong with an expression, and where.

    CelError
    ├── CompileError        it cannot be evaluated at all; carries every issue found
    │   ├── ParseError      it is not an expression
    │   ├── CheckError      it is one, and its names or types do not fit
    │   └── ConstantError   they do, and a constant in it has no value
    └── EvaluationError     this input has no answer
        └── CostExceeded    finding the answer would take too long

The text of a CompileError is the one cel-go prints, since Kubernetes passes it
on. What we would suggest instead is beside it, in `Issue.suggestion` and `hint`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from lamina.cel.ast import Source
from lamina.errors import LaminaError

_SNIPPET_LIMIT: Final = 16384
_REPORTED: Final = 100


@dataclass(frozen=True, slots=True)
class Issue:
    """One thing that is wrong. `at` is an offset into the source, -1 where no place is to blame."""

    at: int
    message: str
    suggestion: str | None = None

    def shown(self, source: Source) -> str:
        """Return the message with its place, the line it is about, and a caret."""
        if self.at < 0:
            return f"ERROR: {source.name}:-1:0: {self.message}"
        if not source.text:
            return f"ERROR: {source.name}:1:0: {self.message}"
        line, column = source.position(self.at)
        head = f"ERROR: {source.name}:{line}:{column + 1}: {self.message}"
        snippet = source.line(line).replace("\t", " ")
        if len(snippet.encode("utf-8", "surrogatepass")) > _SNIPPET_LIMIT:
            return head
        dots = "".join("." if char.isascii() else "．" for char in snippet[:column])
        pointed = snippet[column : column + 1]
        return f"{head}\n | {snippet}\n | {dots}{'^' if pointed.isascii() else '＾'}"


class CelError(LaminaError):
    """The root of what expressions can do wrong."""


class CompileError(CelError):
    """An expression that cannot be evaluated; `issues` are in the order of the source."""

    def __init__(self, source: Source, issues: Sequence[Issue]) -> None:
        self.source = source
        self.issues = tuple(
            sorted(issues, key=lambda issue: source.position(issue.at) if issue.at >= 0 else (-1, 0))
        )
        shown = [issue.shown(source) for issue in self.issues[:_REPORTED]]
        if len(self.issues) > _REPORTED:
            shown.append(f"{len(self.issues) - _REPORTED} more errors were truncated")
        super().__init__("\n".join(shown))
        self.hint = next((issue.suggestion for issue in self.issues if issue.suggestion), None)

    @property
    def message(self) -> str:
        return str(self)


class ParseError(CompileError):
    """It is not an expression."""


class CheckError(CompileError):
    """It is an expression, and its names or types do not fit."""


class ConstantError(CompileError):
    """
    Everything fits, and a constant in it has no value, as in `int('abc')`.

    Kubernetes notices when it makes the program, and shows no place; so `message`
    has none, and `shown` has.
    """

    def __init__(self, source: Source, issue: Issue) -> None:
        super().__init__(source, [issue])
        self.args = (issue.message,)

    @property
    def shown(self) -> str:
        """The message with its line and a caret."""
        return self.issues[0].shown(self.source)


class EvaluationError(CelError):
    """
    This input has no answer.

    `message` is cel-go's wording without a place. `at` is where it happened, in
    `source`, where that is known.
    """

    def __init__(self, message: str, *, at: int = -1, source: Source | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.at = at
        self.source = source

    @property
    def shown(self) -> str:
        """The message with its line and a caret, where the place is known."""
        if self.source is None or self.at < 0:
            return self.message
        return Issue(self.at, self.message).shown(self.source)


class CostExceeded(EvaluationError):
    """Finding the answer would take longer than allowed."""
