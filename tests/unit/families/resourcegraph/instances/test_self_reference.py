"""An instance is never a child of itself, and one that was made so by an earlier release is freed."""

import pytest

from lamina.families.resourcegraph import crds
from lamina.families.resourcegraph.instances.applyset import Inventory, applyset_id, inventory_hash
from lamina.objects import meta
from lamina.objects.types import GroupKind, Made
from tests.unit.families.resourcegraph.instances.world import (
    CONFIG,
    DEFINITION,
    REVISION,
    World,
    app,
    cm,
    instance,
    node,
    rgd,
)

ITSELF = node(
    "me",
    {
        "apiVersion": "kro.run/v1alpha1",
        "kind": "App",
        "metadata": {"name": "${schema.metadata.name}"},
        "spec": {"name": "x"},
    },
)
KINDS = Inventory(frozenset({GroupKind("kro.run", "App"), GroupKind("", "ConfigMap")}))


def adopted() -> World:
    """A world with an instance that an earlier release has made a child of itself."""
    world = World()
    world.publish(CONFIG)
    world.create(instance())
    # Revisions are only read: the kinds of this one are those whose objects are cached.
    world.publish(ITSELF, CONFIG)
    id = applyset_id(world.get(app()))
    metadata: Made = {
        "labels": {"kro.run/owned": "true", "applyset.kubernetes.io/part-of": id},
        "annotations": {
            "applyset.kubernetes.io/contains-group-kinds": "App.kro.run,ConfigMap",
            "internal.kro.run/applyset-inventory-hash": inventory_hash(id, KINDS),
            "internal.kro.run/apply-order": "1",
            "kro.run/resource-id": "me",
            "kro.run/parent-input-revision": "1",
        },
    }
    world.patch(app(), {"metadata": metadata})
    return world


def test_an_instance_that_is_its_own_child_is_not_pruned() -> None:
    world = adopted()
    world.publish(CONFIG)
    world.run(60)

    assert not meta.is_deleting(world.get(app()))
    assert world.has(cm("a1-cm")) and world.state() == "ACTIVE"
    kinds = meta.annotations(world.get(app()))["applyset.kubernetes.io/contains-group-kinds"]
    assert kinds == "ConfigMap"


@pytest.mark.parametrize("is_defined", [True, False])
def test_the_deletion_of_an_instance_that_is_its_own_child_ends(is_defined: bool) -> None:
    world = adopted()
    if not is_defined:
        world.delete(rgd("app"))
    world.delete(app())

    assert not world.has(app()) and not world.has(cm("a1-cm"))


def test_an_instance_does_not_adopt_itself() -> None:
    world = World()
    world.publish(ITSELF, CONFIG)
    world.publish(CONFIG)
    # A revision that states another kind compiles.
    world.cluster.patch(REVISION.ref("", "app-rev-1"), {"spec": {"schema": {"kind": "Other"}}})
    world.create(instance(annotations={"kro.run/rgd-revision": "1"}))

    assert "applyset.kubernetes.io/part-of" not in meta.labels(world.get(app()))
    assert (
        'node "me" renders the instance itself: app ns1/a1 cannot be a resource of its own instance'
        in world.condition("ResourcesReady")[2]
    )
    world.delete(app())
    assert not world.has(app())


@pytest.mark.parametrize(
    ("template", "said"),
    [
        ({"apiVersion": DEFINITION.api_version, "kind": DEFINITION.kind, "metadata": {"name": "app"}}, "the definition"),
        ({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "apps.kro.run"}}, "the CRD"),
    ],
)  # fmt: skip
def test_an_instance_does_not_adopt_its_definition(template: Made, said: str) -> None:
    world = World()
    world.create(crds.definitions()[0])
    world.publish(node("above", template), CONFIG)
    world.create(instance())

    assert f'node "above" renders {said} of the instance: ' in world.condition("ResourcesReady")[2]
    world.publish(CONFIG)
    world.delete(app())
    assert world.has(rgd("app")) and not world.has(app())
