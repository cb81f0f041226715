"""How a template goes out: which cluster moves when, and which waits for which."""

from datetime import timedelta

import pytest

from lamina.families.manifestwork.labels import HASH, WORK_VERSION
from lamina.objects import meta
from lamina.objects.times import moment
from lamina.objects.types import Made, Obj, Ref
from tests.bed.fixtures import chosen_server
from tests.bed.scenarios import check
from tests.scenarios.manifestwork.stage import Seen, Stage, progressive
from tests.unit.families.manifestwork.fleet import OK1, OK2, all_at_once, template

pytestmark = pytest.mark.asyncio(loop_scope="session")


def by_group(**settings: object) -> Made:
    return {"type": "ProgressivePerGroup", "progressivePerGroup": settings}


@check("MW-14")
async def test_all_get_their_works_at_once_with_the_labels_of_the_replica_set(stage: Stage) -> None:
    async with stage.running():
        await stage.place("place", {0: ["c1", "c2", "c3"]})
        labels = {"team": "red", HASH: "not-for-you-to-say"}
        await stage.given_set(OK1, {"place": all_at_once()}, metadata={"labels": labels})
        now = await stage.until_done()

    assert now.summary["total"] == now.summary["desiredTotal"] == now.summary["updated"] == 3
    assert all(meta.labels(work)["team"] == "red" for work in now.works)
    assert set(now.hashes.values()) == {now.update}
    assert now.status["placementSummary"][0]["availableDecisionGroups"] == "1 (3 / 3 clusters applied)"


@check("MW-15")
async def test_two_at_a_time_until_all_have_it(stage: Stage) -> None:
    stage.spokes.away = {f"c{number}" for number in range(1, 7)}
    async with stage.running():
        await stage.given(OK1, 6, progressive(progressDeadline="None"))
        for there in (2, 4, 6):
            now = await stage.until(lambda now, there=there: len(now.works) == there)  # type: ignore[misc]
            now = await stage.settled()
            assert len(now.works) == there
            assert now.said("PlacementRolledOut") == ("False", "Progressing")
            stage.spokes.away -= {f"c{number}" for number in range(1, there + 1)}
            stage.reconcile_everything()
        now = await stage.until_done()

    assert now.row == ("T AsExpected", "T AsExpected", "F NewManifestWorkAvailable", "T Complete")


@check("MW-16")
async def test_the_next_waits_until_the_last_has_been_well_for_a_while(stage: Stage) -> None:
    """Progressing is False all the time, so its own time is that of the revision before."""
    async with stage.running():
        await stage.given(
            OK1, 3, progressive(maxConcurrency=1, minSuccessTime="60s", progressDeadline="None")
        )
        for _ in range(3):
            await stage.settled()
            stage.pass_time(66)
        await stage.until_done()
        stage.pass_time(60)
        await stage.want(OK2)
        await stage.until(lambda now: now.revs["c1"] == "2")
        waiting = await stage.settled()
        assert waiting.revs == {"c1": "2", "c2": "1", "c3": "1"}
        assert waiting.said("ManifestworkApplied") == ("True", "AsExpected")
        assert "(healthy; soak time of 60s ends at " in waiting.message()
        stage.pass_time(66)
        now = await stage.until(lambda now: now.revs["c2"] == "2")

    times = {name: moment(text) for name, text in now.dispatched.items()}
    assert times["c1"] is not None
    assert times["c2"] is not None
    assert times["c2"] - times["c1"] >= timedelta(seconds=60)
    assert now.revs["c3"] == "1"


@check("MW-17")
async def test_a_group_waits_for_the_one_before_it_timeouts_or_not(stage: Stage) -> None:
    stage.spokes.away = {"a1", "a2", "a3"}
    async with stage.running():
        await stage.place("place", {0: ["a1", "a2", "a3"], 1: ["b1", "b2", "b3"]})
        await stage.given_set(OK1, {"place": by_group(maxFailures=2, progressDeadline="60s")})
        await stage.until(lambda now: len(now.works) == 3)
        stage.pass_time(33)
        # The third answers, so that its time counts from now; the other two run out of theirs.
        stage.spokes.away, stage.spokes.phases = {"a1", "a2"}, {"a3": "working"}
        stage.reconcile_everything()
        await stage.settled()
        stage.pass_time(33)
        assert set((await stage.settled()).revs) == {"a1", "a2", "a3"}

        stage.spokes.phases = {}
        stage.reconcile_everything()
        now = await stage.until(lambda now: len(now.works) == 6)

    assert now.said("PlacementRolledOut")[0] == "False"


