"""Cutting a release: every change is in the changelog once, and the version is the same everywhere."""

import re
import shutil
from pathlib import Path

import pytest

from lamina import __version__
from tests.docs.pages import ROOT
from tools.release import HEADINGS, ReleaseError, changelog, check, cut, kind_of, section

NEXT = "9.0.0"


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A copy of the files that a release changes."""
    for name in ("CHANGELOG.md", "src/lamina/__init__.py", "charts/lamina/Chart.yaml"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    (tmp_path / "changes").mkdir()
    for name, text in (
        ("b.added.md", "A second thing.\n"),
        ("a.added.md", "A thing.\n"),
        ("c.fixed.md", "A mend.\n\nIt has two parts.\n"),
    ):
        (tmp_path / "changes" / name).write_text(text)
    return tmp_path


def test_the_changes_become_a_section_above_the_earlier_ones(checkout: Path) -> None:
    before = (checkout / "CHANGELOG.md").read_text()

    cut(checkout, NEXT, "2026-11-20", "About things.")
    (checkout / "changes" / "d.changed.md").write_text("Another way.\n")
    cut(checkout, "9.0.1", "2026-11-21")

    page = (checkout / "CHANGELOG.md").read_text()
    assert page.startswith(before.partition("\n## ")[0].rstrip())
    assert page.partition("## 9.0.1")[2].startswith(
        " (2026-11-21)\n\n### Changed\n\n- Another way.\n\n## 9.0.0 (2026-11-20)\n\nAbout things.\n\n"
        "### Added\n\n- A thing.\n- A second thing.\n\n### Fixed\n\n- A mend.\n\n  It has two parts.\n"
    )


def test_the_version_is_set_and_the_files_are_removed(checkout: Path) -> None:
    cut(checkout, NEXT, "2026-11-20")

    assert f'__version__ = "{NEXT}"' in (checkout / "src/lamina/__init__.py").read_text()
    chart = (checkout / "charts/lamina/Chart.yaml").read_text()
    assert re.findall(r"^(?:appV|v)ersion: (.*)$", chart, re.M) == [NEXT, NEXT]
    assert [path.name for path in (checkout / "changes").iterdir()] == [".gitkeep"]


@pytest.mark.parametrize(
    ("version", "message"),
    [(__version__, "is not higher than"), ("0.0.1", "is not higher than"), ("next", "expected a version")],
)
def test_a_version_that_is_not_higher_is_refused(checkout: Path, version: str, message: str) -> None:
    with pytest.raises(ReleaseError, match=message):
        cut(checkout, version, "2026-11-20")

    assert len(list((checkout / "changes").iterdir())) == 3


def test_a_change_of_an_unknown_kind_is_refused(checkout: Path) -> None:
    (checkout / "changes" / "d.improved.md").write_text("Better.\n")

    with pytest.raises(ReleaseError, match=r"changes/d\.improved\.md ends in none of \.added\.md"):
        check(checkout, NEXT)


def test_nothing_to_release_is_refused(checkout: Path) -> None:
    cut(checkout, NEXT, "2026-11-20")

    with pytest.raises(ReleaseError, match="changes/ is empty"):
        cut(checkout, "9.0.1", "2026-11-20")


def test_every_change_of_this_checkout_can_be_released() -> None:
    changes = {path.name: path.read_text() for path in (ROOT / "changes").glob("*.md")}
    assert {kind_of(name) for name in changes} <= HEADINGS.keys()

    page = changelog((ROOT / "CHANGELOG.md").read_text(), section(NEXT, "2026-11-20", "", changes))

    for name, text in changes.items():
        first = text.strip().splitlines()[0]
        assert page.count(f"- {first}") >= 1, name
    assert page.count("\n- ") >= len(changes)
