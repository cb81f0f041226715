"""The children of an instance: their metadata, their order, adoption and repair."""

import pytest

from lamina.core.model.plan import Apply
from lamina.families.resourcegraph.options import Options
from lamina.objects import meta
from tests.unit.families.resourcegraph.instances.world import (
    World,
    app,
    chain,
    cm,
    config_map,
    data,
    described,
    instance,
    node,
    ready,
)


@pytest.mark.check("RG-40")
def test_a_child_has_the_labels_and_annotations_of_its_instance() -> None:
    world = World()
    world.publish()
    world.create(instance())

    child, owner = world.get(cm("a1-cm")), world.get(app())
    assert data(child) == {"replicas": "1"}
    assert dict(meta.labels(child)) == {
        "kro.run/owned": "true",
        "kro.run/kro-version": "v0.9.4",
        "kro.run/instance-id": meta.uid(owner),
        "kro.run/instance-name": "a1",
        "kro.run/instance-namespace": "ns1",
        "kro.run/instance-group": "kro.run",
        "kro.run/instance-version": "v1alpha1",
        "kro.run/instance-kind": "App",
        "kro.run/node-id": "config",
        "app.kubernetes.io/managed-by": "kro",
        "applyset.kubernetes.io/part-of": meta.labels(owner)["applyset.kubernetes.io/id"],
    }
    assert dict(meta.annotations(child)) == {
        "internal.kro.run/apply-order": "1",
        "kro.run/rgd-revision": "1",
        "kro.run/input-revision": "1",
        "kro.run/instance-name": "a1",
        "kro.run/instance-namespace": "ns1",
        "kro.run/resource-id": "config",
    }
    assert not meta.owner_refs(child)
    assert [one["manager"] for one in child["metadata"]["managedFields"]] == ["kro.run/applyset"]
    assert world.state() == "ACTIVE"
    assert world.condition("Ready") == ("True", "Ready", "")
    assert world.condition("ResourcesReady")[1:] == (
        "AllResourcesReady",
        "all resources are created and ready",
    )


@pytest.mark.check("RG-40")
def test_an_instance_has_the_labels_the_finalizer_and_the_inventory_of_upstream() -> None:
    world = World()
    world.publish()
    world.create(instance())

    found = world.get(app())
    assert meta.finalizers(found) == ["kro.run/finalizer"]
    assert set(meta.labels(found)) == {
        "kro.run/owned", "kro.run/kro-version", "kro.run/resource-graph-definition-id",
        "kro.run/resource-graph-definition-name", "applyset.kubernetes.io/id",
    }  # fmt: skip
    assert meta.annotations(found)["applyset.kubernetes.io/contains-group-kinds"] == "ConfigMap"
    assert meta.annotations(found)["applyset.kubernetes.io/additional-namespaces"] == ""


def test_a_name_that_is_no_label_value_is_shortened_in_labels_only() -> None:
    world = World()
    world.publish()
    world.create(instance("n" * 200))

    child = world.get(cm("n" * 200 + "-cm"))
    assert len(meta.labels(child)["kro.run/instance-name"]) == 63
    assert meta.annotations(child)["kro.run/instance-name"] == "n" * 200


@pytest.mark.check("RG-41")
def test_a_child_that_was_edited_or_deleted_by_hand_is_restored() -> None:
    world = World()
    world.publish()
    world.create(instance())

    world.patch(cm("a1-cm"), {"data": {"replicas": "9"}})
    assert data(world.get(cm("a1-cm"))) == {"replicas": "1"}
    world.patch(cm("a1-cm"), {"metadata": {"labels": {"kro.run/owned": None}}})
    assert meta.labels(world.get(cm("a1-cm")))["kro.run/owned"] == "true"
    world.delete(cm("a1-cm"))
    assert data(world.get(cm("a1-cm"))) == {"replicas": "1"}
    assert list(world.inputs()) == [1]


def test_fields_of_other_managers_stay() -> None:
    world = World()
    world.publish()
    world.create(instance())

    world.patch(cm("a1-cm"), {"data": {"other": "mine"}, "metadata": {"labels": {"team": "one"}}})
    world.edit(app(), replicas=2)

    assert data(world.get(cm("a1-cm"))) == {"replicas": "2", "other": "mine"}
    assert meta.labels(world.get(cm("a1-cm")))["team"] == "one"


@pytest.mark.check("RG-42")
def test_a_dependent_is_created_once_its_dependency_is_ready() -> None:
    world = World()
    a, b, c = chain("a", "b", "c")
    world.publish({**a, "readyWhen": ready("a")}, b, c)
    world.create(instance())

    assert world.children() == ["a1-a"]
    assert world.state() == "IN_PROGRESS"
    _, reason, message = world.condition("ResourcesReady")
    assert reason == "NotReady" and message.startswith("awaiting resource readiness: ")
    assert 'node "a"' in message and 'then "b", "c"' in message
    assert world.propagation()["status"] == "InProgress"

    world.make_ready("a1-a")
    assert world.children() == ["a1-a", "a1-b", "a1-c"]
    assert world.state() == "ACTIVE"