@check("MW-18")
@pytest.mark.parametrize("which", [{"groupName": "canary"}, {"groupIndex": 1}], ids=["by name", "by index"])
async def test_a_mandatory_group_goes_first_and_one_timeout_in_it_stops_everything(
    stage: Stage, which: Obj
) -> None:
    stage.spokes.phases = {"b2": "working"}
    async with stage.running():
        await stage.place("place", {0: ["a1", "a2"], 1: ["b1", "b2"]}, {1: "canary"})
        how = progressive(
            maxFailures="100%", maxConcurrency=4, mandatoryDecisionGroups=[which], failureStrategy=""
        )
        await stage.given_set(OK1, {"place": how})
        await stage.until(lambda now: set(now.revs) == {"b1", "b2"})
        assert set((await stage.settled()).revs) == {"b1", "b2"}
        stage.pass_time(66)
        now = await stage.until(lambda now: now.said("Progressing")[1] == "ProgressDeadlineExceeded")
        assert "b2" in now.message()
        assert set((await stage.settled()).revs) == {"b1", "b2"}

        stage.spokes.phases = {}
        stage.reconcile_everything()
        await stage.until_done()


@check("MW-19")
async def test_a_failure_that_is_tolerated_gives_way_when_its_time_is_up(stage: Stage) -> None:
    stage.spokes.phases = {"c1": "bad"}
    async with stage.running():
        await stage.given(OK1, 2, progressive(maxConcurrency=1, maxFailures=1, failureStrategy=""))
        await stage.until(lambda now: len(now.works) == 1)
        await stage.settled()
        stage.pass_time(33)
        assert len((await stage.settled()).works) == 1
        stage.pass_time(33)
        await stage.until(lambda now: len(now.works) == 2)
        now = await stage.settled()

    assert now.said("PlacementRolledOut") == ("False", "Progressing")
    assert now.current == ""
    assert now.message().startswith("finished, 1 tolerated failures")


@check("MW-20")
async def test_more_than_there_are_means_all_and_a_share_is_exact(stage: Stage) -> None:
    stage.spokes.phases = {"c1": "working", "c2": "working"}
    async with stage.running():
        await stage.given(OK1, 3, progressive(maxConcurrency=1, maxFailures=10, failureStrategy=""))
        for there in (1, 2):
            await stage.until(lambda now, there=there: len(now.works) == there)  # type: ignore[misc]
            await stage.settled()
            stage.pass_time(66)
        now = await stage.until(lambda now: len(now.works) == 3)
        now = await stage.settled()
        assert now.said("Progressing") == ("True", "NewRevisionCreated")

        await stage.strategy(progressive(maxConcurrency=1, maxFailures="34%", failureStrategy=""))
        now = await stage.until(lambda now: now.summary.get("updated") == 1)
        assert (await stage.settled()).said("Progressing") == ("True", "NewRevisionCreated")
        await stage.strategy(progressive(maxConcurrency=1, maxFailures="33%", failureStrategy=""))
        now = await stage.until(lambda now: now.said("Progressing")[1] == "ProgressDeadlineExceeded")

    assert "2 of 3 clusters not healthy within 60s, 1 tolerated" in now.message()


@check("MW-20")
async def test_seven_of_a_hundred_and_not_eight_is_what_seven_per_cent_are(stage: Stage) -> None:
    stage.spokes.phases = {f"c{number}": "working" for number in range(1, 8)}
    how = progressive(maxConcurrency=100, maxFailures="7%", failureStrategy="")
    async with stage.running():
        await stage.given(OK1, 100, how)
        await stage.until(lambda now: now.summary.get("updated") == 93)
        await stage.settled()
        stage.pass_time(66)
        now = await stage.until(lambda now: now.message().startswith("finished, 7 tolerated failures"))
        assert now.said("Progressing") == ("True", "NewRevisionCreated")

        stage.spokes.phases["c8"] = "working"
        stage.reconcile_everything()
        await stage.until(lambda now: now.summary["updated"] == 92)
        stage.pass_time(66)
        now = await stage.until(lambda now: now.said("Progressing")[1] == "ProgressDeadlineExceeded")

    assert "8 of 100 clusters not healthy within 60s, 7 tolerated" in now.message()


