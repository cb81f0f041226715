"""Children of an instance: how they are stamped, restored, ordered, included and multiplied."""

from typing import Any

import pytest

from lamina.families.resourcegraph.instances.applyset import applyset_id
from lamina.objects import meta
from lamina.objects.types import Made, Obj
from tests.bed.scenarios import check
from tests.scenarios.resourcegraph.stage import (
    CONFIG,
    Stage,
    condition,
    config_map,
    is_active,
    is_on,
    message,
    node,
    status,
)

pytestmark = pytest.mark.asyncio(loop_scope="session")

NAME = "${schema.spec.name}"


def config(id: str, suffix: str = "", /, **data: str) -> Made:
    """A ConfigMap that is named after its instance and the node."""
    return node(id, config_map(f"{NAME}-{suffix or id}", **data))


def seen(id: str) -> list[str]:
    """A condition of readiness: another controller has seen the value."""
    return [f'${{{id}.data.?seen.orValue("") == {id}.data.value}}']


async def see(stage: Stage, name: str, value: str) -> None:
    """Say, as another controller, that the value of a ConfigMap has been seen."""
    await stage.edit(stage.object_ref(name), {"data": {"seen": value}})


def data_of(obj: Obj | None) -> Any:
    return obj and obj.get("data")


@check("RG-40")
async def test_a_child_names_its_instance_its_node_and_its_revisions(stage: Stage) -> None:
    async with stage.running():
        await stage.given_definition()
        found = await stage.given_instance("a1")
        child = await stage.until_object("a1-cm")

        id = applyset_id(found)
        assert meta.labels(child) == {
            "kro.run/owned": "true",
            "kro.run/kro-version": "v0.9.4",
            "kro.run/instance-id": meta.uid(found),
            "kro.run/instance-name": "a1",
            "kro.run/instance-namespace": stage.namespace,
            "kro.run/instance-group": stage.group,
            "kro.run/instance-version": "v1alpha1",
            "kro.run/instance-kind": "App",
            "kro.run/node-id": "config",
            "app.kubernetes.io/managed-by": "kro",
            "applyset.kubernetes.io/part-of": id,
        }
        assert meta.annotations(child) == {
            "internal.kro.run/apply-order": "1",
            "kro.run/rgd-revision": "1",
            "kro.run/input-revision": "1",
            "kro.run/instance-name": "a1",
            "kro.run/instance-namespace": stage.namespace,
            "kro.run/resource-id": "config",
        }
        assert not meta.owner_refs(child)
        assert child["data"] == {"replicas": "1"}
        assert [(one["manager"], one["operation"]) for one in meta.metadata(child)["managedFields"]] == [
            ("kro.run/applyset", "Apply")
        ]

        assert status(found)["state"] == "ACTIVE"
        assert condition(found, "Ready") == ("True", "Ready")
        assert condition(found, "InstanceManaged") == ("True", "Managed")
        assert condition(found, "GraphResolved") == ("True", "Resolved")
        assert condition(found, "ResourcesReady") == ("True", "AllResourcesReady")
        assert message(found, "ResourcesReady") == "all resources are created and ready"

        definition = await stage.definition_now()
        assert meta.labels(found) == {
            "kro.run/owned": "true",
            "kro.run/kro-version": "v0.9.4",
            "kro.run/resource-graph-definition-id": meta.uid(definition),
            "kro.run/resource-graph-definition-name": meta.name(definition),
            "applyset.kubernetes.io/id": id,
        }
        assert meta.finalizers(found) == ["kro.run/finalizer"]
        annotations = dict(meta.annotations(found))
        assert annotations.pop("internal.kro.run/applyset-inventory-hash").startswith("sha256:")
        assert annotations == {
            "applyset.kubernetes.io/tooling": "kro/v0.9.4",
            "applyset.kubernetes.io/contains-group-kinds": "ConfigMap",
            "applyset.kubernetes.io/additional-namespaces": "",
        }


@check("RG-41")
async def test_a_child_that_is_edited_or_deleted_by_hand_is_restored(stage: Stage) -> None:
    async with stage.running():
        await stage.given_definition()
        await stage.given_instance("a1", replicas=3)
        before = await stage.until_object("a1-cm")

        await stage.edit(meta.ref(before), {"data": {"replicas": "9"}})
        after = await stage.until_object("a1-cm", lambda obj: obj["data"] == {"replicas": "3"})
        assert meta.uid(after) == meta.uid(before)
        await stage.client.delete(meta.ref(before))
        again = await stage.until_object("a1-cm", lambda obj: meta.uid(obj) != meta.uid(before))
        assert again["data"] == {"replicas": "3"}

        found = await stage.until_instance("a1")
        assert len(await stage.input_revisions("a1")) == 1
        assert status(found)["currentInputRevision"] == status(found)["observedInputRevision"] == 1


