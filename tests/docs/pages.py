"""Follows a page: writes its files, runs its commands, and compares their output."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.bed.kubectl import kubectl_command

ROOT = Path(__file__).parents[2]
_FENCE = re.compile(r"(?:^Write `(?P<file>[^`]+)`:\n\n)?^```(?P<kind>\w*)\n(?P<text>.*?)^```$", re.M | re.S)


@dataclass(frozen=True)
class Reader:
    """A shell in a folder of its own, with lamina, kro and kubectl on the PATH."""

    home: Path

    @property
    def environ(self) -> dict[str, str]:
        theirs = ("LAMINA_", "XDG_", "KUBECONFIG")
        kept = {name: value for name, value in os.environ.items() if not name.startswith(theirs)}
        path = f"{self.home / 'bin'}:{os.environ['PATH']}"
        # The source of this checkout, also where another one is installed.
        ours = {"HOME": str(self.home), "PATH": path, "PYTHONPATH": str(ROOT / "src"), "LAMINA_PORT": "0"}
        return {**kept, **ours}

    def type(self, command: str) -> subprocess.CompletedProcess[str]:
        """Run a command and return its output; fails if its exit code is not 0."""
        shell = shutil.which("bash")
        assert shell is not None
        done = subprocess.run(
            [shell, "-ec", command],
            cwd=self.home,
            env=self.environ,
            capture_output=True,
            text=True,
            timeout=180,
            check=False,
        )
        assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
        return done

    def follow(self, page: str) -> None:
        """Follow a page from top to bottom."""
        for fence in _FENCE.finditer(page):
            if fence["file"]:
                self.write(fence["file"], fence["text"])
            elif fence["kind"] == "console":
                for command, expected in steps(fence["text"]):
                    printed = self.type(command).stdout
                    assert matches(printed, expected), f"{command}\n{printed}\nexpected\n{expected}"

    def write(self, name: str, text: str) -> None:
        path = self.home / name
        # Replaced atomically: a server may load the file at any time.
        fresh = path.with_suffix(".new")
        fresh.write_text(text)
        fresh.replace(path)


def make_up() -> str:
    """Return the command of `make up`, without the setup."""
    found = re.search(r"^up:.*\n\t@\$\(BIN\)/(.*)$", (ROOT / "Makefile").read_text(), re.M)
    assert found is not None
    return found[1]


def steps(block: str) -> list[tuple[str, str]]:
    """Return the commands of a console block, each with the output below it."""
    found: list[tuple[str, str]] = []
    for line in block.splitlines():
        if line.startswith("$ "):
            found.append((line[2:], ""))
        elif found:
            command, output = found[-1]
            found[-1] = (command, f"{output}{line}\n")
    return found


def matches(printed: str, expected: str) -> bool:
    """Say whether an output is as on the page; `…` there stands for any text, on one line or several."""
    said = [" ".join(line.split()) for line in expected.strip().splitlines()]
    pattern = ".*".join(re.escape(part) for part in "\n".join(said).split("…"))
    got = "\n".join(" ".join(line.split()) for line in printed.strip().splitlines())
    return not expected or re.fullmatch(pattern, got, re.S) is not None


def _script(path: Path, arguments: str) -> Path:
    """Write a command that runs Python with these arguments; scripts need not be installed."""
    path.write_text(f'#!/bin/sh\nexec "{sys.executable}" {arguments} "$@"\n')
    path.chmod(0o755)
    return path


@contextmanager
def reading(home: Path) -> Iterator[Reader]:
    """Prepare a shell, and stop the server that it left running."""
    folder = home / "bin"
    folder.mkdir()
    (folder / "kubectl").symlink_to(kubectl_command())
    lamina = _script(folder / "lamina", "-m lamina")
    _script(folder / "kro", "-c 'from lamina.cli.kro import main; main()'")
    (home / "examples").symlink_to(ROOT / "examples")
    reader = Reader(home)
    try:
        yield reader
    finally:
        subprocess.run(
            [str(lamina), "down"], env=reader.environ, check=False, capture_output=True, timeout=60
        )
