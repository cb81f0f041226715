"""
Hooks as an ASGI application, for deployments that call them as webhooks.

A controller's sync hook is at `/NAME/sync`, and so on; `Hook.manifest` with the
server's address returns the object that calls it there.
"""

from __future__ import annotations

import asyncio
import inspect
import traceback
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, TypeAlias

from lamina.hooks.call import arguments, reply
from lamina.hooks.sdk import Hook, Later

Message: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Message]]
Send: TypeAlias = Callable[[Message], Awaitable[None]]
Application: TypeAlias = Callable[[Message, Receive, Send], Awaitable[None]]

_JSON, _TEXT = b"application/json", b"text/plain; charset=utf-8"


def asgi(*hooks: Hook) -> Application:
    """Return an ASGI application that serves the hooks of these controllers; `/healthz` returns `ok`."""
    by_name = {hook.name: hook for hook in hooks}

    async def application(scope: Message, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await _lifespan(receive, send)
            return
        if scope["type"] != "http":
            raise NotImplementedError(f"hooks are called over http, not {scope['type']}")
        path, method = str(scope["path"]).strip("/"), scope["method"]
        if path == "healthz":
            await _answer(send, 200, b"ok", _TEXT)
            return
        name, _, purpose = path.rpartition("/")
        hook = by_name.get(name)
        if hook is None or purpose not in hook.functions:
            known = ", ".join(
                f"/{one.name}/{purpose_name}" for one in hooks for purpose_name in one.functions
            )
            await _answer(send, 404, f"unknown path: /{path}; the hooks are {known}\n".encode(), _TEXT)
        elif method != "POST":
            await _answer(send, 405, b"hooks are called with POST\n", _TEXT, (b"allow", b"POST"))
        else:
            await _call(send, hook, purpose, await _body(receive))

    return application


async def _call(send: Send, hook: Hook, purpose: str, body: bytes) -> None:
    function = hook.functions[purpose]
    try:
        if inspect.iscoroutinefunction(function):
            result = await function(**arguments(function, body))
        else:
            # In a thread, so that a slow hook does not block the others.
            result = await asyncio.to_thread(lambda: function(**arguments(function, body)))
        answer = reply(hook, purpose, result)
    except Later as later:
        after = str(max(1, round(later.seconds))).encode()
        await _answer(send, 429, f"{later}\n".encode(), _TEXT, (b"retry-after", after))
    except Exception as wrong:
        traceback.print_exception(wrong)
        said = "".join(traceback.format_exception_only(wrong))
        await _answer(send, 500, said.encode(), _TEXT)
    else:
        await _answer(send, 200, answer, _JSON)


async def _body(receive: Receive) -> bytes:
    parts: list[bytes] = []
    while True:
        message = await receive()
        parts.append(message.get("body") or b"")
        if message["type"] == "http.disconnect" or not message.get("more_body"):
            return b"".join(parts)


async def _lifespan(receive: Receive, send: Send) -> None:
    while True:
        message = await receive()
        await send({"type": f"{message['type']}.complete"})
        if message["type"] == "lifespan.shutdown":
            return


async def _answer(send: Send, status: int, body: bytes, kind: bytes, *headers: tuple[bytes, bytes]) -> None:
    headers_sent = [(b"content-type", kind), (b"content-length", str(len(body)).encode()), *headers]
    await send({"type": "http.response.start", "status": status, "headers": headers_sent})
    await send({"type": "http.response.body", "body": body})
