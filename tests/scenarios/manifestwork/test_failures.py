"""What goes wrong around a rollout: processes die, agents are away, people meddle, servers refuse."""

import asyncio
from contextlib import suppress

import pytest

from lamina.core.rollout.revision_object import CONTROLLER_REVISION_VERSION
from lamina.errors import Conflict, NotFound
from lamina.families.manifestwork.labels import DISPATCHED, HASH
from lamina.objects import conditions, meta
from lamina.objects.types import Made, Obj, Ref
from tests.bed.scenarios import check
from tests.scenarios.manifestwork.clients import Counted, Crashing, Pausable, Refused
from tests.scenarios.manifestwork.stage import Seen, Stage, progressive
from tests.unit.families.manifestwork.fleet import BAD, OK1, OK2, all_at_once, template

pytestmark = pytest.mark.asyncio(loop_scope="session")

ALL_ON_ONE = {"c1": "1", "c2": "1", "c3": "1", "c4": "1"}


async def die(stage: Stage, writes: int) -> None:
    """Run a hub until it crashes after so many writes, or has nothing to write."""
    client = Crashing(stage.client, writes)
    await stage.start(client)  # type: ignore[arg-type]  # it does what a client does
    settled = asyncio.ensure_future(stage.settled())
    crashed = asyncio.ensure_future(client.crashed.wait())
    await asyncio.wait([settled, crashed], return_when=asyncio.FIRST_COMPLETED)
    for task in (settled, crashed):
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
    await stage.stop()


async def until_bad_is_out(stage: Stage, where: str = "c2") -> Seen:
    await stage.want(BAD)
    await stage.until(lambda now: now.revs[where] == "bad")
    return await stage.settled()


@check("MW-47")
async def test_a_hub_that_dies_in_a_rollout_is_as_good_as_one_that_does_not(stage: Stage) -> None:
    async with stage.running():
        await stage.given(template("1"), 3, all_at_once(), revisionHistoryLimit=20)
        await stage.until_done()
        await stage.stop()
        for writes in range(6):
            await stage.want(template(str(writes + 2)))
            await die(stage, writes)
            await stage.start()
            now = await stage.until_done()
            assert len(now.works) == 3
            assert now.generations == dict.fromkeys(("c1", "c2", "c3"), writes + 2)
            assert now.history == [(number, str(number)) for number in range(1, writes + 3)]
            await stage.stop()


@check("MW-48")
async def test_a_hub_that_dies_while_turning_round_turns_round_all_the_same(stage: Stage) -> None:
    async with stage.running():
        await stage.given(OK1, 4, all_at_once(progressDeadline="60s", failureStrategy="AbortAll"))
        await stage.until_done()
        for writes in range(7):
            await until_bad_is_out(stage)
            await stage.stop()
            stage.pass_time(66)
            await die(stage, writes)
            dead = await stage.seen()
            assert bool(dead.aborted) == (writes > 0), "that it is aborted is written first"
            assert set(dead.revs.values()) <= {"1", "bad"}
            await stage.start()
            now = await stage.until_aborted()
            assert now.revs == ALL_ON_ONE
            assert now.aborted == (dead.aborted or now.aborted)
            assert now.generations == dict.fromkeys(ALL_ON_ONE, 3 + 2 * writes), "each way was sent once"
            await stage.want(OK1)
            await stage.until_done()


@check("MW-49")
async def test_an_agent_that_is_away_runs_out_of_time_and_never_hears_of_it(stage: Stage) -> None:
    async with stage.running():
        await stage.given(OK1, 4)
        await stage.until_done()
        stage.spokes.away = {"c2"}
        await stage.want(OK2)
        await stage.until(lambda now: now.revs["c2"] == "2" and now.summary["updated"] >= 1)
        await stage.settled()
        stage.pass_time(66)
        now = await stage.until(lambda now: "3 of 4 clusters restored" in now.message())
        assert now.is_aborted
        assert now.revs == ALL_ON_ONE
        assert f"not restored yet: {stage.cluster('c2')} (" in now.message()

        stage.spokes.away = set()
        stage.reconcile_everything()
        now = await stage.until_aborted()

    assert now.revs == ALL_ON_ONE
    assert now.summary["applied"] == 4


