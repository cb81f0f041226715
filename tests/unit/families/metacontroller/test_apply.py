"""What a child becomes: desired, laid over what is there, given what was desired last."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis.strategies import DrawFn, booleans, composite, dictionaries, integers, lists, none, recursive
from hypothesis.strategies import sampled_from as one_of

from lamina.core.questions import Answers
from lamina.families.metacontroller.apply import (
    as_go_writes,
    differs,
    holds_already,
    is_as_last_applied,
    last_applied,
    merged,
    new_child,
    statement,
)
from lamina.families.metacontroller.desired import desired
from lamina.families.metacontroller.hooks import Response
from lamina.families.metacontroller.means import Means
from lamina.families.metacontroller.names import LAST_APPLIED
from lamina.objects.types import Made
from tests.unit.families.metacontroller.catset import PARENT, Cats


def there(observed: Made, last: Made | None = None) -> Made:
    """A child with these fields, that was last wanted with those."""
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
def test_what_a_child_becomes(observed: Made, last: Made, desired: Made, expected: Made) -> None:
    assert becomes(observed, last, desired) == expected


def test_what_belongs_to_the_server_is_the_servers() -> None:
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
    spaced = json.dumps(json.loads(child["metadata"]["annotations"][LAST_APPLIED]), indent=1)
    child["metadata"]["annotations"][LAST_APPLIED] = spaced

    assert not differs(child, merged(child, wanted))


def test_the_record_is_written_as_the_original_wrote_it() -> None:
    assert as_go_writes({"b": "<a> & b", "a": [1, 2.5, None]}) == (
        '{"a":[1,2.5,null],"b":"\\u003ca\\u003e \\u0026 b"}'
    )


@pytest.mark.parametrize("text", ["", "{", "[]", "null", "3"])
def test_a_record_that_cannot_be_read_is_as_good_as_none(text: str) -> None:
    assert last_applied({"metadata": {"annotations": {LAST_APPLIED: text}}}) == {}


def test_what_the_server_drops_is_wanted_once_and_not_for_ever() -> None:
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

    assert differs(first, merged(first, wanted)), "nobody has told the server yet"
    told = merged(first, wanted)
    dropped = {key: value for key, value in told.items() if key not in ("a", "b", "c", "d")}
    assert not differs(dropped, merged(dropped, wanted))


def test_an_empty_value_that_nobody_wrote_yet_is_written() -> None:
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
def test_a_child_that_was_made_as_desired_is_as_desired(observed: Made, desired: Made) -> None:
    wanted = {"apiVersion": "v1", "kind": "Child", "metadata": {"name": "c"}, **desired}
    child = there(observed)

    once = merged(child, wanted)

    assert not differs(once, merged(once, wanted))


@given(bodies())
def test_a_new_child_is_as_desired(desired: Made) -> None:
    wanted = {"apiVersion": "v1", "kind": "Child", "metadata": {"name": "c"}, **desired}
    child = new_child(wanted)

    assert not differs(child, merged(child, wanted))


@given(bodies(), bodies(), booleans())
def test_what_holds_already_would_become_what_it_is(observed: Made, desired: Made, made_so: bool) -> None:
    """Where merging is left out, it would have changed nothing; what was made as desired and never touched holds."""
    wanted = {"apiVersion": "v1", "kind": "Child", "metadata": {"name": "c"}, **desired}
    child = there({**observed, **desired} if made_so else observed, desired)

    if holds_already(child, wanted, statement(wanted)):
        assert merged(child, wanted) == child
        assert not differs(child, merged(child, wanted))


def test_a_plain_child_that_nobody_touched_holds_already() -> None:
    wanted = {"apiVersion": "v1", "kind": "Child", "metadata": {"name": "c"}, "a": {"x": [1, 2], "y": True}}
    child = there({"a": {"x": [1, 2], "y": True, "defaulted": 3}}, {"a": wanted["a"]})

    assert holds_already(child, wanted, statement(wanted))
    assert not holds_already({**child, "a": {"x": [1, 2], "y": 1}}, wanted, statement(wanted))


@given(bodies(), bodies())
def test_nothing_that_was_never_desired_is_taken_away(observed: Made, desired: Made) -> None:
    wanted = {"apiVersion": "v1", "kind": "Child", "metadata": {"name": "c"}, **desired}

    became = merged(there(observed), wanted)

    assert set(observed) <= set(became)


def test_what_a_hook_echoes_of_the_servers_own_is_no_wish() -> None:
    wanted = {"apiVersion": "v1", "kind": "Child", "metadata": {"name": "c"}, "data": {"k": "v"}}
    child = new_child(wanted)
    observed = {
        **child,
        "metadata": {**child["metadata"], "uid": "1", "resourceVersion": "7", "generation": 2},
    }

    echo = {**observed, "status": {"made": "up"}}
    echo["metadata"] = {**observed["metadata"], "creationTimestamp": None, "managedFields": [{"time": "now"}]}

    assert is_as_last_applied(observed, echo)
    assert not differs(observed, merged(observed, echo))
    assert not {"uid", "resourceVersion", "generation"} & new_child(echo)["metadata"].keys()


@pytest.mark.parametrize(
    ("managers", "wanted", "futile"),
    [
        ([("metacontroller", "")],                          {"list": ["x"]}, True),
        ([("metacontroller", ""), ("kubelet", "status")],   {"list": ["x"]}, True),
        ([("metacontroller", ""), ("kubectl", "")],         {"list": ["x"]}, False),
        ([("metacontroller", "")],                          {"list": ["y"]}, False),
        ([],                                                {"list": ["x"]}, False),
    ],
)  # fmt: skip
def test_it_is_no_use_to_recreate_what_the_server_makes_otherwise(
    managers: list[tuple[str, str]], wanted: Made, futile: bool
) -> None:
    cats = Cats()
    cats.start()
    controller = cats.controller("Recreate")
    view = controller.gather(cats.world(controller), PARENT)
    assert view is not None
    named: Made = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "c", "namespace": "default"}}
    metadata = {**named["metadata"], "labels": {"app": "nginx"}}
    (child,), _ = desired(view, Response(children=({**named, **wanted, "metadata": metadata},)))
    (first,), _ = desired(view, Response(children=({**child.obj, "list": ["x"]},)))
    observed = {**new_child(first.obj), "list": ["x", "filled in"]}
    writers = [{"manager": name, **({"subresource": part} if part else {})} for name, part in managers]
    observed["metadata"] = {**observed["metadata"], "uid": "1", "managedFields": writers}

    means = Means(view=view, answers=Answers())

    assert means.would_end_the_same(child, observed) is futile
    assert means.is_as_desired(child, observed) is futile
