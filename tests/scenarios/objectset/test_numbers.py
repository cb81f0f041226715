"""The numbers of revisions and their lineage: given, derived, missing, and all at once."""

import asyncio
from functools import partial

import pytest

from lamina.families.objectset.labels import API_VERSION
from lamina.objects import conditions, meta
from lamina.objects.types import Made
from tests.bed.scenarios import check
from tests.scenarios.objectset.record import Record
from tests.scenarios.objectset.stage import (
    Stage,
    condition,
    controlled,
    controller,
    is_available,
    owners,
    revision_of,
)

pytestmark = pytest.mark.asyncio(loop_scope="session")


def number(obj: Made) -> tuple[int, int]:
    """Return the number of a set in its spec and in its status."""
    return obj["spec"].get("revision", 0), (obj.get("status") or {}).get("revision", 0)


@check("OS-48")
async def test_a_previous_revision_that_does_not_exist_is_ignored(stage: Stage) -> None:
    await check_missing_previous(stage)


async def check_missing_previous(stage: Stage) -> None:
    async with stage.running():
        await stage.given_set("v1", stage.phase("p1", stage.config_map("cm")), revision=1)
        await stage.until_set("v1")
        before = await stage.live("cm")
        second = stage.phase("p1", stage.config_map("cm", key="v2"))
        await stage.given_set("v2", second, previous=["gone", "v1"], revision=2)
        await stage.until_set("v2")
        await stage.settled()

        after = await stage.live("cm")
        assert meta.uid(after) == meta.uid(before)
        assert owners(after) == {stage.owner_of("v1", "p1"): False, stage.owner_of("v2", "p1"): True}
        assert (after["data"], revision_of(after)) == ({"key": "v2"}, "2")


@check("OS-48")
async def test_a_missing_previous_revision_does_not_count_for_the_number(stage: Stage) -> None:
    async with stage.running():
        await stage.given_set("v4", stage.phase("p1", stage.config_map("cm")), revision=4)
        await stage.given_set(
            "v5", stage.phase("p1", stage.config_map("cm", key="v2")), previous=["gone", "v4"]
        )
        found = await stage.until_set("v5")

        assert number(found) == (5, 5)


def seed(stage: Stage, name: str, *previous: str) -> Made:
    """A set as the concept of revisions shows it: without a number, its previous sets with kind and group."""
    first = stage.config_map("child-1", key=name)
    made = stage.object_set(
        name, stage.phase("phase-1", first), stage.phase("phase-2", stage.config_map("child-2", key=name))
    )
    if previous:
        made["spec"]["previous"] = [
            {"name": stage.named(one), "kind": "ObjectSet", "group": "package-operator.run"}
            for one in previous
        ]
    return made


@check("OS-49")
async def test_revisions_without_a_number_are_numbered_and_handed_over(stage: Stage) -> None:
    async with stage.running():
        await stage.client.create(seed(stage, "v1"))
        assert number(await stage.until_set("v1")) == (1, 1)
        before = {name: meta.uid(await stage.live(name)) for name in ("child-1", "child-2")}

        await stage.client.create(seed(stage, "v2", "v1"))
        assert number(await stage.until_set("v2")) == (2, 2)
        await stage.settled()

        for name, uid in before.items():
            after = await stage.live(name)
            assert meta.uid(after) == uid
            assert owners(after) == {"v1": False, "v2": True}
            assert (after["data"], revision_of(after)) == ({"key": "v2"}, "2")
        assert controlled(await stage.set("v1")) == []


@check("OS-49")
async def test_a_number_is_derived_once_all_previous_revisions_have_one(stage: Stage) -> None:
    await stage.client.create(seed(stage, "v3", "v2", "v1"))
    await stage.client.create(seed(stage, "v2", "v1"))
    await stage.client.create(seed(stage, "v1"))
    async with stage.running():
        assert number(await stage.until_set("v3")) == (3, 3)
        await stage.settled()

        assert [number(await stage.set(name)) for name in ("v1", "v2")] == [(1, 1), (2, 2)]
        assert controller(await stage.live("child-1")) == "v3"
        assert controller(await stage.live("child-2")) == "v3"