@pytest.mark.check("RG-43")
def test_on_an_update_a_dependent_moves_only_when_its_dependency_is_ready_again() -> None:
    world = World()
    a, b = chain("a", "b")
    condition = ['${a.data.?ready.orValue("") == a.data.replicas}']
    world.publish({**a, "readyWhen": condition}, b)
    world.create(instance())
    world.patch(cm("a1-a"), {"data": {"ready": "1"}})
    assert world.state() == "ACTIVE"

    world.edit(app(), replicas=2)
    assert data(world.get(cm("a1-a")))["replicas"] == "2"
    assert data(world.get(cm("a1-b")))["replicas"] == "1"
    assert world.stamps("a1-b") == ("1", "1")
    assert (world.propagation()["resourcesAtTarget"], world.propagation()["totalResources"]) == (1, 2)
    assert world.status()["observedInputRevision"] == 1
    assert "deletion" not in world.condition("ResourcesReady")[2], "the dependent only waits"
    assert [one["name"] for one in world.status()["managedResources"]] == ["a1-a", "a1-b"]

    world.patch(cm("a1-a"), {"data": {"ready": "2"}})
    assert data(world.get(cm("a1-b")))["replicas"] == "2"
    assert world.status()["observedInputRevision"] == 2


@pytest.mark.check("RG-52")
def test_the_first_of_two_instances_keeps_an_object() -> None:
    world = World()
    world.publish(node("x", config_map("shared", of="${schema.spec.name}")))
    world.create(instance("a1"))
    world.create(instance("a2"))

    assert data(world.get(cm("shared"))) == {"of": "a1"}
    assert world.state("a1") == "ACTIVE" and world.state("a2") == "ERROR"
    message = world.condition("ResourcesReady", "a2")[2]
    assert "belongs to ApplySet" in message and "cannot reassign to" in message

    world.delete(app("a1"))
    assert data(world.get(cm("shared"))) == {"of": "a2"}
    assert world.state("a2") == "ACTIVE"


@pytest.mark.check("RG-52")
def test_of_two_instances_that_are_created_together_one_keeps_the_object() -> None:
    world = World()
    world.publish(node("x", config_map("shared", of="${schema.spec.name}")))
    world.create(instance("a1"), instance("a2"))

    assert sorted((world.state("a1"), world.state("a2"))) == ["ACTIVE", "ERROR"]


def test_an_object_of_no_applyset_is_adopted() -> None:
    world = World()
    world.publish()
    world.create(config_map("a1-cm", namespace="ns1", replicas="7", mine="yes"))
    world.create(instance())

    assert data(world.get(cm("a1-cm"))) == {"replicas": "1", "mine": "yes"}
    assert world.state() == "ACTIVE"


@pytest.mark.check("RG-53")
def test_nothing_after_a_child_that_is_being_deleted_is_created() -> None:
    world = World()
    a, b = chain("a", "b")
    world.publish(a)
    world.create(instance())
    world.patch(cm("a1-a"), {"metadata": {"finalizers": ["team/backup"]}})
    world.delete(cm("a1-a"))
    world.publish(a, b)

    assert world.children() == ["a1-a"]
    _, reason, message = world.condition("ResourcesReady")
    assert reason == "ResourceDeleting"
    assert "a1-a" in message and "team/backup" in message

    world.patch(cm("a1-a"), {"metadata": {"finalizers": None}})
    assert world.children() == ["a1-a", "a1-b"] and world.state() == "ACTIVE"


@pytest.mark.check("RG-59")
@pytest.mark.check("RG-114")
def test_children_of_a_cluster_scoped_instance_name_no_namespace_of_it() -> None:
    world = World(Options(controller_namespace="kro-system"))
    world.publish(
        node("x", config_map("x", namespace="${schema.spec.ns}")), kind="Tenant", scope="Cluster",
        spec={"name": "string", "ns": "string", "replicas": "integer | default=1"},
    )  # fmt: skip
    world.create(instance("t1", kind="Tenant", namespace="", ns="ns7"))

    child = world.get(cm("x", "ns7"))
    assert "kro.run/instance-namespace" not in {**meta.labels(child), **meta.annotations(child)}
    owner = world.get(app("t1", "", "Tenant"))
    assert owner["status"]["state"] == "ACTIVE"
    assert meta.annotations(owner)["applyset.kubernetes.io/additional-namespaces"] == "ns7"
    inputs = [ref.namespace for ref in world.cluster.objects if ref.kind == "ResourceGraphInputRevision"]
    assert inputs == ["kro-system"]


@pytest.mark.check("RG-62")
def test_a_restart_writes_nothing() -> None:
    world = World()
    world.publish(*chain("a", "b"))
    world.create(instance("a1"), instance("a2"))

    def restart() -> None:
        world.start()
        world.run()

    assert described(world.writes(restart)) == []


def test_every_write_of_a_child_names_what_it_was_decided_on() -> None:
    world = World()
    world.publish()
    world.create(instance())

    written = [one for one in world.writes(lambda: world.edit(app(), replicas=4)) if isinstance(one, Apply)]

    assert all(meta.uid(one.obj) for one in written) and len(written) == 1
    assert meta.resource_version(written[0].obj)
