"""A page done by a reader: its files are written, its commands typed, and what they print is compared."""

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
    """Somebody at a shell, in a folder of their own, with lamina and kubectl and nothing else."""

    home: Path

    @property
    def environ(self) -> dict[str, str]:
        theirs = ("LAMINA_", "XDG_", "KUBECONFIG")
        kept = {name: value for name, value in os.environ.items() if not name.startswith(theirs)}
        path = f"{self.home / 'bin'}:{os.environ['PATH']}"
        return {**kept, "HOME": str(self.home), "PATH": path, "LAMINA_PORT": "0"}

    def type(self, command: str) -> subprocess.CompletedProcess[str]:
        """Type something and return what is printed; fails if the shell says it failed."""
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
        """Do what a page says, in order."""
        for fence in _FENCE.finditer(page):
            if fence["file"]:
                self.write(fence["file"], fence["text"])
            elif fence["kind"] == "console":
                for command, expected in steps(fence["text"]):
                    printed = self.type(command).stdout
                    assert matches(printed, expected), f"{command}\n{printed}\nexpected\n{expected}"

    def write(self, name: str, text: str) -> None:
        path = self.home / name
        # In one piece: somebody may be looking at it.
        fresh = path.with_suffix(".new")
        fresh.write_text(text)
        fresh.replace(path)


def make_up() -> str:
    """Return what `make up` types, once everything is set up."""
    found = re.search(r"^up:.*\n\t@\$\(BIN\)/(.*)$", (ROOT / "Makefile").read_text(), re.M)
    assert found is not None
    return found[1]


def steps(block: str) -> list[tuple[str, str]]:
    """Return the commands of a console block, each with what is printed below it."""
    found: list[tuple[str, str]] = []
    for line in block.splitlines():
        if line.startswith("$ "):
            found.append((line[2:], ""))
        elif found:
            command, output = found[-1]
            found[-1] = (command, f"{output}{line}\n")
    return found


def matches(printed: str, expected: str) -> bool:
    """Say whether something was printed as a page has it; `…` there stands for anything, on one line or several."""
    said = [" ".join(line.split()) for line in expected.strip().splitlines()]
    pattern = ".*".join(re.escape(part) for part in "\n".join(said).split("…"))
    got = "\n".join(" ".join(line.split()) for line in printed.strip().splitlines())
    return not expected or re.fullmatch(pattern, got, re.S) is not None


@contextmanager
def reading(home: Path) -> Iterator[Reader]:
    """Set somebody up, and stop whatever they left running."""
    folder = home / "bin"
    folder.mkdir()
    (folder / "kubectl").symlink_to(kubectl_command())
    lamina = folder / "lamina"
    lamina.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m lamina "$@"\n')
    lamina.chmod(0o755)
    (home / "examples").symlink_to(ROOT / "examples")
    reader = Reader(home)
    try:
        yield reader
    finally:
        subprocess.run(
            [str(lamina), "down"], env=reader.environ, check=False, capture_output=True, timeout=60
        )
