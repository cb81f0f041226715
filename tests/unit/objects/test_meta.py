"""Metadata is read leniently, and changed in copies."""

import copy
from collections.abc import Callable
from typing import Any

import pytest

from lamina.objects import meta
from lamina.objects.types import OwnerRef, Ref

_OBJ: dict[str, Any] = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {
        "name": "web",
        "namespace": "default",
        "uid": "1",
        "labels": {"app": "web"},
        "annotations": {"a": "b"},
        "finalizers": ["x/y"],
        "ownerReferences": [
            {"apiVersion": "v1", "kind": "A", "name": "a", "uid": "7"},
            {"apiVersion": "v1", "kind": "B", "name": "b", "uid": "8", "controller": True},
        ],
    },
    "status": {"replicas": 1},
}


def test_an_object_without_metadata_reads_as_an_empty_one() -> None:
    assert meta.name({}) == meta.namespace({}) == meta.uid({}) == ""
    assert meta.labels({}) == {}
    assert meta.finalizers({}) == ()
    assert meta.controller_of({"metadata": None}) is None
    assert not meta.is_deleting({})


def test_the_controller_is_the_owner_that_says_so() -> None:
    controller = meta.controller_of(_OBJ)

    assert controller is not None
    assert controller["name"] == "b"
    assert meta.is_controlled_by(_OBJ, "8")
    assert not meta.is_controlled_by(_OBJ, "7")


def test_a_reference_says_where_an_object_is() -> None:
    assert meta.ref(_OBJ) == Ref("apps/v1", "Deployment", "default", "web")


@pytest.mark.parametrize(
    ("change", "field", "value"),
    [
        (lambda o: meta.with_metadata(o, labels={}), "labels", None),
        (lambda o: meta.with_annotation(o, "a", "c"), "annotations", {"a": "c"}),
        (lambda o: meta.without_annotation(o, "z"), "annotations", {"a": "b"}),
        (lambda o: meta.with_finalizer(o, "z/z"), "finalizers", ["x/y", "z/z"]),
        (lambda o: meta.with_finalizer(o, "x/y"), "finalizers", ["x/y"]),
    ],
)
def test_a_changed_object_is_a_new_one(
    change: Callable[[dict[str, Any]], dict[str, Any]], field: str, value: Any
) -> None:
    before = copy.deepcopy(_OBJ)

    after = change(_OBJ)

    assert after["metadata"].get(field) == value
    assert before == _OBJ


def test_an_owner_is_replaced_where_it_stands() -> None:
    owner = OwnerRef(apiVersion="v1", kind="A", name="a", uid="7", controller=False)

    assert meta.owner_refs(meta.with_owner(_OBJ, owner))[0] == owner
    assert [ref["uid"] for ref in meta.owner_refs(meta.with_owner(_OBJ, owner))] == ["7", "8"]


def test_an_owner_reference_blocks_and_controls_only_when_asked_to() -> None:
    plain = meta.owner_ref(_OBJ)
    both = meta.owner_ref(_OBJ, controller=True, blocks=True)

    assert plain == {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "uid": "1"}
    assert both == {**plain, "controller": True, "blockOwnerDeletion": True}


def test_the_kind_of_an_object_has_no_version() -> None:
    assert meta.group_kind({"apiVersion": "apps/v1", "kind": "Deployment"}) == ("apps", "Deployment")
    assert meta.group_kind({"apiVersion": "v1", "kind": "Pod"}) == ("", "Pod")
    assert meta.group_kind({}) == ("", "")
