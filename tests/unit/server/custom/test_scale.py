"""Reading and writing the Scale of objects."""

from __future__ import annotations

from typing import Any

import pytest

from lamina.errors import BadRequest, InternalError
from lamina.server.kinds.builtin.kinds import builtin_kinds
from lamina.server.kinds.custom.scale import ScalePaths, paths_of, scale_of, validate_replicas, with_scale
from tests.unit.server.custom.golden import objects, ours

PATHS = ScalePaths(spec=".spec.size.wanted", status=".status.now", selector=".status.selector")
META = {"name": "x", "namespace": "default", "uid": "u", "resourceVersion": "7", "labels": {"a": "b"}}


def deployment(**spec: Any) -> dict[str, Any]:
    return {"metadata": META, "spec": spec, "status": {"replicas": 2}}


def builtin_paths() -> ScalePaths:
    return paths_of(next(kind for kind in builtin_kinds() if kind.kind == "Deployment"))


def test_a_custom_object_is_scaled_where_its_definition_says() -> None:
    obj = {"metadata": META, "spec": {"size": {"wanted": 3}}, "status": {"now": 2, "selector": "a=b"}}
    assert scale_of(obj, PATHS) == {
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": {"name": "x", "namespace": "default", "uid": "u", "resourceVersion": "7"},
        "spec": {"replicas": 3},
        "status": {"replicas": 2, "selector": "a=b"},
    }


def test_a_builtin_object_shows_its_selector_as_text() -> None:
    expressions = [{"key": "b", "operator": "In", "values": ["y", "x"]}]
    obj = deployment(replicas=1, selector={"matchLabels": {"c": "d"}, "matchExpressions": expressions})
    assert scale_of(obj, builtin_paths())["status"] == {"replicas": 2, "selector": "b in (x,y),c=d"}


def test_a_plain_map_is_a_selector_too() -> None:
    assert (
        scale_of(deployment(selector={"b": "2", "a": "1"}), builtin_paths())["status"]["selector"]
        == "a=1,b=2"
    )


def test_nothing_wanted_is_written_as_nothing() -> None:
    assert scale_of(deployment(replicas=0), builtin_paths())["spec"] == {}
    assert scale_of({"metadata": META, "spec": {"size": {"wanted": 0}}}, PATHS)["spec"] == {}


def test_a_custom_object_that_says_nothing_has_no_whole_scale() -> None:
    with pytest.raises(InternalError, match='the spec replicas field ".spec.size.wanted" does not exist'):
        scale_of({"metadata": META}, PATHS, whole=True)


def test_a_custom_object_that_says_nothing_must_be_told_a_number() -> None:
    unsaid = scale_of({"metadata": META}, PATHS)
    with pytest.raises(BadRequest, match='the spec replicas field ".spec.size.wanted" cannot be empty'):
        with_scale({"metadata": META}, unsaid, PATHS)
    new, _ = with_scale({"metadata": META}, {**unsaid, "spec": {}}, PATHS)
    assert new["spec"] == {"size": {"wanted": 0}}


def test_a_number_that_is_none_is_named() -> None:
    with pytest.raises(InternalError, match="accessor error: x is of the type string, expected int64"):
        scale_of({"metadata": META, "spec": {"size": {"wanted": "x"}}}, PATHS)


def test_a_scale_changes_only_how_many_are_wanted() -> None:
    obj = {"metadata": META, "spec": {"other": 1}}
    new, causes = with_scale(obj, {"spec": {"replicas": 5}, "status": {"replicas": 9}}, PATHS)
    assert new == {"metadata": META, "spec": {"other": 1, "size": {"wanted": 5}}}
    assert causes == []
    assert obj == {"metadata": META, "spec": {"other": 1}}


def test_fewer_than_none_is_refused_at_once_for_builtin_objects() -> None:
    _, causes = with_scale(deployment(replicas=1), {"spec": {"replicas": -1}}, builtin_paths())
    assert [tuple(cause) for cause in causes] == [
        (
            "FieldValueInvalid",
            "Invalid value: -1: must be greater than or equal to 0",
            "spec.replicas",
        )
    ]


def test_fewer_than_none_is_left_to_the_validation_of_custom_objects() -> None:
    new, causes = with_scale({"metadata": META}, {"spec": {"replicas": -1}}, PATHS)
    assert causes == []
    assert [cause.field for cause in validate_replicas(new, PATHS.spec)] == [".spec.size.wanted"]


def test_a_scale_that_is_none_is_a_bad_request() -> None:
    with pytest.raises(
        BadRequest, match="cannot unmarshal string into Go struct field ScaleSpec.spec.replicas"
    ):
        with_scale(deployment(replicas=1), {"spec": {"replicas": "3"}}, builtin_paths())


def test_a_definition_without_scale_leaves_numbers_alone() -> None:
    kind = ours.kinds_of(ours.create_definition(objects.DEFINITIONS["plain"])[0])["v1"]
    assert kind.subresource("scale") is None
    obj, _ = ours.create_object(kind, {"metadata": {"name": "x"}, "spec": {"replicas": -1}})
    assert obj["spec"] == {"replicas": -1}
