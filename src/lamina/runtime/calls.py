"""Calling hooks: which answers are remembered, and what counts as one."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from time import monotonic
from typing import TYPE_CHECKING, Generic, NamedTuple, Protocol, TypeVar

from lamina.core.questions import Call, Said
from lamina.errors import HookError
from lamina.runtime.meter import CallMeter

if TYPE_CHECKING:
    from lamina.runtime.posting import Post

_BUSY = 429
_UNCHANGED = (304, 412)
_SHORTEST, _LONGEST = 1.0, 300.0
_SHOWN = 500
_KEPT = 10_000
_LOCAL = "hook:"

Value = TypeVar("Value")


class Local(Protocol):
    """A hook that runs here: the same words in, the same words out, under the same patience."""

    async def __call__(self, call: Call) -> bytes: ...


class _Kept(NamedTuple):
    etag: str
    body: bytes


class _Shelf(Generic[Value]):
    """What is kept for a while, the latest few thousand of it."""

    def __init__(self, most: int = _KEPT) -> None:
        self._most = most
        self._kept: OrderedDict[object, tuple[float, Value]] = OrderedDict()

    def get(self, key: object) -> Value | None:
        found = self._kept.get(key)
        if found is None:
            return None
        until, value = found
        if monotonic() >= until:
            del self._kept[key]
            return None
        return value

    def clear(self) -> None:
        self._kept.clear()

    def put(self, key: object, value: Value, seconds: float) -> None:
        self._kept[key] = monotonic() + seconds, value
        self._kept.move_to_end(key)
        while len(self._kept) > self._most:
            self._kept.popitem(last=False)


class Calls:
    """Calls webhooks, and remembers what may be remembered. `local` are hooks that run here, by their address."""

    def __init__(
        self,
        *,
        local: Callable[[str], Local | None] = lambda url: None,
        meter: CallMeter | None = None,
    ) -> None:
        self._local, self._meter = local, meter or CallMeter()
        self._post: Post | None = None
        self._memos: _Shelf[bytes] = _Shelf()
        self._etags: _Shelf[_Kept] = _Shelf()
        self._asking: dict[tuple[str, str], asyncio.Future[bytes]] = {}
        self.under_way = 0
        """How many hooks are being called."""

    def forget(self) -> None:
        """Ask everything anew: who answers has changed."""
        self._memos.clear()
        self._etags.clear()

    async def close(self) -> None:
        if self._post is not None:
            await self._post.close()

    async def call(self, call: Call) -> Said:
        """Return what a webhook says; HookError if it does not say anything that counts."""
        if not call.memo:
            return Said(await self._put(call))
        key = (call.url, call.memo)
        known = self._memos.get(key)
        if known is not None:
            return Said(known)
        if (asking := self._asking.get(key)) is not None:
            return Said(await asyncio.shield(asking))
        future = self._asking[key] = asyncio.get_running_loop().create_future()
        try:
            body = await self._put(call)
        except BaseException as failure:
            future.set_exception(failure if isinstance(failure, Exception) else HookError("called off"))
            # Nobody may have been waiting for it.
            future.exception()
            raise
        else:
            future.set_result(body)
            self._memos.put(key, body, call.memo_seconds)
            return Said(body)
        finally:
            del self._asking[key]

    async def _put(self, call: Call) -> bytes:
        began = monotonic()
        outcome = "error"
        self._meter.began(call)
        self.under_way += 1
        try:
            local = self._local(call.url)
            if local is not None:
                body = await self._locally(call, local)
                outcome = "200"
                return body
            if call.url.startswith(_LOCAL):
                lacks = HookError(
                    f"{call.purpose} hook {call.url.removeprefix(_LOCAL)} is a function in a file, "
                    "and this process was given no hooks file"
                )
                lacks.hint = "name the file: `lamina run FILE`, `lamina up --hooks FILE`, `lamina explain --hooks FILE`"
                raise lacks
            code, headers, body, sent = await self._send(call)
            outcome = str(code)
            return self._judge(call, code, headers, body, sent)
        finally:
            self.under_way -= 1
            self._meter.ended(call, outcome, monotonic() - began)

    async def _locally(self, call: Call, local: Local) -> bytes:
        try:
            async with asyncio.timeout(call.seconds):
                return await local(call)
        except TimeoutError:
            raise HookError(
                f"{call.purpose} hook {call.url} took longer than {call.seconds:g}s", reached=False
            ) from None

    async def _send(self, call: Call) -> tuple[int, Mapping[str, str], bytes, _Kept | None]:
        headers = {"Content-Type": "application/json"}
        if call.credentials.authorization:
            headers["Authorization"] = call.credentials.authorization
        kept = self._etags.get((call.url, call.purpose, call.about)) if call.etag else None
        if kept is not None:
            headers["If-None-Match"] = kept.etag
        if self._post is None:
            from lamina.runtime.posting import Post

            self._post = Post(self._meter)
        return *await self._post.send(call, headers), kept

    def _judge(
        self, call: Call, code: int, headers: Mapping[str, str], body: bytes, sent: _Kept | None
    ) -> bytes:
        if code == 200:
            etag = headers.get("ETag")
            if call.etag and etag:
                seconds = call.etag_seconds if call.etag_seconds is not None else float("inf")
                self._etags.put((call.url, call.purpose, call.about), _Kept(etag, body), seconds)
            return body
        if code in _UNCHANGED and sent is not None:
            # The body that belongs to the etag that was sent, whatever has been kept since.
            return sent.body
        if code == _BUSY:
            after = _seconds(headers.get("Retry-After"))
            raise HookError(f"{call.purpose} hook {call.url} is busy", after=after)
        shown = body[:_SHOWN].decode(errors="replace")
        raise HookError(
            f"{call.purpose} hook {call.url} failed: unsupported status code: {code} body: {shown}",
            reached=False,
        )


def _seconds(retry_after: str | None) -> float:
    """Return how long a busy webhook asks us to wait, within reason; 0 where it does not say."""
    if not retry_after:
        return 0.0
    try:
        wait = float(int(retry_after))
    except ValueError:
        try:
            when = parsedate_to_datetime(retry_after)
        except ValueError:
            return 0.0
        wait = (when.replace(tzinfo=when.tzinfo or UTC) - datetime.now(UTC)).total_seconds()
    return min(max(wait, _SHORTEST), _LONGEST)
