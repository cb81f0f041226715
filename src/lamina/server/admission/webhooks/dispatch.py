"""Calls the webhooks that match a write, concurrently; one denial refuses the write."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, TypeAlias

from lamina.errors import ApiError, Cause, InternalError
from lamina.logs import log
from lamina.objects.go_quote import quoted
from lamina.server.admission.lister import AdmissionLister
from lamina.server.admission.policies.attributes import Attributes
from lamina.server.admission.webhooks.address import Unresolved, resolve
from lamina.server.admission.webhooks.admission_review import InvalidReview, parse_review, review_request
from lamina.server.admission.webhooks.registry import MatchedWebhook, Webhook

if TYPE_CHECKING:
    from lamina.server.admission.webhooks.http import WebhookClient

Handler: TypeAlias = Callable[[bytes], Awaitable[bytes]]
"""Returns the response to an AdmissionReview, both encoded."""


class WebhookDispatcher:
    """Calls the webhooks of one cluster."""

    def __init__(self, lister: AdmissionLister) -> None:
        self._lister = lister
        self._caller: WebhookClient | None = None
        self.here: dict[str, Handler] = {}
        """Handlers in this process, by URL: webhooks with such a URL are called without network."""

    async def close(self) -> None:
        if self._caller is not None:
            await self._caller.close()

    async def call(
        self, attributes: Attributes, matched: Sequence[MatchedWebhook], uids: Sequence[str]
    ) -> list[str]:
        """Return the warnings; raises the first denial."""
        calls = [self._call(attributes, one, uid) for one, uid in zip(matched, uids, strict=True)]
        if all(_url(one.webhook) in self.here for one in matched):
            # In-process handlers are called one after another, because concurrency would only add cost.
            results = [await one for one in calls]
        else:
            results = await asyncio.gather(*calls)
        refusal = next((error for error, _ in results if error is not None), None)
        if refusal is not None:
            raise refusal
        return [sentence for _, warnings in results for sentence in warnings]

    async def _call(
        self, attributes: Attributes, one: MatchedWebhook, uid: str
    ) -> tuple[ApiError | None, list[str]]:
        webhook = one.webhook
        try:
            body = await self._post(webhook, review_request(attributes, one.kind, uid))
            return parse_review(webhook.name, body, uid)
        except (_CallFailed, InvalidReview) as error:
            if webhook.fails_open:
                log.warning("webhook failed open", webhook=webhook.name, error=str(error))
                return None, []
            return _call_error(webhook, str(error)), []

    async def _post(self, webhook: Webhook, body: bytes) -> bytes:
        config = webhook.spec.get("clientConfig") or {}
        if (results := self.here.get(_url(webhook))) is not None:
            try:
                return await results(body)
            except Exception as error:
                # An unexpected error of a handler is a failure of the webhook, not of the server.
                raise _CallFailed(f"failed to call webhook: {error!r}") from error
        from lamina.server.admission.webhooks.http import CallFailed, WebhookClient

        if self._caller is None:
            self._caller = WebhookClient()
        try:
            address = resolve(config, self._lister, webhook.seconds)
            return await self._caller.post(address, config.get("caBundle") or "", body, webhook.seconds)
        except (Unresolved, CallFailed) as error:
            raise _CallFailed(f"failed to call webhook: {error}") from None


def _url(webhook: Webhook) -> str:
    return (webhook.spec.get("clientConfig") or {}).get("url") or ""


class _CallFailed(Exception):
    """A webhook could not be called."""


def _call_error(webhook: Webhook, why: str) -> InternalError:
    message = f"failed calling webhook {quoted(webhook.name)}: {why}"
    error = InternalError(f"Internal error occurred: {message}", causes=[Cause("", message, "")])
    error.shows_details = True
    return error
