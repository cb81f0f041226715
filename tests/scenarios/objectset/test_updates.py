"""Updates of a deployment: in place, with other objects, and back to an earlier template."""

import pytest

from lamina.objects import meta
from tests.bed.scenarios import check
from tests.scenarios.objectset.record import Record
from tests.scenarios.objectset.stage import (
    Stage,
    condition,
    controlled,
    controller,
    has_condition,
    is_archived,
    is_available,
    is_finished,
    message,
    owners,
    state,
)
from tests.scenarios.objectset.test_rollout import assert_managed

pytestmark = pytest.mark.asyncio(loop_scope="session")


def states_of(record: Record, name: str) -> list[tuple[str, bool, str]]:
    """Return what a set went through: its lifecycle state, whether it reports Paused, and what Archived says."""
    found: list[tuple[str, bool, str]] = []
    for change in record.of(name):
        archived = condition(change.obj, "Archived")
        now = (
            state(change.obj),
            condition(change.obj, "Paused") == ("True", "Paused"),
            archived[1] if archived is not None else "",
        )
        if not found or found[-1] != now:
            found.append(now)
    return found


@check("OS-8")
async def test_an_object_is_updated_in_place_and_the_old_revision_archived(stage: Stage) -> None:
    async with stage.running():
        await stage.given_deployment("web", stage.phase("p1", stage.config_map("cm", data="v1")))
        (first,) = await stage.until_rolled_out("web", 1)
        before = await stage.live("cm")

        async with stage.recording() as record:
            await stage.want("web", stage.phase("p1", stage.config_map("cm", data="v2")))
            first, second = await stage.until_rolled_out("web", 2)
            await record.caught_up()

    after = await stage.live("cm")
    assert meta.uid(after) == meta.uid(before)
    assert after["data"] == {"data": "v2"}
    assert_managed(stage, after, stage.owner_in(second, "p1"), 2)
    assert list(owners(after)) == [stage.owner_in(second, "p1")]
    assert controlled(second) == ["cm"]
    assert controlled(first) == []
    assert [one.what for one in record.of("cm") if one.what != "MODIFIED"] == []
    steps = states_of(record, meta.name(first))
    assert steps[-1] == ("Archived", False, "Archived")
    assert ("Paused", True, "") in steps
    assert [one for one, _, _ in dict.fromkeys(steps)] == sorted(
        (one for one, _, _ in dict.fromkeys(steps)), key=["Active", "Paused", "Archived"].index
    ), "it is never resumed"
    assert steps.index(("Paused", True, "")) < min(
        place for place, (one, _, _) in enumerate(steps) if one == "Archived"
    ), "it is archived once it reports that it is paused"


@check("OS-9")
async def test_a_key_that_the_new_template_omits_disappears(stage: Stage) -> None:
    async with stage.running():
        await stage.given_deployment("web", stage.phase("p1", stage.config_map("cm", j="1", k="1")))
        await stage.until_rolled_out("web", 1)
        before = await stage.live("cm")
        assert before["data"] == {"j": "1", "k": "1"}
        await stage.want("web", stage.phase("p1", stage.config_map("cm", j="1")))
        await stage.until_rolled_out("web", 2)

    after = await stage.live("cm")
    assert after["data"] == {"j": "1"}
    assert meta.uid(after) == meta.uid(before)


@check("OS-10")
async def test_the_old_revision_serves_until_the_new_one_is_ready(stage: Stage) -> None:
    async with stage.running():
        await stage.given_deployment("web", stage.phase("p1", stage.config_map("dep-v1")))
        (first,) = await stage.until_rolled_out("web", 1)

        await stage.want("web", stage.phase("p1", stage.config_map("dep-v2", healthy=False)))
        await stage.until_object("dep-v2")
        await stage.until_revisions(
            "web", lambda found: len(found) == 2 and has_condition(found[1], "Available")
        )
        await stage.settled()
        first, second = await stage.revisions("web")
        assert await stage.object("dep-v1") is not None
        assert state(first) == "Active"
        assert is_available(first)
        assert condition(second, "Available") == ("False", "ProbeFailure")
        web = await stage.deployment_named("web")
        assert condition(web, "Available") == ("True", "Available")
        assert meta.name(first) in message(web, "Available")
        assert condition(web, "Progressing") == ("True", "LatestRevisionPendingSuccess")
        assert web["status"]["revision"] == 2
        assert controlled(web) == [meta.name(first), meta.name(second)]

        await stage.heal("dep-v2")
        first, second = await stage.until_rolled_out("web", 2)

    assert await stage.object("dep-v1") is None
    assert controller(await stage.live("dep-v2")) == stage.owner_in(second, "p1")
    web = await stage.deployment_named("web")
    assert condition(web, "Progressing") == ("False", "Idle")
    assert condition(web, "Available") == ("True", "Available")
    assert meta.name(second) in message(web, "Available")


