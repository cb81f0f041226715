"""The examples on the pages about testing and simulating work."""

import os
import re
import subprocess
import sys
from pathlib import Path

from tests.bed.kubectl import kubectl_command
from tests.docs.pages import ROOT, reading


def blocks() -> list[str]:
    """Return every piece of code on the page that has tests in it."""
    page = (ROOT / "docs" / "testing.md").read_text()
    return [
        block for block in re.findall(r"^```python\n(.*?)^```$", page, re.M | re.S) if "def test_" in block
    ]


def run(folder: Path, mode: str) -> subprocess.CompletedProcess[str]:
    """Run the tests in a folder with pytest, kubectl and an installation, and nothing else."""
    (folder / "pytest.ini").write_text(
        f"[pytest]\nasyncio_mode = {mode}\nasyncio_default_fixture_loop_scope = function\nfilterwarnings = error\n"
    )
    (folder / "bin").mkdir()
    (folder / "bin" / "kubectl").symlink_to(kubectl_command())
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "--strict-markers", "-p", "no:cacheprovider", str(folder)],
        cwd=folder, capture_output=True, text=True, timeout=300, check=False,
        env={**os.environ, "PATH": f"{folder / 'bin'}:{os.environ['PATH']}"},
    )  # fmt: skip


def test_every_test_on_the_page_passes(tmp_path: Path) -> None:
    for number, block in enumerate(blocks()):
        (tmp_path / f"test_{number}.py").write_text(block)

    done = run(tmp_path, "auto")

    assert done.returncode == 0, done.stdout + done.stderr
    count = sum(block.count("def test_") for block in blocks())
    assert f"{count} passed" in done.stdout


def test_the_fixtures_are_there_in_the_strict_mode_too(tmp_path: Path) -> None:
    awaits = next(block for block in blocks() if "async def" in block)
    (tmp_path / "test_strict.py").write_text(
        f"{awaits}\n\nimport pytest\n\npytestmark = pytest.mark.asyncio\n"
    )

    done = run(tmp_path, "strict")

    assert "1 passed" in done.stdout, done.stdout + done.stderr


def test_the_page_about_simulating_can_be_done_in_order(tmp_path: Path) -> None:
    with reading(tmp_path) as reader:
        reader.follow((ROOT / "docs" / "simulation.md").read_text())