@check("RG-42")
async def test_a_dependent_is_created_once_its_dependency_is_ready(stage: Stage) -> None:
    first = {**config("a", value="x"), "readyWhen": seen("a")}
    async with stage.running():
        await stage.given_definition(first, config("b", of="${a.metadata.name}"))
        await stage.given_instance("a1", settles=False)
        found = await stage.until_instance("a1", lambda obj: status(obj).get("state") == "IN_PROGRESS")
        assert await stage.until_object("a1-a")
        await stage.settled()
        assert await stage.object("a1-b") is None
        found = await stage.instance_now("a1")
        assert condition(found, "ResourcesReady") == ("False", "NotReady")
        assert message(found, "ResourcesReady").startswith("awaiting resource readiness: ")
        assert '"a"' in message(found, "ResourcesReady")
        assert condition(found, "Ready") == ("False", "NotReady")

        await see(stage, "a1-a", "x")
        assert (await stage.until_object("a1-b"))["data"] == {"of": "a1-a"}
        await stage.until_instance("a1")


@check("RG-43")
async def test_a_dependent_is_updated_once_its_dependency_is_ready_after_its_own_update(stage: Stage) -> None:
    first = {**config("a", value="${schema.spec.value}"), "readyWhen": seen("a")}
    second = config("b", value="${a.data.value}", own="${schema.spec.value}")
    async with stage.running():
        await stage.given_definition(first, second, spec={"name": "string", "value": "string"})
        await stage.given_instance("a1", settles=False, value="1")
        await stage.until_object("a1-a")
        await see(stage, "a1-a", "1")
        await stage.until_instance("a1")
        before = await stage.until_object("a1-b")
        assert before["data"] == {"value": "1", "own": "1"}

        await stage.edit_spec("a1", value="2")
        await stage.until_object("a1-a", lambda obj: obj["data"]["value"] == "2")
        found = await stage.until_instance("a1", lambda obj: status(obj)["state"] == "IN_PROGRESS")
        await stage.settled()
        # Not even its stamps.
        assert await stage.object("a1-b") == before
        assert '"a"' in message(found, "ResourcesReady")

        await see(stage, "a1-a", "2")
        await stage.until_object("a1-b", lambda obj: obj["data"] == {"value": "2", "own": "2"})
        await stage.until_instance("a1", is_on(input_revision=2))


@check("RG-44")
async def test_what_is_no_longer_included_is_deleted_with_its_dependents(stage: Stage) -> None:
    optional = {**config("a"), "includeWhen": ["${schema.spec.enabled}"]}
    async with stage.running():
        await stage.given_definition(
            optional,
            config("b", of="${a.metadata.name}"),
            config("c"),
            spec={"name": "string", "enabled": "boolean"},
        )
        await stage.given_instance("a1", enabled=True)
        assert [meta.name(one) for one in await stage.children()] == ["a1-a", "a1-b", "a1-c"]
        other = await stage.until_object("a1-c")

        await stage.edit_spec("a1", enabled=False)
        found = await stage.until_instance("a1", is_on(input_revision=2))
        (left,) = await stage.children()
        assert (meta.uid(left), meta.labels(left)) == (meta.uid(other), meta.labels(other))
        assert data_of(left) == data_of(other)
        assert status(found)["state"] == "ACTIVE"

        await stage.edit_spec("a1", enabled=True)
        await stage.until_instance("a1", is_on(input_revision=3))
        assert [meta.name(one) for one in await stage.children()] == ["a1-a", "a1-b", "a1-c"]


@check("RG-45")
async def test_a_condition_on_a_status_that_is_not_there_is_waited_for(stage: Stage) -> None:
    service = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": NAME},
        "spec": {
            "type": "LoadBalancer",
            "allocateLoadBalancerNodePorts": False,
            "ports": [{"port": 80}],
        },
    }
    condition = "${svc.status.loadBalancer.ingress[0].hostname == 'yes'}"
    async with stage.running():
        await stage.given_definition(node("svc", service), {**config("b"), "includeWhen": [condition]})
        await stage.given_instance("a1", settles=False)
        found = await stage.until_instance("a1", lambda obj: status(obj).get("state") == "IN_PROGRESS")
        await stage.settled()
        found = await stage.instance_now("a1")
        assert status(found)["state"] == "IN_PROGRESS"
        assert '"b"' in message(found, "ResourcesReady")
        assert await stage.object("a1-b") is None

        ref = stage.object_ref("a1", kind="Service")
        await stage.edit_status(ref, {"loadBalancer": {"ingress": [{"ip": "192.0.2.1"}]}})
        await stage.settled()
        assert status(await stage.instance_now("a1"))["state"] == "IN_PROGRESS"
        assert await stage.object("a1-b") is None

        await stage.edit_status(ref, {"loadBalancer": {"ingress": [{"hostname": "yes"}]}})
        assert await stage.until_object("a1-b")
        await stage.until_instance("a1")


