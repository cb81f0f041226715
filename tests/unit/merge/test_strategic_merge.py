"""Strategic merge patch: maps, lists and directives."""

from typing import Any

import pytest

from lamina.errors import BadRequest, Invalid, Unclassified
from lamina.merge.patches import strategic_merge
from lamina.merge.schema import Schemas, compile_schema
from lamina.server.kinds.builtin.definitions import definition

DEPLOYMENT = Schemas(definition).named("io.k8s.api.apps.v1.Deployment")


def _list(items: dict[str, Any], strategy: str = "", key: str = "") -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "array", "items": items}
    if strategy:
        schema["x-kubernetes-patch-strategy"] = strategy
    if key:
        schema["x-kubernetes-patch-merge-key"] = key
    return schema


_STRING = {"type": "string"}
_ENV = {"type": "object", "properties": {"name": _STRING, "value": _STRING}}
_ITEM = {
    "type": "object",
    "properties": {
        "name": _STRING,
        "image": _STRING,
        "env": _list(_ENV, "merge", "name"),
        "args": _list(_STRING),
    },
}
SCHEMA = compile_schema(
    {
        "type": "object",
        "properties": {
            "a": _STRING,
            "map": {"type": "object", "additionalProperties": _STRING},
            "set": _list(_STRING, "merge"),
            "plain": _list(_STRING),
            "items": _list(_ITEM, "merge", "name"),
            "volumes": _list({"type": "object", "properties": {"name": _STRING}}, "merge,retainKeys", "name"),
            "keyless": _list(_ITEM, "merge"),
            "whole": {
                "type": "object",
                "x-kubernetes-patch-strategy": "replace",
                "properties": {"x": _STRING},
            },
            "strategy": {
                "type": "object",
                "x-kubernetes-patch-strategy": "retainKeys",
                "properties": {"type": _STRING},
            },
        },
    }
)


def _merge(target: dict[str, Any], patch: Any) -> dict[str, Any]:
    before, given = repr(target), repr(patch)
    result = strategic_merge(target, patch, SCHEMA)
    assert (repr(target), repr(patch)) == (before, given), "arguments are not changed"
    return result


def _items(names: str, **more: Any) -> list[dict[str, Any]]:
    return [{"name": name, **more} for name in names.split()]


@pytest.mark.parametrize(
    ("target", "patch", "result"),
    [
        ({"a": "1"}, {"a": "2"}, {"a": "2"}),
        ({"a": "1"}, {"a": None}, {}),
        ({}, {"a": None}, {}),
        ({"map": {"x": "1"}}, {"map": {"y": "2"}}, {"map": {"x": "1", "y": "2"}}),
        ({"map": {"x": "1", "y": "2"}}, {"map": {"x": None}}, {"map": {"y": "2"}}),
        ({}, {"map": {"x": None, "y": "2"}}, {"map": {"y": "2"}}),
        ({"whole": {"x": "1"}}, {"whole": {"y": "2"}}, {"whole": {"y": "2"}}),
        ({"map": {"x": "1"}}, {"map": {"$patch": "replace", "y": "2"}}, {"map": {"y": "2"}}),
        ({"map": {"x": "1"}}, {"map": {"$patch": "delete"}}, {"map": {}}),
        ({}, {"map": {"$patch": "delete"}}, {}),
        ({"a": "1", "map": {}}, {"$patch": "replace", "a": "2"}, {"a": "2"}),
        ({"map": {"x": "1"}}, {"map": "text"}, {"map": "text"}),
        ({"strategy": {"type": "A", "old": "1"}}, {"strategy": {"$retainKeys": ["type"], "type": "B"}}, {"strategy": {"type": "B"}}),
        ({"strategy": {"type": "A", "old": "1"}}, {"strategy": {"type": "B"}}, {"strategy": {"type": "B", "old": "1"}}),
    ],
)  # fmt: skip
def test_maps(target: dict[str, Any], patch: dict[str, Any], result: dict[str, Any]) -> None:
    assert _merge(target, patch) == result


@pytest.mark.parametrize(
    ("old", "patch", "result"),
    [
        ("a b", "b c", "a b c"),
        ("a b c", "d b", "d a b c"),
        ("", "b a", "b a"),
        ("a b", "", "a b"),
    ],
)
def test_sets_hold_each_value_once(old: str, patch: str, result: str) -> None:
    assert _merge({"set": old.split()}, {"set": patch.split()}) == {"set": result.split()}


