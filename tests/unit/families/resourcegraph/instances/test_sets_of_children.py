"""Collections, external objects, and what becomes of children that are not wanted any more."""

from typing import Any

import pytest

from lamina.core.model.plan import Delete
from lamina.core.model.queries import Follow
from lamina.objects import meta
from lamina.objects.kinds import Kinds
from lamina.objects.types import GroupKind, Made, Obj, Ref
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
    ready,
)


@pytest.mark.check("RG-44")
def test_what_is_no_longer_included_is_deleted_with_its_dependents() -> None:
    world = World()
    a, b, c = chain("a", "b", "c")
    d = node("d", config_map("${schema.spec.name}-d"))
    world.publish(a, {**b, "includeWhen": ["${schema.spec.replicas > 0}"]}, c, d)
    world.create(instance())
    assert world.children() == ["a1-a", "a1-d", "a1-b", "a1-c"]

    deleted = [
        one.ref.name for one in world.writes(lambda: world.edit(app(), replicas=0)) if isinstance(one, Delete)
    ]

    assert deleted == ["a1-c", "a1-b"]
    assert world.children() == ["a1-a", "a1-d"]
    assert world.state() == "ACTIVE"
    assert world.propagation()["totalResources"] == 2
    world.edit(app(), replicas=1)
    assert world.children() == ["a1-a", "a1-d", "a1-b", "a1-c"]


@pytest.mark.check("RG-45")
def test_a_condition_on_another_node_waits_for_its_data() -> None:
    world = World()
    a, _ = chain("a", "b")
    other = node("b", config_map("${schema.spec.name}-b"), includeWhen=['${a.data.enabled == "true"}'])
    world.publish(a, other)
    world.create(instance())
    assert world.children() == ["a1-a"] and world.state() == "IN_PROGRESS"

    world.patch(cm("a1-a"), {"data": {"enabled": "true"}})
    assert world.children() == ["a1-a", "a1-b"] and world.state() == "ACTIVE"
    world.patch(cm("a1-a"), {"data": {"enabled": "false"}})
    assert world.children() == ["a1-a"] and world.state() == "ACTIVE"


REPLICAS = "${string(schema.spec.replicas)}"
ITEMS = node(
    "pods",
    config_map("${schema.spec.name}-${x}-${y}", replicas=REPLICAS),
    forEach=[{"x": "${schema.spec.xs}"}, {"y": "${schema.spec.ys}"}],
)


LISTS: Obj = {"name": "string", "replicas": "integer | default=1", "xs": "[]string", "ys": "[]string"}


@pytest.mark.check("RG-46")
def test_a_collection_has_an_item_for_each_combination() -> None:
    world = World()
    world.publish(ITEMS, spec=LISTS)
    world.create(instance(xs=["a", "b"], ys=["1", "2"]))

    assert world.children() == ["a1-a-1", "a1-a-2", "a1-b-1", "a1-b-2"]
    marks = [meta.labels(world.get(cm(name))) for name in world.children()]
    assert [one["kro.run/collection-index"] for one in marks] == ["0", "1", "2", "3"]
    assert {one["kro.run/collection-size"] for one in marks} == {"4"}

    world.edit(app(), xs=["b"])
    assert world.children() == ["a1-b-1", "a1-b-2"]
    assert world.state() == "ACTIVE"
    world.edit(app(), xs=[])
    assert world.children() == []
    assert world.state() == "ACTIVE"
    assert world.propagation()["totalResources"] == 0


@pytest.mark.check("RG-47")
def test_a_collection_that_is_too_large_creates_nothing() -> None:
    world = World()
    world.publish(ITEMS, spec=LISTS)
    many = [str(n) for n in range(34)]
    world.create(instance(xs=many, ys=many))

    assert world.children() == []
    assert world.state() == "ERROR"
    assert "1000" in world.condition("ResourcesReady")[2]


@pytest.mark.check("RG-48")
def test_a_collection_may_span_namespaces() -> None:
    world = World()
    items = node(
        "pods", config_map("x", namespace="${ns}", replicas=REPLICAS), forEach=[{"ns": "${schema.spec.xs}"}]
    )
    world.publish(items, spec=LISTS)
    world.create(instance(xs=["ns1", "ns2"], ys=[]))
    assert meta.annotations(world.get(app()))["applyset.kubernetes.io/additional-namespaces"] == "ns2"

    world.patch(cm("x", "ns2"), {"data": {"replicas": "7"}})
    assert data(world.get(cm("x", "ns2"))) == {"replicas": "1"}
    world.delete(app())
    assert world.children() == [] and not world.has(app())


@pytest.mark.check("RG-49")
def test_items_of_one_name_are_refused() -> None:
    world = World()
    world.publish(ITEMS, spec=LISTS)
    world.create(instance(xs=["a", "a"], ys=["1"]))

    assert world.children() == [] and world.state() == "ERROR"
    assert "duplicate identity" in world.condition("ResourcesReady")[2]