@check("RG-46")
async def test_a_collection_is_the_product_of_its_lists(stage: Stage) -> None:
    loops = [{"region": "${schema.spec.regions}"}, {"tier": "${schema.spec.tiers}"}]
    many = {
        **node("many", config_map(NAME + "-${region}-${tier}", region="${region}")),
        "forEach": loops,
        "readyWhen": ["${each.data.region != ''}"],
    }
    async with stage.running():
        await stage.given_definition(
            many, spec={"name": "string", "regions": "[]string", "tiers": "[]string"}
        )
        await stage.given_instance("a1", regions=["eu", "us"], tiers=["web", "db"])
        children = await stage.children()
        index = {int(meta.labels(one)["kro.run/collection-index"]): meta.name(one) for one in children}
        assert index == {0: "a1-eu-web", 1: "a1-eu-db", 2: "a1-us-web", 3: "a1-us-db"}
        assert {meta.labels(one)["kro.run/collection-size"] for one in children} == {"4"}
        kept = {meta.name(one): meta.uid(one) for one in children}

        await stage.edit_spec("a1", regions=["us"])
        await stage.until_instance("a1", is_on(input_revision=2))
        children = await stage.children()
        assert {meta.name(one): meta.uid(one) for one in children} == {
            name: kept[name] for name in ("a1-us-web", "a1-us-db")
        }
        labels = {meta.name(one): meta.labels(one) for one in children}
        assert labels["a1-us-web"]["kro.run/collection-index"] == "0"
        assert labels["a1-us-web"]["kro.run/collection-size"] == "2"

        await stage.edit_spec("a1", regions=[])
        found = await stage.until_instance("a1", is_on(input_revision=3))
        assert await stage.children() == []
        assert condition(found, "Ready") == ("True", "Ready")


@check("RG-47")
async def test_a_collection_that_is_too_large_is_not_begun(stage: Stage) -> None:
    loops = [{"i": "${lists.range(34)}"}, {"j": "${lists.range(34)}"}]
    many = {**node("many", config_map(NAME + "-${string(i)}-${string(j)}")), "forEach": loops}
    async with stage.running():
        await stage.given_definition(many)
        await stage.given_instance("a1", settles=False)
        found = await stage.until_instance("a1", lambda obj: status(obj).get("state") == "ERROR")
        assert "collection size of 1156 is over the maximum collection size of 1000" in message(
            found, "Ready"
        )
        await stage.settled()
        assert await stage.children() == []


@check("RG-48")
async def test_a_collection_in_two_namespaces_is_restored_and_deleted_in_both(stage: Stage) -> None:
    other = await stage.also_namespace("other")
    template = config_map(NAME, key="value")
    template["metadata"]["namespace"] = "${ns}"
    many = {**node("many", template), "forEach": [{"ns": "${schema.spec.namespaces}"}]}
    async with stage.running():
        await stage.given_definition(many, spec={"name": "string", "namespaces": "[]string"})
        made = await stage.given_instance("a1", namespaces=[stage.namespace, other])
        found = await stage.instance_now("a1")
        assert meta.annotations(found)["applyset.kubernetes.io/additional-namespaces"] == other
        there = stage.object_ref("a1", namespace=other)
        before = await stage.until(there)
        assert await stage.object("a1")

        await stage.edit(there, {"data": {"key": "mine"}})
        await stage.until(there, lambda obj: obj["data"] == {"key": "value"})
        await stage.client.delete(there)
        await stage.until(there, lambda obj: meta.uid(obj) != meta.uid(before))

        await stage.client.delete(meta.ref(made))
        await stage.until_gone(meta.ref(made))
        assert await stage.get(there) is None
        assert await stage.children() == []


@check("RG-49")
async def test_items_of_a_collection_have_names_of_their_own(stage: Stage) -> None:
    loop = {"forEach": [{"one": "${schema.spec.many}"}]}
    spec = {"name": "string", "many": "[]string"}
    async with stage.running():
        text = await stage.refused_definition(
            {**node("many", config_map(NAME, one="${one}")), **loop}, name="same", kind="Same", spec=spec
        )
        assert (
            "all forEach dimensions must be used to produce a unique resource identity, missing: [one]"
            in text
        )

        await stage.given_definition({**node("many", config_map(NAME + "-${one}")), **loop}, spec=spec)
        await stage.given_instance("a1", settles=False, many=["x", "y", "x"])
        found = await stage.until_instance("a1", lambda obj: status(obj).get("state") == "ERROR")
        assert "duplicate identity" in message(found, "ResourcesReady")
        await stage.settled()
        assert await stage.children() == []
        await stage.edit_spec("a1", many=["x", "y"])
        await stage.until_instance("a1")
        assert len(await stage.children()) == 2


