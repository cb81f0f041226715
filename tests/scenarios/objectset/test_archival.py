"""Which revisions of a deployment are archived, when, and what is never deleted."""

import pytest

from lamina.families.objectset.labels import OWNING_DEPLOYMENT
from lamina.objects import meta
from lamina.objects.types import Made
from tests.bed.scenarios import check
from tests.scenarios.objectset.record import Record
from tests.scenarios.objectset.stage import (
    CONFIG_MAP,
    Stage,
    condition,
    controlled,
    controller,
    has_condition,
    is_archived,
    is_available,
    state,
)

pytestmark = pytest.mark.asyncio(loop_scope="session")


def has_number(obj: Made, number: int) -> bool:
    return bool(obj["spec"].get("revision") == number)


async def until_failing(stage: Stage, number: int, *names: str) -> list[Made]:
    """Wait until the latest revision has this number and fails, and controls exactly these objects."""
    await stage.until_revisions(
        "web",
        lambda found: (
            bool(found)
            and has_number(found[-1], number)
            and condition(found[-1], "Available") == ("False", "ProbeFailure")
            and sorted(controlled(found[-1])) == sorted(names)
        ),
    )
    await stage.settled()
    return await stage.revisions("web")


def deleted(record: Record) -> set[str]:
    return {one.name for one in record.changes if one.what == "DELETED"}


def was_always_active(record: Record, name: str) -> bool:
    return all(state(one.obj) == "Active" for one in record.of(name))


@check("OS-14")
async def test_a_failed_revision_is_archived_once_its_successor_has_what_they_share(stage: Stage) -> None:
    async with stage.running():
        await stage.given_deployment(
            "web",
            stage.phase("p1", stage.config_map("my-config", data="v1"), stage.config_map("my-deployment-v1")),
        )
        await stage.until_rolled_out("web", 1)
        config = await stage.live("my-config")
        async with stage.recording() as record:
            await stage.want(
                "web",
                stage.phase(
                    "p1",
                    stage.config_map("my-config", data="v2"),
                    stage.config_map("my-deployment-v2", healthy=False),
                ),
            )
            await until_failing(stage, 2, "my-config", "my-deployment-v2")
            await stage.want(
                "web",
                stage.phase(
                    "p1",
                    stage.config_map("my-config", data="v3"),
                    stage.config_map("my-deployment-v3", healthy=False),
                ),
            )
            await stage.until_gone(stage.object_ref("my-deployment-v2"))
            await stage.until_revisions("web", lambda found: len(found) == 3 and is_archived(found[1]))
            await stage.settled()

            first, second, third = await stage.revisions("web")
            assert is_archived(second)
            assert condition(third, "Available") == ("False", "ProbeFailure")
            assert sorted(controlled(third)) == ["my-config", "my-deployment-v3"]
            assert state(first) == "Active"
            assert is_available(first)
            assert controlled(first) == ["my-deployment-v1"]
            live = await stage.live("my-config")
            assert (live["data"], controller(live)) == ({"data": "v3"}, stage.owner_in(third, "p1"))
            await record.caught_up()
            assert was_always_active(record, meta.name(first))
            # The set is archived after it has lost the object that it shares with the third.
            (gone,) = [one for one in record.of("my-deployment-v2") if one.what == "DELETED"]
            latest = stage.owner_in(third, "p1")
            taken = next(one for one in record.of("my-config") if controller(one.obj) == latest)
            assert taken.version < gone.version

            await stage.heal("my-deployment-v3")
            await stage.until_rolled_out("web", 3)
            await record.caught_up()

    assert await stage.object("my-deployment-v1") is None
    live = await stage.live("my-config")
    assert (live["data"], meta.uid(live)) == ({"data": "v3"}, meta.uid(config))
    assert deleted(record) == {"my-deployment-v1", "my-deployment-v2"}


