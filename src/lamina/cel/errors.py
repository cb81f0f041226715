"""
The errors of expressions, with their positions.

    CelError
    ├── CompileError        the expression is invalid; has all issues
    │   ├── ParseError      a syntax error
    │   ├── CheckError      an undeclared name or a type error
    │   └── ConstantError   a constant without a value
    └── EvaluationError     the evaluation of this input failed
        └── CostExceeded    the evaluation exceeded its cost limit

The text of a CompileError is cel-go's, which Kubernetes returns to clients.
Suggestions are kept apart from it, in `Issue.suggestion` and `hint`.
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
    """One error. `at` is an offset into the source, -1 without a position."""

    at: int
    message: str
    suggestion: str | None = None

    def shown(self, source: Source) -> str:
        """Return the message with its position, its source line, and a caret."""
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
    """The base class of all errors of expressions."""


class CompileError(CelError):
    """An invalid expression; `issues` are in source order."""

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
    """A syntax error."""


class CheckError(CompileError):
    """An undeclared name or a type error."""


class ConstantError(CompileError):
    """
    A constant without a value, as in `int('abc')`.

    cel-go finds it when it plans the program, and reports no position; so
    `message` has none, and `shown` has.
    """

    def __init__(self, source: Source, issue: Issue) -> None:
        super().__init__(source, [issue])
        self.args = (issue.message,)

    @property
    def shown(self) -> str:
        """The message with its source line and a caret."""
        return self.issues[0].shown(self.source)


class EvaluationError(CelError):
    """
    The evaluation of this input failed.

    `message` is cel-go's, without a position. `at` is the offset in `source`,
    where that is known.
    """

    def __init__(self, message: str, *, at: int = -1, source: Source | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.at = at
        self.source = source

    @property
    def shown(self) -> str:
        """The message with its source line and a caret, where the position is known."""
        if self.source is None or self.at < 0:
            return self.message
        return Issue(self.at, self.message).shown(self.source)


class CostExceeded(EvaluationError):
    """The evaluation exceeded its cost limit."""
