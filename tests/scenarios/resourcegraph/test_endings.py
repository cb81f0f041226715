"""Children that are being deleted, instances that are, and controllers that are started again."""

from typing import Any

import pytest

from lamina.objects import meta
from lamina.objects.types import Made, Ref
from tests.bed.scenarios import check
from tests.scenarios.resourcegraph.stage import Stage, condition, config_map, is_on, message, node, status

pytestmark = pytest.mark.asyncio(loop_scope="session")

NAME = "${schema.spec.name}"
HELD: Made = {"metadata": {"finalizers": ["example.com/held"]}}
RELEASED: Made = {"metadata": {"finalizers": None}}


def config(id: str, **data: str) -> Made:
    return node(id, config_map(f"{NAME}-{id}", **data))


def chain() -> tuple[Made, Made]:
    """Two resources, the second of which depends on the first."""
    return config("a", value="x"), config("b", of="${a.metadata.name}")


def is_in(state: str) -> Any:
    return lambda obj: status(obj).get("state") == state


def reports(reason: str, *texts: str, status: str = "False") -> Any:
    """Return whether resources are not ready for a reason, and the message says these."""

    def holds(obj: Made) -> bool:
        said = message(obj, "ResourcesReady")
        return condition(obj, "ResourcesReady") == (status, reason) and all(one in said for one in texts)

    return holds


@check("RG-53")
async def test_nothing_is_created_behind_a_child_that_is_being_deleted(stage: Stage) -> None:
    first, second = chain()
    first["readyWhen"] = ['${a.data.?ready.orValue("") == "true"}']
    ref = stage.object_ref("a1-a")
    async with stage.running():
        await stage.given_definition(first, second)
        await stage.given_instance("a1", settles=False)
        before = await stage.until(ref)
        await stage.edit(ref, HELD)
        await stage.client.delete(ref)
        found = await stage.until_instance("a1", reports("ResourceDeleting", "a1-a", "example.com/held"))
        assert status(found)["state"] == "IN_PROGRESS"
        await stage.edit(ref, {"data": {"ready": "true"}})
        await stage.settled()
        assert await stage.object("a1-b") is None
        assert condition(await stage.instance_now("a1"), "ResourcesReady") == ("False", "ResourceDeleting")

        await stage.edit(ref, RELEASED)
        await stage.until(ref, lambda obj: meta.uid(obj) != meta.uid(before))
        await stage.settled()
        assert await stage.object("a1-b") is None
        await stage.edit(ref, {"data": {"ready": "true"}})
        assert await stage.until_object("a1-b")
        await stage.until_instance("a1")


@check("RG-54")
async def test_an_instance_is_deleted_from_its_last_dependent_to_its_first_dependency(stage: Stage) -> None:
    first, second = stage.object_ref("a1-a"), stage.object_ref("a1-b")
    async with stage.running():
        await stage.given_definition(*chain())
        made = await stage.given_instance("a1")
        await stage.edit(second, HELD)
        before = await stage.until(first)
        await stage.client.delete(meta.ref(made))
        await stage.until(second, meta.is_deleting)
        found = await stage.until_instance(
            "a1", reports("UnderDeletion", "a1-b", "example.com/held", status="Unknown")
        )
        assert status(found)["state"] == "DELETING"
        await stage.settled()
        assert await stage.get(first) == before

        await stage.edit(second, RELEASED)
        await stage.until_gone(meta.ref(made))
        assert await stage.get(first) is None
        assert await stage.get(second) is None
        deleted = [one.ref.name for one in stage.journal.written("ConfigMap") if one.verb == "delete"]
        assert deleted == ["a1-b", "a1-a"]


@check("RG-55")
async def test_an_instance_is_deleted_without_its_external_object(stage: Stage) -> None:
    reference = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "shared"}}
    reads = config("reads", value="${shared.data.value}")
    async with stage.running():
        await stage.client.create(stage.placed(config_map("shared", value="x")))
        await stage.given_definition({"id": "shared", "externalRef": reference}, reads)
        made = await stage.given_instance("a1")
        await stage.client.delete(stage.object_ref("shared"))
        await stage.until_instance("a1", reports("NotReady", "shared"))
        await stage.client.delete(meta.ref(made))
        await stage.until_gone(meta.ref(made))
        assert await stage.children() == []


@check("RG-55")
async def test_an_instance_is_deleted_without_its_revision(stage: Stage) -> None:
    async with stage.running():
        await stage.given_definition(*chain())
        made = await stage.given_instance("a1")
    (revision,) = await stage.revisions()
    await stage.edit(meta.ref(revision), RELEASED)
    await stage.client.delete(meta.ref(revision))
    await stage.client.delete(meta.ref(made))
    assert await stage.revisions() == []
    async with stage.running():
        await stage.until_gone(meta.ref(made))
        assert await stage.children() == []


@check("RG-55")
async def test_an_instance_is_deleted_without_its_definition(stage: Stage) -> None:
    async with stage.running():
        definition = await stage.given_definition(*chain())
        made = await stage.given_instance("a1")
        await stage.client.delete(meta.ref(definition))
        await stage.until_gone(meta.ref(definition))
        await stage.settled()
        assert len(await stage.children()) == 2
        await stage.client.delete(meta.ref(made))
        await stage.until_gone(meta.ref(made))
        assert await stage.children() == []