@check("RG-57")
async def test_a_resource_that_left_the_definition_is_pruned_while_another_is_not_ready(stage: Stage) -> None:
    waiting = {**config("a", value="x"), "readyWhen": seen("a")}
    async with stage.running():
        await stage.given_definition(waiting, config("b"))
        await stage.given_instance("a1", settles=False)
        await stage.until_object("a1-b")
        await stage.until_instance("a1", lambda obj: status(obj).get("state") == "IN_PROGRESS")

        await stage.redefine(waiting)
        await stage.until_gone(stage.object_ref("a1-b"))
        found = await stage.until_instance("a1", lambda obj: status(obj)["currentRGDRevision"] == 2)
        assert not is_active(found)
        assert [meta.name(one) for one in await stage.children()] == ["a1-a"]


@check("RG-58")
async def test_nothing_is_written_for_a_suspended_instance(stage: Stage) -> None:
    shown = {"status": {"copied": "${config.data.replicas}"}}
    async with stage.running():
        await stage.given_definition(CONFIG, schema=shown)
        found = await stage.given_instance("a1")
        assert status(found)["copied"] == "1"
        await stage.annotate(meta.ref(found), reconcile="Suspended")
        found = await stage.until_instance(
            "a1", lambda obj: condition(obj, "ResourcesReady") == ("False", "ReconciliationSuspended")
        )
        assert "suspended" in message(found, "ResourcesReady")
        await stage.settled()
        stage.journal.requests.clear()

        await stage.edit(stage.object_ref("a1-cm"), {"data": {"replicas": "9"}})
        await stage.edit_spec("a1", replicas=2)
        await stage.until_instance("a1", lambda obj: condition(obj, "ResourcesReady") is not None)
        await stage.settled()
        assert data_of(await stage.object("a1-cm")) == {"replicas": "9"}
        assert not stage.journal.written("ConfigMap")
        found = await stage.instance_now("a1")
        assert condition(found, "ResourcesReady") == ("False", "ReconciliationSuspended")
        assert status(found)["copied"] == "1"

        await stage.annotate(meta.ref(found), reconcile=None)
        found = await stage.until_instance("a1", is_on(input_revision=2))
        assert data_of(await stage.object("a1-cm")) == {"replicas": "2"}
        assert status(found)["copied"] == "2"


@check("RG-59")
async def test_a_cluster_scoped_instance_says_where_its_children_are(stage: Stage) -> None:
    def placed(**metadata: str) -> Made:
        template = config_map(NAME)
        template["metadata"] |= metadata
        return node("config", template)

    spec = {"name": "string", "ns": "string"}
    cluster = {"scope": "Cluster"}
    async with stage.running():
        text = await stage.refused_definition(placed(), name="lost", kind="Lost", spec=spec, schema=cluster)
        assert "namespace" in text, text
        await stage.given_definition(placed(namespace="${schema.spec.ns}"), spec=spec, schema=cluster)
        name = f"a-{stage.id}"
        await stage.given_instance(name, ns=stage.namespace)
        child = await stage.until_object(name)
        assert "kro.run/instance-namespace" not in meta.labels(child)
        assert "kro.run/instance-namespace" not in meta.annotations(child)
        assert meta.labels(child)["kro.run/instance-name"] == name

        await stage.client.delete(stage.instance_ref(name))
        await stage.until_gone(stage.instance_ref(name))
        assert await stage.object(name) is None


async def test_a_child_may_be_a_definition_or_a_crd(stage: Stage) -> None:
    """The controller watches both kinds for other reasons as well, and has one cache of a kind."""
    inner = stage.definition(
        node("inner", config_map('${"${schema.spec.name}"}')), name="inner", kind="Inner"
    )
    crd: Made = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"things.{stage.group}"},
        "spec": {
            "group": stage.group,
            "names": {"kind": "Thing", "plural": "things"},
            "scope": "Namespaced",
            "versions": [
                {
                    "name": "v1",
                    "served": True,
                    "storage": True,
                    "schema": {"openAPIV3Schema": {"type": "object"}},
                }
            ],
        },
    }
    async with stage.running():
        await stage.given_definition(node("inner", inner), node("crd", crd))
        await stage.given_instance("a1")
        await stage.until_definition(name="inner")
        await stage.client.delete(stage.instance_ref("a1"))
        await stage.until_gone(stage.instance_ref("a1"))
