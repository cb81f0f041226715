"""
Checks and scenarios by id: which exist, which must pass, which are open.

A test names its id with `@check("C07")`. `listed.txt` has the ids that must pass on the
embedded server; the others are open, and `needs` is what they wait for. Changes add lines
to the list and remove none.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

import pytest

from tests.bed.server import Which
from tests.bed.trouble import BedError

ROOT = Path(__file__).parents[2]
TESTS = ("tests/conformance/checks", "tests/scenarios")
LISTED = ROOT / "tests" / "conformance" / "listed.txt"
KNOWN = (
    *(f"C{number:02}" for number in range(1, 81)),
    *(f"MC-{number}" for number in range(1, 91)),
    *(f"MW-{number}" for number in range(1, 62)),
    *(f"OS-{number}" for number in range(1, 57)),
    *(f"RG-{number}" for number in range(1, 117)),
)


def check(identifier: str, *, needs: str | None = None) -> pytest.MarkDecorator:
    """Mark a test with an id, and with what it needs from the server beyond the plain API."""
    return pytest.mark.check(identifier, needs=needs)


def listed() -> tuple[str, ...]:
    """Return the ids that must pass on the embedded server."""
    return tuple(line for line in map(str.strip, LISTED.read_text().splitlines()) if line and line[0] != "#")


def marked(item: pytest.Item) -> tuple[str, str | None] | None:
    """Return the id of a test and what it needs, if it has one."""
    mark = item.get_closest_marker("check")
    return (str(mark.args[0]), mark.kwargs.get("needs")) if mark else None


def is_due(identifier: str, which: Which) -> bool:
    """
    Return whether a test with this id runs.

    LAMINA_TEST_CHECKS has ids, or `all`. Without it the listed ids run on the embedded
    server, and all on the real one.
    """
    if asked := os.environ.get("LAMINA_TEST_CHECKS"):
        return asked == "all" or identifier in asked.split(",")
    return which == "real" or identifier in listed()


@dataclass(slots=True)
class Record:
    """The results of the tests with one id."""

    needs: str | None
    tests: int = 0
    shows: list[str] = field(default_factory=list)
    """The distinct descriptions of its tests."""
    seconds: float = 0.0
    passed: int = 0
    failures: list[str] = field(default_factory=list)
    elsewhere: list[str] = field(default_factory=list)
    """What cannot be tested on this server, and why."""

    @property
    def verdict(self) -> str:
        """ok, FAIL, or a dash if nothing ran."""
        if self.failures:
            return "FAIL"
        return "ok" if self.passed else "-"


class Recorder:
    """A pytest plugin that prints a line per test and collects results by id."""

    def __init__(self) -> None:
        self.records: dict[str, Record] = {}
        self.broken: list[str] = []

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        for item in items:
            if found := marked(item):
                record = self.records.setdefault(found[0], Record(needs=found[1]))
                record.tests += 1
                sentence = _sentence(getattr(item, "originalname", item.name))
                if sentence not in record.shows:
                    record.shows.append(sentence)
        # Tests without an id belong to other runs.
        items[:] = [item for item in items if marked(item)]

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self.broken.append(report.longreprtext)

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_makereport(self, item: pytest.Item) -> Iterator[None]:
        outcome = yield
        report: pytest.TestReport = outcome.get_result()  # type: ignore[attr-defined]  # pluggy's old-style wrapper
        if found := marked(item):
            self._note(found[0], _sentence(item.name), report)

    def _note(self, identifier: str, sentence: str, report: pytest.TestReport) -> None:
        record = self.records[identifier]
        record.seconds += report.duration
        if report.failed:
            record.failures.append(report.longreprtext)
            print(
                f"{identifier}  FAIL  {report.duration:6.1f} s  {sentence}\n{report.longreprtext}", flush=True
            )
        elif report.skipped and isinstance(report.longrepr, tuple):
            record.elsewhere.append(f"{sentence}: {report.longrepr[2].removeprefix('Skipped: ')}")
        elif report.when == "call" and report.passed:
            record.passed += 1
            print(f"{identifier}  ok    {report.duration:6.1f} s  {sentence}", flush=True)


def run_ids(which: Which, ids: Sequence[str], *, kubectl: str | None = None) -> int:
    """Run the named checks, or all that apply to the server, and return an exit code."""
    everything = "all" if which == "embedded" else None
    recorder = _run(which, ",".join(ids) if ids else everything, kubectl)
    ran = {name: record for name, record in recorder.records.items() if record.verdict != "-"}
    failed = [name for name, record in ran.items() if record.failures]
    absent = [name for name in ids if name not in ran]
    print(f"{len(ran) - len(failed)} passed, {len(failed)} failed on the {which} server")
    if absent:
        print(f"no test ran for {', '.join(absent)}")
    if not ran:
        print("nothing was run")
    return 1 if failed or absent or recorder.broken or not ran else 0


def report(servers: Sequence[Which], *, kubectl: str | None = None) -> int:
    """Run the listed ids on each server, print both results side by side, and return an exit code."""
    must, started = listed(), time.monotonic()
    found = {which: _apart(which, kubectl) for which in servers}
    print()
    print("\n".join(table(found, must)))
    bad = [one for one in must if not all(_is_good(which, found[which].get(one)) for which in servers)]
    print(f"\n{len(must) - len(bad)} of {len(must)} listed pass, in {time.monotonic() - started:.0f} s")
    if bad:
        print(f"listed and not passing: {', '.join(bad)}")
    return 1 if bad else 0


def table(found: Mapping[Which, Mapping[str, Record]], must: Sequence[str]) -> Iterator[str]:
    """Yield a line per id: its result on each server and its description, or why it is open."""
    yield f"{'':8}" + "".join(f"{which:10}" for which in found)
    for identifier in sorted({*KNOWN, *must, *(name for one in found.values() for name in one)}):
        records = [one.get(identifier) for one in found.values()]
        known = next((record for record in records if record is not None), None)
        if identifier not in must:
            why = f"needs {known.needs}" if known and known.needs else "not listed yet"
            yield f"{identifier:8}open: {why if known else 'no test'}"
            continue
        verdicts = "".join(f"{record.verdict if record else 'no test':10}" for record in records)
        yield f"{identifier:8}{verdicts}{'; '.join(known.shows) if known else ''}"
        for which, record in zip(found, records, strict=True):
            for sentence in record.elsewhere if record else ():
                yield f"{'':8}not on the {which} server: {sentence}"


def _is_good(which: Which, record: Record | None) -> bool:
    """Return whether an id passes; what cannot be tested on a real server is tested on ours."""
    if record is None:
        return False
    return record.verdict == "ok" or (which == "real" and record.verdict == "-" and bool(record.elsewhere))


def _apart(which: Which, kubectl: str | None) -> dict[str, Record]:
    """Run the listed ids in a process of its own, because the server is selected when tests are loaded."""
    with tempfile.TemporaryDirectory() as folder:
        kept = Path(folder) / "records.json"
        command = [sys.executable, "-m", "tests.bed", "scenarios", "--server", which, "--keep", str(kept)]
        done = subprocess.run([*command, *(("--kubectl", kubectl) if kubectl else ())], cwd=ROOT, check=False)
        if done.returncode != 0 or not kept.exists():
            raise BedError(f"the scenarios broke down on the {which} server: see above")
        return {name: Record(**fields) for name, fields in json.loads(kept.read_text()).items()}


def keep(which: Which, file: Path, *, kubectl: str | None = None) -> int:
    """Run the listed ids, write the results to a file, and return an exit code."""
    recorder = _run(which, ",".join(listed()) or "none", kubectl)
    file.write_text(json.dumps({name: asdict(record) for name, record in recorder.records.items()}))
    return 1 if recorder.broken else 0


def _run(which: Which, ids: str | None, kubectl: str | None) -> Recorder:
    os.environ["LAMINA_TEST_SERVER"] = which
    if ids:
        os.environ["LAMINA_TEST_CHECKS"] = ids
    else:
        os.environ.pop("LAMINA_TEST_CHECKS", None)
    if kubectl:
        os.environ["LAMINA_TEST_KUBECTL"] = kubectl
    recorder = Recorder()
    quiet = [
        "-p",
        "no:terminal",
        "-p",
        "no:cacheprovider",
        "-o",
        "addopts=--strict-markers --import-mode=importlib",
    ]
    # This program has loaded the package of the plugin already.
    quiet += ["-W", "ignore:Module already imported:pytest.PytestAssertRewriteWarning"]
    ended = pytest.main(
        [*quiet, f"--rootdir={ROOT}", *(str(ROOT / one) for one in TESTS)], plugins=[recorder]
    )
    # A run that was aborted has no failures, and must not count as passed.
    if ended not in {pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED, pytest.ExitCode.NO_TESTS_COLLECTED}:
        recorder.broken.append(f"the test run broke down: pytest ended with {ended!r}")
    for trouble in recorder.broken:
        print(trouble)
    return recorder


def _sentence(name: str) -> str:
    return name.removeprefix("test_").replace("_", " ")
