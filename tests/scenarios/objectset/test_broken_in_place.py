"""An update in place that breaks what the revisions share and drops what only the old one has."""

import pytest

from lamina.objects import meta
from lamina.objects.types import Made
from tests.bed.scenarios import check
from tests.scenarios.objectset.stage import (
    Stage,
    condition,
    controlled,
    controller,
    is_archived,
    is_available,
    state,
)

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def given_first(stage: Stage) -> dict[str, str]:
    """Revision 1 with a, x and y, which has succeeded; returns the uids of its objects."""
    await stage.given_deployment(
        "web", stage.phase("p1", *(stage.config_map(name, by="1") for name in ("a", "x", "y")))
    )
    (first,) = await stage.until_rolled_out("web", 1)
    assert condition(first, "Succeeded") == ("True", "RolloutSuccess")
    return {name: meta.uid(await stage.live(name)) for name in ("a", "x", "y")}


async def check_broken(stage: Stage) -> None:
    async with stage.running():
        uids = await given_first(stage)
        async with stage.recording() as record:
            await stage.want("web", stage.phase("p1", stage.config_map("a", healthy=False, by="2")))
            await stage.until_object("a", lambda now: now["data"] == {"by": "2"})
            await stage.until_revisions("web", second_fails)
            await stage.settled()
            for _ in range(5):
                stage.pass_time(24 * 3600)
                await stage.settled()
            first, second = await stage.revisions("web")
            assert state(first) == "Active"
            assert not is_archived(first)
            assert controller(await stage.live("a")) == stage.owner_in(second, "p1")
            assert sorted(controlled(first)) == ["x", "y"]
            found = await stage.until_deployment("web", lambda now: not is_available(now))
            assert condition(found, "Progressing") == ("True", "LatestRevisionPendingSuccess")

            await stage.edit(stage.object_ref("x"), {"data": {"by": "hand"}})
            await stage.until_object("x", lambda now: now["data"] == {"by": "1"})
            await record.caught_up()
            gone = [one.name for one in record.changes if one.what == "DELETED"]
            assert gone == []
        for name in ("a", "x", "y"):
            assert meta.uid(await stage.live(name)) == uids[name]

        await stage.client.delete(stage.object_ref("y"))
        again = await stage.until_object("y", lambda now: meta.uid(now) != uids["y"])
        assert (again["data"], controller(again)) == ({"by": "1"}, stage.owner_in(first, "p1"))

        await stage.want("web", stage.phase("p1", stage.config_map("a", by="3")))
        first, second, third = await stage.until_rolled_out("web", 3)
        await stage.settled()

        assert [is_archived(one) for one in (first, second, third)] == [True, True, False]
        assert await stage.object("x") is None
        assert await stage.object("y") is None
        last = await stage.live("a")
        assert meta.uid(last) == uids["a"]
        assert (last["data"], controller(last)) == ({"by": "3"}, stage.owner_in(third, "p1"))


def second_fails(found: list[Made]) -> bool:
    return len(found) == 2 and condition(found[1], "Available") == ("False", "ProbeFailure")


@check("OS-56")
async def test_a_broken_update_loses_no_object_of_the_revision_that_succeeded(stage: Stage) -> None:
    await check_broken(stage)


@check("OS-56")
async def test_a_broken_update_loses_no_object_in_phases_with_a_class(class_stage: Stage) -> None:
    await check_broken(class_stage)


@check("OS-56")
async def test_a_broken_update_loses_no_object_of_a_cluster(cluster_stage: Stage) -> None:
    await check_broken(cluster_stage)


@check("OS-56")
async def test_a_controller_that_starts_during_a_broken_update_loses_no_object(stage: Stage) -> None:
    async with stage.running():
        uids = await given_first(stage)
    await stage.want("web", stage.phase("p1", stage.config_map("a", healthy=False, by="2")))
    for _ in range(3):
        async with stage.running():
            await stage.until_object("a", lambda now: now["data"] == {"by": "2"})
            await stage.until_revisions("web", second_fails)
            await stage.settled()
    for name in ("a", "x", "y"):
        assert meta.uid(await stage.live(name)) == uids[name]
    assert state((await stage.revisions("web"))[0]) == "Active"