@check("MW-50")
async def test_an_agent_that_is_away_and_tolerated_delays_only_the_end(stage: Stage) -> None:
    async with stage.running():
        await stage.given(OK1, 4, progressive(maxFailures=1, failureStrategy=""))
        await stage.until_done()
        stage.spokes.away = {"c2"}
        await stage.want(OK2)
        await stage.until(lambda now: now.revs["c2"] == "2")
        await stage.settled()
        stage.pass_time(66)
        await stage.until(lambda now: now.summary["updated"] == 3)
        now = await stage.settled()
        assert now.said("PlacementRolledOut") == ("False", "Progressing")
        assert now.current != now.update

        stage.spokes.away = set()
        stage.reconcile_everything()
        now = await stage.until_done()

    assert now.current == now.update


@check("MW-51")
async def test_a_writer_in_every_gap_costs_time_and_nothing_else(stage: Stage) -> None:
    client = Counted(stage.client)
    stage.own = client  # type: ignore[assignment]  # it does what a client does
    async with stage.running():
        await stage.given(OK1, 4)
        await stage.until_done()
        await until_bad_is_out(stage)
        stop = asyncio.Event()

        async def meddle() -> int:
            number = 0
            while not stop.is_set():
                number += 1
                with suppress(Conflict, NotFound):
                    seen = await stage.seen()
                    mine: Made = {"metadata": {"annotations": {"meddler": str(number)}}}
                    await stage.client.patch(stage.app, mine)
                    for work in seen.works:
                        await stage.client.patch(meta.ref(work), mine)
                await asyncio.sleep(0.01)
            return number

        meddler = asyncio.create_task(meddle())
        stage.pass_time(66)
        now = await stage.until_aborted_at_last()
        at = now.aborted
        stop.set()
        assert await meddler > 1
        now = await stage.settled()

    assert now.aborted == at
    assert now.revs == ALL_ON_ONE
    assert max(client.works.values()) < 20
    assert client.writes["ManifestWorkReplicaSet"] < 60


@check("MW-52")
async def test_two_hubs_at_once_come_to_the_same_end(stage: Stage) -> None:
    async with stage.running():
        await stage.start()
        await stage.given(OK1, 4)
        now = await stage.until_done()
        assert len(now.works) == 4
        await until_bad_is_out(stage)
        stage.pass_time(66)
        now = await stage.until_aborted()

    assert now.revs == ALL_ON_ONE
    assert now.history == [(1, "1"), (2, "bad")]
    assert len(now.works) == 4


@check("MW-53")
async def test_a_lost_way_back_is_found_again_in_the_works(stage: Stage) -> None:
    async with stage.running():
        await stage.given(OK1, 4)
        await stage.until_done()
        out = await until_bad_is_out(stage)
        (lost,) = [one for one in out.revisions if meta.labels(one)[HASH] == out.current]
        await stage.client.delete(_revision(stage, lost))
        await stage.until(lambda now: now.current in {meta.labels(one)[HASH] for one in now.revisions})
        stage.pass_time(66)
        now = await stage.until_aborted()

    assert now.revs == ALL_ON_ONE


@check("MW-53")
async def test_a_stable_revision_that_is_lost_for_good_is_named_and_nothing_aborts(stage: Stage) -> None:
    async with stage.running():
        await stage.given(OK1, 2)
        await stage.until_done()
        out = await until_bad_is_out(stage)
        assert out.revs == {"c1": "bad", "c2": "bad"}
        (lost,) = [one for one in out.revisions if meta.labels(one)[HASH] == out.current]
        await stage.client.delete(_revision(stage, lost))
        await stage.settled()
        stage.pass_time(66)
        now = await stage.until(lambda now: now.said("Progressing")[1] == "ProgressDeadlineExceeded")
        now = await stage.settled()

    assert now.aborted == ""
    assert f"revision app-{out.current} not found, cannot abort" in now.message()
    assert now.said("PlacementRolledOut") == ("False", "RolloutDegraded")


def _revision(stage: Stage, obj: Made) -> Ref:
    return Ref(CONTROLLER_REVISION_VERSION, "ControllerRevision", stage.namespace, meta.name(obj))


