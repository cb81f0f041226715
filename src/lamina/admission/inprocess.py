"""Admission webhooks of an API server in the same process: registered as usual, called without network."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from functools import partial

from lamina.admission.admission_review import Reviewer
from lamina.admission.keep_registered import Registered, keep
from lamina.admission.registration import WebhookEndpoint, configurations
from lamina.client.client import Client
from lamina.core.admission import AdmissionCheck
from lamina.logs import Logger


class InProcessReviewer:
    """Serves admission checks in this process and keeps them registered."""

    def __init__(self, checks: Sequence[AdmissionCheck], client: Client, port: int, log: Logger) -> None:
        self._checks, self._log = checks, log
        self._endpoint = WebhookEndpoint(url=f"https://127.0.0.1:{port}", apart=False)
        self._reviewer = Reviewer(checks, client, log)
        self._registered = Registered(client, log)

    async def register(self, here: dict[str, Callable[[bytes], Awaitable[bytes]]]) -> None:
        """Register the checks; `here` maps the URLs that the server calls in process to their handlers."""
        for check in self._checks:
            here[self._endpoint.at(check.path)] = partial(self._reviewer.review, check.path)
        await self.ensure()

    async def ensure(self) -> None:
        """Apply the webhook configurations that the server does not hold."""
        await self._registered.ensure(configurations(self._checks, self._endpoint))

    async def keep(self) -> None:
        """Ensure the configurations periodically; returns at once if there are no checks."""
        if self._checks:
            await keep(self.ensure, self._log)
