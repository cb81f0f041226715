"""Runs `lamina` as a process with a home folder of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest


@dataclass(frozen=True)
class Lamina:
    """Runs `lamina` in a home folder of its own."""

    home: Path
    said: dict[str, str] = field(default_factory=dict)
    """Further environment variables."""
    started: list[subprocess.Popen[str]] = field(default_factory=list)
    """What was left running."""

    @property
    def environ(self) -> dict[str, str]:
        theirs = ("LAMINA_", "XDG_", "KUBECONFIG")
        kept = {name: value for name, value in os.environ.items() if not name.startswith(theirs)}
        return {**kept, "HOME": str(self.home), "XDG_DATA_HOME": str(self.home / "data"), **self.said}

    def __call__(self, *arguments: str, code: int = 0) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            [sys.executable, "-m", "lamina", *arguments],
            env=self.environ,
            capture_output=True,
            text=True,
            timeout=180,
            check=False,
        )
        assert done.returncode == code, done.stdout + done.stderr
        return done

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        """Start a command and leave it running until it or the test ends."""
        process = subprocess.Popen(
            [sys.executable, "-m", "lamina", *arguments], env=self.environ, stderr=subprocess.PIPE, text=True
        )
        self.started.append(process)
        return process

    def end(self) -> None:
        """Kill what a failed test left running, and close its pipes: they would fail another test."""
        for process in self.started:
            process.kill()
            process.wait()
            if process.stderr is not None:
                process.stderr.close()


@pytest.fixture
def lamina(tmp_path: Path) -> Iterator[Lamina]:
    command = Lamina(tmp_path)
    yield command
    command.end()
    command.said.clear()
    # A test that failed may have left several.
    for server in json.loads(command("status", "-o", "json").stdout or "[]"):
        command("down", "--port", server["url"].rpartition(":")[2])