@check("MW-54")
async def test_revisions_that_are_lost_are_taken_again_and_nothing_is_sent(stage: Stage) -> None:
    async with stage.running():
        await stage.given(OK1, 4)
        await stage.until_done()
        stage.spokes.away = {"c1", "c2"}
        await stage.want(OK2)
        out = await stage.until(lambda now: now.revs["c2"] == "2")
        out = await stage.settled()
        (lost,) = [one for one in out.revisions if meta.labels(one)[HASH] == out.update]
        await stage.client.delete(_revision(stage, lost))
        await stage.until(lambda now: out.update in {meta.labels(one)[HASH] for one in now.revisions})
        stage.spokes.away = set()
        stage.reconcile_everything()
        done = await stage.until_done()
        assert (done.update, done.generations) == (out.update, dict.fromkeys(ALL_ON_ONE, 2))

        for one in done.revisions:
            await stage.client.delete(_revision(stage, one))
        await stage.until(lambda now: done.update in {meta.labels(one)[HASH] for one in now.revisions})
        now = await stage.until_done()

    assert now.generations == done.generations
    assert (now.current, now.update) == (done.current, done.update)


@check("MW-55")
async def test_an_unreachable_cluster_is_named_and_the_others_are_back(stage: Stage) -> None:
    client = Refused(stage.client)
    stage.own = client  # type: ignore[assignment]  # it does what a client does
    async with stage.running():
        await stage.given(OK1, 4, all_at_once(progressDeadline="60s", failureStrategy="AbortAll"))
        await stage.until_done()
        await until_bad_is_out(stage)
        client.namespaces = {stage.cluster("c3")}
        stage.pass_time(66)
        now = await stage.until(
            lambda now: "3 of 4 clusters restored" in now.message() and "forbidden" in now.message()
        )
        assert now.is_aborted
        assert now.revs == {**ALL_ON_ONE, "c3": "bad"}

        client.namespaces = set()
        stage.pass_time(1000)
        now = await stage.until_aborted()

    assert now.revs == ALL_ON_ONE
    assert "forbidden" not in now.message()


async def test_a_hub_without_events_until_the_deadline_reads_live_before_it_aborts(
    stage: Stage,
) -> None:
    client = Pausable(stage.client)
    stage.own = client  # type: ignore[assignment]  # it does what a client does
    async with stage.running():
        await stage.given(OK1, 4, all_at_once(progressDeadline="60s", failureStrategy="AbortAll"))
        await stage.until_done()
        stage.spokes.away = set(ALL_ON_ONE)
        await stage.want(OK2)
        await stage.until(lambda now: set(now.revs.values()) == {"2"})
        await stage.settled()
        client.receives.clear()
        stage.spokes.away = set()
        stage.reconcile_everything()
        await stage.until(lambda now: all(_answered(work) for work in now.works))
        stage.pass_time(66)
        now = await stage.until(lambda now: now.is_done)
        client.receives.set()

    assert not now.aborted
    assert now.generations == dict.fromkeys(ALL_ON_ONE, 2)


def _answered(work: Obj) -> bool:
    said = conditions.find((work.get("status") or {}).get("conditions") or (), "Progressing")
    return said is not None and (said["status"], said["observedGeneration"]) == (
        "False",
        meta.generation(work),
    )


@check("MW-56")
async def test_a_stable_revision_that_fails_itself_is_reported_and_nothing_aborts_again(stage: Stage) -> None:
    async with stage.running():
        await stage.given(OK1, 4)
        await stage.until_done()
        await until_bad_is_out(stage)
        stage.spokes.phases = dict.fromkeys(ALL_ON_ONE, "bad")
        stage.pass_time(66)
        now = await stage.until_aborted()
        now = await stage.until(lambda now: "not healthy there" in now.message())
        settled = now.generations
        stage.pass_time(600)
        now = await stage.settled()

    assert now.is_aborted
    assert now.revs == ALL_ON_ONE
    assert now.generations == settled


