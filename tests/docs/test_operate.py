"""The commands on the pages about operation work, and the pages are complete."""

import re
from pathlib import Path

import pytest

from lamina.deploy.alerts import groups
from tests.docs.pages import ROOT, reading

PAGES = sorted((ROOT / "docs" / "operate").glob("*.md"))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_page_can_be_followed(page: Path, tmp_path: Path) -> None:
    with reading(tmp_path) as reader:
        reader.follow(page.read_text())


def test_the_readme_links_every_page() -> None:
    linked = re.findall(r"\(docs/operate/(\w+)\.md\)", (ROOT / "README.md").read_text())

    assert set(linked) == {page.stem for page in PAGES}


def test_the_page_on_alerts_has_every_alert() -> None:
    page = (ROOT / "docs" / "operate" / "alerts.md").read_text()
    alerts = [rule["alert"] for group in groups("lamina") for rule in group["rules"]]

    assert re.findall(r"^\| `(Lamina\w+)` \|", page, re.M) == alerts