@check("OS-15")
@pytest.mark.parametrize("is_healthy", [False, True], ids=["not available", "available"])
async def test_a_revision_that_has_handed_everything_over_is_archived(stage: Stage, is_healthy: bool) -> None:
    async with stage.running():
        await stage.given_deployment(
            "web", stage.phase("p1", stage.config_map("cm", healthy=is_healthy, data="v1"))
        )
        (first,) = await stage.until_revisions(
            "web", lambda found: len(found) == 1 and has_condition(found[0], "Available")
        )
        await stage.settled()
        (first,) = await stage.revisions("web")
        assert is_available(first) == is_healthy
        before = await stage.live("cm")
        async with stage.recording() as record:
            await stage.want(
                "web",
                stage.phase(
                    "p1",
                    stage.config_map("cm", healthy=is_healthy, data="v2"),
                    stage.config_map("extra", healthy=False),
                ),
            )
            await stage.until_revisions("web", lambda found: len(found) == 2 and is_archived(found[0]))
            await stage.settled()
            await record.caught_up()

    first, second = await stage.revisions("web")
    assert is_archived(first)
    assert condition(second, "Available") == ("False", "ProbeFailure")
    assert sorted(controlled(second)) == ["cm", "extra"]
    live = await stage.live("cm")
    assert (meta.uid(live), live["data"]) == (meta.uid(before), {"data": "v2"})
    assert deleted(record) == set()


@check("OS-16")
@pytest.mark.parametrize(
    "works", [False, True], ids=["until it is taken over", "until the latest is available"]
)
async def test_a_failed_revision_that_controls_what_the_latest_contains_is_kept(
    stage: Stage, works: bool
) -> None:
    def secret(value: str) -> Made:
        where = {"namespace": stage.place("secret-1")} if stage.is_cluster else {}
        return {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": "secret-1", **where},
            "stringData": {"key": value},
        }

    ref = stage.object_ref("secret-1", kind="Secret")
    async with stage.running():
        await stage.given_deployment("web", stage.phase("p1", stage.config_map("a")))
        await stage.until_rolled_out("web", 1)
        await stage.want("web", stage.phase("p1", secret("2"), stage.config_map("b", healthy=False)))
        await until_failing(stage, 2, "b", "secret-1")
        before = await stage.client.get(ref)

        await stage.want(
            "web",
            stage.phase("p1", stage.config_map("c", healthy=False)),
            stage.phase("p2", secret("3"), stage.config_map("d", healthy=works)),
        )
        first, second, third = await until_failing(stage, 3, "c")
        assert state(second) == "Active"
        assert not has_condition(second, "Succeeded")
        assert sorted(controlled(second)) == ["b", "secret-1"]
        live = await stage.client.get(ref)
        assert (meta.uid(live), controller(live)) == (meta.uid(before), stage.owner_in(second, "p1"))

        await stage.heal("c")
        await stage.until_revisions("web", lambda found: is_archived(found[1]))
        await stage.settled()
        first, second, third = await stage.revisions("web")
        assert is_available(third) == works
        live = await stage.client.get(ref)
        assert (meta.uid(live), controller(live)) == (meta.uid(before), stage.owner_in(third, "p2"))
        assert await stage.object("b") is None
        assert await stage.object("a") is None if works else state(first) == "Active"


@check("OS-17")
@pytest.mark.parametrize("delay", [0, 36000], ids=["succeeded", "never succeeded"])
async def test_an_object_that_the_latest_revision_still_has_to_take_over_is_never_deleted(
    stage: Stage, delay: int
) -> None:
    soaking = {"successDelaySeconds": delay} if delay else {}
    async with stage.running():
        await stage.given_deployment(
            "web",
            stage.phase("p1", stage.config_map("a1", by="1"), stage.config_map("a2", by="1")),
            stage.phase("p2", stage.config_map("b", by="1")),
            template=soaking,
        )
        (first,) = await stage.until_rolled_out("web", 1)
        assert has_condition(first, "Succeeded") == (not delay)
        before = await stage.live("b")
        async with stage.recording() as record:
            await stage.want(
                "web",
                stage.phase("p1", stage.config_map("a1", healthy=False, by="2")),
                stage.phase("p2", stage.config_map("b", by="2")),
                template=soaking,
            )
            first, second = await until_failing(stage, 2, "a1")
            assert state(first) == "Active"
            assert controlled(first) == ["a2", "b"]
            # Now the first phase fails for what the old revision controls in it, too.
            await stage.hurt("a2")
            await stage.settled()
            stage.pass_time(3600)
            await stage.settled()
            first, second = await stage.revisions("web")
            assert state(first) == "Active"
            assert controlled(first) == ["a2", "b"]
            assert controller(await stage.live("b")) == stage.owner_in(first, "p2")
            await record.caught_up()
            assert deleted(record) == set()

            await stage.heal("a1")
            first, second = await stage.until_rolled_out("web", 2)
            await record.caught_up()

    assert deleted(record) == {"a2"}
    live = await stage.live("b")
    assert (meta.uid(live), live["data"]) == (meta.uid(before), {"by": "2"})
    assert controller(live) == stage.owner_in(second, "p2")


