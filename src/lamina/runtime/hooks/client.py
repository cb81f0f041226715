"""Calls hooks, caches responses, and decides which responses are valid."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from time import monotonic
from typing import TYPE_CHECKING, Generic, NamedTuple, Protocol, TypeVar

from lamina.core.model.queries import Call, HookResponse
from lamina.errors import HookError, HookUnreachable
from lamina.runtime.metrics.recorder import HookRecorder

if TYPE_CHECKING:
    from lamina.runtime.hooks.http import HookTransport

_BUSY = 429
_NOT_MODIFIED = (304, 412)
_MIN_RETRY, _MAX_RETRY = 1.0, 300.0
_MAX_SHOWN = 500
_CACHE_SIZE = 10_000
_LOCAL_PREFIX = "hook:"

Value = TypeVar("Value")


class LocalHook(Protocol):
    """A hook that runs in this process: the same request, response and timeout as over HTTP."""

    async def __call__(self, call: Call) -> bytes: ...


class _Tagged(NamedTuple):
    etag: str
    body: bytes


class _ExpiringCache(Generic[Value]):
    """Values that expire; beyond its capacity the oldest are evicted."""

    def __init__(self, capacity: int = _CACHE_SIZE) -> None:
        self._capacity = capacity
        self._entries: OrderedDict[object, tuple[float, Value]] = OrderedDict()

    def get(self, key: object) -> Value | None:
        found = self._entries.get(key)
        if found is None:
            return None
        expires, value = found
        if monotonic() >= expires:
            del self._entries[key]
            return None
        return value

    def clear(self) -> None:
        self._entries.clear()

    def put(self, key: object, value: Value, seconds: float) -> None:
        self._entries[key] = monotonic() + seconds, value
        self._entries.move_to_end(key)
        while len(self._entries) > self._capacity:
            self._entries.popitem(last=False)


class HookClient:
    """Calls webhooks, and caches responses as calls allow. `local` finds hooks that run in this process by their URL."""

    def __init__(
        self,
        *,
        local: Callable[[str], LocalHook | None] = lambda url: None,
        meter: HookRecorder | None = None,
    ) -> None:
        self._local, self._meter = local, meter or HookRecorder()
        self._transport: HookTransport | None = None
        self._memoized: _ExpiringCache[bytes] = _ExpiringCache()
        self._etags: _ExpiringCache[_Tagged] = _ExpiringCache()
        self._in_flight: dict[tuple[str, str], asyncio.Future[bytes]] = {}
        self.calls_in_flight = 0
        """How many calls are in flight."""

    def clear_cache(self) -> None:
        """Drop every cached response: other hooks answer from now on."""
        self._memoized.clear()
        self._etags.clear()

    async def close(self) -> None:
        if self._transport is not None:
            await self._transport.close()

    async def call(self, call: Call) -> HookResponse:
        """Return the response of a webhook; HookError if it has no valid one."""
        if not call.memo:
            return HookResponse(await self._send_call(call))
        key = (call.url, call.memo)
        memoized = self._memoized.get(key)
        if memoized is not None:
            return HookResponse(memoized)
        if (running := self._in_flight.get(key)) is not None:
            return HookResponse(await asyncio.shield(running))
        future = self._in_flight[key] = asyncio.get_running_loop().create_future()
        try:
            body = await self._send_call(call)
        except BaseException as failure:
            future.set_exception(failure if isinstance(failure, Exception) else HookError("cancelled"))
            # Retrieved here, since no other call may wait for this one.
            future.exception()
            raise
        else:
            future.set_result(body)
            self._memoized.put(key, body, call.memo_seconds)
            return HookResponse(body)
        finally:
            del self._in_flight[key]

    async def _send_call(self, call: Call) -> bytes:
        began = monotonic()
        outcome = "error"
        self._meter.began(call)
        self.calls_in_flight += 1
        try:
            local = self._local(call.url)
            if local is not None:
                body = await self._call_local(call, local)
                outcome = "200"
                return body
            if call.url.startswith(_LOCAL_PREFIX):
                error = HookUnreachable(
                    f"{call.purpose} hook {call.url.removeprefix(_LOCAL_PREFIX)} is a function in a file, "
                    "and this process was given no hooks file"
                )
                error.hint = "name the file: `lamina run FILE`, `lamina up --hooks FILE`, `lamina explain --hooks FILE`"
                raise error
            code, headers, body, tagged = await self._send(call)
            outcome = str(code)
            return self._body_of(call, code, headers, body, tagged)
        finally:
            self.calls_in_flight -= 1
            self._meter.ended(call, outcome, monotonic() - began)

    async def _call_local(self, call: Call, local: LocalHook) -> bytes:
        try:
            async with asyncio.timeout(call.seconds):
                return await local(call)
        except TimeoutError:
            raise HookError(
                f"{call.purpose} hook {call.url} took longer than {call.seconds:g}s", reached=False
            ) from None

    async def _send(self, call: Call) -> tuple[int, Mapping[str, str], bytes, _Tagged | None]:
        headers = {"Content-Type": "application/json"}
        if call.credentials.authorization:
            headers["Authorization"] = call.credentials.authorization
        tagged = self._etags.get((call.url, call.purpose, call.about)) if call.etag else None
        if tagged is not None:
            headers["If-None-Match"] = tagged.etag
        if self._transport is None:
            from lamina.runtime.hooks.http import HookTransport

            self._transport = HookTransport(self._meter)
        return *await self._transport.send(call, headers), tagged

    def _body_of(
        self, call: Call, code: int, headers: Mapping[str, str], body: bytes, tagged: _Tagged | None
    ) -> bytes:
        if code == 200:
            etag = headers.get("ETag")
            if call.etag and etag:
                seconds = call.etag_seconds if call.etag_seconds is not None else float("inf")
                self._etags.put((call.url, call.purpose, call.about), _Tagged(etag, body), seconds)
            return body
        if code in _NOT_MODIFIED and tagged is not None:
            # The body of the etag that was sent; the cache may hold a newer one by now.
            return tagged.body
        if code == _BUSY:
            after = _retry_after(headers.get("Retry-After"))
            raise HookError(f"{call.purpose} hook {call.url} is busy", after=after)
        shown = body[:_MAX_SHOWN].decode(errors="replace")
        raise HookError(
            f"{call.purpose} hook {call.url} failed: unsupported status code: {code}",
            reached=False,
            body=shown,
        )


def _retry_after(retry_after: str | None) -> float:
    """Return the delay that Retry-After asks for, within limits; 0 without one."""
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
    return min(max(wait, _MIN_RETRY), _MAX_RETRY)