def test_two_nodes_that_render_one_object_are_refused() -> None:
    world = World()
    world.publish(
        node("a", config_map("${schema.spec.name}-x")), node("b", config_map("${schema.spec.name}-x", b="c"))
    )
    world.create(instance())

    assert data(world.get(cm("a1-x"))) == {"key": "value"}
    assert world.state() == "ERROR"
    message = world.condition("ResourcesReady")[2]
    assert "found resources with conflicts: resourceID: b conflicts with resourceID: a" in message


EXTERNAL = node(
    "shared",
    external={"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "${schema.spec.name}-ext"}},
)


COPY = node("copy", config_map("${schema.spec.name}-copy", token="${shared.data.token}"))


@pytest.mark.check("RG-50")
def test_an_external_object_is_waited_for_and_followed_and_never_deleted() -> None:
    world = World()
    world.publish(EXTERNAL, COPY)
    world.create(instance())
    assert world.children() == [] and world.state() == "IN_PROGRESS"
    assert 'waiting for external reference "shared"' in world.condition("ResourcesReady")[2]

    world.create(config_map("a1-ext", namespace="ns1", token="one"))
    assert data(world.get(cm("a1-copy"))) == {"token": "one"}
    world.patch(cm("a1-ext"), {"data": {"token": "two"}})
    assert data(world.get(cm("a1-copy"))) == {"token": "two"}
    assert list(world.inputs()) == [1]
    assert world.propagation()["totalResources"] == 1

    world.delete(app())
    assert world.has(cm("a1-ext")) and not world.has(cm("a1-copy"))


@pytest.mark.check("RG-51")
@pytest.mark.check("RG-113")
def test_an_external_collection_has_the_objects_that_match() -> None:
    world = World()
    selected = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"selector": {"matchLabels": {"team": "${schema.spec.team}"}}},
    }
    companion = node(
        "companions",
        config_map("${one.metadata.name}-companion", of="${one.metadata.uid}"),
        forEach=[{"one": "${found}"}],
    )
    world.publish(node("found", external=selected), companion, spec={"name": "string", "team": "string"})
    world.create(config_map("x", {"team": "red"}, namespace="ns1"), config_map("y", namespace="ns1"))
    world.create(instance(team="red"))
    assert world.children() == ["x-companion"]

    world.patch(cm("y"), {"metadata": {"labels": {"team": "red"}}})
    assert world.children() == ["x-companion", "y-companion"]
    world.patch(cm("x"), {"metadata": {"labels": {"team": "blue"}}})
    assert world.children() == ["y-companion"]
    assert "kro.run/input-revision" not in meta.annotations(world.get(cm("y")))
    assert list(world.inputs()) == [1]
    assert world.propagation()["totalResources"] == 1


SELECTED = node(
    "found",
    external={
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"selector": {"matchLabels": {"team": "red"}}},
    },
)
COMPANIONS = node("companions", config_map("${one.metadata.name}-companion"), forEach=[{"one": "${found}"}])
SECRETS = GroupKind("", "Secret")


def secret(name: str) -> Made:
    metadata = {"name": name, "namespace": "ns1", "labels": {"team": "red"}}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": metadata}


def with_companions() -> World:
    world = World()
    world.create(secret("x"), secret("y"))
    world.publish(SELECTED, COMPANIONS)
    world.create(instance())
    assert world.children() == ["x-companion", "y-companion"] and world.state() == "ACTIVE"
    return world


def test_external_objects_that_may_not_be_read_are_not_taken_for_absent() -> None:
    world = with_companions()
    world.cluster.unlisted.add(SECRETS)
    world.start()
    world.run(30)

    assert world.children() == ["x-companion", "y-companion"]
    assert world.state() == "IN_PROGRESS"
    message = world.condition("ResourcesReady")[2]
    assert 'external reference "found" cannot be read: list and watch of secrets are refused' in message

    world.cluster.unlisted.clear()
    world.run(30)
    assert world.children() == ["x-companion", "y-companion"] and world.state() == "ACTIVE"


def test_one_external_object_that_may_not_be_read_is_named() -> None:
    world = World()
    world.cluster.unlisted.add(SECRETS)
    external = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "x"}}
    world.create(secret("x"))
    world.publish(node("one", external=external), node("copy", config_map("copy", of="${one.metadata.uid}")))
    world.create(instance())
    assert 'external reference "one" cannot be read' in world.condition("ResourcesReady")[2]

    world.cluster.unlisted.clear()
    world.run(30)
    assert world.children() == ["copy"] and world.state() == "ACTIVE"