@check("OS-17")
@pytest.mark.parametrize("is_kept", [False, True], ids=["dropped", "kept"])
async def test_a_failed_revision_that_is_replaced_takes_nothing_from_the_one_that_works(
    stage: Stage, is_kept: bool
) -> None:
    """Revision 2 fails in its first phase, and must not go on with b once revision 3 has what fails."""
    async with stage.running():
        await stage.given_deployment(
            "web",
            stage.phase("p1", stage.config_map("a", by="1")),
            stage.phase("p2", stage.config_map("b", by="1")),
        )
        await stage.until_rolled_out("web", 1)
        before = await stage.live("b")
        async with stage.recording() as record:
            await stage.want(
                "web",
                stage.phase("p1", stage.config_map("a", healthy=False, by="2")),
                stage.phase("p2", stage.config_map("b", by="2")),
            )
            await until_failing(stage, 2, "a")
            later = [stage.phase("p2", stage.config_map("b", by="3"))] if is_kept else []
            await stage.want("web", stage.phase("p1", stage.config_map("a", healthy=False, by="3")), *later)
            await until_failing(stage, 3, "a")
            await stage.until_revisions("web", lambda found: is_archived(found[1]))
            stage.pass_time(3600)
            await stage.settled()

            first, _, third = await stage.revisions("web")
            assert state(first) == "Active"
            assert controlled(first) == ["b"]
            assert await stage.live("b") == before
            await record.caught_up()
            assert deleted(record) == set()

            await stage.heal("a")
            *_, third = await stage.until_rolled_out("web", 3)
            await record.caught_up()

    if is_kept:
        live = await stage.live("b")
        assert (meta.uid(live), live["data"]) == (meta.uid(before), {"by": "3"})
        assert controller(live) == stage.owner_in(third, "p2")
    assert deleted(record) == (set() if is_kept else {"b"})


@check("OS-18")
async def test_an_available_revision_survives_many_failing_ones(stage: Stage) -> None:
    async with stage.running():
        await stage.given_deployment("web", stage.phase("p1", stage.config_map("cm-1")))
        (first,) = await stage.until_rolled_out("web", 1)
        before = await stage.live("cm-1")
        async with stage.recording() as record:
            for number in range(2, 6):
                name = f"cm-{number}"
                await stage.want("web", stage.phase("p1", stage.config_map(name, healthy=False)))
                await until_failing(stage, number, name)
            await stage.until_revisions(
                "web", lambda found: [is_archived(one) for one in found] == [False, True, True, True, False]
            )
            await stage.settled()
            await record.caught_up()

    found = await stage.revisions("web")
    assert [is_archived(one) for one in found] == [False, True, True, True, False]
    assert [is_available(one) for one in found] == [True, False, False, False, False]
    assert was_always_active(record, meta.name(first))
    assert await stage.live("cm-1") == before
    assert deleted(record) == {"cm-2", "cm-3", "cm-4"}


@check("OS-18")
async def test_an_available_revision_survives_failing_ones_that_come_at_once(stage: Stage) -> None:
    async with stage.running():
        await stage.given_deployment("web", stage.phase("p1", stage.config_map("cm-1")))
        (first,) = await stage.until_rolled_out("web", 1)
        before = await stage.live("cm-1")
        async with stage.recording() as record:
            for number in range(2, 8):
                await stage.want("web", stage.phase("p1", stage.config_map(f"cm-{number}", healthy=False)))
            await stage.until_object("cm-7")
            await stage.until_revisions(
                "web",
                lambda found: (
                    condition(found[-1], "Available") == ("False", "ProbeFailure")
                    and controlled(found[-1]) == ["cm-7"]
                    and all(is_archived(one) for one in found[1:-1])
                ),
            )
            await stage.settled()
            await record.caught_up()

    found = await stage.revisions("web")
    assert is_available(found[0])
    assert was_always_active(record, meta.name(first))
    assert await stage.live("cm-1") == before
    assert {meta.name(one) for one in await stage.listed(CONFIG_MAP)} == {"cm-1", "cm-7"}


