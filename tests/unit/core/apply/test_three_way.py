"""What a live object becomes: what is desired, merged into it, given what was applied last."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis.strategies import DrawFn, booleans, composite, dictionaries, integers, lists, none, recursive
from hypothesis.strategies import sampled_from as one_of

from lamina.core.apply.three_way import ThreeWay, go_json, without_nulls
from lamina.objects.types import Made

LAST = "example.com/last-applied"
MERGE = ThreeWay(LAST)
applied, differs, is_last_applied, is_merged = (
    MERGE.applied,
    MERGE.differs,
    MERGE.is_last_applied,
    MERGE.is_merged,
)
last_applied, merged, new_child = MERGE.last_applied, MERGE.merge, MERGE.create


def there(observed: Made, last: Made | None = None) -> Made:
    """Return an object with these fields to which those were applied last."""
    wanted = {"metadata": {"name": "c"}, **(last or {})}
    made = new_child({"apiVersion": "v1", "kind": "Child", **wanted})
    metadata = {**made["metadata"], "uid": "1", "resourceVersion": "7"}
    return {"apiVersion": "v1", "kind": "Child", **observed, "metadata": metadata}


def becomes(observed: Made, last: Made, desired: Made) -> Made:
    wanted = {"apiVersion": "v1", "kind": "Child", "metadata": {"name": "c"}, **desired}
    became = merged(there(observed, last), wanted)
    return {key: value for key, value in became.items() if key not in ("apiVersion", "kind", "metadata")}


PORT = {"port": 80, "protocol": "TCP"}


@pytest.mark.parametrize(
    ("observed", "last", "desired", "expected"),
    [
        # objects
        ({"a": {"x": 1, "y": 2}},  {"a": {"x": 1}}, {"a": {"x": 3}},       {"a": {"x": 3, "y": 2}}),
        ({"a": {"x": 1, "y": 2}},  {"a": {"x": 1}}, {"a": {}},             {"a": {"y": 2}}),
        ({"a": {"x": 1, "y": 2}},  {"a": {"x": 1}}, {},                    {}),
        ({"a": 1},                 {},              {"b": 2},              {"a": 1, "b": 2}),
        ({"a": {"x": 1}},          {"a": {"x": 1}}, {"a": "text"},         {"a": {}}),
        ({"a": {"x": 1}},          {},              {"a": None},           {"a": {"x": 1}}),
        ({"a": 1},                 {"a": 1},        {"a": {"x": 1}},       {"a": {"x": 1}}),
        # lists
        ({"l": [1, 2]},            {"l": [1, 2]},   {"l": [3]},            {"l": [3]}),
        ({"l": [1, 2]},            {"l": [1, 2]},   {"l": "text"},         {"l": []}),
        ({"l": [{"z": 1}]},        {},              {"l": [{"z": 2}]},     {"l": [{"z": 2}]}),
        ({"l": [{"name": "a"}, 1]},{},              {"l": [{"name": "b"}]},{"l": [{"name": "b"}]}),
        # lists of keyed objects
        (
            {"l": [{"name": "a", "i": 1}, {"name": "theirs"}]}, {"l": [{"name": "a", "i": 1}]},
            {"l": [{"name": "a", "i": 2}]}, {"l": [{"name": "a", "i": 2}, {"name": "theirs"}]},
        ),
        (
            {"l": [{"name": "a"}, {"name": "theirs"}]}, {"l": [{"name": "a"}]},
            {"l": [{"name": "b"}]}, {"l": [{"name": "theirs"}, {"name": "b"}]},
        ),
        (
            {"l": [{"port": 80, "protocol": "TCP"}]}, {"l": [{"port": 80}]},
            {"l": [{"port": 80}, {"port": 80, "protocol": "UDP"}]},
            {"l": [PORT, {"port": 80, "protocol": "UDP"}]},
        ),
        (
            {"l": [{"mountPath": "/a", "name": "v"}]}, {"l": [{"mountPath": "/a", "name": "v"}]},
            {"l": [{"mountPath": "/b", "name": "v"}]}, {"l": [{"mountPath": "/b", "name": "v"}]},
        ),
        # what is desired only seems to be there
        ({"a": 3},                 {"a": 3},        {"a": 3.0},            {"a": 3}),
        ({},                       {},              {"a": {"x": None}},    {"a": {}}),
    ],
)  # fmt: skip
def test_what_an_object_becomes(observed: Made, last: Made, desired: Made, expected: Made) -> None:
    assert becomes(observed, last, desired) == expected


def test_the_servers_own_fields_stay() -> None:
    child = {**there({}), "status": {"ready": True}}
    child["metadata"]["creationTimestamp"] = "2026-01-01T00:00:00Z"
    echoed = {
        "apiVersion": "v1",
        "kind": "Child",
        "metadata": {
            "name": "c",
            "creationTimestamp": None,
            "uid": "9",
            "managedFields": [],
            "generation": 4,
        },
        "status": {"ready": False},
    }

    became = merged(child, echoed)

    assert became["status"] == {"ready": True}
    assert became["metadata"]["uid"] == "1"
    assert became["metadata"]["creationTimestamp"] == "2026-01-01T00:00:00Z"
    assert "generation" not in became["metadata"]
    assert not differs(became, merged(became, echoed))


def test_the_record_is_compared_as_json_and_not_by_the_letter() -> None:
    wanted = {"apiVersion": "v1", "kind": "Child", "metadata": {"name": "c"}, "a": "<&>"}
    child = new_child(wanted)
    spaced = json.dumps(json.loads(child["metadata"]["annotations"][LAST]), indent=1)
    child["metadata"]["annotations"][LAST] = spaced

    assert not differs(child, merged(child, wanted))


def test_the_record_is_written_as_go_writes_it() -> None:
    assert go_json({"b": "<a> & b", "a": [1, 2.5, None]}) == (
        '{"a":[1,2.5,null],"b":"\\u003ca\\u003e \\u0026 b"}'
    )


@pytest.mark.parametrize("text", ["", "{", "[]", "null", "3"])
def test_a_record_that_cannot_be_parsed_counts_as_none(text: str) -> None:
    assert last_applied({"metadata": {"annotations": {LAST: text}}}) == {}


def test_what_the_server_drops_is_written_once() -> None:
    wanted: Made = {
        "apiVersion": "v1",
        "kind": "Child",
        "metadata": {"name": "c"},
        "a": {},
        "b": "",
        "c": [],
        "d": None,
    }
    first = there({})

    assert differs(first, merged(first, wanted)), "it has not been applied yet"
    written = merged(first, wanted)
    dropped = {key: value for key, value in written.items() if key not in ("a", "b", "c", "d")}
    assert not differs(dropped, merged(dropped, wanted))


def test_an_empty_value_that_was_never_applied_is_written() -> None:
    wanted = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, "data": {"k": ""}}
    old = there({"data": {}}, {"data": {}})

    assert differs(old, merged(old, wanted))


keys = one_of(["a", "b", "name", "port"])
values = recursive(
    none() | booleans() | integers(0, 3) | one_of(["x", "y"]),
    lambda below: lists(below, max_size=3) | dictionaries(keys, below, max_size=3),
    max_leaves=8,
)


@composite
def bodies(draw: DrawFn) -> dict[str, Any]:
    return draw(dictionaries(one_of(["spec", "data", "other"]), values, max_size=3))


@given(bodies(), bodies())
def test_a_second_merge_changes_nothing(observed: Made, desired: Made) -> None:
    wanted = {"apiVersion": "v1", "kind": "Child", "metadata": {"name": "c"}, **desired}
    child = there(observed)

    once = merged(child, wanted)

    assert not differs(once, merged(once, wanted))


@given(bodies())
def test_an_object_created_as_desired_is_as_desired(desired: Made) -> None:
    wanted = {"apiVersion": "v1", "kind": "Child", "metadata": {"name": "c"}, **desired}
    child = new_child(wanted)

    assert not differs(child, merged(child, wanted))


@given(bodies(), bodies(), booleans())
def test_where_merging_is_skipped_it_would_change_nothing(
    observed: Made, desired: Made, made_so: bool
) -> None:
    wanted = {"apiVersion": "v1", "kind": "Child", "metadata": {"name": "c"}, **desired}
    child = there({**observed, **desired} if made_so else observed, desired)

    if is_merged(child, wanted, applied(wanted)):
        assert merged(child, wanted) == child
        assert not differs(child, merged(child, wanted))


def test_an_untouched_object_is_merged_already() -> None:
    wanted = {"apiVersion": "v1", "kind": "Child", "metadata": {"name": "c"}, "a": {"x": [1, 2], "y": True}}
    child = there({"a": {"x": [1, 2], "y": True, "defaulted": 3}}, {"a": wanted["a"]})

    assert is_merged(child, wanted, applied(wanted))
    assert not is_merged({**child, "a": {"x": [1, 2], "y": 1}}, wanted, applied(wanted))


@given(bodies(), bodies())
def test_what_was_never_applied_is_not_removed(observed: Made, desired: Made) -> None:
    wanted = {"apiVersion": "v1", "kind": "Child", "metadata": {"name": "c"}, **desired}

    became = merged(there(observed), wanted)

    assert set(observed) <= set(became)


def test_what_is_echoed_of_the_servers_own_fields_is_not_desired() -> None:
    wanted = {"apiVersion": "v1", "kind": "Child", "metadata": {"name": "c"}, "data": {"k": "v"}}
    child = new_child(wanted)
    observed = {
        **child,
        "metadata": {**child["metadata"], "uid": "1", "resourceVersion": "7", "generation": 2},
    }

    echo = {**observed, "status": {"made": "up"}}
    echo["metadata"] = {**observed["metadata"], "creationTimestamp": None, "managedFields": [{"time": "now"}]}

    assert is_last_applied(observed, echo)
    assert not differs(observed, merged(observed, echo))
    assert not {"uid", "resourceVersion", "generation"} & new_child(echo)["metadata"].keys()


# Nulls and numbers


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({"a": None, "b": 1},            {"b": 1}),
        ({"a": {"b": None}},             {"a": {}}),
        ([{"a": None}, None],            [{}, None]),
        (3.0,                            3),
        (2.5,                            2.5),
        (float(2**60),                   float(2**60)),
        (True,                           True),
        ("text",                         "text"),
    ],
)  # fmt: skip
def test_what_is_left_without_nulls(value: Any, expected: Any) -> None:
    found = without_nulls(value)

    assert found == expected
    assert type(found) is type(expected)


@given(bodies())
def test_without_nulls_there_are_none_to_remove(body: Made) -> None:
    once = without_nulls(body)

    assert without_nulls(once) == once


@pytest.mark.parametrize("character", ["<", ">", "&", "\u2028", "\u2029"])
def test_go_escapes_what_is_unsafe_in_html(character: str) -> None:
    text = go_json({"a": character})

    assert character not in text
    assert json.loads(text) == {"a": character}


# The record


def test_an_object_is_created_with_the_record_of_what_is_desired() -> None:
    wanted = {"apiVersion": "v1", "kind": "Child", "metadata": {"name": "c"}, "a": None, "b": 1}

    child = new_child(wanted)

    assert "a" not in child
    assert last_applied(child) == wanted


def test_the_record_does_not_contain_itself() -> None:
    wanted: Made = {
        "metadata": {"name": "c", "annotations": {"mine": "1"}},
        "kind": "Child",
        "apiVersion": "v1",
    }

    again = new_child(new_child(wanted))

    assert last_applied(again)["metadata"]["annotations"] == {"mine": "1"}


def test_two_records_on_one_object_do_not_interfere() -> None:
    other = ThreeWay("example.com/other")
    wanted = {"apiVersion": "v1", "kind": "Child", "metadata": {"name": "c"}, "a": {"x": 1}}

    both = other.merge(new_child(wanted), {**wanted, "a": {"y": 2}})
    withdrawn = other.merge(both, {**wanted, "a": {}})

    assert both["a"] == {"x": 1, "y": 2}
    assert withdrawn["a"] == {"x": 1}


def test_what_was_applied_last_and_is_not_desired_is_removed() -> None:
    first = {"apiVersion": "v1", "kind": "Child", "metadata": {"name": "c"}, "a": {"x": 1, "y": 2}}
    child = {**new_child(first), "a": {"x": 1, "y": 2, "defaulted": 3}}

    became = merged(child, {**first, "a": {"x": 1}})

    assert became["a"] == {"x": 1, "defaulted": 3}
    assert last_applied(became)["a"] == {"x": 1}


def test_an_object_without_a_record_loses_nothing() -> None:
    child: Made = {"apiVersion": "v1", "kind": "Child", "metadata": {"name": "c"}, "a": {"x": 1}}

    assert merged(child, {**child, "a": {"y": 2}})["a"] == {"x": 1, "y": 2}


def test_labels_of_others_stay_and_ours_are_removed() -> None:
    first: Made = {"apiVersion": "v1", "kind": "Child", "metadata": {"name": "c", "labels": {"ours": "1"}}}
    child = new_child(first)
    child["metadata"]["labels"] = {"ours": "1", "theirs": "2"}

    became = merged(child, {**first, "metadata": {"name": "c"}})

    assert "labels" not in became["metadata"] or became["metadata"]["labels"] == {"theirs": "2"}


def test_a_kind_keeps_the_version_it_is_live_in() -> None:
    child = there({"a": 1})

    assert (
        merged(child, {"apiVersion": "v2", "kind": "Child", "metadata": {"name": "c"}})["apiVersion"] == "v1"
    )


def test_a_null_creation_time_is_not_desired() -> None:
    wanted = {"apiVersion": "v1", "kind": "Child", "metadata": {"name": "c", "creationTimestamp": None}}

    child = new_child(wanted)
    assert not differs(child, merged(child, wanted))


@pytest.mark.parametrize(
    ("record", "says"),
    [
        (None, False),
        ("", False),
        ("{", False),
        ('{"metadata": {"name": "c"}, "a": 1}', True),
        ('{"a": 2}', False),
    ],
)
def test_whether_it_was_applied_last(record: str | None, says: bool) -> None:
    annotations = {LAST: record} if record is not None else {}
    child: Made = {"metadata": {"name": "c", "annotations": annotations}, "a": 5}

    assert is_last_applied(child, {"metadata": {"name": "c"}, "a": 1}) is says


@given(bodies(), bodies(), bodies())
def test_what_is_computed_before_makes_no_difference(observed: Made, last: Made, desired: Made) -> None:
    wanted = {"apiVersion": "v1", "kind": "Child", "metadata": {"name": "c"}, **desired}
    child = there(observed, last)

    assert merged(child, wanted, applied(wanted)) == merged(child, wanted)


@given(bodies(), bodies(), bodies())
def test_a_merge_changes_neither_argument(observed: Made, last: Made, desired: Made) -> None:
    wanted = {"apiVersion": "v1", "kind": "Child", "metadata": {"name": "c"}, **desired}
    child = there(observed, last)
    before = json.dumps([child, wanted])

    merged(child, wanted)

    assert json.dumps([child, wanted]) == before
