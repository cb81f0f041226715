"""Input revisions of instances: what they record, where they are kept, and whose they are."""

import pytest

from lamina.errors import Invalid
from lamina.families.resourcegraph.options import InputStorage, Options
from lamina.objects import meta
from lamina.objects.types import Made, Obj
from lamina.testing.waiting import eventually
from tests.bed.scenarios import check
from tests.scenarios.resourcegraph.stage import (
    CONFIG,
    TIMEOUT,
    Stage,
    condition,
    config_map,
    is_on,
    node,
    status,
)
from tests.scenarios.resourcegraph.versions import config, given_versions, history, publish, stamp

pytestmark = pytest.mark.asyncio(loop_scope="session")


@check("RG-109")
async def test_an_instance_has_an_input_revision_for_each_edit(stage: Stage) -> None:
    async with stage.running():
        await stage.given_definition()
        await stage.given_instance("a1", replicas=1)
        await stage.edit_spec("a1", replicas=5)
        owner = await stage.until_instance("a1", is_on(input_revision=2))
        await stage.settled()

        (definition_revision,) = await stage.revisions()
        first, second = await stage.input_revisions("a1")
        for number, revision, replicas in ((1, first, 1), (2, second, 5)):
            assert meta.name(revision) == f"a1-input-rev-{number}"
            assert meta.namespace(revision) == stage.namespace
            (reference,) = meta.metadata(revision)["ownerReferences"]
            assert (reference["kind"], reference["name"], reference["uid"]) == ("App", "a1", meta.uid(owner))
            assert (reference["apiVersion"], reference["controller"]) == (owner["apiVersion"], True)
            assert meta.labels(revision) == {
                "kro.run/instance-name": "a1",
                "kro.run/input-revision": str(number),
                "kro.run/rgd-revision": "1",
            }
            assert revision["spec"] == {
                "inputRevision": number,
                "rgdRevision": 1,
                "rgdRevisionRef": {
                    "name": meta.name(definition_revision),
                    "specHash": status(definition_revision)["specHash"],
                },
                "instanceSpec": {"name": "a1", "replicas": replicas},
            }
            said = status(revision)
            assert said["specHash"] and said["createdAt"]
            assert said["propagationStatus"] == "Completed"
            assert said["resourcesAtRevision"] == said["totalResources"] == 1
            assert said["superseded"] is (number == 1)
            with pytest.raises(Invalid, match="spec is immutable"):
                await stage.edit(meta.ref(revision), {"spec": {"instanceSpec": {"name": "other"}}})
        assert status(first)["specHash"] != status(second)["specHash"]
        # Nothing but the spec makes an input revision.
        await stage.edit(meta.ref(owner), {"metadata": {"labels": {"team": "blue"}}})
        await stage.annotate(meta.ref(owner), note="x")
        await stage.settled()
        assert len(await stage.input_revisions("a1")) == 2


@check("RG-109")
async def test_the_status_lists_the_resources_of_an_instance(stage: Stage) -> None:
    async with stage.running():
        await stage.given_definition()
        found = await stage.given_instance("a1")
        assert status(found)["managedResources"] == [
            {
                "id": "config",
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "namespace": stage.namespace,
                "name": "a1-cm",
                "state": "synced",
                "inputRevision": 1,
                "ready": True,
            }
        ]


@check("RG-111")
async def test_input_revisions_are_kept_in_the_status_where_that_is_asked_for(stage: Stage) -> None:
    async with stage.running(Options(input_storage=InputStorage.INLINE)):
        await stage.given_definition(CONFIG, spec={"name": "string", "replicas": "integer", "text": "string"})
        await stage.given_instance("a1", replicas=1)
        await stage.edit_spec("a1", replicas=5)
        found = await stage.until_instance("a1", is_on(input_revision=2))
        listed = status(found)["inputRevisionHistory"]
        assert [one["instanceSpec"]["replicas"] for one in listed] == [5, 1]
        assert history(found) == [(2, 1, "Completed"), (1, 1, "Superseded")]
        assert not await stage.input_revisions("a1")

        await stage.annotate(stage.instance_ref("a1"), rollback_to_input_revision="1")
        found = await stage.until_instance("a1", is_on(input_revision=3))
        assert found["spec"]["replicas"] == 1
        assert (condition(found, "RollbackSucceeded") or ("",))[0] == "True"
        assert (await stage.until_object("a1-cm"))["data"] == {"replicas": "1"}

        # At most 256 KiB of specs: of three with 100 KiB each the oldest is dropped.
        for number in range(4, 7):
            await stage.edit_spec("a1", text=str(number) * (100 << 10))
            found = await stage.until_instance("a1", is_on(input_revision=number))
        listed = status(found)["inputRevisionHistory"]
        assert [one["revision"] for one in listed] == [6, 5]
        assert all(one["instanceSpec"]["text"] for one in listed)
        assert not await stage.input_revisions("a1")


