"""What the pages about testing and simulating say can be done."""

import re
import subprocess
import sys
from pathlib import Path

from tests.docs.pages import ROOT, reading


def test_every_test_on_the_page_passes(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "testing.md").read_text()
    blocks = [
        block for block in re.findall(r"^```python\n(.*?)^```$", page, re.M | re.S) if "def test_" in block
    ]
    for number, block in enumerate(blocks):
        (tmp_path / f"test_{number}.py").write_text(block)
    (tmp_path / "pytest.ini").write_text(
        "[pytest]\nasyncio_mode = auto\nasyncio_default_fixture_loop_scope = function\nfilterwarnings = error\n"
    )

    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "--strict-markers", "-p", "no:cacheprovider", str(tmp_path)],
        cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip

    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{len(blocks)} passed" in done.stdout


def test_the_page_about_simulating_can_be_done_in_order(tmp_path: Path) -> None:
    with reading(tmp_path) as reader:
        reader.follow((ROOT / "docs" / "simulation.md").read_text())