@check("RG-48")
async def test_a_copy_of_a_child_in_another_namespace_is_left_alone(stage: Stage) -> None:
    other = await stage.also_namespace("other")
    async with stage.running():
        await stage.given_definition(*chain())
        made = await stage.given_instance("a1")
        child = await stage.until_object("a1-a")
        marks = {"labels": dict(meta.labels(child)), "annotations": dict(meta.annotations(child))}
        copies = [
            await stage.client.create(
                {**config_map(name, value="x"), "metadata": {"name": name, "namespace": other, **marks}}
            )
            for name in ("a1-a", "copy")
        ]
        await stage.edit_spec("a1", replicas=2)
        await stage.until_instance("a1", is_on(input_revision=2))
        await stage.settled()
        await stage.client.delete(meta.ref(made))
        await stage.until_gone(meta.ref(made))
        for copy in copies:
            assert meta.uid(await stage.client.get(meta.ref(copy))) == meta.uid(copy)


INVENTORY = pytest.mark.parametrize(
    "annotation",
    [
        "applyset.kubernetes.io/contains-group-kinds",
        "applyset.kubernetes.io/additional-namespaces",
        "applyset.kubernetes.io/tooling",
        "internal.kro.run/applyset-inventory-hash",
    ],
)


@check("RG-56")
@INVENTORY
async def test_an_inventory_that_is_edited_is_restored(stage: Stage, annotation: str) -> None:
    async with stage.running():
        await stage.given_definition(*chain())
        made = await stage.given_instance("a1")
        right = dict(meta.annotations(await stage.instance_now("a1")))
        await stage.edit(meta.ref(made), {"metadata": {"annotations": {annotation: "other"}}})
        await stage.until_instance("a1", lambda obj: meta.annotations(obj) == right)

        await stage.client.delete(meta.ref(made))
        await stage.until_gone(meta.ref(made))
        assert await stage.children() == []


@check("RG-56")
@INVENTORY
async def test_a_deletion_with_an_inventory_that_was_edited_is_blocked(stage: Stage, annotation: str) -> None:
    async with stage.running():
        await stage.given_definition(*chain())
        made = await stage.given_instance("a1")
        right = meta.annotations(await stage.instance_now("a1"))[annotation]
    # Controllers that run restore the inventory of an instance that is not being deleted.
    await stage.edit(meta.ref(made), {"metadata": {"annotations": {annotation: "other"}}})
    await stage.client.delete(meta.ref(made))
    async with stage.running():
        found = await stage.until_instance(
            "a1", reports("UnderDeletion", "deletion blocked", "or delete its resources", status="Unknown")
        )
        await stage.settled()
        found = await stage.instance_now("a1")
        assert meta.finalizers(found) == ["kro.run/finalizer"]
        assert status(found)["state"] == "DELETING"
        assert [meta.is_deleting(one) for one in await stage.children()] == [False, False]

        await stage.edit(meta.ref(made), {"metadata": {"annotations": {annotation: right}}})
        await stage.until_gone(meta.ref(made))
        assert await stage.children() == []


@check("RG-62")
async def test_controllers_that_are_started_again_write_nothing(stage: Stage) -> None:
    many = {**node("many", config_map(f"{NAME}-${{n}}")), "forEach": [{"n": "${['x', 'y']}"}]}
    async with stage.running():
        await stage.given_definition(*chain(), many)
        await stage.given_instance("a1")
        await stage.given_instance("a2", replicas=2)
        await stage.edit_spec("a2", replicas=3)
        await stage.until_instance("a2", is_on(input_revision=2))
        # Numbers of instances are written at most once a second.
        stage.pass_time(2)
        await stage.until_definition(lambda obj: status(obj)["revisionHistory"][0]["instanceCount"] == 2)
        await stage.settled()
        before = await _everything(stage)
        for _ in range(2):
            await stage.stop()
            stage.journal.requests.clear()
            await stage.start()
            await stage.settled()
            written = [one for one in stage.journal.written() if one.ref.kind != "Event"]
            assert written == []
        assert await _everything(stage) == before
        assert await stage.numbers() == [1]


@check("RG-62")
@pytest.mark.parametrize("writes", [1, 3, 5])
async def test_controllers_that_crash_go_on_where_they_were(stage: Stage, writes: int) -> None:
    async with stage.running():
        await stage.given_definition(*chain())
        await stage.settled()
    made = await stage.given_instance("a1", settles=False)
    assert await stage.crash(writes)
    async with stage.running():
        await stage.until_instance("a1", is_on(input_revision=1))
        await stage.settled()
        (revision,) = await stage.input_revisions("a1")
        assert revision["spec"]["inputRevision"] == 1
        await stage.until(meta.ref(revision), lambda obj: status(obj).get("propagationStatus") == "Completed")
        assert [meta.name(one) for one in await stage.children()] == ["a1-a", "a1-b"]
        assert meta.uid(await stage.instance_now("a1")) == meta.uid(made)
        assert await stage.numbers() == [1]


async def _everything(stage: Stage) -> dict[Ref, str]:
    """Return the versions of the objects of a scenario."""
    found = [
        *await stage.children(),
        *await stage.revisions(),
        *await stage.input_revisions("a1"),
        *await stage.input_revisions("a2"),
        await stage.instance_now("a1"),
        await stage.instance_now("a2"),
        await stage.definition_now(),
        await stage.client.get(stage.crd_ref()),
    ]
    return {meta.ref(one): meta.resource_version(one) for one in found}
