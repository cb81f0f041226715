"""The kinds that a CustomResourceDefinition brings."""

from typing import Any

import pytest

from lamina.core.crd.kinds import conditions_of, is_established, kinds_of, names_only
from lamina.objects.types import Made


def definition(*versions: Made, established: str = "True", **more: Any) -> Made:
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {
            "name": "widgets.ex.com",
            "uid": "u",
            "labels": {"a": "b"},
            "annotations": {"c": "d"},
            "managedFields": [{"manager": "kubectl"}],
        },
        "spec": {
            "group": "ex.com",
            "scope": "Namespaced",
            "names": {"kind": "Widget", "plural": "widgets", "shortNames": ["w"]},
            "versions": list(versions),
            **more,
        },
        "status": {"conditions": [{"type": "Established", "status": established}]},
    }


def version(name: str, *, served: bool = True, **more: Any) -> Made:
    return {"name": name, "served": served, "schema": {"openAPIV3Schema": {"type": "object"}}, **more}


def test_each_served_version_is_a_kind_in_the_order_of_the_definition() -> None:
    found = kinds_of(definition(version("v2"), version("v1beta1", served=False), version("v1")))

    assert [kind.api_version for kind in found] == ["ex.com/v2", "ex.com/v1"]
    assert {(kind.kind, kind.plural, kind.namespaced, kind.short) for kind in found} == {
        ("Widget", "widgets", True, ("w",))
    }


@pytest.mark.parametrize(("scope", "namespaced"), [("Namespaced", True), ("Cluster", False), (None, False)])
def test_only_a_namespaced_scope_is_namespaced(scope: str | None, namespaced: bool) -> None:
    (found,) = kinds_of(definition(version("v1"), scope=scope))

    assert found.namespaced is namespaced


def test_a_version_has_the_subresources_that_it_names() -> None:
    status, plain = kinds_of(
        definition(version("v1", subresources={"status": {}, "scale": {}}), version("v2"))
    )

    assert status.subresources == {"status", "scale"}
    assert plain.subresources == frozenset()


def test_a_kind_can_do_what_the_server_does_with_custom_resources() -> None:
    (found,) = kinds_of(definition(version("v1")))

    assert found.can("get", "list", "watch", "create", "update", "patch", "delete", "deletecollection")


@pytest.mark.parametrize("broken", [{}, {"spec": None}, {"spec": {"versions": None}}])
def test_a_definition_without_versions_brings_no_kinds(broken: Made) -> None:
    assert kinds_of(broken) == ()


@pytest.mark.parametrize(("status", "expected"), [("True", True), ("False", False), ("Unknown", False)])
def test_it_is_established_once_its_condition_is_true(status: str, expected: bool) -> None:
    assert is_established(definition(version("v1"), established=status)) is expected


def test_a_definition_without_a_status_is_not_established() -> None:
    new = definition(version("v1"))
    del new["status"]

    assert not is_established(new)
    assert conditions_of(new) == ()


def test_a_cache_keeps_names_and_versions_and_drops_schemas() -> None:
    whole = definition(version("v1", subresources={"status": {"x": 1}}))
    kept = names_only(whole)

    assert "schema" not in kept["spec"]["versions"][0]
    assert kept["metadata"] == {"name": "widgets.ex.com", "uid": "u"}
    assert kinds_of(kept) == kinds_of(whole)
    assert is_established(kept) == is_established(whole)


def test_what_is_kept_of_what_was_kept_is_the_same() -> None:
    kept = names_only(definition(version("v1"), version("v2", served=False)))

    assert names_only(kept) == kept
