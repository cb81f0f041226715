"""Kinds of children that are no longer served: the other children are served by the graph that is compiled."""

from lamina.objects.kinds import Kinds
from lamina.objects.types import Ref
from tests.unit.families.resourcegraph.instances.world import (
    CONFIG,
    World,
    app,
    chain,
    cm,
    config_map,
    custom_kind,
    data,
    instance,
    node,
)

CRD = Ref("apiextensions.k8s.io/v1", "CustomResourceDefinition", "", "widgets.ex.example.com")
MADE = Ref("ex.example.com/v1", "Widget", "ns1", "a1-w")
WIDGET = node(
    "widget",
    {
        "apiVersion": "ex.example.com/v1",
        "kind": "Widget",
        "metadata": {"name": "${schema.spec.name}-w"},
        "spec": {"of": "${a.metadata.name}"},
    },
)
AFTER = node("after", config_map("${schema.spec.name}-after", of="${widget.metadata.name}"))


def with_a_widget() -> World:
    world = World()
    custom_kind(world.cluster)
    world.publish(*chain("a"), WIDGET, AFTER)
    world.create(instance())
    assert world.state() == "ACTIVE"
    # A server deletes the objects of a kind before its CRD is gone.
    world.cluster.delete(MADE)
    world.cluster.kinds = Kinds(one for one in world.cluster.kinds.versions() if one.kind != "Widget")

    world.delete(CRD)
    return world


def test_the_others_are_still_corrected_and_edited() -> None:
    world = with_a_widget()
    world.patch(cm("a1-a"), {"data": {"replicas": "99"}})
    assert data(world.get(cm("a1-a"))) == {"replicas": "1"}
    assert world.state() == "ERROR" and world.has(cm("a1-after"))
    message = world.condition("ResourcesReady")[2]
    assert 'node "widget"' in message and "Widget" in message and "not served" in message
    assert world.condition("RevisionResolved")[:2] == ("False", "RevisionFailed")
    assert world.condition("GraphResolved")[:2] == ("False", "ResolutionFailed")

    world.edit(app(), replicas=2)
    assert data(world.get(cm("a1-a"))) == {"replicas": "2"}


def test_it_heals_when_the_kind_is_served_again() -> None:
    world = with_a_widget()
    custom_kind(world.cluster)
    world.run(60)

    assert world.state() == "ACTIVE" and world.has(MADE)
    assert world.condition("RevisionResolved")[0] == "True"


def test_an_instance_without_the_kind_can_be_deleted() -> None:
    world = with_a_widget()
    world.delete(app())

    assert world.children() == [] and not world.has(app())


def test_without_a_compiled_graph_nothing_is_written() -> None:
    world = with_a_widget()
    world.start()
    world.patch(cm("a1-a"), {"data": {"replicas": "99"}})

    assert data(world.get(cm("a1-a"))) == {"replicas": "99"} and world.state() == "ERROR"
    world.publish(CONFIG)
    assert world.state() == "ACTIVE"
