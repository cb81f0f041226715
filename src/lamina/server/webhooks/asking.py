"""Putting a write before the webhooks that want to be asked, all at once; one that is against it is enough."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, TypeAlias

from lamina.errors import ApiError, Cause, InternalError
from lamina.logs import log
from lamina.objects.printing import quoted
from lamina.server.policies.attempt import Attempt
from lamina.server.records import Records
from lamina.server.webhooks.address import NoWay, address
from lamina.server.webhooks.board import Asked, Webhook
from lamina.server.webhooks.review import BadAnswer, question, verdict

if TYPE_CHECKING:
    from lamina.server.webhooks.calling import Caller

Answers: TypeAlias = Callable[[bytes], Awaitable[bytes]]
"""Answers a question that was put to it."""


class Asker:
    """Asks the webhooks of one control plane."""

    def __init__(self, records: Records) -> None:
        self._records = records
        self._caller: Caller | None = None
        self.here: dict[str, Answers] = {}
        """Who answers in this very process, by the URL they are registered at: nobody needs a network to reach them."""

    async def close(self) -> None:
        if self._caller is not None:
            await self._caller.close()

    async def ask(self, attempt: Attempt, asked: Sequence[Asked], uids: Sequence[str]) -> list[str]:
        """Return what the writer is warned of; raises the first refusal."""
        asking = [self._ask(attempt, one, uid) for one, uid in zip(asked, uids, strict=True)]
        if all(_url(one.webhook) in self.here for one in asked):
            # Nothing is won by asking them side by side, and much is spent.
            answers = [await one for one in asking]
        else:
            answers = await asyncio.gather(*asking)
        refusal = next((error for error, _ in answers if error is not None), None)
        if refusal is not None:
            raise refusal
        return [sentence for _, warnings in answers for sentence in warnings]

    async def _ask(self, attempt: Attempt, one: Asked, uid: str) -> tuple[ApiError | None, list[str]]:
        webhook = one.webhook
        try:
            body = await self._post(webhook, question(attempt, one.kind, uid))
            return verdict(webhook.name, body, uid)
        except (_Failed, BadAnswer) as failure:
            if webhook.ignores:
                log.warning("webhook failed open", webhook=webhook.name, because=str(failure))
                return None, []
            return _uncalled(webhook, str(failure)), []

    async def _post(self, webhook: Webhook, body: bytes) -> bytes:
        config = webhook.written.get("clientConfig") or {}
        if (answers := self.here.get(_url(webhook))) is not None:
            try:
                return await answers(body)
            except Exception as mistake:
                # Whatever is wrong with it: it is a webhook that failed, and the server goes on.
                raise _Failed(f"failed to call webhook: {mistake!r}") from mistake
        from lamina.server.webhooks.calling import Caller, Unanswered

        if self._caller is None:
            self._caller = Caller()
        try:
            where = address(config, self._records, webhook.seconds)
            return await self._caller.post(where, config.get("caBundle") or "", body, webhook.seconds)
        except (NoWay, Unanswered) as failure:
            raise _Failed(f"failed to call webhook: {failure}") from None


def _url(webhook: Webhook) -> str:
    return (webhook.written.get("clientConfig") or {}).get("url") or ""


class _Failed(Exception):
    """A webhook could not be asked."""


def _uncalled(webhook: Webhook, why: str) -> InternalError:
    said = f"failed calling webhook {quoted(webhook.name)}: {why}"
    error = InternalError(f"Internal error occurred: {said}", causes=[Cause("", said, "")])
    error.shows_details = True
    return error
