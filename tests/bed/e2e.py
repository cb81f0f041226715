"""
Runs Kubernetes' own end-to-end suite.

`wanted.txt` has the tests that a control plane with simulated pods can pass, `due.txt` those
that pass on the embedded one already. A name is the full text of a test without its tags.
"""

import json
import re
import shutil
import tempfile
import time
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.bed.build import E2E, KUBECTL_35, built
from tests.bed.either import start_server
from tests.bed.processes import Program, start, until
from tests.bed.server import Server, Which
from tests.bed.trouble import BedError

LISTS = Path(__file__).parents[1] / "e2e"
HISTORY = "20s"
TIMEOUT = 30 * 60.0
TAG = r"(?: \[[^\]]+\])*"


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The result of one test."""

    name: str
    passed: bool
    seconds: float
    attempts: int = 1
    trouble: str = ""


def due() -> list[str]:
    """Return the names of the tests that must pass on the embedded server."""
    return _names(LISTS / "due.txt")


def wanted() -> list[str]:
    """Return the names of all tests that the embedded server should pass."""
    return _names(LISTS / "wanted.txt")


def judge(which: Which, names: Sequence[str], *, shards: int, keep: Path | None = None) -> int:
    """
    Run the named tests against a new server, print a line per test, and return an exit code.

    `shards` processes of the suite run in parallel, each with a part of the names, because
    most of a test's time is waiting. The output of the suite is written to `keep`.
    """
    if not names:
        print("no test is named, so nothing is shown")
        return 1
    suite, kubectl = built(E2E), built(KUBECTL_35)
    folder = Path(tempfile.mkdtemp(prefix="lamina-e2e-"))
    started = time.monotonic()
    with ExitStack() as undo:
        undo.callback(shutil.rmtree, folder, ignore_errors=True)
        # Without a node that is ready the suite refuses to start.
        server = undo.enter_context(start_server(which, history=HISTORY, pods=True))
        parts = [part for part in _dealt(names, shards) if part]
        running = []
        for number, part in enumerate(parts):
            running.append(_suite(suite, kubectl, server, part, folder, number))
            undo.callback(running[-1].stop)
        until("the suite had ended", lambda: _all_ended(running), timeout=TIMEOUT, every=0.5)
        if keep:
            shutil.copytree(folder, keep, dirs_exist_ok=True)
        verdicts = _verdicts(
            names, [folder / f"report-{number}.json" for number in range(len(parts))], running
        )
    for verdict in verdicts:
        again = f" (at attempt {verdict.attempts})" if verdict.attempts > 1 else ""
        print(f"{'ok  ' if verdict.passed else 'FAIL'}  {verdict.seconds:6.1f} s  {verdict.name}{again}")
        if verdict.trouble:
            print("      " + verdict.trouble.replace("\n", "\n      "))
    failed = [verdict for verdict in verdicts if not verdict.passed]
    spent = time.monotonic() - started
    print(
        f"{len(verdicts) - len(failed)} passed, {len(failed)} failed on the {which} server in {spent:.0f} s"
    )
    return 1 if failed else 0


def focus(names: Iterable[str]) -> str:
    """Return a regular expression that matches the full text of these tests and of no others."""

    def one(name: str) -> str:
        # The suite puts tags between the parts of a name, and the list omits them.
        words = (re.escape(word) for word in _plain(name).split(" "))
        return f"{TAG} ".join(words)

    # The suite puts its own name before the full text.
    return f"\\[sig-[a-z-]+\\] ({'|'.join(map(one, names))}){TAG}$"


def _plain(text: str) -> str:
    return " ".join(re.sub(r"\[[^\]]+\]", " ", text).split())


def _names(path: Path) -> list[str]:
    return [line for line in map(str.strip, path.read_text().splitlines()) if line and line[0] != "#"]


def _dealt(names: Sequence[str], shards: int) -> list[list[str]]:
    """Distribute the names in turn, so that similar neighbors are in different shards."""
    return [list(names[number::shards]) for number in range(shards)]


def _all_ended(running: Sequence[Program]) -> bool:
    return all(program.process.poll() is not None for program in running)


def _suite(
    suite: Path, kubectl: Path, server: Server, names: Sequence[str], folder: Path, number: int
) -> Program:
    return start(
        f"e2e.test {number}",
        [
            suite,
            f"--kubeconfig={server.kubeconfig}",
            "--provider=skeleton",
            "--allowed-not-ready-nodes=-1",
            f"--kubectl-path={kubectl}",
            f"--ginkgo.focus={focus(names)}",
            f"--ginkgo.json-report={folder / f'report-{number}.json'}",
            f"--ginkgo.timeout={TIMEOUT:.0f}s",
            # The timeouts of the suite are for an idle machine, so failed tests are repeated once.
            "--ginkgo.flake-attempts=2",
            "--ginkgo.no-color",
            "--ginkgo.v",
        ],
        folder / f"suite-{number}.log",
    )


def _verdicts(names: Sequence[str], reports: Sequence[Path], running: Sequence[Program]) -> list[Verdict]:
    found: dict[str, Verdict] = {}
    for report, program in zip(reports, running, strict=True):
        if not report.is_file():
            raise BedError(f"the suite left no report:\n{program.last_words(40)}")
        for suite in json.loads(report.read_text()):
            for spec in suite["SpecReports"] or ():
                if verdict := _verdict(spec):
                    found[verdict.name] = verdict
    suite_trouble = "\n".join(
        one.trouble for one in found.values() if one.name.startswith("(") and one.trouble
    )
    return [
        found.get(_plain(name))
        or Verdict(name=name, passed=False, seconds=0.0, trouble=suite_trouble or "it was not run")
        for name in names
    ]


def _verdict(spec: dict[str, Any]) -> Verdict | None:
    """Return the result in one entry of a report; None for a test that was not selected."""
    if spec["State"] in {"skipped", "pending"} and not spec.get("Failure"):
        return None
    texts = [*(spec["ContainerHierarchyTexts"] or ()), spec["LeafNodeText"]]
    passed = spec["State"] == "passed"
    failure = spec.get("Failure") or {}
    return Verdict(
        name=_plain(" ".join(texts)) if spec["LeafNodeType"] == "It" else f"({spec['LeafNodeType']})",
        passed=passed,
        seconds=spec["RunTime"] / 1e9,
        attempts=spec.get("NumAttempts") or 1,
        trouble="" if passed else f"{spec['State']}: {failure.get('Message', '').strip()}",
    )
