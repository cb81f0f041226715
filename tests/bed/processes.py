"""Programs that the bed starts, each with a log file, each ended by its process id."""

import shutil
import signal
import socket
import subprocess
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import NoReturn, TypeVar

from lamina.testing.waiting import eventually_sync
from tests.bed.trouble import BedError

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """A running program and the file with its output."""

    name: str
    process: subprocess.Popen[bytes]
    log: Path

    def last_words(self, lines: int = 20) -> str:
        """Return the end of the log."""
        said = self.log.read_text(errors="replace").splitlines()[-lines:]
        return "\n".join(f"  {self.name}: {line}" for line in said)

    def stop(self, timeout: float = 10.0) -> None:
        """Terminate the program, and kill it after a timeout."""
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(timeout)
            except subprocess.TimeoutExpired:
                self.process.kill()
        self.process.wait()


def start(
    name: str, command: Sequence[str | Path], log: Path, environment: Mapping[str, str] | None = None
) -> Program:
    """
    Start a program in a session of its own, so that Ctrl-C does not reach it twice.

    Where the system supports it, the program ends with us even if we are killed.
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
    # The kernel sends the signal when the thread that started the program ends, so the main thread starts it.
    setpriv = shutil.which("setpriv") if threading.current_thread() is threading.main_thread() else None
    return [setpriv, "--pdeathsig", "TERM", "--"] if setpriv else []


def until(
    wanted: str,
    look: Callable[[], T | None],
    *,
    programs: Sequence[Program] = (),
    timeout: float = 180.0,
    every: float = 0.02,
) -> T:
    """
    Return the first result of `look` that is not None or False.

    Fails, with the end of the programs' logs, when one of them ends, or after a timeout.
    """

    def found() -> T | None:
        if answer := look():
            return answer
        for program in programs:
            if program.process.poll() is not None:
                raise BedError(
                    f"{program.name} ended with {program.process.returncode} before {wanted}:\n"
                    + program.last_words()
                )
        return None

    try:
        answer = eventually_sync(found, seconds=timeout, interval=every)
    except AssertionError:
        words = "\n".join(program.last_words() for program in programs)
        raise BedError(f"{wanted} did not come about within {timeout:.0f} s\n{words}".rstrip()) from None
    assert answer is not None
    return answer


def free_ports(count: int) -> list[int]:
    """Return loopback ports that are free at the moment."""
    held = [socket.socket() for _ in range(count)]
    try:
        for one in held:
            one.bind(("127.0.0.1", 0))
        return [int(one.getsockname()[1]) for one in held]
    finally:
        for one in held:
            one.close()


def end_tidily_on_signals() -> None:
    """Handle SIGTERM like Ctrl-C, so that all started programs are stopped."""

    def unwind(number: int, frame: FrameType | None) -> NoReturn:
        raise KeyboardInterrupt

    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, unwind)
