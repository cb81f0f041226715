"""Answering a server that runs in this very process: it is registered like any other, and no network is needed."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from functools import partial

from lamina.admission.registered import Registered, keep
from lamina.admission.registration import Way, configuration
from lamina.admission.reviews import Reviewer
from lamina.client.client import Client
from lamina.core.admission import Check
from lamina.logs import Logger


class Inside:
    """Answers for some checks in this process, and sees to it that the server goes on asking."""

    def __init__(self, checks: Sequence[Check], client: Client, port: int, log: Logger) -> None:
        self._checks, self._log = checks, log
        self._way = Way(url=f"https://127.0.0.1:{port}", apart=False)
        self._reviewer = Reviewer(checks, client, log)
        self._registered = Registered(client, log)

    async def answer(self, here: dict[str, Callable[[bytes], Awaitable[bytes]]]) -> None:
        """Have the server ask about writes; `here` is where it looks up who answers in its own process."""
        for check in self._checks:
            here[self._way.at(check.path)] = partial(self._reviewer.answer, check.path)
        await self.look()

    async def look(self) -> None:
        """Have it registered, where it is not."""
        if self._checks:
            await self._registered.see_to(configuration(self._checks, self._way))

    async def keep(self) -> None:
        """Look again and again, for as long as there is anything to look at."""
        if self._checks:
            await keep(self.look, self._log)
