"""The differences between two revisions, as text."""

from typing import Any

import pytest

from lamina.errors import SettingsError
from lamina.families.resourcegraph.commands.differences import differences, text
from lamina.families.resourcegraph.commands.facts import number
from lamina.objects.types import Made
from tests.unit.families.resourcegraph.commands.objects import (
    content,
    definition,
    facts,
    input_revision,
    instance,
    revision,
)

pytestmark = pytest.mark.check("RG-108")


def block(old: Any, new: Any) -> list[str]:
    return text("a", "b", old, new).splitlines()[2:]


def test_a_changed_field_is_in_a_block_of_its_parent() -> None:
    found = facts(definition(currentRevision=3), revision(2, content(3)), revision(3, content(5)))

    assert differences(found, 2, 3) == (
        "--- revision 2\n+++ revision 3\n@@ spec.resources.0.template.spec @@\n- replicas: 3\n+ replicas: 5"
    )


@pytest.mark.parametrize(
    ("older", "newer", "shown"), [(None, None, (2, 3)), (None, 2, (1, 2)), (1, None, (1, 3)), (3, 1, (3, 1))]
)
def test_by_default_the_current_revision_is_compared_with_the_one_before(
    older: int | None, newer: int | None, shown: tuple[int, int]
) -> None:
    found = facts(definition(currentRevision=3), *(revision(one, content(one)) for one in (1, 2, 3)))

    assert differences(found, older, newer).splitlines()[:2] == [
        f"--- revision {shown[0]}",
        f"+++ revision {shown[1]}",
    ]


@pytest.mark.parametrize("equal", [content(3), content(3, scope="Namespaced"), content(3, categories=[])])
def test_of_equal_revisions_only_the_headers_are_printed(equal: Made) -> None:
    found = facts(definition(currentRevision=2), revision(1, content(3)), revision(2, equal))

    assert differences(found, 1, 2) == "--- revision 1\n+++ revision 2"


def test_a_revision_that_does_not_exist_is_named_with_those_that_do() -> None:
    found = facts(definition(currentRevision=2), revision(1), revision(2))

    with pytest.raises(
        SettingsError, match="^rgd/application has no revision 9: the available revisions are 1, 2$"
    ):
        differences(found, 9, 2)
    with pytest.raises(SettingsError, match="^rgd/application has no revision before 1$"):
        differences(found, None, 1)
    with pytest.raises(SettingsError, match="the available revisions are none"):
        differences(facts(definition()), None, None)


def test_input_revisions_are_compared_by_the_specs_of_the_instance() -> None:
    found = facts(
        instance(), input_revision(10, 2, image="nginx:1.26"), input_revision(12, 3, image="nginx:1.27")
    )

    assert differences(found, None, None) == (
        "--- input revision 10 (RGD revision 2)\n"
        "+++ input revision 12 (RGD revision 3)\n"
        "@@ spec @@\n"
        "- image: nginx:1.26\n"
        "+ image: nginx:1.27"
    )


@pytest.mark.parametrize(
    ("old", "new", "lines"),
    [
        ({}, {}, []),
        ({"a": 1}, {"a": 1}, []),
        # Keys are sorted, and removals are before additions.
        (
            {"b": 1, "a": 1},
            {"a": 2, "b": 2, "c": 3},
            ["@@ spec @@", "- a: 1", "- b: 1", "+ a: 2", "+ b: 2", "+ c: 3"],
        ),
        # A block for each parent, the outer one first.
        (
            {"b": {"x": 1}, "c": 1, "a": {"x": 1}},
            {"b": {"x": 2}, "c": 2, "a": {"x": 2}},
            ["@@ spec @@", "- c: 1", "+ c: 2", "@@ spec.a @@", "- x: 1", "+ x: 2", "@@ spec.b @@", "- x: 1", "+ x: 2"],
        ),
        # Positions in lists are numbers, and ordered as numbers.
        (
            {"l": list(range(11))},
            {"l": [9, *range(1, 10), 11, 12]},
            ["@@ spec.l @@", "- 0: 0", "- 10: 10", "+ 0: 9", "+ 10: 11", "+ 11: 12"],
        ),
        # What is added or removed as a whole is shown value by value.
        (
            {},
            {"r": [{"id": "a", "spec": {"n": 1}}]},
            ["@@ spec.r.0 @@", "+ id: a", "@@ spec.r.0.spec @@", "+ n: 1"],
        ),
        ({"m": {"a": {}}}, {}, ["@@ spec.m @@", "- a: {}"]),
        ({"m": []}, {"m": {}}, ["@@ spec @@", "- m: []", "+ m: {}"]),
        ({"m": {"x": 1}}, {"m": "text"}, ["@@ spec @@", "+ m: text", "@@ spec.m @@", "- x: 1"]),
        ({"m": [1]}, {"m": {"x": 1}}, ["@@ spec.m @@", "- 0: 1", "+ x: 1"]),
        ({"a": 1}, {"a": True}, ["@@ spec @@", "- a: 1", "+ a: true"]),
        ({"a": None}, {}, ["@@ spec @@", "- a: null"]),
    ],
)  # fmt: skip
def test_what_differs(old: Any, new: Any, lines: list[str]) -> None:
    assert block(old, new) == lines


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("nginx:1.27", "nginx:1.27"),
        ("${schema.spec.name}-x", "${schema.spec.name}-x"),
        ('string | default="a b"', 'string | default="a b"'),
        ("[]string", "[]string"),
        ("a", "a"),
        ("3", '"3"'),
        ("true", '"true"'),
        ("null", '"null"'),
        ("{}", '"{}"'),
        ("", '""'),
        (" a", '" a"'),
        ("a ", '"a "'),
        ("a\nb", '"a\\nb"'),
        ('"a', '"\\"a"'),
        ("é", "é"),
        (1.5, "1.5"),
        (False, "false"),
    ],
)
def test_how_a_value_is_shown(value: Any, shown: str) -> None:
    assert block({}, {"a": value}) == ["@@ spec @@", f"+ a: {shown}"]


def test_a_number_is_that_of_a_revision_or_of_an_input_revision() -> None:
    assert [number(revision(2)), number(input_revision(7, 2)), number({})] == [2, 7, 0]
