"""
The process that runs a hooks file: `python -m lamina.hooks.child FILE`.

It is asked over its standard input and answers over what was its standard
output; what hooks print goes to standard error. Calls run side by side, each in
a thread, those of async functions on a loop of their own. It ends when nobody
is there to ask any more, whatever its hooks are doing.
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

from lamina.hooks.asking import arguments, reply
from lamina.hooks.frames import SIZE, frame, opened
from lamina.hooks.load import Unloadable, load, where
from lamina.hooks.sdk import Hook, Later

THREADS = 64
_INHERITED = 1024


class _Child:
    def __init__(self, path: Path, hooks: tuple[Hook, ...], say: Callable[[bytes], None]) -> None:
        self._path, self._say = path, say
        self._hooks = {hook.name: hook for hook in hooks}
        self._pool = ThreadPoolExecutor(THREADS, thread_name_prefix="hook")
        self._loop: asyncio.AbstractEventLoop | None = None

    def take(self, head: dict[str, Any], body: bytes) -> None:
        """Have a call answered, and do not wait for it."""
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

    def _run(self, head: dict[str, Any], hook: Hook, body: bytes, until: float) -> None:
        if monotonic() > until:
            # Nobody waits for it any more: it spent its time behind others.
            self._refuse(head, "never had its turn")
            return
        try:
            function = hook.functions[head["purpose"]]
            answer = reply(hook, head["purpose"], function(**arguments(function, body)))
        except BaseException as wrong:
            self._complain(head, wrong)
        else:
            self._say(frame({"id": head["id"]}, answer))

    async def _await(self, head: dict[str, Any], hook: Hook, body: bytes) -> None:
        try:
            function = hook.functions[head["purpose"]]
            async with asyncio.timeout(head["seconds"]):
                result = await function(**arguments(function, body))
            answer = reply(hook, head["purpose"], result)
        except BaseException as wrong:
            self._complain(head, wrong)
        else:
            self._say(frame({"id": head["id"]}, answer))

    def _complain(self, head: dict[str, Any], wrong: BaseException) -> None:
        if isinstance(wrong, Later):
            self._refuse(head, str(wrong), after=wrong.seconds)
            return
        traceback.print_exception(wrong, file=sys.stderr)
        said = "".join(traceback.format_exception_only(wrong)).strip()
        place = where(wrong, self._path)
        self._refuse(head, f"raised {said}{f' ({place})' if place else ''}")

    def _refuse(self, head: dict[str, Any], because: str, after: float | None = None) -> None:
        self._say(frame({"id": head["id"], "because": because, "after": after}))


def _pipes() -> tuple[BinaryIO, BinaryIO]:
    """
    Take standard input and output for ourselves; whoever prints from now on does so elsewhere.

    Nothing else is inherited: a program that a hook starts would hold it open after we have gone.
    """
    os.closerange(3, _INHERITED)
    asked, answered = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]  # it is a file when a program starts
    return asked, answered


def main(path: Path) -> None:
    """Load a file and answer calls until there is nobody to ask."""
    for number in (signal.SIGINT, signal.SIGHUP):
        # A key pressed at a terminal is meant for the process that started us, and that tells us when to end.
        signal.signal(number, lambda *_: None)
    asked, answered = _pipes()
    lock = threading.Lock()

    def say(words: bytes) -> None:
        try:
            with lock:
                answered.write(words)
                answered.flush()
        except OSError:
            os._exit(0)

    try:
        hooks = load(path)
    except Unloadable as wrong:
        say(frame({"failed": str(wrong)}))
        os._exit(1)
    say(frame({"ready": [hook.manifest() for hook in hooks]}))
    child = _Child(path, hooks, say)
    while len(size := asked.read(SIZE)) == SIZE:
        child.take(*opened(asked.read(int.from_bytes(size, "big"))))
    # At once: a hook that is stuck would have us wait for ever.
    os._exit(0)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
