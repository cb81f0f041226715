"""Slices: objects of a phase that are in other objects than the set."""

import pytest

from lamina.errors import Invalid
from lamina.families.objectset.labels import API_VERSION
from lamina.objects import meta
from lamina.objects.types import Made, Ref
from tests.bed.scenarios import check
from tests.scenarios.objectset.stage import (
    Stage,
    condition,
    controlled,
    controller,
    is_archived,
    message,
    owners,
)

pytestmark = pytest.mark.asyncio(loop_scope="session")

NAMES = ("cm-a", "cm-b", "cm-c")


def slice_ref(stage: Stage, name: str) -> Ref:
    if stage.is_cluster:
        return Ref(API_VERSION, "ClusterObjectSlice", "", stage.named(name))
    return Ref(API_VERSION, "ObjectSlice", stage.namespace, name)


async def given_slice(stage: Stage, name: str, *objects: Made, **fields: object) -> Made:
    ref = slice_ref(stage, name)
    metadata = {"name": ref.name, **({"namespace": ref.namespace} if ref.namespace else {})}
    items = [{"object": one, **fields} for one in objects]
    made = {"apiVersion": API_VERSION, "kind": ref.kind, "metadata": metadata, "objects": items}
    return await stage.client.create(made)


def sliced_phase(stage: Stage) -> Made:
    """A phase with one object of its own, and one in each of two slices."""
    return stage.phase(
        "p1", stage.config_map("cm-a"), slices=[slice_ref(stage, name).name for name in ("s1", "s2")]
    )


async def given_two_slices(stage: Stage) -> None:
    for name, content in (("s1", "cm-b"), ("s2", "cm-c")):
        await given_slice(stage, name, stage.config_map(content))


@check("OS-44")
async def test_objects_of_slices_follow_those_of_the_phase(stage: Stage) -> None:
    await check_slices(stage)


@check("OS-44")
async def test_objects_of_cluster_slices_follow_those_of_the_phase(cluster_stage: Stage) -> None:
    await check_slices(cluster_stage)


async def check_slices(stage: Stage) -> None:
    await given_two_slices(stage)
    async with stage.running():
        async with stage.recording() as record:
            await stage.given_set("v1", sliced_phase(stage))
            found = await stage.until_set("v1")
            await record.caught_up()
        await stage.settled()

        created = [one.name for one in record.changes if one.what == "ADDED" and one.name in NAMES]
        assert created == list(NAMES)
        assert controlled(found) == list(NAMES)
        for name in ("s1", "s2"):
            reference = meta.owner_refs(await stage.client.get(slice_ref(stage, name)))[0]
            assert reference["name"] == stage.named("v1")
            assert not reference.get("controller")
            assert not reference.get("blockOwnerDeletion")

        await stage.set_state("v1", "Archived")
        await stage.until_set("v1", is_archived)

        assert [await stage.object(name) for name in NAMES] == [None, None, None]


@check("OS-44")
async def test_a_set_with_slices_is_deleted_with_all_objects_in_order(stage: Stage) -> None:
    await given_two_slices(stage)
    async with stage.running():
        await stage.given_set("v1", sliced_phase(stage), stage.phase("p2", stage.config_map("cm-d")))
        await stage.until_set("v1")
        await stage.edit(stage.object_ref("cm-d"), {"metadata": {"finalizers": ["example.com/held"]}})
        await stage.client.delete(stage.set_ref("v1"))
        await stage.until_object("cm-d", meta.is_deleting)
        await stage.settled()
        assert not any([meta.is_deleting(await stage.live(name)) for name in NAMES])

        await stage.edit(stage.object_ref("cm-d"), {"metadata": {"finalizers": None}})
        await stage.until_gone(stage.set_ref("v1"))

        assert [await stage.object(name) for name in NAMES] == [None, None, None]


