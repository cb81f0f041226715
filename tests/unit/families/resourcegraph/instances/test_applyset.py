"""An instance as an ApplySet: its id, the hash of its inventory, and what is wrong with one that was edited."""

from typing import Any

import pytest

from lamina.families.resourcegraph.instances import applyset
from lamina.families.resourcegraph.instances.applyset import EMPTY, Inventory
from lamina.objects import meta
from lamina.objects.types import GroupKind, Made

GIT = GroupKind("apps", "Deployment"), GroupKind("", "ConfigMap"), GroupKind("", "Service")
SOME = Inventory(frozenset(GIT), frozenset(("ns2", "kube-system")))


def web_app(**metadata: Any) -> Made:
    return {
        "apiVersion": "kro.run/v1alpha1",
        "kind": "WebApp",
        "metadata": {"name": "my-app", "namespace": "default", "uid": "u1", **metadata},
    }


def recorded(inventory: Inventory) -> Made:
    """An instance with an inventory, as it is applied."""
    action = applyset.record(web_app(), inventory)
    assert action is not None
    return {**action.obj, "metadata": {**web_app()["metadata"], **action.obj["metadata"]}}


@pytest.mark.check("RG-40")
def test_the_id_is_that_of_upstream() -> None:
    assert applyset.applyset_id(web_app()) == "applyset-9sHw3-6HBl2VO07VeDzfkQhwSs1_MRB3IBzTC1N-yt8-v1"


def test_the_id_of_a_cluster_scoped_instance_has_an_empty_namespace() -> None:
    assert applyset.applyset_id(web_app(namespace="")) != applyset.applyset_id(web_app())


def test_an_inventory_is_written_sorted() -> None:
    annotations = meta.annotations(recorded(SOME))

    assert annotations["applyset.kubernetes.io/tooling"] == "kro/v0.9.4"
    assert annotations["applyset.kubernetes.io/contains-group-kinds"] == "ConfigMap,Deployment.apps,Service"
    assert annotations["applyset.kubernetes.io/additional-namespaces"] == "kube-system,ns2"
    assert annotations["internal.kro.run/applyset-inventory-hash"].startswith("sha256:")


def test_the_hash_covers_the_id_the_kinds_and_the_namespaces() -> None:
    hashes = {
        applyset.inventory_hash("x", SOME),
        applyset.inventory_hash("y", SOME),
        applyset.inventory_hash("x", EMPTY),
        applyset.inventory_hash("x", Inventory(SOME.kinds)),
        applyset.inventory_hash("x", Inventory(frozenset(), SOME.namespaces)),
    }

    assert len(hashes) == 5
    # The SHA-256 of x, NUL, NUL.
    assert applyset.inventory_hash("x", EMPTY) == "sha256:dY1WgF-vPNVNx6eZWAgTfKOt4TJGrARcKOOYj72VkAw"


def test_its_own_namespace_and_cluster_scope_are_not_listed() -> None:
    found = applyset.inventory(web_app(), [(GIT[0], "default"), (GIT[1], ""), (GIT[2], "other")])

    assert found == Inventory(frozenset(GIT), frozenset(("other",)))


@pytest.mark.parametrize("inventory", [EMPTY, SOME])
def test_a_recorded_inventory_is_read_again(inventory: Inventory) -> None:
    obj = recorded(inventory)

    assert applyset.what_is_wrong(obj) == ""
    assert applyset.recorded(obj) == inventory
    assert applyset.record(obj, inventory) is None


@pytest.mark.parametrize(
    ("key", "value", "shown"),
    [
        ("applyset.kubernetes.io/tooling", "kubectl/v1.30", "kubectl/v1.30"),
        ("applyset.kubernetes.io/tooling", None, "tooling"),
        ("applyset.kubernetes.io/contains-group-kinds", None, "is missing"),
        ("applyset.kubernetes.io/additional-namespaces", None, "is missing"),
        ("applyset.kubernetes.io/contains-group-kinds", "ConfigMap,", 'invalid entry ""'),
        ("applyset.kubernetes.io/contains-group-kinds", ".apps", 'invalid entry ".apps"'),
        ("applyset.kubernetes.io/contains-group-kinds", "Deployment.Apps", "invalid entry"),
        ("applyset.kubernetes.io/additional-namespaces", "ns2,No_Such", 'invalid entry "No_Such"'),
        ("applyset.kubernetes.io/contains-group-kinds", "ConfigMap", "inventory-hash"),
        ("internal.kro.run/applyset-inventory-hash", "sha256:x", "inventory-hash"),
    ],
)
@pytest.mark.check("RG-56")
def test_an_inventory_that_was_edited_is_refused(key: str, value: str | None, shown: str) -> None:
    obj = recorded(SOME)
    annotations = {**meta.annotations(obj), key: value}
    edited = meta.with_metadata(
        obj, annotations={name: text for name, text in annotations.items() if text is not None}
    )

    assert shown in applyset.what_is_wrong(edited)
    assert applyset.recorded(edited) == EMPTY


def test_an_inventory_of_an_older_release_has_no_hash() -> None:
    obj = meta.without_annotation(recorded(SOME), "internal.kro.run/applyset-inventory-hash")

    assert applyset.what_is_wrong(obj) == ""
    assert applyset.record(obj, SOME) is not None


def test_the_label_of_another_instance_is_refused() -> None:
    obj = meta.with_metadata(recorded(SOME), labels={"applyset.kubernetes.io/id": "applyset-x-v1"})

    assert "applyset-x-v1" in applyset.what_is_wrong(obj)


# Finalizer and labels


def definition(name: str = "app") -> Made:
    return {
        "apiVersion": "kro.run/v1alpha1",
        "kind": "ResourceGraphDefinition",
        "metadata": {"name": name, "uid": "d1"},
    }


def test_the_finalizer_and_the_labels_come_with_an_inventory() -> None:
    action = applyset.manage(web_app(), definition(), lambda: EMPTY)

    assert action is not None and action.force and action.manager == "kro.run/labeller"
    assert meta.finalizers(action.obj) == ["kro.run/finalizer"]
    assert meta.labels(action.obj)["kro.run/resource-graph-definition-id"] == "d1"
    assert meta.uid(action.obj) == "u1"
    assert applyset.recorded(action.obj) == EMPTY and not applyset.what_is_wrong(action.obj)


def test_what_has_an_inventory_keeps_it() -> None:
    action = applyset.manage(recorded(SOME), definition(), lambda: SOME)

    assert action is not None and applyset.recorded(action.obj) == SOME


def test_an_instance_that_has_both_is_not_written() -> None:
    action = applyset.manage(web_app(), definition(), lambda: EMPTY)
    assert action is not None

    assert applyset.manage(action.obj, definition(), lambda: EMPTY) is None
    assert (
        applyset.manage(action.obj, {**definition(), "metadata": {"name": "app", "uid": "d2"}}, lambda: EMPTY)
        is not None
    )


def test_a_long_name_of_a_definition_is_shortened_in_labels() -> None:
    action = applyset.manage(web_app(), definition("d" * 250), lambda: EMPTY)

    assert action is not None
    assert len(meta.labels(action.obj)["kro.run/resource-graph-definition-name"]) == 63
