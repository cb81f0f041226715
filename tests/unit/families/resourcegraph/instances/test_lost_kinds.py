"""Kinds of children that are no longer served: the other children are served by the graph that is compiled."""

import pytest

from lamina.core.model.queries import Answers, Found, ReadSchema
from lamina.families.resourcegraph.compiled_graphs import Graphs, RevisionGraph
from lamina.graph.graph import GraphError
from lamina.objects.kinds import Kind, Kinds
from lamina.objects.types import GroupKind, Made, Ref
from lamina.simulation.cluster.kinds import KINDS
from tests.unit.families.resourcegraph.instances.world import (
    CONFIG,
    SPEC,
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

CONFIG_MAP = GroupKind("", "ConfigMap")
ANYTHING = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
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


def with_a_widget(*more: Made, is_restarted: bool = False) -> World:
    world = World()
    custom_kind(world.cluster)
    world.publish(*chain("a"), WIDGET, AFTER, *more)
    world.create(instance())
    assert world.state() == "ACTIVE"
    # A server deletes the objects of a kind before its CRD is gone.
    world.cluster.delete(MADE)
    world.cluster.kinds = Kinds(one for one in world.cluster.kinds.versions() if one.kind != "Widget")

    world.delete(CRD)
    if is_restarted:
        world.start()
        world.run(10)
    return world


restarted = pytest.mark.parametrize("is_restarted", [False, True], ids=["", "restarted"])
"""A process that has never compiled the graph does the same."""


@restarted
def test_the_others_are_still_corrected_and_edited(is_restarted: bool) -> None:
    world = with_a_widget(is_restarted=is_restarted)
    world.patch(cm("a1-a"), {"data": {"replicas": "99"}})
    assert data(world.get(cm("a1-a"))) == {"replicas": "1"}
    assert world.state() == "ERROR" and world.has(cm("a1-after"))
    message = world.condition("ResourcesReady")[2]
    assert 'node "widget"' in message and "Widget" in message and "not served" in message
    status, reason, message = world.condition("RevisionResolved")
    assert (status, reason) == ("False", "RevisionFailed")
    assert message == (
        "RGD revision 1 needs Widget of ex.example.com/v1, which is not served: install the "
        "CustomResourceDefinition; until then nodes of that kind, and those that depend on them, "
        "are left as they are, and all others are kept"
    )
    assert world.condition("GraphResolved")[:2] == ("False", "ResolutionFailed")

    world.edit(app(), replicas=2)
    assert data(world.get(cm("a1-a"))) == {"replicas": "2"}


@restarted
def test_it_heals_when_the_kind_is_served_again(is_restarted: bool) -> None:
    world = with_a_widget(is_restarted=is_restarted)
    custom_kind(world.cluster)
    world.run(60)

    assert world.state() == "ACTIVE" and world.has(MADE)
    assert world.condition("RevisionResolved")[0] == "True"


@restarted
def test_an_instance_without_the_kind_can_be_deleted(is_restarted: bool) -> None:
    world = with_a_widget(is_restarted=is_restarted)
    world.delete(app())

    assert world.children() == [] and not world.has(app())


@restarted
def test_a_new_instance_gets_what_does_not_need_the_kind(is_restarted: bool) -> None:
    world = with_a_widget(is_restarted=is_restarted)
    world.create(instance("a2"))

    assert world.has(cm("a2-a")) and not world.has(cm("a2-after"))
    assert world.state("a2") == "ERROR"


def test_conditions_and_lists_of_a_lost_kind_need_no_type() -> None:
    widget = node(
        "typed",
        {"apiVersion": "ex.example.com/v1", "kind": "Gadget", "metadata": {"name": "${schema.spec.name}-g"}},
        readyWhen=["${typed.spec.is_on}"],
    )
    included = node(
        "included", config_map("${schema.spec.name}-included"), includeWhen=["${typed.spec.is_on}"]
    )
    many = node(
        "many",
        config_map("${schema.spec.name}-${one}", of="${one}"),
        forEach=[{"one": "${typed.spec.items}"}],
        propagateWhen=["${typed.spec.is_on}"],
    )
    resources = (widget, included, many, CONFIG)
    spec = {"is_on": {"type": "boolean"}, "items": {"type": "array", "items": {"type": "string"}}}
    kind = Kind("ex.example.com/v1", "Gadget", "gadgets", namespaced=True)
    schema = {"properties": {"spec": {"type": "object", "properties": spec}}}
    stated = {"kind": "App", "apiVersion": "v1alpha1", "spec": SPEC}
    revision = {"metadata": {"uid": "1"}, "spec": {"schema": stated, "resources": resources}}
    served = Kinds([*KINDS.versions(), kind])
    answers = Answers(
        {
            ReadSchema(one): Found({"schema": of})
            for one, of in ((kind, schema), (KINDS.preferred(CONFIG_MAP), ANYTHING))
            if one is not None
        }
    )
    whole = Graphs().of_revision(revision, served, {}, answers)
    partly = Graphs().of_revision(revision, KINDS, {}, answers)

    assert isinstance(whole, RevisionGraph) and isinstance(partly, RevisionGraph)
    assert whole.graph is not None and whole.wrong == ""
    assert partly.graph is not None and "Gadget of ex.example.com/v1" in partly.wrong
    assert partly.graph.order == whole.graph.order
    assert {id: one.dependencies for id, one in partly.graph.nodes.items()} == {
        id: one.dependencies for id, one in whole.graph.nodes.items()
    }


def test_under_a_cluster_scoped_instance_the_scopes_of_lost_kinds_are_those_that_they_had() -> None:
    def lost(id: str, api_version: str, **metadata: str) -> Made:
        return node(id, {"apiVersion": api_version, "kind": "Gadget", "metadata": {"name": "a", **metadata}})

    stated = {"kind": "App", "apiVersion": "v1alpha1", "spec": SPEC, "scope": "Cluster"}
    resources = [lost("within", "one.example.com/v1", namespace="ns1"), lost("above", "two.example.com/v1")]
    revision = {"metadata": {"uid": "1"}, "spec": {"schema": stated, "resources": resources}}
    found = Graphs().of_revision(revision, KINDS, {}, Answers())

    assert isinstance(found, RevisionGraph) and found.graph is not None
    assert [found.graph.nodes[id].target.namespaced for id in ("within", "above")] == [True, False]


def test_nothing_else_becomes_acceptable_without_the_kind() -> None:
    """A definition is not published without its kinds: only revisions that were are kept."""
    stated = {"kind": "App", "apiVersion": "v1alpha1", "spec": SPEC}
    snapshot = {"schema": stated, "resources": [WIDGET]}
    without = Kinds(one for one in KINDS.versions() if one.kind != "Widget")

    assert isinstance(Graphs().find(snapshot, without, {}, Answers()), GraphError)


@restarted
def test_a_paused_instance_is_still_corrected(is_restarted: bool) -> None:
    world = with_a_widget()
    world.annotate(app(), update_policy="Paused")
    if is_restarted:
        world.start()
        world.run(10)
    world.patch(cm("a1-a"), {"data": {"replicas": "99"}})

    assert data(world.get(cm("a1-a"))) == {"replicas": "1"}