@check("MW-57")
async def test_decisions_that_vanish_take_no_work_along(stage: Stage) -> None:
    async with stage.running():
        await stage.given(OK1, 3)
        chosen = {"status": {"numberOfSelectedClusters": 3, "decisionGroups": [{"decisionGroupIndex": 0}]}}
        await stage.client.patch(stage.at("Placement", "place"), chosen, subresource="status")
        before = await stage.until_done()
        for one in await stage.decisions("place"):
            await stage.client.delete(meta.ref(one))
        await stage.until(lambda now: now.said("PlacementVerified")[0] == "False")
        now = await stage.settled()
        assert len(now.works) == 3
        await stage.place("place", {0: ["c1", "c2", "c3"]})
        await stage.until(lambda now: now.said("PlacementVerified")[0] == "True")
        now = await stage.until_done()

    assert {meta.uid(work) for work in now.works} == {meta.uid(work) for work in before.works}


async def forget_everything(stage: Stage) -> None:
    """Make a fleet look as the original left it: no marks, no revisions, nothing in the status about either."""
    now = await stage.seen()
    for work in now.works:
        plain = {"metadata": {"labels": {HASH: None}, "annotations": {DISPATCHED: None}}}
        await stage.client.patch(meta.ref(work), plain)
    for one in now.revisions:
        await stage.client.delete(_revision(stage, one))
    said = [one for one in now.status["conditions"] if one["type"] != "Progressing"]
    lost = {"currentRevision": None, "updateRevision": None, "abortedTime": None, "conditions": said}
    await stage.client.patch(stage.app, {"status": lost}, subresource="status")


@check("MW-58")
async def test_a_fleet_of_the_originals_is_taken_over_without_a_word_to_any_cluster(stage: Stage) -> None:
    async with stage.running():
        await stage.given(OK1, 4)
        await stage.until_done()
        await stage.stop()
        await forget_everything(stage)
        await stage.start()
        now = await stage.until(lambda now: bool(now.current))
        now = await stage.until_done()

    assert now.current == now.update
    assert set(now.hashes.values()) == {now.update}
    assert now.generations == dict.fromkeys(ALL_ON_ONE, 1)
    assert now.history == [(1, "1")]


@check("MW-58")
async def test_a_fleet_in_the_middle_is_taken_over_and_has_no_way_back_until_it_is_done(stage: Stage) -> None:
    async with stage.running():
        await stage.given(OK1, 4, progressive(maxConcurrency=1))
        await stage.until_done()
        stage.spokes.phases = {"c2": "working"}
        await stage.want(OK2)
        await stage.until(lambda now: now.revs["c2"] == "2" and now.summary["updated"] == 1)
        await stage.settled()
        await stage.stop()
        await forget_everything(stage)
        stage.pass_time(60)
        await stage.start()
        now = await stage.until(lambda now: bool(now.update))
        now = await stage.settled()
        assert (now.current, now.aborted) == ("", "")
        assert now.generations == {"c1": 2, "c2": 2, "c3": 1, "c4": 1}

        stage.spokes.phases = {}
        stage.reconcile_everything()
        now = await stage.until_done()

    assert set(now.revs.values()) == {"2"}
    assert now.current == now.update


@check("MW-60")
async def test_a_thousand_clusters_are_sent_each_way_once(stage: Stage) -> None:
    many = 1000
    client = Counted(stage.client)
    stage.own = client  # type: ignore[assignment]  # it does what a client does
    async with stage.running():
        await stage.given(OK1, many, all_at_once(progressDeadline="60s", failureStrategy="AbortAll"))
        await stage.until_said(lambda now: now.is_done)
        assert (len(client.works), set(client.works.values())) == (many, {1})
        client.works.clear()
        client.writes.clear()

        await stage.want(BAD)
        await stage.until_said(lambda now: now.summary["degraded"] == many)
        stage.pass_time(3600)
        await stage.until_said(lambda now: now.is_restored)
        now = await stage.seen()
        assert f"{many} of {many} clusters restored" in now.message()
        assert (len(now.revs), set(now.revs.values())) == (many, {"1"})
        assert (len(client.works), set(client.works.values())) == (many, {2})
        # What is said of a thousand answers is said now and then, not a thousand times.
        assert client.writes["ManifestWorkReplicaSet"] < many / 10

        await stage.client.delete(stage.app)
        await stage.until_gone(stage.app)
