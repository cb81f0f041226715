"""Gates of the definition and of resources, nested instances, and when a propagation is complete."""

import pytest

from lamina.objects import meta
from lamina.objects.types import Made
from tests.unit.families.resourcegraph.instances.world import (
    CONFIG,
    REVISION,
    SPEC,
    World,
    app,
    chain,
    cm,
    config_map,
    data,
    instance,
    node,
    ready,
    with_image,
    world_with,
)


def test_behind_a_gate_an_instance_moves_when_it_is_admitted() -> None:
    world = world_with(instance("a1"), instance("a2"), gate="${each.index < 1}")
    world.publish(with_image("v2"), gate="${each.index < 1}")
    assert data(world.get(cm("a1-cm")))["image"] == "v1"
    assert world.propagation()["status"] == "Pending" and world.propagation()["pendingRGDRevision"] == 2
    world.edit(app(), replicas=4)
    assert data(world.get(cm("a1-cm"))) == {"image": "v1", "replicas": "4"}

    def admit() -> None:
        uid = meta.uid(world.get(app("a1")))
        world.cluster.patch(
            REVISION.ref("", "app-rev-2"), {"status": {"admitted": [uid]}}, subresource="status"
        )
        world.run()

    writes = world.writes(admit)
    assert {one.ref.name.split("-")[0] for one in writes} == {"a1"}
    assert data(world.get(cm("a1-cm")))["image"] == "v2"
    assert data(world.get(cm("a2-cm")))["image"] == "v1"


@pytest.mark.parametrize(("mode", "image"), [("Immediate", "v2"), ("", "v2"), ("Gated", "v1")])
@pytest.mark.check("RG-112")
def test_a_rollback_of_the_definition_passes_the_gate_unless_it_is_gated(mode: str, image: str) -> None:
    world = world_with(gate="${false}")
    annotations = {"kro.run/content-from-revision": "1", **({"kro.run/rollback-mode": mode} if mode else {})}
    world.publish(with_image("v2"), gate="${false}", annotations=annotations)

    assert data(world.get(cm("a1-cm")))["image"] == image


