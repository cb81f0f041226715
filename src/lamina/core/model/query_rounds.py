"""
Queries in rounds: a decision is made again with the answers so far, until nothing is left to query.

It is without I/O: a driver answers each round, as it does for a reconcile.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from typing import TypeVar

from lamina.core.model.effects import Ask
from lamina.core.model.queries import Answer, Answers, Query

Decision = TypeVar("Decision")

_MAX_ROUNDS = 32


def decided(
    decide: Callable[[Answers], Decision | tuple[Query, ...]],
    name: str,
    asking: Callable[[Sequence[Query]], None] = lambda queries: None,
) -> Generator[Ask, Mapping[Query, Answer], Decision]:
    """
    Return what a function decides that returns queries instead, as long as answers are missing.

    `name` is that of the controller or family in the error of a function that never stops. `asking`
    is called with the queries of each round before they are answered.
    """
    answers = Answers()
    for _ in range(_MAX_ROUNDS):
        found = decide(answers)
        if not isinstance(found, tuple):
            return found
        asking(found)
        answers = answers | (yield Ask(found))
    raise AssertionError(f"{name} asks more than {_MAX_ROUNDS} rounds of queries about one view")