@check("OS-20")
async def test_an_earlier_template_becomes_a_new_revision_with_a_name_of_its_own(stage: Stage) -> None:
    a = stage.phase("p1", stage.config_map("cm", colour="red"), stage.config_map("only-a"))
    b = stage.phase("p1", stage.config_map("cm", colour="blue"), stage.config_map("only-b"))
    async with stage.running():
        await stage.given_deployment("web", a)
        await stage.until_rolled_out("web", 1)
        shared = await stage.live("cm")
        await stage.want("web", b)
        await stage.until_rolled_out("web", 2)

        await stage.want("web", a)
        first, _, third = found = await stage.until_rolled_out("web", 3)
        assert [one["spec"]["revision"] for one in found] == [1, 2, 3]
        assert third["spec"]["phases"] == first["spec"]["phases"]
        assert len({meta.name(one) for one in found}) == 3
        assert (await stage.deployment_named("web"))["status"]["collisionCount"] == 1
        live = await stage.live("cm")
        assert (live["data"], meta.uid(live)) == ({"colour": "red"}, meta.uid(shared))
        assert await stage.object("only-a") is not None
        assert await stage.object("only-b") is None

        await stage.want("web", b)
        found = await stage.until_rolled_out("web", 4)
        assert (await stage.deployment_named("web"))["status"]["collisionCount"] == 1
        await stage.want("web", a)
        found = await stage.until_rolled_out("web", 5)

    assert [one["spec"]["revision"] for one in found] == [1, 2, 3, 4, 5]
    assert len({meta.name(one) for one in found}) == 5
    assert found[4]["spec"]["phases"] == found[0]["spec"]["phases"]
    assert found[3]["spec"]["phases"] == found[1]["spec"]["phases"]
    assert (await stage.deployment_named("web"))["status"]["collisionCount"] == 2
    assert [is_archived(one) for one in found] == [True, True, True, True, False]
    live = await stage.live("cm")
    assert (live["data"], meta.uid(live)) == ({"colour": "red"}, meta.uid(shared))


@check("OS-20")
async def test_templates_that_alternate_at_once_end_with_the_last_one(stage: Stage) -> None:
    a = stage.phase("p1", stage.config_map("cm", colour="red"), stage.config_map("only-a"))
    b = stage.phase("p1", stage.config_map("cm", colour="blue"), stage.config_map("only-b"))
    async with stage.running():
        await stage.given_deployment("web", a)
        await stage.until_rolled_out("web", 1)
        before = await stage.live("cm")
        async with stage.recording() as record:
            for wanted in (b, a, b, a, b):
                await stage.want("web", wanted)
            await stage.until_object("only-b")
            await stage.until_revisions(
                "web",
                lambda found: (
                    found[-1]["spec"]["phases"][0]["objects"][1]["object"]["metadata"]["name"] == "only-b"
                    and is_finished(found[-1])
                    and all(is_archived(one) for one in found[:-1])
                ),
            )
            await stage.settled()
            await record.caught_up()

    *_, latest = found = await stage.revisions("web")
    assert [one["spec"]["revision"] for one in found] == list(range(1, len(found) + 1))
    live = await stage.live("cm")
    assert (live["data"], meta.uid(live)) == ({"colour": "blue"}, meta.uid(before))
    assert controller(live) == stage.owner_in(latest, "p1")
    assert {one.what for one in record.of("cm")} == {"MODIFIED"}
    assert all(list(owners(one.obj).values()).count(True) == 1 for one in record.of("cm"))
    assert await stage.object("only-a") is None


@check("OS-21")
async def test_a_failing_revision_is_rolled_back_by_the_earlier_template(stage: Stage) -> None:
    a = stage.phase("p1", stage.config_map("cm", colour="red"), stage.config_map("only-a"))
    b = stage.phase(
        "p1", stage.config_map("cm", healthy=False, colour="blue"), stage.config_map("only-b", healthy=False)
    )
    async with stage.running():
        await stage.given_deployment("web", a)
        await stage.until_rolled_out("web", 1)
        before = {name: meta.uid(await stage.live(name)) for name in ("cm", "only-a")}
        await stage.want("web", b)
        await stage.until_object("cm", lambda now: now["data"] == {"colour": "blue"})
        await stage.until_object("only-b")
        await stage.settled()
        first, second = await stage.revisions("web")
        assert condition(second, "Available") == ("False", "ProbeFailure")
        assert state(first) == "Active"

        await stage.want("web", a)
        first, second, third = await stage.until_rolled_out("web", 3)

    live = await stage.live("cm")
    assert live["data"] == {"colour": "red"}
    assert controller(live) == stage.owner_in(third, "p1")
    assert is_finished(third)
    assert is_archived(first)
    assert is_archived(second)
    assert await stage.object("only-b") is None
    assert {name: meta.uid(await stage.live(name)) for name in ("cm", "only-a")} == before