@check("RG-113")
async def test_external_objects_of_a_decorator_are_neither_stamped_nor_counted(stage: Stage) -> None:
    selected: Made = {"selector": {"matchLabels": {"decorate": "${schema.spec.name}"}}}
    sources: Made = {
        "id": "sources",
        "externalRef": {"apiVersion": "v1", "kind": "ConfigMap", "metadata": selected},
    }
    companions = node(
        "companions",
        config_map("${source.metadata.name}-companion", copy="${source.data.value}"),
        forEach=[{"source": "${sources}"}],
    )
    for name in ("x", "y"):
        await stage.client.create(
            {
                **config_map(name, value=name),
                "metadata": {"name": name, "namespace": stage.namespace, "labels": {"decorate": "a1"}},
            }
        )
    async with stage.running():
        await stage.given_definition(sources, companions)
        before = [await stage.until_object(name) for name in ("x", "y")]
        await stage.given_instance("a1")
        await stage.settled()
        assert [await stage.until_object(name) for name in ("x", "y")] == before

        await stage.edit(stage.object_ref("x"), {"data": {"value": "changed"}})
        await stage.until_object("x-companion", lambda obj: obj["data"] == {"copy": "changed"})
        found = await stage.until_instance("a1", is_on(input_revision=1))
        await stage.settled()
        propagation = status(found)["propagation"]
        assert (propagation["resourcesAtTarget"], propagation["totalResources"]) == (2, 2)
        assert [one["name"] for one in status(found)["managedResources"]] == ["x-companion", "y-companion"]
        assert len(await stage.input_revisions("a1")) == 1
        for index, name in enumerate(("x-companion", "y-companion")):
            child = await stage.until_object(name)
            assert meta.labels(child)["kro.run/collection-index"] == str(index)
            assert (stamp(child), stamp(child, "input-revision")) == ("1", "1")


@check("RG-114")
async def test_the_generated_kind_names_the_current_revision(stage: Stage) -> None:
    async with stage.running():
        await given_versions(stage, 1)
        crd = await stage.client.get(stage.crd_ref())
        assert meta.annotations(crd)["kro.run/rgd-revision"] == "1"
        await publish(stage, 2)
        await stage.until(stage.crd_ref(), lambda obj: meta.annotations(obj)["kro.run/rgd-revision"] == "2")


@check("RG-114")
async def test_children_of_a_cluster_scoped_instance_name_no_namespace_of_it(stage: Stage) -> None:
    template = config_map("${schema.spec.name}-cm", a="1")
    template["metadata"]["namespace"] = "${schema.spec.ns}"
    options = Options(controller_namespace=stage.namespace)
    async with stage.running(options):
        await stage.given_definition(
            node("config", template), spec={"name": "string", "ns": "string"}, schema={"scope": "Cluster"}
        )
        name = f"a-{stage.id}"
        owner = await stage.given_instance(name, ns=stage.namespace)
        child = await stage.until_object(f"{name}-cm")
        assert meta.labels(child)["kro.run/instance-name"] == name
        assert meta.annotations(child)["kro.run/instance-name"] == name
        for found in (meta.labels(child), meta.annotations(child)):
            assert "kro.run/instance-namespace" not in found
        # Input revisions are namespaced: that of the controller has those of cluster-scoped instances.
        (revision,) = await stage.input_revisions(name)
        assert meta.namespace(revision) == stage.namespace
        assert meta.is_controlled_by(revision, meta.uid(owner))


@check("RG-115")
async def test_two_kinds_with_an_instance_of_one_name_have_input_revisions_each(stage: Stage) -> None:
    other = node("config", config_map("${schema.spec.name}-other", a="1"))
    async with stage.running():
        await stage.given_definition()
        await stage.given_definition(other, name="policy", kind="Policy")
        await stage.given_instance("same")
        await stage.given_instance("same", kind="Policy")
        for _ in range(2):
            await stage.annotate(stage.instance_ref("same"), note="x")
        await stage.edit_spec("same", replicas=5)
        await stage.until_instance("same", is_on(input_revision=2))
        await stage.edit_spec("same", kind="Policy", replicas=7)
        await stage.until_instance("same", is_on(input_revision=2), kind="Policy")

        found = {kind: await stage.input_revisions("same", kind) for kind in ("App", "Policy")}
        assert [meta.name(one) for one in found["App"]] == ["same-input-rev-1", "same-input-rev-2"]
        assert [meta.name(one) for one in found["Policy"]] == [
            "same-policies-input-rev-1",
            "same-policies-input-rev-2",
        ]
        for kind, replicas in (("App", [1, 5]), ("Policy", [1, 7])):
            assert [one["spec"]["instanceSpec"]["replicas"] for one in found[kind]] == replicas
            now = await stage.instance_now("same", kind)
            assert history(now) == [(2, 1, "Completed"), (1, 1, "Superseded")]
        # A rollback of one finds its own.
        await stage.annotate(stage.instance_ref("same", "Policy"), rollback_to_input_revision="1")
        await stage.until_instance("same", is_on(input_revision=3), kind="Policy")
        assert (await stage.instance_now("same", "Policy"))["spec"]["replicas"] == 1
        assert (await stage.instance_now("same"))["spec"]["replicas"] == 5


