"""Programs started by the bed: each with a log of its own, each ended by its process id."""

import shutil
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import NoReturn, TypeVar

from tests.bed.trouble import BedError

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """A running program and the file that everything it says goes to."""

    name: str
    process: subprocess.Popen[bytes]
    log: Path

    def last_words(self, lines: int = 20) -> str:
        """Return the end of the log."""
        said = self.log.read_text(errors="replace").splitlines()[-lines:]
        return "\n".join(f"  {self.name}: {line}" for line in said)

    def stop(self, patience: float = 10.0) -> None:
        """End the program: politely, then for certain."""
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(patience)
            except subprocess.TimeoutExpired:
                self.process.kill()
        self.process.wait()


def start(
    name: str, command: Sequence[str | Path], log: Path, environment: Mapping[str, str] | None = None
) -> Program:
    """
    Start a program in a session of its own, so that a Ctrl-C reaches it through us and not twice.

    Where the machine can arrange it, the program ends with us even when we are
    killed and can no longer end it.
    """
    with log.open("wb") as sink:
        process = subprocess.Popen(
            [*_dies_with_us(), *map(str, command)],
            stdin=subprocess.DEVNULL,
            stdout=sink,
            stderr=subprocess.STDOUT,
            env=environment,
            start_new_session=True,
        )
    return Program(name=name, process=process, log=log)


def _dies_with_us() -> list[str]:
    # The kernel sends the signal when the thread that started the program ends, so only the main one will do.
    setpriv = shutil.which("setpriv") if threading.current_thread() is threading.main_thread() else None
    return [setpriv, "--pdeathsig", "TERM", "--"] if setpriv else []


def until(
    wanted: str,
    look: Callable[[], T | None],
    *,
    programs: Sequence[Program] = (),
    patience: float = 180.0,
    every: float = 0.02,
) -> T:
    """
    Return the first answer of `look` that is not None (or False).

    Gives up, with the last words of the programs, when one of them ends or
    patience does.
    """
    deadline = time.monotonic() + patience
    while True:
        if answer := look():
            return answer
        for program in programs:
            if program.process.poll() is not None:
                raise BedError(
                    f"{program.name} ended with {program.process.returncode} before {wanted}:\n"
                    + program.last_words()
                )
        if time.monotonic() > deadline:
            words = "\n".join(program.last_words() for program in programs)
            raise BedError(f"{wanted} did not come about within {patience:.0f} s\n{words}".rstrip())
        time.sleep(every)


def free_ports(count: int) -> list[int]:
    """Return loopback ports that nobody listens on at this moment."""
    held = [socket.socket() for _ in range(count)]
    try:
        for one in held:
            one.bind(("127.0.0.1", 0))
        return [int(one.getsockname()[1]) for one in held]
    finally:
        for one in held:
            one.close()


def end_tidily_on_signals() -> None:
    """Let SIGTERM unwind the stack as Ctrl-C does, so that whatever was started is stopped."""

    def unwind(number: int, frame: FrameType | None) -> NoReturn:
        raise KeyboardInterrupt

    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, unwind)
