"""Pages and the source name things, and not people, and have no metaphors that were given up."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.docs.pages import ROOT

PAGES = [
    *ROOT.glob("*.md"),
    *(ROOT / "changes").glob("*.md"),
    *(ROOT / "docs").rglob("*.md"),
    *(ROOT / "examples").rglob("*.md"),
]
_WORDS = re.compile(
    r"\b(whoever|nobody|somebody|anybody|everybody|no one|someone|anyone|everyone|on paper|turn(?:s|ed|ing)? round)\b",
    re.I,
)
_CODE = re.compile(r"^```.*?^```$", re.M | re.S)
SOURCES = ("src", "bench", "tools", "examples")
_RETIRED = re.compile(
    "Seat|Room|Toll|Lane|Album|Picture|Kept|Herd|Ground|GROUND|Rest|Means|Manner|Deed|Doorkeeper"
    "|(?i:hire|employ|lend_a_hand|take_leave|farewell|bear_with|forgive|overhear|introduce|bury|stir"
    "|hear|heard|tell|told|hasty|patience|turn_round|until_turned|is_turned|keeper|roomy|truths|futile)"
)
"""
The names of classes, fields, functions and constants that were given up, without leading underscores.

A plain word such as `kept` was given up as the name of a class only.
"""


@pytest.mark.parametrize("page", sorted(PAGES), ids=lambda page: str(page.relative_to(ROOT)))
def test_a_page_has_no_words_for_people(page: Path) -> None:
    assert _WORDS.findall(_CODE.sub("", page.read_text())) == []


@pytest.mark.parametrize("folder", SOURCES)
def test_the_source_has_no_words_for_people(folder: str) -> None:
    found = {
        str(path.relative_to(ROOT)): words
        for path in sorted((ROOT / folder).rglob("*.py"))
        if (words := _WORDS.findall(path.read_text()))
    }

    assert found == {}


@pytest.mark.parametrize("folder", (*SOURCES, "tests"))
def test_no_class_field_function_or_constant_has_a_retired_name(folder: str) -> None:
    found = {
        str(path.relative_to(ROOT)): names
        for path in sorted((ROOT / folder).rglob("*.py"))
        if (names := [name for name in defined(path) if _RETIRED.fullmatch(name.lstrip("_"))])
    }

    assert found == {}


def defined(path: Path) -> Iterator[str]:
    """Yield the names of the classes, their fields, the functions and the constants that a file defines."""
    for node in ast.walk(ast.parse(path.read_text())):
        match node:
            case ast.ClassDef(name=name, body=body):
                yield name
                yield from (
                    one.target.id
                    for one in body
                    if isinstance(one, ast.AnnAssign) and isinstance(one.target, ast.Name)
                )
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                yield name
            case ast.Name(id=name, ctx=ast.Store()) if name.isupper():
                yield name
