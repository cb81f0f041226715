"""
Runs pytest, and runs a second time, alone, those failed tests that `tests/second-tries.txt` lists.

A unit, property or simulation test is deterministic: one failure fails the run. A test that starts processes shares
the cores with them, and a process that is late makes it fail without a defect. Each of these is listed with the
reason; a run prints which of them needed the second try.
"""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
LIST = ROOT / "tests" / "second-tries.txt"
REAL = "real"
_TESTS_FAILED = 1


class Entry(NamedTuple):
    """One line of the list: a test module or a test, on which server it applies, and the reason."""

    test: str
    reason: str
    only_real: bool = False

    def covers(self, test: str, server: str) -> bool:
        """Report whether this entry permits a second try of a test, given by its node id."""
        if self.only_real and server != REAL:
            return False
        return test == self.test or test.startswith((f"{self.test}::", f"{self.test}["))


def entries(text: str) -> Iterator[Entry]:
    """Yield the entries of the list; a line is `[real] PATH[::TEST]  REASON`."""
    for line in text.splitlines():
        if not line.strip() or line.startswith("#"):
            continue
        words = line.split(maxsplit=2 if line.startswith(f"{REAL} ") else 1)
        only_real = words[0] == REAL
        test, reason = words[1:] if only_real else words
        yield Entry(test, reason.strip(), only_real)


def refused(failed: Iterable[str], listed: Collection[Entry], server: str) -> list[str]:
    """Return the failed tests that may not have a second try."""
    return [test for test in failed if not any(entry.covers(test, server) for entry in listed)]


def run(arguments: Sequence[str], *, jobs: int) -> int:
    """Run pytest in parallel, then the listed tests among the failed ones alone, and return the exit code."""
    listed = tuple(entries(LIST.read_text()))
    server = os.environ.get("LAMINA_TEST_SERVER", "embedded")
    with tempfile.TemporaryDirectory() as cache:
        code = _pytest([f"-n{jobs}", "--dist=worksteal", *arguments], cache)
        if code != _TESTS_FAILED:
            return code
        failed = sorted(json.loads((Path(cache) / "v" / "cache" / "lastfailed").read_text()))
    if final := refused(failed, listed, server):
        print("failed, and not listed in tests/second-tries.txt:", *final, sep="\n  ", flush=True)
        return code
    print("second try, alone:", *failed, sep="\n  ", flush=True)
    with tempfile.TemporaryDirectory() as cache:
        code = _pytest([*(one for one in arguments if one.startswith("-")), *failed], cache)
    print(f"passed only at the second try: {len(failed)}" if code == 0 else "failed twice", flush=True)
    return code


def _pytest(arguments: Sequence[str], cache: str) -> int:
    command = [sys.executable, "-m", "pytest", "-o", f"cache_dir={cache}", *arguments]
    return subprocess.run(command, cwd=ROOT, check=False).returncode
