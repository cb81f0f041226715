"""Waiting for something to become true, in tests."""

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def eventually(look: Callable[[], T], wanted: Callable[[T], bool] = bool, *, patience: float = 120.0) -> T:
    """
    Return the first answer of `look` that is `wanted`, by default the first true one.

    Fails the test with the last answer when patience ends.
    """
    deadline = time.monotonic() + patience
    while not wanted(answer := look()):
        if time.monotonic() > deadline:
            raise AssertionError(f"still {answer!r} after {patience:.0f} s")
        time.sleep(0.05)
    return answer


def settles_at(look: Callable[[], T], expected: T, *, patience: float = 120.0) -> None:
    """Wait until `look` answers `expected`."""
    eventually(look, lambda answer: answer == expected, patience=patience)
