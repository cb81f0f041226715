"""
The error recovery of ANTLR's generated parsers (DefaultErrorStrategy).

It deletes or inserts a single token where that repairs the input; otherwise it
reports an error and consumes tokens until an enclosing rule can resume. After a
report, nothing more is reported until a token has matched.

A set of token kinds is what may come next; the empty string in it means that the
rule may end, so that the follow set of the rule applies.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from lamina.cel.errors import Issue
from lamina.cel.lex import (
    BYTES,
    EOF,
    ESCAPED,
    FLOAT,
    IDENTIFIER,
    INT,
    STRING,
    UINT,
    Token,
    end_of_unrecognized,
)

EMPTY: Final = ""
_ORDER: Final = (
    EOF, "==", "!=", "in", "<", "<=", ">=", ">", "&&", "||", "[", "]", "{", "}", "(", ")", ".", ",", "-", "!", "?",
    ":", "+", "*", "/", "%", "true", "false", "null", FLOAT, INT, UINT, STRING, BYTES, IDENTIFIER, ESCAPED,
)  # fmt: skip
_NAMED: Final = frozenset({EOF, FLOAT, INT, UINT, STRING, BYTES, IDENTIFIER, ESCAPED})
_RECOVERIES: Final = 30
_LOOKAHEAD: Final = 256


class RecognitionError(Exception):
    """A rule cannot continue: the message, and the token it is about."""

    def __init__(self, message: str, token: Token) -> None:
        super().__init__(message)
        self.message, self.token = message, token


class RecoveryLimitExceeded(Exception):
    """Too many errors, or too many tokens to skip."""


class ErrorRecovery:
    """The state of the parser: the tokens, the follow sets, and the reported issues."""

    def __init__(self, text: str, tokens: Sequence[Token], unrecognized: Sequence[int]) -> None:
        self._text, self._unrecognized = text, unrecognized
        self._tokens, self._at = tokens, 0
        self._follow_sets: list[frozenset[str]] = []
        self._recovering = False
        self._failed_at, self._failed_in = -1, set[str]()
        self._state = "start"
        self._recoveries = 0
        self.issues: list[Issue] = []

    # Lookahead

    def _kind(self, ahead: int = 0) -> str:
        return self._tokens[min(self._at + ahead, len(self._tokens) - 1)].kind

    def _consume(self) -> None:
        if self._at < len(self._tokens) - 1:
            self._at += 1

    def _expected(self, here: frozenset[str]) -> frozenset[str]:
        expected = set(here)
        for follow in reversed(self._follow_sets):
            if EMPTY not in expected:
                break
            expected.discard(EMPTY)
            expected |= follow
        if EMPTY in expected:
            expected.discard(EMPTY)
            expected.add(EOF)
        return frozenset(expected)

    def _recovery_set(self) -> set[str]:
        return {kind for follow in self._follow_sets for kind in follow} - {EMPTY}

    # Reports

    def _report(self, message: str, token: Token) -> None:
        self.issues.append(Issue(token.at, f"Syntax error: {message}"))

    def _report_extraneous(self, here: frozenset[str]) -> None:
        if not self._recovering:
            self._recovering = True
            token = self._tokens[self._at]
            self._report(
                f"extraneous input {_quoted(token.text)} expecting {_listed(self._expected(here))}", token
            )

    def _mismatch(self, here: frozenset[str]) -> RecognitionError:
        token = self._tokens[self._at]
        return RecognitionError(
            f"mismatched input {_quoted(token.text)} expecting {_listed(self._expected(here))}", token
        )

    def _no_viable_alternative(self, ahead: int) -> RecognitionError:
        """No rule matches the tokens from here to the one `ahead`."""
        last = min(self._at + ahead, len(self._tokens) - 1)
        start, token = self._tokens[self._at], self._tokens[last]
        shown = EOF if start.kind == EOF else self._between(start, token)
        if shown[1:] in ("true", "false", "null"):
            return RecognitionError(f"mismatched input '{shown[1:]}' expecting IDENTIFIER", token)
        return RecognitionError(f"no viable alternative at input {_quoted(shown)}", token)

    def _between(self, first: Token, last: Token) -> str:
        """Return the text from one token to another, without characters that are no token."""
        end = last.at if last.kind == EOF else last.at + len(last.text)
        shown, start = "", first.at
        for at in self._unrecognized:
            if start <= at < end:
                shown += self._text[start:at]
                start = end_of_unrecognized(self._text, at) + 1
        return shown + self._text[start:end]

    # Recovery

    def _single_token_deletion(self, here: frozenset[str]) -> bool:
        """Skip a token, if the next one is expected."""
        if self._kind(1) not in self._expected(here) or self._at >= len(self._tokens) - 1:
            return False
        self._report_extraneous(here)
        self._consume()
        self._matched()
        return True

    def _matched(self) -> None:
        self._recovering = False
        self._failed_at, self._failed_in = -1, set()

    def _sync(self, state: str, here: frozenset[str], *, loop: bool = False) -> None:
        """Check that the next token is expected, before a decision."""
        self._state = state
        if self._recovering or EMPTY in here or self._kind() in here:
            return
        if loop:
            self._report_extraneous(here)
            self._consume_until(set(self._expected(here)) | self._recovery_set())
        elif not self._single_token_deletion(here):
            raise self._mismatch(here)

    def _match(self, state: str, kinds: frozenset[str] | str, then: frozenset[str]) -> bool:
        """Consume a token; `then` is the set that may follow. False where one was inserted."""
        self._state = state
        wanted = frozenset({kinds}) if isinstance(kinds, str) else kinds
        if self._kind() in wanted:
            self._matched()
            self._consume()
            return True
        self._count_recovery()
        if self._single_token_deletion(wanted):
            self._consume()
            return True
        if self._kind() in self._expected(then):
            if not self._recovering:
                self._recovering = True
                token = self._tokens[self._at]
                self._report(f"missing {_listed(self._expected(wanted))} at {_quoted(token.text)}", token)
            return False
        raise self._mismatch(wanted)

    def _count_recovery(self) -> None:
        if self._recoveries == _RECOVERIES:
            self._report(f"error recovery attempt limit exceeded: {_RECOVERIES}", self._tokens[self._at])
            raise RecoveryLimitExceeded
        self._recoveries += 1

    def _consume_until(self, kinds: set[str]) -> None:
        skipped = 0
        while self._kind() != EOF and self._kind() not in kinds:
            if skipped >= _LOOKAHEAD:
                raise RecoveryLimitExceeded(f"error recovery token lookahead limit exceeded: {_LOOKAHEAD}")
            skipped += 1
            self._consume()

    def _call(self, state: str, rule: Callable[[], None], follow: frozenset[str]) -> bool:
        """Parse a rule; where it fails, report it, skip to where this rule can resume, and return False."""
        self._state = state
        succeeded = True
        self._follow_sets.append(follow)
        try:
            rule()
        except RecognitionError as wrong:
            succeeded = False
            if not self._recovering:
                self._recovering = True
                self._report(wrong.message, wrong.token)
            self._recover()
        finally:
            self._follow_sets.pop()
        self._state = state
        return succeeded

    def _recover(self) -> None:
        self._count_recovery()
        if self._failed_at == self._at and self._state in self._failed_in:
            self._consume()
        self._failed_at = self._at
        self._failed_in.add(self._state)
        self._consume_until(self._recovery_set())


def _quoted(text: str) -> str:
    shown = text.replace("\t", "\\t").replace("\n", "\\n").replace("\r", "\\r")
    return f"'{shown}'"


def _listed(kinds: frozenset[str]) -> str:
    shown = [kind if kind in _NAMED else f"'{kind}'" for kind in _ORDER if kind in kinds]
    return shown[0] if len(shown) == 1 else f"{{{', '.join(shown)}}}"