def test_other_lists_are_replaced() -> None:
    assert _merge({"plain": ["a", "b"]}, {"plain": ["c"]}) == {"plain": ["c"]}


def test_values_are_taken_out_of_a_set() -> None:
    patch = {"$deleteFromPrimitiveList/set": ["a", "x"], "set": ["d"]}

    assert _merge({"set": ["a", "b", "c"]}, patch) == {"set": ["d", "b", "c"]}
    assert _merge({}, {"$deleteFromPrimitiveList/set": ["a"]}) == {}


@pytest.mark.parametrize(
    ("old", "patch", "order", "result"),
    [
        ("a b c", "b", None, "a b c"),
        ("a b c", "d", None, "d a b c"),
        ("a b c", "c a", None, "b c a"),
        ("a b c", "", "c b a", "c b a"),
        ("a b c", "d", "a d c", "a d b c"),
        ("a b", "c", "c a", "c a b"),
        ("s a t b", "b a", "b a", "s t b a"),
    ],
)
def test_elements_are_merged_by_their_key_and_stand_in_the_order_that_was_asked_for(
    old: str, patch: str, order: str | None, result: str
) -> None:
    change: dict[str, Any] = {"items": _items(patch, image="new")} if patch else {}
    if order:
        change["$setElementOrder/items"] = _items(order)

    merged = _merge({"items": _items(old, image="old", args=["x"])}, change)["items"]

    assert [item["name"] for item in merged] == result.split()
    assert {item["name"]: item["image"] for item in merged} == {
        name: "new" if name in patch.split() else "old" for name in result.split()
    }
    assert all(item.get("args") == ["x"] for item in merged if item["name"] in old.split())


def test_the_order_of_a_set_may_be_given_too() -> None:
    assert _merge({"set": ["a", "b"]}, {"$setElementOrder/set": ["c", "b", "a"], "set": ["c"]}) == {
        "set": ["c", "b", "a"]
    }


def test_an_order_for_a_list_that_is_not_there_is_no_list() -> None:
    assert _merge({}, {"$setElementOrder/items": _items("a")}) == {}


def test_lists_in_elements_are_merged_as_well() -> None:
    old = {"items": [{"name": "a", "env": [{"name": "X", "value": "1"}]}]}
    patch = {
        "items": [
            {
                "name": "a",
                "env": [{"name": "Y", "value": "2"}],
                "$setElementOrder/env": [{"name": "Y"}, {"name": "X"}],
            }
        ]
    }

    assert _merge(old, patch) == {
        "items": [{"name": "a", "env": [{"name": "Y", "value": "2"}, {"name": "X", "value": "1"}]}]
    }


def test_an_element_is_deleted_by_its_key() -> None:
    assert _merge({"items": _items("a b c")}, {"items": [{"name": "b", "$patch": "delete"}]}) == {
        "items": _items("a c")
    }
    assert _merge({"items": _items("a")}, {"items": [{"name": "x", "$patch": "delete"}]}) == {
        "items": _items("a")
    }
    assert _merge({}, {"items": [{"name": "x", "$patch": "delete"}, {"name": "y"}]}) == {"items": _items("y")}


def test_a_new_element_moves_into_the_place_of_one_that_is_deleted() -> None:
    patch = {
        "items": [{"name": "b", "$patch": "delete"}, {"name": "c"}],
        "$setElementOrder/items": _items("c b d"),
    }

    assert _merge({"items": _items("b a")}, patch) == {"items": _items("a c")}


def test_one_directive_replaces_a_whole_list() -> None:
    patch = {"items": [{"$patch": "replace"}, {"name": "z"}]}

    assert _merge({"items": _items("a b")}, patch) == {"items": _items("z")}


def test_retained_keys_in_an_element_drop_the_others() -> None:
    old = {"volumes": [{"name": "v", "emptyDir": "x"}]}
    patch = {"volumes": [{"name": "v", "configMap": "c", "$retainKeys": ["name", "configMap"]}]}

    assert _merge(old, patch) == {"volumes": [{"name": "v", "configMap": "c"}]}


