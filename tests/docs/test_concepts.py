"""The commands on the pages about concepts and on the tour work, and print what the pages show."""

from pathlib import Path

import pytest

from tests.docs.pages import ROOT, reading

PAGES = [
    page for page in sorted((ROOT / "docs" / "concepts").glob("*.md")) if "```console\n" in page.read_text()
]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_page_can_be_followed(page: Path, tmp_path: Path) -> None:
    with reading(tmp_path) as reader:
        reader.follow(page.read_text())


def test_the_tour_can_be_followed(tmp_path: Path) -> None:
    with reading(tmp_path) as reader:
        reader.follow((ROOT / "docs" / "tour.md").read_text())