def test_nothing_is_pruned_for_what_a_cache_does_not_have_of_an_external_collection(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = with_companions()
    matches = Follow.matches
    with monkeypatch.context() as patch:
        patch.setattr(Follow, "matches", lambda self, obj: self.kind.kind != "Secret" and matches(self, obj))
        world.start()
        world.run(30)
        assert world.children() == ["x-companion", "y-companion"]
        assert world.state() == "IN_PROGRESS"

    world.run(30)
    assert world.children() == ["x-companion", "y-companion"] and world.state() == "ACTIVE"
    world.delete(_secret()._replace(name="x"))
    assert world.children() == ["y-companion"] and world.state() == "ACTIVE"


def test_nothing_is_pruned_while_an_external_collection_cannot_be_listed_live() -> None:
    world = with_companions()
    world.cluster.unlisted.add(SECRETS)
    world.delete(_secret()._replace(name="x"), seconds=30)
    assert world.children() == ["x-companion", "y-companion"]

    world.cluster.unlisted.clear()
    world.run(300)
    assert world.children() == ["y-companion"]


def test_leftovers_of_an_earlier_instance_of_the_same_name_are_pruned() -> None:
    world = World()
    world.publish(ITEMS, spec=LISTS)
    world.create(instance(xs=["a", "b"], ys=["1"]))
    world.cluster.patch(app(), {"metadata": {"finalizers": None}})
    world.delete(app())
    assert world.children() == ["a1-a-1", "a1-b-1"]

    world.create(instance(xs=["b"], ys=["1"]))

    assert world.children() == ["a1-b-1"]
    assert meta.labels(world.get(cm("a1-b-1")))["kro.run/instance-id"] == meta.uid(world.get(app()))


@pytest.mark.check("RG-57")
def test_the_child_of_a_removed_node_is_pruned_while_another_is_not_ready() -> None:
    world = World()
    a = {**chain("a")[0], "readyWhen": ready("a")}
    world.publish(a, CONFIG)
    world.create(instance())
    assert world.children() == ["a1-a", "a1-cm"]

    world.publish(a)

    assert world.children() == ["a1-a"] and world.state() == "IN_PROGRESS"


def test_a_kind_leaves_the_inventory_once_its_children_are_gone() -> None:
    world = World()
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "${schema.spec.name}-s"}}
    world.publish(CONFIG, node("secret", secret))
    world.create(instance())
    key = "applyset.kubernetes.io/contains-group-kinds"
    assert meta.annotations(world.get(app()))[key] == "ConfigMap,Secret"

    found = (
        world.get(cm("a1-cm")),
        world.cluster.patch(_secret(), {"metadata": {"finalizers": ["team/backup"]}}),
    )
    assert all(found)
    world.publish(CONFIG)
    assert meta.annotations(world.get(app()))[key] == "ConfigMap,Secret"
    assert world.state() == "IN_PROGRESS"
    assert "deletion of secret ns1/a1-s" in world.condition("ResourcesReady")[2]

    world.patch(_secret(), {"metadata": {"finalizers": None}})
    assert meta.annotations(world.get(app()))[key] == "ConfigMap"
    assert world.state() == "ACTIVE"


@pytest.mark.parametrize("outage", ["discovery", "CRD"])
def test_a_kind_stays_in_the_inventory_while_it_is_not_served_and_goes_with_its_crd(outage: str) -> None:
    world = World()
    custom_kind(world.cluster, "Thing")
    key = "applyset.kubernetes.io/contains-group-kinds"
    metadata = {"name": "${schema.spec.name}-t"}
    thing = {"apiVersion": "ex.example.com/v1", "kind": "Thing", "metadata": metadata}
    world.publish(node("thing", thing), CONFIG)
    world.create(instance())
    assert meta.annotations(world.get(app()))[key] == "ConfigMap,Thing.ex.example.com"
    made = Ref("ex.example.com/v1", "Thing", "ns1", "a1-t")

    served = world.cluster.kinds
    if outage == "CRD":
        world.cluster.delete(made)
        world.cluster.delete(
            Ref("apiextensions.k8s.io/v1", "CustomResourceDefinition", "", "things.ex.example.com")
        )
    world.cluster.kinds = Kinds(one for one in served.versions() if one.kind != "Thing")
    world.start()
    world.publish(CONFIG)
    if outage == "CRD":
        assert meta.annotations(world.get(app()))[key] == "ConfigMap"
        return
    assert meta.annotations(world.get(app()))[key] == "ConfigMap,Thing.ex.example.com"
    assert world.has(made)

    world.cluster.kinds = served
    world.start()
    world.run(30)
    assert not world.has(made) and meta.annotations(world.get(app()))[key] == "ConfigMap"


def _secret() -> Any:
    return cm("a1-s")._replace(kind="Secret")


@pytest.mark.check("RG-60")
def test_children_are_deleted_with_their_own_dependents() -> None:
    world = World()
    job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "${schema.spec.name}-job"}, "spec": {"template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}}}}  # fmt: skip
    world.publish(CONFIG, node("job", job))
    world.create(instance())

    deleted = [one for one in world.writes(lambda: world.publish(CONFIG)) if isinstance(one, Delete)]

    assert [(one.ref.name, one.propagation, bool(one.uid)) for one in deleted] == [
        ("a1-job", "Background", True)
    ]
