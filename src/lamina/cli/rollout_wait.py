"""Waiting for the rollout of an owner: what ends the wait, in which words, and with which exit code."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from lamina.cli.commands.get import counts
from lamina.cli.options.param_types import format_seconds, parse_seconds
from lamina.core.model.state import State
from lamina.core.rollout.owner_status import OwnerStatus
from lamina.errors import LaminaError
from lamina.objects import meta

TIMED_OUT = 124
"""The exit code of timeout(1)."""
EXIT_CODES = """\b
Exit codes:
  0    the state was reached
  1    it was not: the rollout is aborting, aborted or stalled (its progress
       deadline is exceeded), its spec is invalid, the owner was deleted, or
       an error occurred
  124  the time of --timeout was up
"""


class RolloutEnded(LaminaError):
    """The rollout has ended, and its owner is not in the state that was waited for."""


class WaitTimedOut(LaminaError):
    """The time was up before the owner was in the state that was waited for."""

    exit_code = TIMED_OUT


def sentence(owner_status: OwnerStatus) -> str:
    """Return the state of an owner in one line: how many targets are updated and available, and why."""
    words = zip(counts(owner_status), ("updated", "available"), strict=True)
    counted = (f"{count} {word}" for count, word in words if count)
    said = ", ".join((f"{meta.ref(owner_status.owner)} is {owner_status.state}", *counted))
    message = owner_status.message.partition("\n")[0]
    return f"{said}: {message}" if message else said


def check_ended(owner_status: OwnerStatus, until: str) -> None:
    """Raise RolloutEnded where an owner is to become healthy, and its rollout has ended without that."""
    if until == State.HEALTHY and owner_status.has_ended:
        raise RolloutEnded(f"the rollout has ended: {sentence(owner_status)}")


def timeout_seconds(text: str | None) -> float | None:
    """Return the seconds of --timeout; None where it is not given."""
    return parse_seconds(text, "--timeout") if text is not None else None


@asynccontextmanager
async def at_most(seconds: float | None, last_seen: Callable[[], str]) -> AsyncIterator[None]:
    """End a wait after a time with WaitTimedOut, which says what was seen last."""
    try:
        async with asyncio.timeout(seconds):
            yield
    except TimeoutError:
        assert seconds is not None, "without a time there is no timeout"
        raise WaitTimedOut(f"timed out after {format_seconds(seconds)}: {last_seen()}") from None
