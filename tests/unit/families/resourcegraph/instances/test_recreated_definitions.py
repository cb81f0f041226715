"""
Revisions by their content: a definition that is deleted and made again numbers its revisions from 1.

An instance that follows gets the new content as an input revision of its own; one that stays
keeps its children, since the revision that it was on is gone.
"""

import pytest

from lamina.families.resourcegraph.options import InputStorage, Options
from lamina.objects import meta
from lamina.objects.types import Made
from tests.unit.families.resourcegraph.instances.world import (
    INPUT,
    REVISION,
    World,
    app,
    cm,
    config_map,
    data,
    instance,
    node,
    rgd,
    with_image,
)

EXTRA = node("extra", config_map("${schema.spec.name}-extra"))
STAYS = [
    {"kro.run/rgd-revision": "1"},
    {"kro.run/update-policy": "Manual"},
    {"kro.run/update-policy": "Paused"},
]
STORAGES = list(InputStorage)
LOST = "RGD revision 1 is not the one that it was on"


def world_with_an_instance(
    annotations: dict[str, str] | None = None, storage: InputStorage = InputStorage.CRD
) -> World:
    world = World(Options(input_storage=storage))
    world.publish(with_image("v1"), EXTRA)
    world.create(instance())
    if annotations:
        world.patch(app(), {"metadata": {"annotations": annotations}})
    return world


def delete_definition(world: World) -> None:
    for ref in [ref for ref in world.cluster.objects if ref.kind == REVISION.kind]:
        world.cluster.delete(ref)
    world.delete(rgd("app"))


def recreate(world: World, *resources: Made, gate: str = "") -> None:
    """Delete the definition with its revisions, and make it again with other content."""
    delete_definition(world)
    world.publish(*(resources or (with_image("v9"),)), number=1, gate=gate)


@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize("annotations", STAYS, ids=["pinned", "Manual", "Paused"])
def test_an_instance_that_stays_keeps_its_children(
    annotations: dict[str, str], storage: InputStorage
) -> None:
    world = world_with_an_instance(annotations, storage)
    recreate(world)

    assert data(world.get(cm("a1-cm")))["image"] == "v1" and world.has(cm("a1-extra"))
    status, reason, message = world.condition("RevisionResolved")
    assert (status, reason) == ("False", "RevisionNotFound") and LOST in message
    assert world.propagation()["status"] == "Blocked" and LOST in world.propagation()["message"]
    assert [one["revision"] for one in world.status()["inputRevisionHistory"]] == [1]


@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize("gate", ["", "${exponentiallyUpdated(instances, each)}"])
def test_an_instance_that_follows_gets_a_new_input_revision(gate: str, storage: InputStorage) -> None:
    world = world_with_an_instance(storage=storage)
    recreate(world, gate=gate)

    assert data(world.get(cm("a1-cm")))["image"] == "v9" and not world.has(cm("a1-extra"))
    assert world.stamps("a1-cm") == ("1", "2")
    assert [one["revision"] for one in world.status()["inputRevisionHistory"]] == [2, 1]
    assert world.state() == "ACTIVE"


def test_other_content_is_accepted_by_its_number() -> None:
    world = world_with_an_instance({"kro.run/update-policy": "Manual"})
    recreate(world)
    world.annotate(app(), accept_rgd_revision="1")

    assert data(world.get(cm("a1-cm")))["image"] == "v9" and sorted(world.inputs()) == [1, 2]
    assert "kro.run/accept-rgd-revision" not in meta.annotations(world.get(app()))
    assert world.state() == "ACTIVE"


@pytest.mark.parametrize("annotations", [{}, *STAYS], ids=["Auto", "pinned", "Manual", "Paused"])
def test_equal_content_is_the_same_revision(annotations: dict[str, str]) -> None:
    world = world_with_an_instance(annotations)
    recreate(world, with_image("v1"), EXTRA)

    assert sorted(world.inputs()) == [1] and world.stamps("a1-cm") == ("1", "1")
    assert world.state() == "ACTIVE" and world.condition("RevisionResolved")[0] == "True"


def test_an_input_revision_without_a_hash_is_of_any_content() -> None:
    world = world_with_an_instance({"kro.run/update-policy": "Manual"})
    world.edit(app(), replicas=2)
    (ref,) = [ref for ref in world.cluster.objects if ref.kind == INPUT.kind and ref.name.endswith("-2")]
    world.patch(ref, {"spec": {"rgdRevisionRef": {"specHash": None}}})
    recreate(world, with_image("v9"), EXTRA)

    assert sorted(world.inputs()) == [1, 2] and world.condition("RevisionResolved")[0] == "True"


def test_a_pair_whose_revision_was_replaced_is_not_restored() -> None:
    world = world_with_an_instance()
    recreate(world)
    world.edit(app(), replicas=2)
    world.annotate(app(), rollback_to_input_revision="1")

    assert world.condition("RollbackSucceeded")[:2] == ("False", "RGDRevisionPruned")
    assert world.get(app())["spec"]["replicas"] == 2
    world.annotate(app(), rollback_to_input_revision="1", rollback_scope="spec")
    assert data(world.get(cm("a1-cm"))) == {"image": "v9", "replicas": "1"}


def test_a_paused_instance_restores_nothing_from_a_revision_that_was_replaced() -> None:
    world = world_with_an_instance()
    world.publish(with_image("v2"), EXTRA, is_current=False)
    world.patch(
        app(),
        {"metadata": {"annotations": {"kro.run/update-policy": "Paused", "kro.run/rgd-revision": "2"}}},
    )
    assert sorted(world.inputs()) == [1, 2] and world.stamps("a1-cm") == ("1", "1")
    world.delete(REVISION.ref("", "app-rev-1"))
    world.publish(with_image("v9"), number=1)
    world.patch(cm("a1-cm"), {"data": {"image": "by hand"}})

    assert data(world.get(cm("a1-cm")))["image"] == "by hand" and world.has(cm("a1-extra"))
    assert sorted(world.inputs()) == [1, 2]