@check("MW-21")
@pytest.mark.parametrize("kind", ["All", "Progressive", "ProgressivePerGroup"])
async def test_a_template_without_a_rule_comes_to_an_end(stage: Stage, kind: str) -> None:
    async with stage.running():
        await stage.place("place", {0: ["a1", "a2"], 1: ["b1"]})
        how = {"type": kind, "progressive": {"maxConcurrency": 1}}
        await stage.given_set(template("1", rules=False), {"place": how})
        now = await stage.until_done()
        assert now.revs == {"a1": "1", "a2": "1", "b1": "1"}
        await stage.want(template("2", rules=False))
        now = await stage.until_done()

    assert now.revs == {"a1": "2", "a2": "2", "b1": "2"}
    assert now.current == now.update


@check("MW-22")
async def test_clusters_join_and_leave_in_the_middle(stage: Stage) -> None:
    stage.spokes.phases = {"c2": "working", "c3": "working"}
    async with stage.running():
        await stage.given(OK1, 4, all_at_once())
        stage.spokes.phases = {}
        stage.reconcile_everything()
        await stage.until_done()
        stage.spokes.phases = {"c1": "working", "c2": "working"}
        await stage.strategy(progressive(maxConcurrency=2, progressDeadline="None"))
        await stage.want(OK2)
        await stage.until(lambda now: now.revs["c2"] == "2")

        await stage.place("place", {0: ["c0", "c1", "c2", "c3"]})
        now = await stage.until(lambda now: "c4" not in now.revs)
        now = await stage.settled()
        assert now.revs == {"c1": "2", "c2": "2", "c3": "1"}

        stage.spokes.phases = {"c2": "working", "c3": "working"}
        stage.reconcile_everything()
        now = await stage.until(lambda now: "c0" in now.revs)
        stage.spokes.phases = {}
        stage.reconcile_everything()
        now = await stage.until_done()

    assert now.revs == {"c0": "2", "c1": "2", "c2": "2", "c3": "2"}


@check("MW-23")
async def test_each_placement_goes_its_own_way_and_takes_its_works_along(stage: Stage) -> None:
    stage.spokes.phases = {"p1": "working"}
    async with stage.running():
        await stage.place("fast", {0: ["f1", "f2", "f3"]})
        await stage.place("slow", {0: ["p1", "p2", "p3"]})
        ways = {"fast": all_at_once(), "slow": progressive(maxConcurrency=1, progressDeadline="None")}
        await stage.given_set(OK1, ways)
        await stage.until(lambda now: set(now.revs) == {"f1", "f2", "f3", "p1"})
        now = await stage.settled()
        assert set(now.revs) == {"f1", "f2", "f3", "p1"}
        assert [one["name"] for one in now.status["placementSummary"]] == ["fast", "slow"]
        assert now.summary["desiredTotal"] == 6

        await stage.set(placementRefs=[{"name": "slow", "rolloutStrategy": all_at_once()}])
        now = await stage.until(lambda now: set(now.revs) == {"p1", "p2", "p3"})

    assert now.generations["p1"] == 1


@check("MW-24")
async def test_no_clusters_are_no_success_and_the_next_that_joins_is_the_first(stage: Stage) -> None:
    async with stage.running():
        await stage.given(OK1, [])
        now = await stage.until(
            lambda now: now.said("PlacementVerified") == ("False", "PlacementDecisionEmpty")
        )
        now = await stage.settled()
        assert not now.works
        assert now.current == ""
        assert now.said("ManifestworkApplied") == ("False", "PlacementDecisionEmpty")
        await stage.place("place", {0: ["c1"]})
        now = await stage.until_done()

    assert now.current == now.update != ""


