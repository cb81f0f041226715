"""The pace of a rollout: targets at once, tolerated failures, soak time and deadline."""

from __future__ import annotations

import re
from datetime import timedelta
from enum import Enum

from msgspec import Struct

from lamina.errors import SpecError

_PERCENT = re.compile(r"(\d+)%", re.ASCII)
_MOST_DIGITS = 9


class Rounding(Enum):
    """Which way a percentage is rounded."""

    UP = "up"
    DOWN = "down"


class Pace(Struct, frozen=True, kw_only=True):
    """
    How fast a rollout moves targets, and when it stops.

    `at_once` limits how many targets are moving together, None for all of them;
    more failures than `failures` stop the rollout, None for any number. A target
    that is healthy for `soak` is settled; one that is not healthy within
    `deadline` has failed.
    """

    at_once: int | None = 1
    failures: int | None = 0
    soak: timedelta = timedelta(0)
    deadline: timedelta | None = None


AT_ONCE = Pace(at_once=None, failures=None)
"""All targets now, whatever fails: the pace of a rollback."""


def amount(value: int | str, total: int, rounding: Rounding, *, field: str) -> int:
    """
    Return how many of `total` a number or a percentage means, in exact arithmetic.

    Raises SpecError, which names the field, for what is neither.
    """
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    share = _PERCENT.fullmatch(value) if isinstance(value, str) else None
    if share is None or len(share[1]) > _MOST_DIGITS:
        raise SpecError(f'{field}: expected a number or a percentage, got "{value}"')
    parts = int(share[1]) * total
    return -(-parts // 100) if rounding is Rounding.UP else parts // 100
