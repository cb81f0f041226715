"""
The process that runs a hooks file: `python -m lamina.hooks.child FILE`.

It reads calls from its standard input and writes results to its original standard
output; prints of hooks go to standard error. Calls run concurrently, each in a
thread, those of async functions on one event loop. It exits when its input is
closed, even if hooks are still running.
"""

from __future__ import annotations

import asyncio
import inspect
import os
import signal
import sys
import threading
import traceback
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from time import monotonic
from typing import Any, BinaryIO

from lamina.hooks.call import arguments, reply
from lamina.hooks.framing import SIZE, frame, parse_frame
from lamina.hooks.load import Unloadable, load, where
from lamina.hooks.sdk import Hook, Later

THREADS = 64
_INHERITED = 1024


class _Child:
    def __init__(self, path: Path, hooks: tuple[Hook, ...], send: Callable[[bytes], None]) -> None:
        self._path, self._send = path, send
        self._hooks = {hook.name: hook for hook in hooks}
        self._pool = ThreadPoolExecutor(THREADS, thread_name_prefix="hook")
        self._loop: asyncio.AbstractEventLoop | None = None

    def start(self, head: dict[str, Any], body: bytes) -> None:
        """Start a call without waiting for it."""
        hook = self._hooks.get(head["hook"])
        function = hook.functions.get(head["purpose"]) if hook is not None else None
        if hook is None or function is None:
            self._refuse(head, f"{self._path.name} has no {head['purpose']} hook {head['hook']}")
        elif inspect.iscoroutinefunction(function):
            asyncio.run_coroutine_threadsafe(self._await(head, hook, body), self._running())
        else:
            self._pool.submit(self._run, head, hook, body, monotonic() + head["seconds"])

    def _running(self) -> asyncio.AbstractEventLoop:
        if self._loop is None:
            self._loop = asyncio.new_event_loop()
            threading.Thread(target=self._loop.run_forever, name="hooks", daemon=True).start()
        return self._loop

    def _run(self, head: dict[str, Any], hook: Hook, body: bytes, deadline: float) -> None:
        if monotonic() > deadline:
            # The caller stopped waiting: the call spent its timeout in the queue.
            self._refuse(head, "timed out in the queue")
            return
        try:
            function = hook.functions[head["purpose"]]
            answer = reply(hook, head["purpose"], function(**arguments(function, body)))
        except BaseException as error:
            self._fail(head, error)
        else:
            self._send(frame({"id": head["id"]}, answer))

    async def _await(self, head: dict[str, Any], hook: Hook, body: bytes) -> None:
        try:
            function = hook.functions[head["purpose"]]
            async with asyncio.timeout(head["seconds"]):
                result = await function(**arguments(function, body))
            answer = reply(hook, head["purpose"], result)
        except BaseException as error:
            self._fail(head, error)
        else:
            self._send(frame({"id": head["id"]}, answer))

    def _fail(self, head: dict[str, Any], error: BaseException) -> None:
        if isinstance(error, Later):
            self._refuse(head, str(error), after=error.seconds)
            return
        text = "".join(traceback.format_exception_only(error)).strip()
        location = where(error, self._path)
        # The parent writes the traceback: only it knows the format of the log.
        trace = "".join(traceback.format_exception(error))
        self._refuse(head, f"raised {text}{f' ({location})' if location else ''}", traceback=trace)

    def _refuse(
        self, head: dict[str, Any], reason: str, after: float | None = None, traceback: str = ""
    ) -> None:
        self._send(frame({"id": head["id"], "because": reason, "after": after, "traceback": traceback}))


def _pipes() -> tuple[BinaryIO, BinaryIO]:
    """
    Return standard input and output for calls; prints of hooks go to standard error.

    The descriptors are not inheritable: a program that a hook starts would keep them open after we exit.
    """
    os.closerange(3, _INHERITED)
    requests, responses = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]  # a file at startup
    return requests, responses


def main(path: Path) -> None:
    """Load a file and answer calls until the input is closed."""
    for number in (signal.SIGINT, signal.SIGHUP):
        # Ctrl-C in a terminal reaches the whole process group; the parent decides when this process ends.
        signal.signal(number, lambda *_: None)
    requests, responses = _pipes()
    lock = threading.Lock()

    def send(message: bytes) -> None:
        try:
            with lock:
                responses.write(message)
                responses.flush()
        except OSError:
            os._exit(0)

    try:
        hooks = load(path)
    except Unloadable as error:
        send(frame({"failed": str(error)}))
        os._exit(1)
    send(frame({"ready": [hook.manifest() for hook in hooks]}))
    child = _Child(path, hooks, send)
    while len(size := requests.read(SIZE)) == SIZE:
        child.start(*parse_frame(requests.read(int.from_bytes(size, "big"))))
    # Immediately: a hook that hangs would delay the exit forever.
    os._exit(0)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
