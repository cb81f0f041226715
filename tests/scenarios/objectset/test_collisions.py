"""Objects that exist already, or that others control: when a set takes them, and what it reports if it does not."""

import pytest

from lamina.families.objectset.labels import REVISION
from lamina.objects import meta
from lamina.objects.types import Made
from tests.bed.scenarios import check
from tests.scenarios.objectset.stage import (
    Stage,
    condition,
    controlled,
    controller,
    has_condition,
    is_available,
    message,
    owners,
    revision_of,
)

pytestmark = pytest.mark.asyncio(loop_scope="session")

MATRIX = [
    ("Prevent", False, False),
    ("Prevent", True, False),
    ("IfNoController", False, True),
    ("IfNoController", True, False),
    ("None", False, True),
    ("None", True, True),
]
"""The collision protection, whether the object has a controller, and whether the set takes it."""


async def given_foreign(stage: Stage, name: str = "cm", *, has_controller: bool, revision: str = "") -> Made:
    """A ConfigMap that no set created; its controller is another ConfigMap, if it has one."""
    manifest = stage.config_map(name, key="theirs")
    metadata = {**manifest["metadata"], "namespace": stage.place(name)}
    if revision:
        metadata["annotations"] = {**metadata["annotations"], REVISION: revision}
    if has_controller:
        metadata["ownerReferences"] = [await another_controller(stage, name)]
    return await stage.client.create({**manifest, "metadata": metadata}, manager="user")


async def another_controller(stage: Stage, name: str) -> Made:
    """Return the reference of a controller that is no set: a ConfigMap in the namespace of the object."""
    manifest = stage.config_map(f"controller-of-{name}")
    metadata = {**manifest["metadata"], "namespace": stage.place(name)}
    made = await stage.client.create({**manifest, "metadata": metadata})
    return dict(meta.owner_ref(made, controller=True))


def is_refused(found: Made) -> bool:
    return condition(found, "Available") == ("False", "CollisionDetected")


@check("OS-31")
@pytest.mark.parametrize(("protection", "has_controller", "takes"), MATRIX)
async def test_the_collision_protection_says_what_a_set_adopts(
    stage: Stage, protection: str, has_controller: bool, takes: bool
) -> None:
    await check_collision(stage, protection, has_controller, takes)


async def check_collision(stage: Stage, protection: str, has_controller: bool, takes: bool) -> None:
    before = await given_foreign(stage, has_controller=has_controller)
    async with stage.running():
        ours = stage.phase("p1", stage.config_map("cm", key="ours"), protection=protection)
        await stage.given_set("v1", ours)
        if takes:
            await stage.until_set("v1")
        else:
            found = await stage.until_set("v1", is_refused)
            assert f"ConfigMap {stage.place('cm')}/cm" in message(found, "Available")
            assert controlled(found) == []
        await stage.settled()

        after = await stage.live("cm")
        assert meta.uid(after) == meta.uid(before)
        if takes:
            assert controller(after) == stage.owner_of("v1", "p1")
            assert after["data"] == {"key": "ours"}
            assert not has_controller or owners(after)["controller-of-cm"] is False
            return
        assert meta.resource_version(after) == meta.resource_version(before)

        await stage.client.delete(stage.object_ref("cm"))
        await stage.until_set("v1")
        assert (await stage.live("cm"))["data"] == {"key": "ours"}


@check("OS-31")
async def test_all_collisions_of_a_phase_are_reported_and_the_next_phase_waits(stage: Stage) -> None:
    await given_foreign(stage, "cm-a", has_controller=False)
    await given_foreign(stage, "cm-c", has_controller=True)
    async with stage.running():
        mixed = stage.phase("p1", *(stage.config_map(name) for name in ("cm-a", "cm-b", "cm-c")))
        await stage.given_set("v1", mixed, stage.phase("p2", stage.config_map("cm-d")))
        found = await stage.until_set("v1", is_refused)
        await stage.settled()

        told = message(found, "Available")
        assert f"ConfigMap {stage.place('cm-a')}/cm-a" in told
        assert f"ConfigMap {stage.place('cm-c')}/cm-c" in told
        assert "ConfigMap controller-of-cm-c" in told, "the controller that is in the way is named"
        assert "cm-b" not in told
        assert await stage.object("cm-d") is None


@check("OS-31")
async def test_a_set_looks_again_at_what_it_was_refused_without_an_event(stage: Stage) -> None:
    await given_foreign(stage, has_controller=False)
    async with stage.running():
        await stage.given_set("v1", stage.phase("p1", stage.config_map("cm")))
        await stage.until_set("v1", is_refused)
        await stage.settled()

        assert stage.is_due("v1", within=35)


@check("OS-31")
async def test_the_default_of_the_set_holds_for_objects_without_a_protection(stage: Stage) -> None:
    await given_foreign(stage, "cm-a", has_controller=False)
    await given_foreign(stage, "cm-b", has_controller=False)
    async with stage.running():
        phases = (
            stage.phase("p1", stage.config_map("cm-a")),
            stage.phase("p2", stage.config_map("cm-b"), protection="Prevent"),
        )
        await stage.given_set("v1", *phases, collisionProtection="IfNoController")
        found = await stage.until_set("v1", is_refused)
        await stage.settled()

        assert "cm-b" in message(found, "Available")
        assert controller(await stage.live("cm-a")) == "v1"
        assert controller(await stage.live("cm-b")) == ""