@check("OS-19")
async def test_a_revision_that_has_succeeded_keeps_what_the_latest_contains(stage: Stage) -> None:
    async with stage.running():
        await stage.given_deployment("web", stage.phase("p1", stage.config_map("a")))
        await stage.until_rolled_out("web", 1)
        await stage.want("web", stage.phase("p1", stage.config_map("x", by="2")))
        await stage.until_rolled_out("web", 2)
        before = await stage.live("x")
        await stage.want("web", stage.phase("p1", stage.config_map("c", healthy=False)))
        await until_failing(stage, 3, "c")
        async with stage.recording() as record:
            await given_fourth(stage)
            await record.caught_up()

        _, second, third, fourth = await stage.revisions("web")
        assert is_archived(third)
        assert was_always_active(record, meta.name(second))
        assert (await stage.live("x")) == before

        await stage.heal("d")
        *_, second, third, fourth = await stage.until_rolled_out("web", 4)

    live = await stage.live("x")
    assert (meta.uid(live), live["data"]) == (meta.uid(before), {"by": "4"})
    assert controller(live) == stage.owner_in(fourth, "p2")


async def given_fourth(stage: Stage) -> None:
    """The template of revision 4: x in the second phase, while the first one fails."""
    await stage.want(
        "web",
        stage.phase("p1", stage.config_map("d", healthy=False)),
        stage.phase("p2", stage.config_map("x", by="4")),
    )
    await stage.until_revisions("web", lambda found: len(found) == 4 and is_archived(found[2]))
    await until_failing(stage, 4, "d")


@check("OS-19")
async def test_a_failed_revision_is_compared_with_the_latest_and_not_with_the_next(stage: Stage) -> None:
    """
    Revision 3 is archived before a controller looks at revision 2.

    So revisions 2 and 3 are made by hand, and get their deployment while no controller runs.
    """
    labels = {"app": stage.named("web"), OWNING_DEPLOYMENT: stage.named("web")}
    second = stage.object_set(
        "web-2",
        stage.phase("p1", stage.config_map("x", by="2"), stage.config_map("b", healthy=False)),
        revision=2,
    )
    third = stage.object_set("web-3", stage.phase("p1", stage.config_map("c")), revision=3)
    async with stage.running():
        await stage.client.create(meta.with_metadata(second, labels=labels))
        await stage.client.create(
            meta.with_metadata(
                {**third, "spec": {**third["spec"], "lifecycleState": "Archived"}}, labels=labels
            )
        )
        await stage.until_set("web-3", is_archived)
        await stage.until_set("web-2", lambda now: sorted(controlled(now)) == ["b", "x"])
        await stage.settled()
    web = await stage.given_deployment(
        "web",
        stage.phase("p1", stage.config_map("d", healthy=False)),
        stage.phase("p2", stage.config_map("x", by="4")),
    )
    owner = meta.owner_ref(web, controller=True, blocks=True)
    for name in ("web-2", "web-3"):
        await stage.edit(stage.set_ref(name), {"metadata": {"ownerReferences": [owner]}})
    before = await stage.live("x")

    async with stage.running():
        await stage.until_revisions("web", lambda found: len(found) == 3)
        await until_failing(stage, 4, "d")
        second = await stage.set("web-2")
        assert state(second) == "Active"
        assert not has_condition(second, "Succeeded")
        assert (await stage.live("x")) == before

        await stage.heal("d")
        await stage.until_rolled_out("web", 4)

    live = await stage.live("x")
    assert (meta.uid(live), live["data"]) == (meta.uid(before), {"by": "4"})
    assert await stage.object("b") is None
