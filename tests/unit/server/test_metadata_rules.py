"""Validation of metadata: names, labels, owners, finalizers, and immutable fields."""

from typing import Any

import pytest

from lamina.errors import Cause
from lamina.server.field_errors import not_supported, required, too_long, too_many
from lamina.server.kinds import metadata
from lamina.server.kinds.builtin.kinds import builtin_kinds
from lamina.server.kinds.kind import Kind, invalid_error

_KINDS = {kind.kind: kind for kind in builtin_kinds() if kind.preferred}


def _create(kind: str = "ConfigMap", **meta: Any) -> list[tuple[str, str]]:
    served = _KINDS[kind]
    made = {"name": "a", **({"namespace": "default"} if served.namespaced else {}), **meta}
    return [(one.field, one.message) for one in metadata.validate_create(served, {"metadata": made})]


def _update(new: dict[str, Any], old: dict[str, Any], kind: Kind = _KINDS["ConfigMap"]) -> list[Cause]:
    known = {"name": "a", "namespace": "default", "uid": "1", "creationTimestamp": "2026-01-01T00:00:00Z"}
    return metadata.validate_update(kind, {"metadata": {**known, **new}}, {"metadata": {**known, **old}})


@pytest.mark.parametrize(
    ("kind", "good", "bad"),
    [
        ("ConfigMap",          "a.b",    "A"),
        ("Namespace",          "a",      "a.b"),
        ("Service",            "a-1",    "1a"),
        ("StatefulSet",        "a",      "a.b"),
        ("Role",               "sys:A",  "a/b"),
        ("ClusterRoleBinding", "a b",    ".."),
        ("PodDisruptionBudget", "A_",    "a%"),
    ],
)  # fmt: skip
def test_each_kind_has_its_rule_for_names(kind: str, good: str, bad: str) -> None:
    assert _create(kind, name=good) == []
    assert [field for field, _ in _create(kind, name=bad)] == ["metadata.name"]


def test_a_name_or_a_way_to_make_one_is_needed() -> None:
    assert _create(name=None) == [("metadata.name", "Required value: name or generateName is required")]


def test_a_generated_name_is_cut_and_completed() -> None:
    letters = iter("bcdfg")

    assert metadata.generated_name("x" * 80, lambda _: next(letters)) == "x" * 58 + "bcdfg"


def test_a_namespace_is_for_kinds_that_have_one() -> None:
    assert _create(namespace=None) == [("metadata.namespace", "Required value")]
    assert _create("Namespace", namespace="x") == [
        ("metadata.namespace", "Forbidden: not allowed on this type")
    ]


def test_annotations_may_be_long_together_but_not_too_long() -> None:
    assert _create(annotations={"a": "x" * (metadata.ANNOTATIONS_LIMIT - 1)}) == []
    assert _create(annotations={"a": "x" * metadata.ANNOTATIONS_LIMIT}) == [
        ("metadata.annotations", "Too long: may not be more than 262144 bytes")
    ]


def test_only_one_owner_controls() -> None:
    owners = [
        {"apiVersion": "v1", "kind": "A", "name": name, "uid": name, "controller": True}
        for name in ("x", "y")
    ]

    ((field, message),) = _create(ownerReferences=owners)

    assert field == "metadata.ownerReferences"
    assert message.endswith(
        'Only one reference can have Controller set to true. Found "true" in references for A/x and A/y'
    )


def test_a_built_in_kind_insists_on_qualified_finalizers() -> None:
    assert _create(finalizers=["a/b", "orphan"]) == []
    assert _create(finalizers=["mine"]) == [
        (
            "metadata.finalizers[0]",
            'Invalid value: "mine": name is neither a standard finalizer name nor is it fully qualified',
        )
    ]


def test_a_custom_kind_is_warned_of_finalizers_without_a_domain() -> None:
    old = {"metadata": {"finalizers": ["known"]}}
    new = {"metadata": {"finalizers": ["known", "a/b", "mine", "x.com", "foregroundDeletion"]}}
    why = "to avoid accidental conflicts with other finalizer writers"

    assert metadata.warn(new, old) == [
        f'metadata.finalizers: "mine": prefer a domain-qualified finalizer name {why}',
        f'metadata.finalizers: "x.com": prefer a domain-qualified finalizer name including a path (/) {why}',
    ]


def test_nothing_new_holds_up_an_object_on_its_way_out() -> None:
    leaving = {"deletionTimestamp": "2026-01-01T00:00:00Z"}

    (refused,) = _update({**leaving, "finalizers": ["a/b", "c/d"]}, {**leaving, "finalizers": ["a/b"]})

    assert refused == (
        "FieldValueForbidden",
        "Forbidden: no new finalizers can be added if the object is being deleted, "
        'found new finalizers []string{"c/d"}',
        "metadata.finalizers",
    )


@pytest.mark.parametrize(
    ("field", "value"),
    [("name", "b"), ("namespace", "other"), ("uid", "2"), ("deletionTimestamp", "2026-01-01T00:00:00Z")],
)
def test_what_identifies_an_object_stays(field: str, value: str) -> None:
    (refused,) = _update({field: value}, {})

    assert refused == (
        "FieldValueInvalid",
        f'Invalid value: "{value}": field is immutable',
        f"metadata.{field}",
    )


def test_what_only_the_server_says_is_put_back() -> None:
    old = {
        "uid": "1",
        "creationTimestamp": "2026-01-01T00:00:00Z",
        "deletionTimestamp": "2026-01-02T00:00:00Z",
        "deletionGracePeriodSeconds": 30,
        "generation": 4,
        "resourceVersion": "7",
    }
    new: dict[str, Any] = {"creationTimestamp": "2020-01-01T00:00:00Z", "generation": 9, "selfLink": "/x"}

    metadata.restore(new, old)

    assert new == old


def test_a_uid_the_writer_names_is_left_for_validation_to_judge() -> None:
    new = {"uid": "other"}

    metadata.restore(new, {"uid": "1"})

    assert new["uid"] == "other"


@pytest.mark.parametrize(
    ("manager", "told"),
    [
        ("kubectl", []),
        ("é" * 64, []),
        ("x" * 129, ["Too long: may not be more than 128 bytes"]),
        ("\a", ['Invalid value: "\\a": invalid character U+0007 (at position 0)']),
        ("é\n", ['Invalid value: "é\\n": invalid character U+000A (at position 2)']),
    ],
)
def test_a_field_manager_is_short_and_can_be_seen(manager: str, told: list[str]) -> None:
    assert [cause.message for cause in metadata.check_field_manager(manager)] == told


def test_the_message_of_an_error_says_once_what_its_causes_say_twice() -> None:
    causes = [
        required("spec.a"),
        not_supported("spec.b", "x", ("y", "z")),
        required("spec.a"),
        too_long("spec.c", 1),
        too_many("spec.d", 3, 2),
    ]

    error = invalid_error(_KINDS["Deployment"], "web", causes)

    assert error.message == (
        'Deployment.apps "web" is invalid: [spec.a: Required value, '
        'spec.b: Unsupported value: "x": supported values: "y", "z", '
        "spec.c: Too long: may not be more than 1 byte, spec.d: Too many: 3: must have at most 2 items]"
    )
    assert error.status()["details"] == {
        "name": "web",
        "group": "apps",
        "kind": "Deployment",
        "causes": [cause.as_json() for cause in causes],
    }


def test_an_error_about_one_thing_needs_no_brackets() -> None:
    error = invalid_error(_KINDS["ConfigMap"], "a", [required("data")])

    assert error.message == 'ConfigMap "a" is invalid: data: Required value'
    assert "group" not in error.status()["details"]
