"""How many revisions of a deployment are kept."""

import pytest

from lamina.objects import meta
from lamina.objects.types import Made
from tests.bed.fixtures import chosen_server
from tests.bed.scenarios import check
from tests.scenarios.objectset.stage import (
    Stage,
    condition,
    is_archived,
    is_available,
    is_finished,
    owners,
    state,
)

pytestmark = pytest.mark.asyncio(loop_scope="session")


def numbers(found: list[Made]) -> list[int]:
    return [one["spec"]["revision"] for one in found]


async def until_kept(stage: Stage, *wanted: int) -> list[Made]:
    """Wait until exactly these revisions are left, the last of them finished and the others archived."""
    await stage.until_revisions(
        "web",
        lambda found: (
            numbers(found) == list(wanted)
            and is_finished(found[-1])
            and all(is_archived(one) for one in found[:-1])
        ),
    )
    await stage.settled()
    return await stage.revisions("web")


async def fail(stage: Stage, name: str, *wanted: int) -> None:
    """Roll out a ConfigMap that fails, until these revisions are left: the first serves, the last fails."""
    await stage.want("web", stage.phase("p1", stage.config_map(name, healthy=False)))
    await stage.until_object(name)
    await stage.until_revisions(
        "web",
        lambda found: (
            numbers(found) == list(wanted)
            and condition(found[-1], "Available") == ("False", "ProbeFailure")
            and all(is_archived(one) for one in found[1:-1])
        ),
    )
    await stage.settled()


@check("OS-22")
async def test_the_newest_archived_revisions_up_to_the_limit_are_kept(stage: Stage) -> None:
    async with stage.running():
        await stage.given_deployment(
            "web", stage.phase("p1", stage.config_map("cm", data="1")), revisionHistoryLimit=2
        )
        await until_kept(stage, 1)
        uid = meta.uid(await stage.live("cm"))
        kept = {2: (1, 2), 3: (1, 2, 3), 4: (2, 3, 4), 5: (3, 4, 5), 6: (4, 5, 6)}
        for number, wanted in kept.items():
            await stage.want("web", stage.phase("p1", stage.config_map("cm", data=str(number))))
            found = await until_kept(stage, *wanted)
        assert numbers(found) == [4, 5, 6]
        assert [is_archived(one) for one in found] == [True, True, False]

        await stage.edit(stage.deployment_ref("web"), {"spec": {"revisionHistoryLimit": 0}})
        found = await until_kept(stage, 6)

    live = await stage.live("cm")
    assert (meta.uid(live), live["data"]) == (uid, {"data": "6"})
    assert list(owners(live)) == [stage.owner_in(found[0], "p1")]


@check("OS-22")
async def test_a_revision_that_serves_is_not_deleted_for_the_limit(stage: Stage) -> None:
    async with stage.running():
        await stage.given_deployment(
            "web", stage.phase("p1", stage.config_map("cm-1")), revisionHistoryLimit=1
        )
        await until_kept(stage, 1)
        before = await stage.live("cm-1")
        await fail(stage, "cm-2", 1, 2)
        await fail(stage, "cm-3", 1, 2, 3)
        first, second, third = await stage.revisions("web")
        assert numbers([first, second, third]) == [1, 2, 3]
        assert state(first) == "Active"
        assert is_available(first)
        assert await stage.live("cm-1") == before

        await fail(stage, "cm-4", 1, 3, 4)

    first, *_ = await stage.revisions("web")
    assert is_available(first)
    assert await stage.live("cm-1") == before


async def test_the_writes_of_a_deployment_are_compared_with_those_of_a_simulation(stage: Stage) -> None:
    async with stage.running():
        await stage.given_deployment("web", stage.phase("p1", stage.config_map("cm", data="1")))
        await until_kept(stage, 1)

    # A set, an object and the statuses of both owners at the least; a real server's are those of the embedded one.
    assert (stage.parity.compared >= 4) is (chosen_server() != "real")
