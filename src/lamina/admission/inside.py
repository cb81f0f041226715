"""Answering a server that runs in this very process: it is registered like any other, and no network is needed."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from functools import partial

from lamina.admission.registration import Way, configuration
from lamina.admission.reviews import Reviewer
from lamina.client.client import Client
from lamina.core.admission import Check
from lamina.logs import Logger

_MANAGER = "lamina"


async def answering(
    checks: Sequence[Check],
    client: Client,
    port: int,
    here: dict[str, Callable[[bytes], Awaitable[bytes]]],
    log: Logger,
) -> None:
    """Have a server ask about writes; `here` is where it looks up who answers in its own process."""
    if not checks:
        return
    way, reviewer = Way(url=f"https://127.0.0.1:{port}", apart=False), Reviewer(checks, client, log)
    for check in checks:
        here[way.at(check.path)] = partial(reviewer.answer, check.path)
    await client.apply(configuration(checks, way), manager=_MANAGER, force=True)