def test_directives_do_not_end_up_in_new_elements() -> None:
    patch = {
        "volumes": [{"name": "v", "configMap": "c", "$retainKeys": ["name", "configMap"]}],
        "items": [
            {
                "name": "a",
                "env": [{"name": "X", "$patch": "delete"}],
                "$setElementOrder/env": [],
                "image": None,
            }
        ],
    }

    assert _merge({}, patch) == {
        "volumes": [{"name": "v", "configMap": "c"}],
        "items": [{"name": "a", "env": []}],
    }


@pytest.mark.parametrize(
    ("target", "patch", "complaint"),
    [
        ({"map": {}}, {"map": {"$patch": "merge"}}, "unknown patch type: merge in map: map[$patch:merge]"),
        ({"items": _items("a")}, {"items": [{"name": "a", "$patch": "x"}]}, "unknown patch type: x in map: map[$patch:x name:a]"),
        ({"items": _items("a")}, {"items": [{"name": "a", "$patch": "merge"}]}, "merging lists cannot yet be specified in the patch"),
        ({"items": _items("a")}, {"items": [{"image": "x"}]}, "map: map[image:x] does not contain declared merge key: name"),
        ({"items": _items("a")}, {"items": [{"$patch": "delete"}]}, "map: map[$patch:delete] does not contain declared merge key: name"),
        ({"items": _items("a")}, {"items": ["x"]}, "list element types are not identical: [[map[name:a]] [x]]"),
        ({"keyless": _items("a")}, {"keyless": _items("b")}, "cannot merge lists without merge key for struct"),
        ({"map": {}}, {"map": {"$retainKeys": "x"}}, "invalid patch format of retainKeys"),
        ({"map": {}}, {"map": {"$retainKeys": [], "x": "1"}}, "invalid patch format of retainKeys"),
        ({"set": ["a"]}, {"$deleteFromPrimitiveList": ["a"]}, "invalid patch format of primitive list"),
        ({"set": ["a"]}, {"$setElementOrder": ["a"]}, "invalid patch format of setElementOrder list"),
        ({"set": ["a"]}, {"$setElementOrder/set": "a"}, "expected a []interface {}, but received a string"),
        ({"items": _items("a")}, {"items": _items("b"), "$setElementOrder/items": _items("a")},
         "The order in patch list:\n[map[name:b]]\n doesn't match $setElementOrder list:\n[map[name:a]]\n"),
        ({}, [], "json: cannot unmarshal array into Go value of type map[string]interface {}"),
    ],
)  # fmt: skip
def test_a_patch_that_is_not_well_formed_is_refused(target: Any, patch: Any, complaint: str) -> None:
    with pytest.raises((BadRequest, Unclassified)) as refused:
        _merge(target, patch)

    assert refused.value.message == complaint


def test_lists_of_lists_cannot_be_merged() -> None:
    with pytest.raises(Invalid) as refused:
        _merge({"set": [["a"]]}, {"set": [["b"]]})

    assert refused.value.hint == "lists of lists are not supported"


def test_containers_of_a_deployment_are_merged_by_name_and_ports_by_number() -> None:
    def deployment(*containers: dict[str, Any]) -> dict[str, Any]:
        return {"spec": {"template": {"spec": {"containers": list(containers)}}}}

    live = deployment(
        {"name": "a", "image": "i1", "ports": [{"containerPort": 80, "name": "http"}], "args": ["x"]},
        {"name": "b", "image": "i2"},
    )
    patch = deployment(
        {"name": "a", "image": "i9", "ports": [{"containerPort": 80, "hostPort": 8}], "args": ["y"]}
    )

    assert strategic_merge(live, patch, DEPLOYMENT) == deployment(
        {
            "name": "a",
            "image": "i9",
            "ports": [{"containerPort": 80, "name": "http", "hostPort": 8}],
            "args": ["y"],
        },
        {"name": "b", "image": "i2"},
    )


def test_finalizers_are_a_set_and_owners_are_known_by_their_uid() -> None:
    live = {"metadata": {"finalizers": ["a/b"], "ownerReferences": [{"uid": "1", "name": "x"}]}}
    patch = {
        "metadata": {
            "finalizers": ["c/d"],
            "ownerReferences": [{"uid": "1", "controller": True}, {"uid": "2"}],
        }
    }

    assert strategic_merge(live, patch, DEPLOYMENT) == {
        "metadata": {
            "finalizers": ["c/d", "a/b"],
            "ownerReferences": [{"uid": "1", "name": "x", "controller": True}, {"uid": "2"}],
        }
    }