async def given_adopted_by_another(stage: Stage, protection: str) -> Made:
    """A set whose object got another controller, and the object after that."""
    await stage.given_set("v1", stage.phase("p1", stage.config_map("cm", key="ours"), protection=protection))
    await stage.until_set("v1")
    await stage.settled()
    theirs = [await another_controller(stage, "cm")]
    edited = {"metadata": {"ownerReferences": theirs}, "data": {"key": "theirs"}}
    return await stage.edit(stage.object_ref("cm"), edited)


@check("OS-32")
async def test_an_object_that_got_another_controller_is_a_collision(stage: Stage) -> None:
    async with stage.running():
        edited = await given_adopted_by_another(stage, "Prevent")
        found = await stage.until_set("v1", is_refused)
        await stage.settled()

        assert "cm" in message(found, "Available")
        assert controlled(found) == []
        assert meta.resource_version(await stage.live("cm")) == meta.resource_version(edited)


@check("OS-32")
async def test_an_object_that_got_another_controller_is_taken_back_without_protection(stage: Stage) -> None:
    async with stage.running():
        await given_adopted_by_another(stage, "None")
        taken = await stage.until_object("cm", lambda now: controller(now) == "v1")

        assert taken["data"] == {"key": "ours"}
        assert owners(taken) == {"controller-of-cm": False, "v1": True}
        await stage.until_set("v1")


@check("OS-33")
async def test_a_low_revision_number_does_not_make_a_foreign_object_ours(stage: Stage) -> None:
    before = await given_foreign(stage, has_controller=True, revision="1")
    async with stage.running():
        await stage.given_set("v4", stage.phase("p1", stage.config_map("cm")), revision=4)
        await stage.until_set("v4", is_refused)
        await stage.settled()

        assert meta.resource_version(await stage.live("cm")) == meta.resource_version(before)


@check("OS-34")
async def test_a_stale_high_revision_number_does_not_hide_a_collision(stage: Stage) -> None:
    before = await given_foreign(stage, has_controller=False, revision="9")
    async with stage.running():
        await stage.given_set("v1", stage.phase("p1", stage.config_map("cm")))
        await stage.until_set("v1", is_refused)
        await stage.settled()

        assert meta.resource_version(await stage.live("cm")) == meta.resource_version(before)


@check("OS-34")
async def test_an_object_with_a_stale_high_revision_number_is_adopted(stage: Stage) -> None:
    await given_foreign(stage, has_controller=False, revision="9")
    async with stage.running():
        ours = stage.phase("p1", stage.config_map("cm", key="ours"), protection="IfNoController")
        await stage.given_set("v1", ours)
        await stage.until_set("v1")

        adopted = await stage.live("cm")
        assert controller(adopted) == "v1"
        assert revision_of(adopted) == "1"
        assert adopted["data"] == {"key": "ours"}


async def given_siblings(stage: Stage, theirs: int, ours: int) -> Made:
    """Two sets with the same object, the first of which controls it; the second names it as previous."""
    await stage.given_set("v1", stage.phase("p1", stage.config_map("cm", key="v1")), revision=theirs)
    await stage.until_set("v1")
    await stage.settled()
    before = await stage.live("cm")
    second = stage.phase("p1", stage.config_map("cm", key="v2"))
    await stage.given_set("v2", second, previous=["v1"], revision=ours)
    return before


@check("OS-35")
async def test_an_object_of_a_previous_revision_is_adopted(stage: Stage) -> None:
    await check_siblings_adopt(stage)


async def check_siblings_adopt(stage: Stage) -> None:
    async with stage.running():
        before = await given_siblings(stage, 1, 2)
        await stage.until_set("v2")
        await stage.settled()

        after = await stage.live("cm")
        first, second = stage.owner_of("v1", "p1"), stage.owner_of("v2", "p1")
        assert meta.uid(after) == meta.uid(before)
        assert owners(after) == {first: False, second: True}
        assert (after["data"], revision_of(after)) == ({"key": "v2"}, "2")


@check("OS-35")
async def test_a_previous_revision_with_the_same_number_is_a_collision(stage: Stage) -> None:
    await check_siblings_collide(stage)


async def check_siblings_collide(stage: Stage) -> None:
    async with stage.running():
        before = await given_siblings(stage, 2, 2)
        found = await stage.until_set("v2", is_refused)
        await stage.settled()

        assert "revision collision" in message(found, "Available")
        assert meta.resource_version(await stage.live("cm")) == meta.resource_version(before)


@check("OS-35")
async def test_an_object_of_a_newer_revision_is_left_to_it_without_an_error(stage: Stage) -> None:
    await check_siblings_yield(stage)


async def check_siblings_yield(stage: Stage) -> None:
    async with stage.running():
        before = await given_siblings(stage, 3, 2)
        found = await stage.until_set("v2", is_available)
        await stage.settled()

        assert condition(found, "InTransition") == ("True", "InTransition")
        assert not has_condition(found, "Succeeded")
        assert controlled(found) == []
        assert meta.resource_version(await stage.live("cm")) == meta.resource_version(before)


@check("OS-36")
async def test_an_edited_revision_number_is_restored(stage: Stage) -> None:
    async with stage.running():
        await stage.given_set("v1", stage.phase("p1", stage.config_map("cm")))
        await stage.until_set("v1")
        await stage.settled()
        await stage.edit(stage.object_ref("cm"), {"metadata": {"annotations": {REVISION: "99"}}})

        restored = await stage.until_object("cm", lambda now: revision_of(now) == "1")

        assert controller(restored) == "v1"
        assert is_available(await stage.until_set("v1"))
