"""The deletion of an instance: wave by wave, blocked by name, and without its definition."""

import pytest

from lamina.core.model.plan import Delete
from lamina.objects import meta
from lamina.objects.kinds import Kinds
from lamina.objects.types import Made
from tests.unit.families.resourcegraph.instances.world import (
    CONFIG,
    REVISION,
    World,
    app,
    chain,
    cm,
    config_map,
    custom_kind,
    instance,
    node,
    rgd,
)

HELD: Made = {"metadata": {"finalizers": ["team/backup"]}}
RELEASED: Made = {"metadata": {"finalizers": None}}


def chained(*ids: str) -> World:
    world = World()
    world.publish(*chain(*ids))
    world.create(instance())
    return world


@pytest.mark.check("RG-54")
def test_dependents_are_gone_before_what_they_depend_on_is_deleted() -> None:
    world = chained("a", "b", "c")
    deleted = [
        one.ref.name
        for one in world.writes(lambda: world.delete(app()))
        if isinstance(one, Delete) and one.ref.kind == "ConfigMap"
    ]

    assert deleted == ["a1-c", "a1-b", "a1-a"]
    assert not world.has(app())
    assert not [ref for ref in world.cluster.objects if ref.kind == "ResourceGraphInputRevision"]


@pytest.mark.check("RG-54")
def test_what_blocks_a_deletion_is_named() -> None:
    world = chained("a", "b")
    world.patch(cm("a1-b"), HELD)
    world.delete(app())

    assert world.state() == "DELETING"
    status, reason, message = world.condition("ResourcesReady")
    assert (status, reason) == ("Unknown", "UnderDeletion")
    assert "configmap ns1/a1-b waits for finalizers: team/backup" in message
    assert not meta.is_deleting(world.get(cm("a1-a")))

    world.patch(cm("a1-b"), RELEASED)
    assert world.children() == [] and not world.has(app())


