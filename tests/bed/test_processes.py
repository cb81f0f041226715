"""Programs are watched while they start, and ended for certain."""

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
        until("the moon", lambda: None, patience=0.01)


def test_a_program_that_ignores_a_polite_request_is_ended_all_the_same(tmp_path: Path) -> None:
    stubborn = "import signal; signal.signal(15, signal.SIG_IGN); print('up', flush=True); signal.pause()"
    program = start("stubborn", [sys.executable, "-c", stubborn], tmp_path / "log")
    until("it was up", lambda: "up" in program.log.read_text(), programs=[program])

    program.stop(patience=0.1)

    assert program.process.returncode == -9


def test_free_ports_differ() -> None:
    assert len(set(free_ports(20))) == 20
