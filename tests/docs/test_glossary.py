"""The modules and classes of the glossary exist."""

import re
from importlib import import_module

import pytest

from tests.docs.pages import ROOT

PAGE = (ROOT / "docs" / "glossary.md").read_text()


def named() -> list[str]:
    """Return the modules and classes in the last column of the tables."""
    rows = [line.strip("|").split("|") for line in PAGE.splitlines() if line.startswith("| ")]
    return [found[1] for cells in rows if (found := re.fullmatch(r" `([\w.:]+)` ", cells[-1]))]


@pytest.mark.parametrize("name", named())
def test_every_module_and_class_of_the_glossary_exists(name: str) -> None:
    module, _, attribute = name.partition(":")
    found = import_module(f"lamina.{module}")

    assert not attribute or hasattr(found, attribute)


def test_every_row_has_as_many_cells_as_its_head() -> None:
    tables = re.findall(r"(?:^\|.*\n)+", PAGE, re.MULTILINE)

    assert tables and named()
    for table in tables:
        assert len({line.count("|") for line in table.splitlines()}) == 1