@pytest.mark.check("RG-55")
@pytest.mark.parametrize("lost", ["external", "revision", "definition"])
def test_a_deletion_needs_neither_external_objects_nor_the_definition(lost: str) -> None:
    world = World()
    external = node("ext", external={"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "ext"}})
    world.create(config_map("ext", namespace="ns1", token="x"))
    world.publish(external, node("copy", config_map("copy", token="${ext.data.token}")), *chain("a", "b"))
    world.create(instance())
    assert world.state() == "ACTIVE"

    if lost == "external":
        world.delete(cm("ext"))
    elif lost == "revision":
        world.delete(REVISION.ref("", "app-rev-1"))
    else:
        world.delete(rgd("app"))
        assert not world.has(REVISION.ref("", "app-rev-1"))
    world.delete(app())

    assert world.children() == [] and not world.has(app())


def test_without_its_definition_an_instance_is_left_alone_until_it_is_deleted() -> None:
    world = chained("a", "b")
    world.delete(rgd("app"))
    world.patch(cm("a1-a"), {"data": {"replicas": "9"}})
    assert world.get(cm("a1-a"))["data"]["replicas"] == "9"

    world.patch(cm("a1-b"), HELD)
    world.delete(app())
    assert "team/backup" in world.condition("ResourcesReady")[2]
    assert not meta.is_deleting(world.get(cm("a1-a")))
    world.patch(cm("a1-b"), RELEASED)
    assert not world.has(app())


def test_without_its_definition_a_wave_that_is_gone_at_once_is_not_waited_for() -> None:
    world = chained("a", "b", "c")
    world.delete(rgd("app"))
    world.delete(app(), seconds=1)
    assert world.children() == [] and not world.has(app())


@pytest.mark.check("RG-56")
@pytest.mark.parametrize(
    "annotations",
    [
        {"applyset.kubernetes.io/contains-group-kinds": ""},
        {"applyset.kubernetes.io/contains-group-kinds": None},
        {"applyset.kubernetes.io/tooling": "kubectl/v1"},
    ],
)
def test_an_inventory_that_was_edited_blocks_the_deletion(annotations: Made) -> None:
    world = chained("a")
    good = dict(meta.annotations(world.get(app())))
    world.cluster.patch(app(), {"metadata": {"annotations": annotations}})
    world.delete(app())

    assert world.has(app()) and world.children() == ["a1-a"]
    assert "deletion blocked" in world.condition("ResourcesReady")[2]
    world.patch(app(), {"metadata": {"annotations": good}})
    assert not world.has(app()) and world.children() == []


def test_an_inventory_that_was_edited_is_restored_by_the_next_pass() -> None:
    world = chained("a")
    good = dict(meta.annotations(world.get(app())))
    world.cluster.patch(
        app(), {"metadata": {"annotations": {"applyset.kubernetes.io/contains-group-kinds": ""}}}
    )
    world.edit(app(), replicas=2)

    assert dict(meta.annotations(world.get(app()))) == good


def test_children_without_an_order_are_deleted_last() -> None:
    world = chained("a", "b")
    world.cluster.patch(cm("a1-b"), {"metadata": {"annotations": {"internal.kro.run/apply-order": "x"}}})
    world.cluster.delete(app())
    deleted = [
        one.ref.name
        for one in world.writes(world.run)
        if isinstance(one, Delete) and one.ref.kind == "ConfigMap"
    ]

    assert deleted == ["a1-a", "a1-b"]


@pytest.mark.parametrize("has_definition", [True, False])
def test_a_kind_that_is_gone_with_its_crd_does_not_block(has_definition: bool) -> None:
    world = World()
    custom_kind(world.cluster, "Thing")
    thing = {
        "apiVersion": "ex.example.com/v1",
        "kind": "Thing",
        "metadata": {"name": "${schema.spec.name}-t"},
    }
    world.publish(node("thing", thing), CONFIG)
    world.create(instance())
    for ref in [
        ref
        for ref in world.cluster.objects
        if ref.kind in ("Thing", "CustomResourceDefinition") and "app" not in ref.name
    ]:
        world.cluster.delete(ref)
    world.run()
    if not has_definition:
        world.delete(rgd("app"))
    world.delete(app())

    assert not world.has(app()) and world.children() == []


@pytest.mark.parametrize("kind", ["Thing.ex.example.com", "Secret"])
@pytest.mark.parametrize("has_definition", [True, False])
def test_a_kind_that_is_not_served_for_a_while_is_waited_for(kind: str, has_definition: bool) -> None:
    world = World()
    custom_kind(world.cluster, "Thing")
    name, _, group = kind.partition(".")
    child = {
        "apiVersion": f"{group}/v1" if group else "v1",
        "kind": name,
        "metadata": {"name": "${schema.spec.name}-t"},
    }
    world.publish(node("child", child), CONFIG)
    world.create(instance())
    made = next(ref for ref in world.cluster.objects if ref.kind == name)
    if not has_definition:
        world.delete(rgd("app"))

    served = world.cluster.kinds
    world.cluster.kinds = Kinds(one for one in served.versions() if one.kind != name)
    world.start()
    world.delete(app(), seconds=30)
    assert world.has(app()) and world.has(made)
    assert f"cannot list {kind}, which the server does not serve" in world.condition("ResourcesReady")[2]

    world.cluster.kinds = served
    world.start()
    world.run(30)
    assert not world.has(app()) and not world.has(made) and world.children() == []


def test_a_deletion_while_nodes_wait_goes_on() -> None:
    world = World()
    a, b = chain("a", "b")
    world.publish({**a, "readyWhen": ["${false}"]}, b)
    world.create(instance())
    world.delete(app())

    assert not world.has(app()) and world.children() == []


def test_beside_conditions_of_an_author_the_deletion_is_shown() -> None:
    world = World()
    made = "${runtime.newCondition({type: 'Works', status: 'True', reason: 'R', message: 'm'})}"
    world.publish(status={"conditions": [made]})
    world.create(instance())
    world.patch(cm("a1-cm"), HELD)
    world.delete(app())

    assert [one["type"] for one in world.status()["conditions"]] == ["Works", "ResourcesReady"]
    assert world.state() == "DELETING"


def test_a_child_that_cannot_be_deleted_is_reported_with_the_reason() -> None:
    from lamina.errors import Forbidden

    world = chained("a")
    world.cluster.refuse = {Delete: Forbidden("webhook says no")}
    world.cluster.delete(app())
    world.run()

    assert "deletion blocked" in world.condition("ResourcesReady")[2]
    assert "webhook says no" in world.condition("ResourcesReady")[2]
    world.cluster.refuse = {}
    world.run(600)
    assert not world.has(app())


def test_an_instance_that_is_deleted_before_it_is_managed_goes_at_once() -> None:
    world = World()
    world.publish()
    world.cluster.create(instance())
    world.cluster.delete(app())
    world.run()

    assert not world.has(app()) and world.children() == []