@pytest.mark.check("RG-103")
@pytest.mark.check("RG-110")
def test_a_resource_behind_a_closed_gate_stays_with_its_dependents() -> None:
    world = World()
    gate = node("gate", external={"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "gate"}})
    first = node(
        "first",
        config_map("${schema.spec.name}-first", replicas="${string(schema.spec.replicas)}"),
        propagateWhen=['${gate.data.open == "true"}'],
    )
    second = node(
        "second",
        config_map(
            "${schema.spec.name}-second",
            of="${first.metadata.name}",
            replicas="${string(schema.spec.replicas)}",
        ),
    )
    world.create(config_map("gate", namespace="ns1", open="true"))
    world.publish(gate, first, second)
    world.create(instance())
    assert world.state() == "ACTIVE"
    world.patch(cm("gate"), {"data": {"open": "false"}})
    assert world.propagation()["status"] == "Completed"

    world.edit(app(), replicas=2)
    assert (world.stamps("a1-first"), world.stamps("a1-second")) == (("1", "1"), ("1", "1"))
    assert world.propagation()["status"] == "Blocked" and 'node "first"' in world.propagation()["message"]
    assert world.inputs()[2]["status"]["propagationStatus"] == "InProgress"
    since = world.propagation()["lastTransitionTime"]
    world.edit(app(), replicas=3, seconds=60)
    assert world.propagation()["lastTransitionTime"] == since

    world.patch(cm("gate"), {"data": {"open": "true"}})
    assert data(world.get(cm("a1-second")))["replicas"] == "3"
    assert world.propagation()["status"] == "Completed"
    assert world.propagation()["lastTransitionTime"] > since
    assert world.events("PropagationBlocked") and world.events("PropagationCompleted")


@pytest.mark.check("RG-102")
def test_items_of_a_collection_are_updated_one_by_one() -> None:
    world = World()
    pods = node(
        "pods", config_map("${schema.spec.name}-${x}", replicas="${string(schema.spec.replicas)}"),
        forEach=[{"x": "${schema.spec.xs}"}],
        readyWhen=['${each.data.?ready.orValue("") == each.data.replicas}'],
        propagateWhen=["${linearlyUpdated(each, pods, 1)}"],
    )  # fmt: skip
    world.publish(pods, spec={**SPEC, "xs": "[]string"})
    world.create(instance(xs=["a", "b", "c"]))
    for count, name in enumerate(("a1-a", "a1-b", "a1-c"), start=1):
        assert len(world.children()) == count
        world.patch(cm(name), {"data": {"ready": "1"}})
    assert world.state() == "ACTIVE"

    world.edit(app(), replicas=2)
    moved = []
    for name in ("a1-a", "a1-b", "a1-c"):
        moved.append([data(world.get(cm(one)))["replicas"] for one in ("a1-a", "a1-b", "a1-c")])
        world.patch(cm(name), {"data": {"ready": "2"}})
    assert moved == [["2", "1", "1"], ["2", "2", "1"], ["2", "2", "2"]]
    assert world.state() == "ACTIVE"


def chained() -> World:
    world = World()
    database: Made = {"apiVersion": "kro.run/v1alpha1", "kind": "Database", "metadata": {"name": "${schema.spec.name}-db"}, "spec": {"name": "${schema.spec.name}", "replicas": "${schema.spec.replicas}"}}  # fmt: skip
    world.publish(node("config", config_map("${schema.spec.name}-db-cm", v="one")), kind="Database")
    world.publish(node("db", database), CONFIG)
    world.create(instance())
    return world


@pytest.mark.check("RG-105")
def test_a_child_instance_is_not_pinned_by_its_parent() -> None:
    world = chained()
    child = world.get(app("a1-db", kind="Database"))
    assert meta.annotations(child)["kro.run/parent-rgd-revision"] == "1"
    assert meta.annotations(child)["kro.run/parent-input-revision"] == "1"
    assert not {"kro.run/rgd-revision", "kro.run/input-revision"} & meta.annotations(child).keys()

    world.publish(node("config", config_map("${schema.spec.name}-db-cm", v="two")), kind="Database")
    assert data(world.get(cm("a1-db-cm")))["v"] == "two"


@pytest.mark.check("RG-116")
def test_the_propagation_of_a_parent_counts_its_child_instance() -> None:
    world = chained()
    world.edit(app(), replicas=5)

    assert world.get(app("a1-db", kind="Database"))["spec"]["replicas"] == 5
    assert world.propagation() == {
        **world.propagation(),
        "status": "Completed",
        "resourcesAtTarget": 2,
        "totalResources": 2,
    }
    world.delete(app())
    assert not world.has(app("a1-db", kind="Database")) and not world.has(cm("a1-db-cm"))


def test_a_parent_may_steer_its_child_instance() -> None:
    world = World()
    database: Made = {"apiVersion": "kro.run/v1alpha1", "kind": "Database", "metadata": {"name": "db", "annotations": {"kro.run/rgd-revision": "1"}}, "spec": {"name": "x"}}  # fmt: skip
    world.publish(node("config", config_map("db-cm", v="one")), kind="Database")
    world.publish(node("config", config_map("db-cm", v="two")), kind="Database")
    world.publish(node("db", database))
    world.create(instance())

    assert data(world.get(cm("db-cm")))["v"] == "one"


@pytest.mark.check("RG-107")
def test_a_settled_instance_has_observed_what_is_current() -> None:
    world = world_with()
    world.publish(*chain("a", "b"))
    world.edit(app(), replicas=2)

    status = world.status()
    assert status["observedInputRevision"] == status["currentInputRevision"] == 3
    assert status["observedRGDRevision"] == status["currentRGDRevision"] == 2
    assert status["propagation"]["resourcesAtTarget"] == status["propagation"]["totalResources"] == 2
    assert world.condition("ResourcesPropagated")[0] == "True"


def test_what_is_complete_stays_so_when_a_child_fails_later() -> None:
    world = World()
    a, b = chain("a", "b")
    world.publish({**a, "readyWhen": ready("a")}, b)
    world.create(instance())
    world.make_ready("a1-a")
    world.patch(cm("a1-a"), {"data": {"ready": None}})

    assert world.state() == "IN_PROGRESS" and world.propagation()["status"] == "Completed"
    assert world.inputs()[1]["status"]["propagationStatus"] == "Completed"