@check("MW-25")
async def test_a_placement_that_vanishes_takes_no_work_along(stage: Stage) -> None:
    async with stage.running():
        await stage.given(OK1, 2)
        before = await stage.until_done()
        await stage.client.delete(stage.at("Placement", "place"))
        await stage.until(lambda now: now.said("PlacementVerified") == ("False", "PlacementDecisionNotFound"))
        gone = await stage.settled()
        assert _identities(gone) == _identities(before)

        await stage.place("place", {0: ["c1", "c2"]})
        await stage.until(lambda now: now.said("PlacementVerified") == ("True", "AsExpected"))
        now = await stage.until_done()

    assert _identities(now) == _identities(before)
    assert now.generations == {"c1": 1, "c2": 1}


def _identities(seen: Seen) -> set[str]:
    return {meta.uid(work) for work in seen.works}


@check("MW-26")
async def test_a_name_that_is_too_long_to_find_works_by_is_said_and_nothing_is_made(stage: Stage) -> None:
    name = "a" * (64 - len(stage.namespace) - 1)
    stage.app = stage.app._replace(name=name)
    async with stage.running():
        await stage.place("place", {0: ["c1"]})
        await stage.given_set(OK1, {"place": all_at_once()}, name=name)
        now = await stage.until(
            lambda now: now.said("ManifestworkApplied") == ("False", "InvalidManifestWorkName")
        )
        now = await stage.settled()

    assert "64 characters" in now.message("ManifestworkApplied")
    works = (await stage.client.list((WORK_VERSION, "ManifestWork"), stage.cluster("c1"))).items
    assert not works


@check("MW-27")
async def test_a_manual_change_is_put_right(stage: Stage) -> None:
    async with stage.running():
        await stage.given(OK1, 2)
        before = await stage.until_done()
        first: Ref = meta.ref(before.works[0])
        other = template("mine")["workload"]
        await stage.client.patch(first, {"spec": {"workload": other}})
        await stage.until(lambda now: now.revs == {"c1": "1", "c2": "1"} and now.generations["c1"] == 3)
        await stage.until_done()

        await stage.client.patch(first, {"metadata": {"labels": {HASH: "mine"}}})
        now = await stage.until(lambda now: set(now.hashes.values()) == {now.update})
        now = await stage.until_done()

    assert now.generations == {"c1": 3, "c2": 1}


@check("MW-15")
async def test_three_lies_of_the_original_are_not_told(stage: Stage) -> None:
    """
    An edit that is on its way is no success; what an agent said of an older
    generation is not counted; and a failure counts however it is reported.
    """
    async with stage.running():
        await stage.given(OK1, 3, all_at_once())
        await stage.until_done()
        stage.spokes.away = {"c1", "c2", "c3"}
        async with stage.recording() as rows:
            await stage.want(OK2)
            now = await stage.until(lambda now: set(now.revs.values()) == {"2"})
            now = await stage.settled()
        changed = [shown for shown, _, update, _ in rows if update == now.update]
        assert all(shown[3] == "F Progressing" and shown[1] == "F Processing" for shown in changed)
        assert (now.summary["applied"], now.summary["available"], now.summary["updated"]) == (0, 0, 0)

        stage.spokes.away = set()
        stage.reconcile_everything()
        await stage.until_done()
        stage.spokes.said = {"c1": {"Progressing": "False", "Degraded": "True"}}
        await stage.strategy(progressive(maxConcurrency=1, failureStrategy=""))
        await stage.want(template("3"))
        now = await stage.until(lambda now: now.said("PlacementRolledOut") == ("False", "RolloutDegraded"))
        now = await stage.settled()

    assert now.revs == {"c1": "3", "c2": "2", "c3": "2"}
    assert "c1" in now.message()


async def test_the_writes_of_a_rollout_are_compared_with_those_of_a_simulation(stage: Stage) -> None:
    async with stage.running():
        await stage.given(OK1, 2)
        await stage.until_done()

    # A revision, a finalizer and two works at the least; a real server's are those of the embedded one.
    assert (stage.parity.compared >= 4) is (chosen_server() != "real")
