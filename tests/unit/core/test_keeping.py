"""What is kept of an object, and what a definition says about its kinds."""

from typing import Any

import pytest

from lamina.core.crd.kinds import is_established, kinds_of, names_only
from lamina.core.model.world import identity_only, whole
from lamina.objects.kinds import Kind, Kinds
from lamina.objects.types import GroupKind


def definition(**spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.ex.example.com", "managedFields": [{}], "annotations": {"big": "text"}},
        "spec": {
            "group": "ex.example.com",
            "scope": "Namespaced",
            "names": {"plural": "widgets", "kind": "Widget"},
            "versions": [
                {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {}}},
                {"name": "v1beta1", "served": False, "storage": False},
                {"name": "v2", "served": True, "storage": False},
            ],
            **spec,
        },
        "status": {"conditions": [{"type": "Established", "status": "True"}], "storedVersions": ["v1"]},
    }


def test_a_definition_brings_a_kind_for_each_version_it_serves() -> None:
    assert [kind.api_version for kind in kinds_of(definition())] == ["ex.example.com/v1", "ex.example.com/v2"]
    assert all(kind.namespaced for kind in kinds_of(definition()))
    assert not any(kind.namespaced for kind in kinds_of(definition(scope="Cluster")))


def test_what_is_kept_of_a_definition_says_the_same_about_its_kinds_without_its_schemas() -> None:
    kept = names_only(definition())

    assert kinds_of(kept) == kinds_of(definition())
    assert is_established(kept)
    assert "schema" not in str(kept)
    assert "managedFields" not in str(kept)


def test_a_definition_that_is_not_accepted_is_not_established() -> None:
    assert not is_established({**definition(), "status": {}})


def test_identity_only_keeps_names_owners_and_the_deletion() -> None:
    obj = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "a", "uid": "u", "finalizers": ["x/y"], "labels": {"no": "thanks"}},
        "data": {"secret": "eA=="},
    }

    assert identity_only(obj) == {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "a", "uid": "u", "finalizers": ["x/y"]},
    }


def test_a_whole_object_is_kept_without_its_managed_fields() -> None:
    obj = {"metadata": {"name": "a", "managedFields": [{}]}, "data": {"a": "b"}}

    assert whole(obj) == {"metadata": {"name": "a"}, "data": {"a": "b"}}
    assert obj["metadata"] == {"name": "a", "managedFields": [{}]}


@pytest.mark.parametrize(
    ("kind", "namespace", "name", "below", "path"),
    [
        (Kind("v1", "Pod", "pods", True), "web", "a", "", "/api/v1/namespaces/web/pods/a"),
        (Kind("v1", "Pod", "pods", True), "", "", "", "/api/v1/pods"),
        (Kind("v1", "Node", "nodes", False), "web", "a", "status", "/api/v1/nodes/a/status"),
        (Kind("apps/v1", "Deployment", "deployments", True), "web", "", "", "/apis/apps/v1/namespaces/web/deployments"),
    ],
)  # fmt: skip
def test_a_kind_knows_where_its_objects_are(
    kind: Kind, namespace: str, name: str, below: str, path: str
) -> None:
    assert kind.path(namespace, name, below) == path


def test_the_first_version_given_is_the_preferred_one() -> None:
    new, old = Kind("apps/v1", "Thing", "things", True), Kind("apps/v1beta1", "Thing", "things", True)
    kinds = Kinds([new, old])

    assert kinds.preferred(GroupKind("apps", "Thing")) == new
    assert kinds.find("apps/v1beta1", "Thing") == old
    assert list(kinds) == [new]
    assert list(kinds.versions()) == [new, old]
    assert kinds != Kinds([old, new])
