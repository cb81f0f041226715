"""Programs are watched while they start, and ended reliably."""

import shutil
import sys
from pathlib import Path

import pytest

from tests.bed.processes import free_ports, start, until
from tests.bed.trouble import BedError


def test_a_program_that_ends_too_early_is_quoted(tmp_path: Path) -> None:
    program = start("judge", [sys.executable, "-c", "print('no such flag'); exit(3)"], tmp_path / "log")

    with pytest.raises(BedError, match=r"(?s)judge ended with 3 before it was ready.*no such flag"):
        until("it was ready", lambda: False, programs=[program])


def test_patience_ends() -> None:
    with pytest.raises(BedError, match="the moon did not come about"):
        until("the moon", lambda: None, timeout=0.01)


def test_a_program_that_ignores_a_polite_request_is_ended_all_the_same(tmp_path: Path) -> None:
    stubborn = "import signal; signal.signal(15, signal.SIG_IGN); print('up', flush=True); signal.pause()"
    program = start("stubborn", [sys.executable, "-c", stubborn], tmp_path / "log")
    until("it was up", lambda: "up" in program.log.read_text(), programs=[program])

    program.stop(timeout=0.1)

    assert program.process.returncode == -9


@pytest.mark.skipif(not shutil.which("setpriv"), reason="setpriv arranges it, and this machine has none")
def test_a_program_does_not_outlive_a_killed_parent(tmp_path: Path) -> None:
    child = tmp_path / "child"
    parent = f"""
from pathlib import Path
from tests.bed.processes import start
program = start("child", ["sleep", "600"], Path({str(tmp_path / "log")!r}))
Path({str(child)!r}).write_text(str(program.process.pid))
program.process.wait()
"""
    running = start("parent", [sys.executable, "-c", parent], tmp_path / "parent.log")
    until("it had a child", lambda: child.is_file() and child.read_text(), programs=[running])
    pid = int(child.read_text())
    until("the child slept", lambda: _named(pid) == "sleep", programs=[running])

    running.process.kill()
    running.process.wait()

    until("the child was gone", lambda: _named(pid) != "sleep")


def _named(pid: int) -> str:
    """Return the name of a process, or an empty string if it has ended."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text()
    except FileNotFoundError:
        return ""
    name, _, rest = state.partition("(")[2].rpartition(")")
    return "" if rest.split()[0] == "Z" else name


def test_free_ports_differ() -> None:
    assert len(set(free_ports(20))) == 20
