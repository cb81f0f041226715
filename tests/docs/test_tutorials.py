"""Every command of a tutorial works, and prints what the page says."""

import re
from pathlib import Path

import pytest

from tests.docs.pages import ROOT, make_up, matches, reading

TUTORIALS = sorted((ROOT / "docs" / "tutorial").glob("*.md"))


@pytest.mark.parametrize("page", TUTORIALS, ids=lambda page: page.stem)
def test_a_tutorial_can_be_done_in_order(page: Path, tmp_path: Path) -> None:
    with reading(tmp_path) as reader:
        reader.follow(page.read_text())


def test_the_story_the_readme_opens_with_can_be_pasted(tmp_path: Path) -> None:
    page = (ROOT / "README.md").read_text()
    commands, printed = re.findall(r"^```(?:sh)?\n(.*?)^```$", page, re.M | re.S)[:2]
    first, *others = [line for line in commands.splitlines() if line]
    assert first.startswith("make up; ")
    # The name of a revision is derived from its content, and the server may default more fields one day.
    parts = re.sub(r"web-[a-z0-9]{8,}", "web-…", printed).strip().split("\n\n")
    assert len(others) == len(parts) == 3

    with reading(tmp_path) as reader:
        reader.type(make_up())
        for command, part in zip(others, parts, strict=True):
            # Aborting lasts as long as two writes take: a watch may miss it.
            said = [line for line in part.splitlines() if " Aborting " not in line]
            seen = reader.type(command).stdout
            rest = iter(seen.splitlines())
            for line in said:
                assert any(matches(one, line) for one in rest), f"{line}\nnot, or not there, in\n{seen}"


def test_the_examples_of_a_composite_and_of_a_decorator_are_ten_lines_each() -> None:
    page = (ROOT / "docs" / "tutorial" / "metacontroller.md").read_text()
    composite, _, decorator = re.findall(r"^```python\n(.*?)^```$", page, re.M | re.S)

    for example in (composite, decorator):
        assert len([line for line in example.splitlines() if line.strip()]) <= 10
