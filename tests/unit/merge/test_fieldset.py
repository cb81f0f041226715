"""Sets of field paths, in the form managedFields have."""

from typing import Any

import pytest

from lamina.merge import fieldset
from lamina.merge.fieldset import UnreadableFields

PORT = 'k:{"port":80,"protocol":"TCP"}'


@pytest.mark.parametrize(
    ("path", "shown"),
    [
        (["f:spec", "f:size"], ".spec.size"),
        (["f:metadata", "f:labels", "f:app.kubernetes.io/name"], ".metadata.labels.app.kubernetes.io/name"),
        (["f:ports", PORT, "f:name"], '.ports[port=80,protocol="TCP"].name'),
        (["f:tags", 'v:"x"'], '.tags[="x"]'),
        (["f:nums", "v:1.5"], ".nums[=1.5]"),
        (["f:flags", "v:true"], ".flags[=true]"),
        (["f:list", "i:3"], ".list[3]"),
        (["f:tags", 'v:"a\\nb"'], '.tags[="a\\nb"]'),
        (["f:tags", 'v:"\\u0001é\\u003c"'], '.tags[="\\x01é<"]'),
        (["f:keys", 'k:{"a":null}'], ".keys[a=null]"),
    ],
)
def test_paths_as_messages_show_them(path: list[str], shown: str) -> None:
    assert fieldset.show(path) == shown


@pytest.mark.parametrize(
    ("value", "spelled"),
    [
        ("a", 'v:"a"'),
        ('say "hi"\\', 'v:"say \\"hi\\"\\\\"'),
        ("<&>", 'v:"\\u003c\\u0026\\u003e"'),
        ("\b\f\n", 'v:"\\u0008\\u000c\\n"'),
        ("\\b", 'v:"\\\\b"'),
        ("é", 'v:"é"'),
        (1, "v:1"),
        (1.0, "v:1"),
        (1.5, "v:1.5"),
        (True, "v:true"),
    ],
)
def test_values_have_one_spelling(value: Any, spelled: str) -> None:
    assert fieldset.value_element(value) == spelled
    assert fieldset.read({spelled: {}}) == {spelled: {}}


def test_keys_are_sorted_and_compact() -> None:
    assert fieldset.key_element({"protocol": "TCP", "port": 80}) == PORT
    assert fieldset.read({'k:{ "protocol": "TCP", "port": 80.0 }': {}}) == {PORT: {}}


def test_elements_stand_in_order() -> None:
    written: dict[str, Any] = {"i:10": {}, "i:9": {}, 'v:"a b"': {}, 'v:"a"': {}, "v:10": {}, "v:9": {}, "v:true": {}, "v:null": {}, "v:[1]": {}, 'k:{"b":1}': {}, 'k:{"a":2}': {}, 'k:{"a":10}': {}, "f:b": {}, "f:a": {}}  # fmt: skip

    assert list(fieldset.read(written)) == [
        "f:a", "f:b", 'k:{"a":2}', 'k:{"a":10}', 'k:{"b":1}', "v:9", "v:10", 'v:"a"', 'v:"a b"', "v:true", "v:[1]",
        "v:null", "i:9", "i:10",
    ]  # fmt: skip
    assert fieldset.in_order(written) == written
    assert list(fieldset.in_order(written)) == list(fieldset.read(written))


def test_a_lone_dot_is_a_plain_member_and_unknown_kinds_are_left_out() -> None:
    assert fieldset.read({"f:a": {".": {}}, "z:1": {}, "f:b": {".": {}, "f:c": {}}, ".": {}}) == {
        "f:a": {},
        "f:b": {".": {}, "f:c": {}},
    }


@pytest.mark.parametrize("wrong", [{"a": {}}, {"ab": {}}, {"k:x": {}}, {"k:[]": {}}, {"v:": {}}, {"i:x": {}}, {"f:a": 1}, [], None])  # fmt: skip
def test_misspelt_fields_are_refused(wrong: Any) -> None:
    with pytest.raises(UnreadableFields):
        fieldset.read(wrong)


A_B = fieldset.of(["a"], ["a", "b"])
B = fieldset.of(["a", "b"])
A = fieldset.of(["a"])


def test_sets_of_paths_are_written_as_managed_fields() -> None:
    assert A_B == {"f:a": {".": {}, "f:b": {}}}
    assert fieldset.of(["spec", PORT, "name"], ["spec"]) == {"f:spec": {".": {}, PORT: {"f:name": {}}}}


@pytest.mark.parametrize(
    ("one", "two", "union", "difference", "intersection", "without"),
    [
        (A,   B,   A_B, A,   {}, A),
        (B,   A,   A_B, B,   {}, {}),
        (A_B, A,   A_B, B,   A,  {}),
        (A_B, B,   A_B, A,   B,  A),
        (A_B, A_B, A_B, {},  A_B, {}),
        (A,   A_B, A_B, {},  A,  {}),
        ({},  A,   A,   {},  {}, {}),
        (A,   {},  A,   A,   {}, A),
    ],
)  # fmt: skip
def test_what_lies_below_a_path_is_another_path(
    one: Any, two: Any, union: Any, difference: Any, intersection: Any, without: Any
) -> None:
    assert fieldset.union(one, two) == union
    assert fieldset.difference(one, two) == difference
    assert fieldset.intersection(one, two) == intersection
    assert fieldset.without(one, two) == without


def test_members_come_level_by_level() -> None:
    fields = fieldset.of(["b", "x"], ["a", "y"], ["c"], ["a"], ["b", "w", "z"])

    assert [fieldset.show(path) for path in fieldset.paths(fields)] == [".a", ".c", ".a.y", ".b.x", ".b.w.z"]


def test_membership() -> None:
    assert fieldset.has(A_B, ["f:a"])
    assert fieldset.has(A_B, ["f:a", "f:b"])
    assert not fieldset.has(B, ["f:a"])
    assert not fieldset.has(B, ["f:a", "f:b", "f:c"])
    assert not fieldset.has(B, [])
