"""What is wrong with an object before anything is written."""

from typing import Any

import pytest

from lamina.core.phases.manifest import Manifest, ObjectKey, duplicates, located, reported
from lamina.core.phases.preflight import violations
from lamina.objects.types import Made, Obj
from tests.unit.core.phases.objects import CONFIG_MAP, KINDS, NODE, THING, body, key, manifest, owner


def wrong(obj: Obj, *, namespace: str = "team", confines: bool = True, **fields: Any) -> list[str]:
    who = owner(namespace=namespace, confines=confines)
    return list(violations(who, stated(obj, namespace=namespace, **fields)))


def stated(obj: Obj, *, namespace: str = "team", **fields: Any) -> Manifest:
    found, kind = located(obj, namespace, KINDS)
    return Manifest(phase="deploy", obj=obj, key=found, kind=kind, **fields)


@pytest.mark.parametrize(
    ("obj", "words"),
    [
        (body(), []),
        ({**body(), "apiVersion": ""}, ["apiVersion and kind are required"]),
        ({**body(), "kind": ""}, ["apiVersion and kind are required"]),
        ({}, ["apiVersion and kind are required"]),
        (body(name=""), ["metadata.name is required"]),
        (body(generateName="a-", uid="x"), ["metadata.generateName must not be set", "metadata.uid must not be set"]),
        (body(ownerReferences=[{}]), ["metadata.ownerReferences must not be set"]),
        (body(resourceVersion="1", generation=1),
         ["metadata.resourceVersion must not be set", "metadata.generation must not be set"]),
        (body(labels={"a": "b"}, annotations={"c": "d"}, finalizers=["x"]), []),
    ],
)  # fmt: skip
def test_what_a_manifest_must_not_state(obj: Obj, words: list[str]) -> None:
    assert wrong(obj) == words


def test_a_kind_that_is_not_served_is_all_that_is_said() -> None:
    obj = {"apiVersion": "ex.com/v9", "kind": "Thing", "metadata": {"name": "a", "uid": "x"}}

    assert wrong(obj, problems=("something else",)) == [
        'no matches for kind "Thing" in version "ex.com/v9"; '
        "install its CustomResourceDefinition in an earlier phase"
    ]


def test_what_the_family_finds_comes_last() -> None:
    assert wrong(body(uid="x"), problems=("first", "second")) == [
        "metadata.uid must not be set",
        "first",
        "second",
    ]


CLUSTER_SCOPED = "Node is cluster-scoped; an object of namespace team must not contain it: use ClusterStack"


@pytest.mark.parametrize(
    ("obj", "namespace", "confines", "words"),
    [
        (body(namespace="team"),  "team", True,  []),
        (body(namespace="other"), "team", True,  ["metadata.namespace must be team, the namespace of the stack, and is other"]),
        (body(namespace="other"), "team", False, []),
        (body(namespace="other"), "",     True,  []),
        (body(),                  "",     True,  ["metadata.namespace is required, because the stack has no namespace"]),
        (body(),                  "",     False, ["metadata.namespace is required, because the stack has no namespace"]),
        (body(kind=NODE),         "team", True,  [CLUSTER_SCOPED]),
        (body(kind=NODE),         "team", False, []),
        (body(kind=NODE),         "",     True,  []),
        (body(kind=NODE, namespace="x"), "", True, []),
    ],
)  # fmt: skip
def test_the_scope_of_a_kind_decides_where_an_object_may_be(
    obj: Obj, namespace: str, confines: bool, words: list[str]
) -> None:
    assert wrong(obj, namespace=namespace, confines=confines) == words


# Keys


@pytest.mark.parametrize(
    ("obj", "namespace", "found"),
    [
        (body("a"),                     "team", ObjectKey("", "ConfigMap", "team", "a")),
        (body("a", namespace="other"),  "team", ObjectKey("", "ConfigMap", "other", "a")),
        (body("a", kind=THING),         "team", ObjectKey("ex.com", "Thing", "team", "a")),
        (body("a", kind=NODE),          "team", ObjectKey("", "Node", "", "a")),
        (body("a", kind=NODE, namespace="x"), "", ObjectKey("", "Node", "", "a")),
        ({"kind": "Gadget", "metadata": {"name": "a"}}, "team", ObjectKey("", "Gadget", "team", "a")),
    ],
)  # fmt: skip
def test_an_object_is_in_the_namespace_of_its_owner_unless_it_says_otherwise(
    obj: Obj, namespace: str, found: ObjectKey
) -> None:
    assert located(obj, namespace, KINDS)[0] == found


def test_a_key_is_shown_as_messages_have_it() -> None:
    assert str(key("a")) == "ConfigMap team/a"
    assert str(ObjectKey("apps", "Deployment", "team", "web")) == "apps Deployment team/web"
    assert str(ObjectKey("", "Node", "", "n")) == "Node n"


def test_an_object_that_comes_twice_is_a_duplicate_in_any_version() -> None:
    older: Made = {**body("a", kind=THING), "apiVersion": "ex.com/v0"}
    first, second = stated(body("a", kind=THING)), stated(older)

    assert list(duplicates([[first, manifest("a")], [second]])) == [second]
    assert list(duplicates([[first], [manifest("a"), manifest("b")]])) == []


def test_an_object_that_only_a_status_names_has_the_preferred_version_of_its_kind() -> None:
    served, unserved = reported(key("a"), KINDS), reported(key("a")._replace(kind="Gone"), KINDS)

    assert served.kind == CONFIG_MAP
    assert served.ref("east") == ("v1", "ConfigMap", "team", "a", "east")
    assert unserved.kind is None