@check("OS-49")
async def test_a_number_in_the_status_is_kept(stage: Stage) -> None:
    await stage.client.create(seed(stage, "v7"))
    await stage.client.patch(stage.set_ref("v7"), {"status": {"revision": 7}}, subresource="status")
    async with stage.running():
        found = await stage.until_set("v7")

        assert number(found)[1] == 7
        assert revision_of(await stage.live("child-1")) == "7"


def controllers_at_every_version(record: Record, name: str) -> list[str]:
    """Return the controllers of an object in the order of its versions; each version has exactly one."""
    found: list[str] = []
    for one in record.of(name):
        assert one.what != "DELETED"
        those = [ref["name"] for ref in meta.owner_refs(one.obj) if ref.get("controller")]
        assert len(those) == 1
        if found[-1:] != those:
            found += those
    return found


@check("OS-50")
async def test_three_revisions_at_once_end_with_the_highest(stage: Stage) -> None:
    await check_concurrent(stage)


async def check_concurrent(stage: Stage) -> None:
    async with stage.running(), stage.recording() as record:
        await asyncio.gather(
            *(
                stage.given_set(
                    f"v{place}",
                    stage.phase("p1", stage.config_map("cm", key=f"v{place}")),
                    previous=[f"v{one}" for one in range(1, place)],
                    revision=place,
                )
                for place in (3, 1, 2)
            )
        )
        await stage.until_object("cm", lambda now: controller(now) == stage.owner_of("v3", "p1"))
        await stage.until_set("v3")
        await stage.settled()
        await record.caught_up()

        last = await stage.live("cm")
        assert (last["data"], revision_of(last)) == ({"key": "v3"}, "3")
        order = [stage.owner_of(f"v{place}", "p1") for place in (1, 2, 3)]
        found = controllers_at_every_version(record, "cm")
        assert found == sorted(found, key=order.index), "control only moves forward"
        for name in ("v1", "v2"):
            lower = await stage.set(name)
            assert is_available(lower)
            assert condition(lower, "InTransition") == ("True", "InTransition")
            assert controlled(lower) == []
        await check_no_errors(stage, record)


async def check_no_errors(stage: Stage, record: Record) -> None:
    """Check that no set ever reported a collision or a violation, in a condition or an event."""
    for one in record.changes:
        if one.obj["apiVersion"] == API_VERSION:
            found = conditions.find(conditions.of(one.obj), "Available")
            assert found is None or found["reason"] in ("Available", "ProbeFailure"), found
    # Events about an object of the cluster are in the namespace default.
    namespace = "default" if stage.is_cluster else stage.namespace
    events = (await stage.client.list(("v1", "Event"), namespace)).items
    own = [one for one in events if not stage.is_cluster or stage.id in one["involvedObject"]["name"]]
    assert {one["reason"] for one in own} >= {"Available", "InTransition"}
    wrong = ("SyncError", "CollisionDetected", "PreflightError")
    assert [one["message"] for one in own if one["reason"] in wrong] == []


def has_length(length: int, found: list[Made]) -> bool:
    return len(found) == length


@check("OS-50")
async def test_three_revisions_of_a_deployment_within_a_second_end_with_the_highest(stage: Stage) -> None:
    async with stage.running(), stage.recording() as record:
        await stage.given_deployment("web", stage.phase("p1", stage.config_map("cm", key="v1")))
        for wanted in (2, 3):
            await stage.until_revisions("web", partial(has_length, wanted - 1))
            await stage.want("web", stage.phase("p1", stage.config_map("cm", key=f"v{wanted}")))
        sets = await stage.until_rolled_out("web", 3)
        await record.caught_up()

        assert (await stage.live("cm"))["data"] == {"key": "v3"}
        names = [meta.name(one) for one in sets]
        found = controllers_at_every_version(record, "cm")
        assert found == sorted(found, key=names.index)
        await check_no_errors(stage, record)
