"""The inventory of an instance: which objects are members by it, and what becomes of one that was edited."""

import pytest

from lamina.core.model.plan import Delete, Emit
from lamina.families.resourcegraph.instances.applyset import what_is_wrong
from lamina.families.resourcegraph.instances.source import source
from lamina.families.resourcegraph.options import Options
from lamina.objects import meta
from lamina.objects.types import Made, Ref
from lamina.simulation import Process, planned
from tests.unit.families.resourcegraph.instances.world import (
    CONFIG,
    World,
    app,
    cm,
    config_map,
    data,
    instance,
    node,
    world_with,
)

KINDS = "applyset.kubernetes.io/contains-group-kinds"
NAMESPACES = "applyset.kubernetes.io/additional-namespaces"
HASH = "internal.kro.run/applyset-inventory-hash"
TOOLING = "applyset.kubernetes.io/tooling"
EDITS = [
    (KINDS, "Secret"),
    (KINDS, "not-served"),
    (NAMESPACES, "other"),
    (HASH, "sha256:x"),
    (HASH, None),
    (TOOLING, "kubectl/v1.30"),
]
SECRET = {
    "apiVersion": "v1",
    "kind": "Secret",
    "metadata": {"name": "${schema.spec.name}-s"},
    "stringData": {"a": "b"},
}


def copied(world: World, name: str, namespace: str, to: str = "a1-cm") -> None:
    """Copy a child with its metadata, as a backup is restored."""
    source = world.get(cm(to))
    world.create(
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {
                "name": name,
                "namespace": namespace,
                "labels": dict(meta.labels(source)),
                "annotations": dict(meta.annotations(source)),
            },
            "data": dict(data(source)),
        }
    )


def annotations(world: World) -> Made:
    return dict(meta.annotations(world.get(app())))


@pytest.mark.parametrize("name", ["a1-cm", "copy"])
def test_a_copy_in_a_namespace_that_is_not_recorded_is_kept(name: str) -> None:
    world = world_with()
    copied(world, name, "other")
    world.edit(app(), replicas=2)
    assert world.has(cm(name, "other")) and world.state() == "ACTIVE"
    assert world.propagation()["totalResources"] == 1

    world.delete(app())
    assert world.has(cm(name, "other")) and not world.has(cm("a1-cm")) and not world.has(app())


def test_a_copy_is_kept_while_the_inventory_is_restored() -> None:
    world = world_with()
    copied(world, "copy", "other")
    world.patch(app(), {"metadata": {"annotations": {KINDS: "Secret"}}}, 60)

    assert not what_is_wrong(world.get(app())) and world.has(cm("copy", "other"))


def test_a_copy_in_the_namespace_of_the_instance_is_pruned() -> None:
    world = world_with()
    copied(world, "copy", "ns1")

    assert not world.has(cm("copy"))


def test_a_cluster_scoped_child_is_a_member_whatever_the_namespaces_are() -> None:
    world = World()
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "${schema.spec.name}-ns"}}
    world.publish(CONFIG, node("ns", namespace))
    world.create(instance())
    made = Ref("v1", "Namespace", "", "a1-ns")
    assert world.has(made)

    deleted = world.writes(lambda: world.delete(app()))
    assert made in [one.ref for one in deleted if isinstance(one, Delete)]


def test_a_namespace_stays_recorded_until_a_live_list_finds_no_member_in_it() -> None:
    world = World()
    items = node("pods", config_map("x", namespace="${ns}"), forEach=[{"ns": "${schema.spec.xs}"}])
    world.publish(items, spec={"name": "string", "replicas": "integer", "xs": "[]string"})
    world.create(instance(xs=["ns1", "ns2"]))
    gone = cm("x", "ns2")
    assert world.has(gone) and annotations(world)[NAMESPACES] == "ns2"
    world.cluster.patch(app(), {"spec": {"xs": ["ns1"]}})
    process = Process(world.cluster, sources=[source(Options())])
    [controller] = process.controllers
    process.stop()

    for _ in range(9):
        # The cache of the children lags.
        plan = planned(world.cluster, controller, app(), unseen=[gone])
        assert annotations(world)[NAMESPACES] == "ns2" or not world.has(gone)
        for one in plan.actions:
            if not isinstance(one, Emit):
                world.cluster.perform(one, controller.manager)

    assert not world.has(gone) and world.has(cm("x"))
    assert annotations(world)[NAMESPACES] == ""


@pytest.mark.check("RG-56")
@pytest.mark.parametrize(("key", "value"), EDITS)
def test_an_inventory_that_was_edited_is_restored_at_once(key: str, value: str | None) -> None:
    world = World()
    items = node("pods", config_map("x", namespace="${ns}"), forEach=[{"ns": "${schema.spec.xs}"}])
    world.publish(items, spec={"name": "string", "replicas": "integer", "xs": "[]string"})
    world.create(instance(xs=["ns1", "ns2"]))
    before = annotations(world)
    world.patch(app(), {"metadata": {"annotations": {key: value}}}, 60)

    assert annotations(world) == before
    world.delete(app())
    assert world.children() == [] and not world.has(app())


@pytest.mark.parametrize("way", ["suspended", "a pin to nowhere"])
def test_it_is_restored_while_nothing_else_is_done(way: str) -> None:
    world = world_with()
    if way == "suspended":
        world.annotate(app(), reconcile="suspended")
    else:
        world.annotate(app(), rgd_revision="9")
    before = annotations(world)
    world.patch(app(), {"metadata": {"annotations": {KINDS: "Secret"}}}, 60)

    assert KINDS in before and not what_is_wrong(world.get(app()))
    world.delete(app())
    assert world.children() == [] and not world.has(app())


def test_kinds_that_are_not_watched_any_more_stay_in_a_restored_inventory() -> None:
    world = World()
    world.publish(CONFIG, node("s", SECRET))
    world.create(instance())
    secret = Ref("v1", "Secret", "ns1", "a1-s")
    world.patch(secret, {"metadata": {"finalizers": ["team/backup"]}})
    world.publish(CONFIG, limit=0)
    world.delete(Ref("kro.run/v1alpha1", "ResourceGraphDefinitionRevision", "", "app-rev-1"))
    assert annotations(world)[KINDS] == "ConfigMap,Secret" and world.has(secret)

    world.patch(app(), {"metadata": {"annotations": {HASH: "sha256:x"}}}, 60)
    assert annotations(world)[KINDS] == "ConfigMap,Secret"
    world.patch(app(), {"metadata": {"annotations": {KINDS: "Not Valid,Secret"}}}, 60)
    assert annotations(world)[KINDS] == "ConfigMap,Secret"


@pytest.mark.check("RG-56")
def test_a_deletion_that_is_blocked_says_how_to_restore_the_inventory() -> None:
    world = world_with()
    world.cluster.patch(app(), {"metadata": {"annotations": {KINDS: "Secret"}}})
    world.cluster.delete(app())
    world.run()

    message = world.condition("ResourcesReady")[2]
    assert "deletion blocked" in message
    assert KINDS in message and "finalizer kro.run/finalizer" in message
    world.patch(app(), {"metadata": {"annotations": {KINDS: "ConfigMap"}}})
    assert not world.has(app())
