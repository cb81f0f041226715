"""
How a parser that ANTLR generates finds its way after a mistake.

It leaves out a token, or makes one up, where that helps; otherwise it says what is
wrong and skips to where a surrounding rule can go on. Having said something, it
says nothing more until a token has fitted again.

A set of kinds of tokens is what may come next; the empty string in it means that
the rule may end, so that what may come is what may follow the rule.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from lamina.cel.errors import Issue
from lamina.cel.lex import BYTES, EOF, ESCAPED, FLOAT, IDENTIFIER, INT, STRING, UINT, Token, unreadable

EMPTY: Final = ""
_ORDER: Final = (
    EOF, "==", "!=", "in", "<", "<=", ">=", ">", "&&", "||", "[", "]", "{", "}", "(", ")", ".", ",", "-", "!", "?",
    ":", "+", "*", "/", "%", "true", "false", "null", FLOAT, INT, UINT, STRING, BYTES, IDENTIFIER, ESCAPED,
)  # fmt: skip
_NAMED: Final = frozenset({EOF, FLOAT, INT, UINT, STRING, BYTES, IDENTIFIER, ESCAPED})
_RECOVERIES: Final = 30
_LOOKAHEAD: Final = 256


class Wrong(Exception):
    """A rule cannot go on: what to say, about which token, seen from where."""

    def __init__(self, message: str, token: Token) -> None:
        super().__init__(message)
        self.message, self.token = message, token


class GivenUp(Exception):
    """There is too much wrong to go on."""


class Recovery:
    """What the rules of a grammar are followed with."""

    def __init__(self, text: str, tokens: Sequence[Token], unread: Sequence[int]) -> None:
        self._text, self._unread = text, unread
        self._tokens, self._at = tokens, 0
        self._follows: list[frozenset[str]] = []
        self._recovering = False
        self._failed_at, self._failed_in = -1, set[str]()
        self._state = "start"
        self._recoveries = 0
        self.issues: list[Issue] = []

    # What the tokens are, and what may come.

    def _kind(self, ahead: int = 0) -> str:
        return self._tokens[min(self._at + ahead, len(self._tokens) - 1)].kind

    def _consume(self) -> None:
        if self._at < len(self._tokens) - 1:
            self._at += 1

    def _expected(self, here: frozenset[str]) -> frozenset[str]:
        expected = set(here)
        for follow in reversed(self._follows):
            if EMPTY not in expected:
                break
            expected.discard(EMPTY)
            expected |= follow
        if EMPTY in expected:
            expected.discard(EMPTY)
            expected.add(EOF)
        return frozenset(expected)

    def _resuming(self) -> set[str]:
        return {kind for follow in self._follows for kind in follow} - {EMPTY}

    # What is said.

    def _say(self, message: str, token: Token) -> None:
        self.issues.append(Issue(token.at, f"Syntax error: {message}"))

    def _say_unwanted(self, here: frozenset[str]) -> None:
        if not self._recovering:
            self._recovering = True
            token = self._tokens[self._at]
            self._say(
                f"extraneous input {_quoted(token.text)} expecting {_listed(self._expected(here))}", token
            )

    def _mismatched(self, here: frozenset[str]) -> Wrong:
        token = self._tokens[self._at]
        return Wrong(
            f"mismatched input {_quoted(token.text)} expecting {_listed(self._expected(here))}", token
        )

    def _no_way(self, ahead: int) -> Wrong:
        """Nothing can be made of the tokens from here to the one that is so far ahead."""
        last = min(self._at + ahead, len(self._tokens) - 1)
        start, token = self._tokens[self._at], self._tokens[last]
        shown = EOF if start.kind == EOF else self._between(start, token)
        if shown[1:] in ("true", "false", "null"):
            return Wrong(f"mismatched input '{shown[1:]}' expecting IDENTIFIER", token)
        return Wrong(f"no viable alternative at input {_quoted(shown)}", token)

    def _between(self, first: Token, last: Token) -> str:
        """Return the text from one token to another, without what no token could be made of."""
        end = last.at if last.kind == EOF else last.at + len(last.text)
        shown, start = "", first.at
        for at in self._unread:
            if start <= at < end:
                shown += self._text[start:at]
                start = unreadable(self._text, at) + 1
        return shown + self._text[start:end]

    # How things are put right.

    def _deleted(self, here: frozenset[str]) -> bool:
        """Leave out a token, if the next one is what is wanted."""
        if self._kind(1) not in self._expected(here) or self._at >= len(self._tokens) - 1:
            return False
        self._say_unwanted(here)
        self._consume()
        self._matched()
        return True

    def _matched(self) -> None:
        self._recovering = False
        self._failed_at, self._failed_in = -1, set()

    def _sync(self, state: str, here: frozenset[str], *, loop: bool = False) -> None:
        """Make sure that what comes can be used, before deciding what it is."""
        self._state = state
        if self._recovering or EMPTY in here or self._kind() in here:
            return
        if loop:
            self._say_unwanted(here)
            self._skip_to(set(self._expected(here)) | self._resuming())
        elif not self._deleted(here):
            raise self._mismatched(here)

    def _match(self, state: str, kinds: frozenset[str] | str, then: frozenset[str]) -> bool:
        """Take a token; `then` is what may come after it. False where one had to be made up."""
        self._state = state
        wanted = frozenset({kinds}) if isinstance(kinds, str) else kinds
        if self._kind() in wanted:
            self._matched()
            self._consume()
            return True
        self._count_recovery()
        if self._deleted(wanted):
            self._consume()
            return True
        if self._kind() in self._expected(then):
            if not self._recovering:
                self._recovering = True
                token = self._tokens[self._at]
                self._say(f"missing {_listed(self._expected(wanted))} at {_quoted(token.text)}", token)
            return False
        raise self._mismatched(wanted)

    def _count_recovery(self) -> None:
        if self._recoveries == _RECOVERIES:
            self._say(f"error recovery attempt limit exceeded: {_RECOVERIES}", self._tokens[self._at])
            raise GivenUp
        self._recoveries += 1

    def _skip_to(self, kinds: set[str]) -> None:
        skipped = 0
        while self._kind() != EOF and self._kind() not in kinds:
            if skipped >= _LOOKAHEAD:
                raise GivenUp(f"error recovery token lookahead limit exceeded: {_LOOKAHEAD}")
            skipped += 1
            self._consume()

    def _call(self, state: str, rule: Callable[[], None], follow: frozenset[str]) -> bool:
        """Follow a rule; where it fails, say so, skip to where this one can go on, and return False."""
        self._state = state
        succeeded = True
        self._follows.append(follow)
        try:
            rule()
        except Wrong as wrong:
            succeeded = False
            if not self._recovering:
                self._recovering = True
                self._say(wrong.message, wrong.token)
            self._recover()
        finally:
            self._follows.pop()
        self._state = state
        return succeeded

    def _recover(self) -> None:
        self._count_recovery()
        if self._failed_at == self._at and self._state in self._failed_in:
            self._consume()
        self._failed_at = self._at
        self._failed_in.add(self._state)
        self._skip_to(self._resuming())


def _quoted(text: str) -> str:
    shown = text.replace("\t", "\\t").replace("\n", "\\n").replace("\r", "\\r")
    return f"'{shown}'"


def _listed(kinds: frozenset[str]) -> str:
    shown = [kind if kind in _NAMED else f"'{kind}'" for kind in _ORDER if kind in kinds]
    return shown[0] if len(shown) == 1 else f"{{{', '.join(shown)}}}"