def _parent(stage: Stage) -> Made:
    return node(
        "app",
        {
            "apiVersion": f"{stage.group}/v1alpha1",
            "kind": "App",
            "metadata": {"name": "${schema.spec.name}-app"},
            "spec": {"name": "${schema.spec.name}-app", "replicas": "${schema.spec.replicas}"},
        },
        readyWhen=["${app.status.?state.orValue('') == 'ACTIVE'}"],
    )


@check("RG-105")
async def test_a_child_of_a_generated_kind_follows_its_own_definition(stage: Stage) -> None:
    async with stage.running():
        await given_versions(stage, 1)
        await stage.given_definition(_parent(stage), name="parent", kind="Parent")
        await stage.given_instance("p1", kind="Parent")
        child = await stage.until_instance("p1-app")
        assert stamp(child, "parent-rgd-revision") == stamp(child, "parent-input-revision") == "1"
        assert "kro.run/rgd-revision" not in meta.annotations(child)
        assert "kro.run/input-revision" not in meta.annotations(child)

        await publish(stage, 2)
        child = await stage.until_instance("p1-app", is_on(revision=2))
        assert stamp(child, "parent-rgd-revision") == "1"
        assert stamp(await stage.until_object("p1-app-cm")) == "2"
        parent = await stage.until_instance("p1", kind="Parent")
        assert status(parent)["currentRGDRevision"] == 1
        assert await stage.numbers("parent") == [1]


@check("RG-116")
async def test_a_parent_counts_its_child_by_the_stamp_of_the_parent(stage: Stage) -> None:
    async with stage.running():
        await given_versions(stage, 1)
        await stage.given_definition(_parent(stage), name="parent", kind="Parent")
        parent = await stage.given_instance("p1", kind="Parent")
        await stage.edit_spec("p1", kind="Parent", replicas=5)
        parent = await stage.until_instance("p1", is_on(input_revision=2), kind="Parent")
        child = await stage.until_instance("p1-app", is_on(input_revision=2))
        assert stamp(child, "parent-input-revision") == "2"
        assert (await stage.until_object("p1-app-cm"))["data"]["replicas"] == "5"
        # An edit of the child alone that its parent takes back does not touch the parent.
        await publish(stage, 2)
        child = await stage.until_instance("p1-app", is_on(revision=2))
        assert status(child)["currentInputRevision"] == 3
        parent = await stage.until_instance("p1", is_on(input_revision=2), kind="Parent")
        said = status(parent)["propagation"]
        assert (said["status"], said["resourcesAtTarget"], said["totalResources"]) == ("Completed", 1, 1)
        assert condition(parent, "ResourcesPropagated") == ("True", "AllResourcesUpdated")


@check("RG-106")
async def test_a_status_field_of_the_author_shadows_that_of_the_controller(stage: Stage) -> None:
    def shadowing(version: int) -> Made:
        return {"status": {"propagation": "${config.metadata.name}"}, "categories": [f"c{version}"]}

    def is_completed(number: int) -> object:
        return lambda obj: status(obj).get("observedInputRevision") == number

    async with stage.running():
        found = await stage.given_definition(config(1), schema=shadowing(1))
        made = await stage.given_instance("a1")
        assert status(made)["propagation"] == "a1-cm"
        await eventually(
            lambda: _events(stage, found), lambda reasons: "StatusFieldShadowed" in reasons, seconds=TIMEOUT
        )
        await stage.edit_spec("a1", replicas=5)
        await stage.until_instance("a1", is_on(input_revision=2))
        await stage.redefine(config(2), schema=shadowing(2))
        await stage.until_published(2)
        made = await stage.until_instance("a1", is_on(revision=2, input_revision=3))
        assert status(made)["propagation"] == "a1-cm"
        assert history(made)[0] == (3, 2, "Completed")
        assert stamp(await stage.until_object("a1-cm")) == "2"
        await stage.annotate(meta.ref(made), rollback_to_input_revision="1")
        made = await stage.until_instance("a1", is_on(revision=1, input_revision=4))
        assert (made["spec"]["replicas"], status(made)["propagation"]) == (1, "a1-cm")


async def _events(stage: Stage, about: Obj) -> set[str]:
    """Return the reasons of the events about an object."""
    found = (await stage.client.list(("v1", "Event"))).items
    return {one["reason"] for one in found if (one.get("involvedObject") or {}).get("uid") == meta.uid(about)}