@check("OS-44")
async def test_a_missing_slice_is_reported_and_the_set_recovers_once_it_exists(stage: Stage) -> None:
    await given_slice(stage, "s1", stage.config_map("cm-b"))
    async with stage.running():
        await stage.given_set("v1", sliced_phase(stage))
        found = await stage.until_set(
            "v1", lambda now: condition(now, "Available") == ("False", "PreflightError")
        )
        await stage.settled()
        told = message(found, "Available")
        assert "s2" in told
        assert "s1" not in told
        assert 'Phase "p1"' in told
        assert await stage.listed(("v1", "ConfigMap")) == []

        await given_slice(stage, "s2", stage.config_map("cm-c"))
        found = await stage.until_set("v1")

        assert controlled(found) == list(NAMES)


@check("OS-44")
@pytest.mark.parametrize("scope", ["namespaced", "cluster"])
async def test_the_objects_of_a_slice_are_immutable(stage: Stage, cluster_stage: Stage, scope: str) -> None:
    here = cluster_stage if scope == "cluster" else stage
    await given_slice(here, "s1", here.config_map("cm-b"))
    edited = [{"object": here.config_map("cm-b", key="edited")}]

    with pytest.raises(Invalid, match="objects is immutable"):
        await here.client.patch(slice_ref(here, "s1"), {"objects": edited})

    made = await here.client.patch(slice_ref(here, "s1"), {"metadata": {"labels": {"a": "b"}}})
    assert meta.labels(made) == {"a": "b"}


@check("OS-44")
async def test_an_object_of_a_slice_is_handed_over_to_a_revision_that_has_it_inline(stage: Stage) -> None:
    await given_slice(stage, "s1", stage.config_map("cm-b"))
    async with stage.running():
        await stage.given_deployment("web", stage.phase("p1", stage.config_map("cm-a"), slices=["s1"]))
        await stage.until_rolled_out("web", 1)
        before = await stage.live("cm-b")

        await stage.want("web", stage.phase("p1", stage.config_map("cm-b", key="v2")))
        _, second = await stage.until_rolled_out("web", 2)

        after = await stage.live("cm-b")
        assert meta.uid(after) == meta.uid(before)
        assert after["data"] == {"key": "v2"}
        assert owners(after) == {meta.name(second): True}
        assert await stage.object("cm-a") is None


@check("OS-44")
async def test_what_the_latest_revision_has_in_a_slice_is_not_deleted_with_an_older_one(stage: Stage) -> None:
    await given_slice(stage, "s1", stage.config_map("cm-b"))
    async with stage.running():
        await stage.given_deployment(
            "web", stage.phase("p1", stage.config_map("cm-a")), stage.phase("p2", stage.config_map("cm-b"))
        )
        first = (await stage.until_rolled_out("web", 1))[0]
        before = meta.uid(await stage.live("cm-b"))

        broken = stage.phase("p1", stage.config_map("cm-a", healthy=False, key="v2"))
        await stage.want("web", broken, stage.phase("p2", slices=["s1"]))
        await stage.until_object("cm-a", lambda now: controller(now) != meta.name(first))
        await stage.settled()
        assert not is_archived(await stage.client.get(meta.ref(first)))
        assert meta.uid(await stage.live("cm-b")) == before

        await stage.heal("cm-a")
        await stage.until_rolled_out("web", 2)

        assert meta.uid(await stage.live("cm-b")) == before


@check("OS-44")
async def test_a_slice_is_deleted_after_its_object_was_handed_over(stage: Stage) -> None:
    await given_slice(stage, "s1", stage.config_map("cm-b"))
    async with stage.running():
        sliced = stage.phase("p1", stage.config_map("cm-a"), slices=[slice_ref(stage, "s1").name])
        await stage.given_deployment("web", sliced)
        await stage.until_rolled_out("web", 1)
        newer = stage.phase("p1", stage.config_map("cm-b", by="v2"))
        await stage.want("web", newer, stage.phase("p2", stage.config_map("cm-z", healthy=False)))
        await stage.until_revisions(
            "web", lambda found: len(found) == 2 and controlled(found[1]) == ["cm-b", "cm-z"]
        )
        await stage.settled()

        await stage.client.delete(slice_ref(stage, "s1"))
        await stage.settled()
        await stage.heal("cm-z")
        _, second = await stage.until_revisions(
            "web", lambda found: len(found) == 2 and is_archived(found[0])
        )
        await stage.settled()

    assert owners(await stage.live("cm-b")) == {meta.name(second): True}
    assert await stage.object("cm-a") is None
