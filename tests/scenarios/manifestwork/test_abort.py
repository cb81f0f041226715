"""A rollout that is aborted by its failure strategy, and what may happen to it afterwards."""

import pytest

from lamina.core.rollout.revision_object import CONTROLLER_REVISION_VERSION
from lamina.objects import meta
from lamina.objects.types import Made, Ref
from tests.bed.scenarios import check
from tests.scenarios.manifestwork.stage import Seen, Stage, progressive
from tests.unit.families.manifestwork.fleet import BAD, OK1, OK2, OK3, SLOW, all_at_once, template

pytestmark = pytest.mark.asyncio(loop_scope="session")

ALL_ON_ONE = {"c1": "1", "c2": "1", "c3": "1", "c4": "1"}


async def abort_rollout(stage: Stage, content: Made = BAD) -> Seen:
    """Have a bad template go out, its deadline pass, and all clusters come back."""
    await stage.want(content)
    await stage.until(lambda now: len(set(now.revs.values())) > 1)
    await stage.settled()
    stage.pass_time(66)
    return await stage.until_aborted()


@check("MW-32")
async def test_those_that_have_it_go_back_and_the_others_never_hear_of_it(stage: Stage) -> None:
    async with stage.running():
        await stage.given(OK1, 4)
        before = await stage.until_done()
        await stage.want(BAD)
        spec = (await stage.client.get(stage.app))["spec"]
        await stage.until(lambda now: now.revs["c2"] == "bad")
        halted = await stage.settled()
        assert halted.said("PlacementRolledOut") == ("False", "Progressing")
        assert halted.said("ManifestworkApplied") == ("False", "NotAsExpected")
        assert halted.said("Progressing") == ("True", "NewRevisionCreated")
        assert not halted.aborted
        stage.pass_time(66)
        now = await stage.until_aborted()

    assert now.revs == ALL_ON_ONE
    assert now.generations == {"c1": 3, "c2": 3, "c3": 1, "c4": 1}
    assert set(now.hashes.values()) == {before.update} == {now.current}
    assert now.app["spec"] == spec
    assert (now.summary["updated"], now.summary["desiredTotal"], now.summary["total"]) == (0, 4, 4)
    assert now.message() == (
        f"rollout of app-{now.update} aborted, 2 of 2 clusters restored to app-{before.update}"
    )


@check("MW-32")
async def test_a_cluster_whose_agent_is_silent_is_named_and_does_not_count_as_restored(stage: Stage) -> None:
    async with stage.running():
        await stage.given(OK1, 4)
        await stage.until_done()
        await stage.want(BAD)
        await stage.until(lambda now: now.revs["c2"] == "bad")
        await stage.settled()
        stage.spokes.away = {"c2"}
        stage.pass_time(66)
        await stage.until(lambda now: "1 of 2 clusters restored" in now.message())
        now = await stage.settled()
        assert now.revs == ALL_ON_ONE
        assert now.is_aborted and not now.is_restored
        assert f"not restored yet: {stage.cluster('c2')} (" in now.message()

        stage.spokes.away = set()
        stage.reconcile_everything()
        now = await stage.until_aborted()

    assert "not restored" not in now.message()


@check("MW-33")
async def test_those_that_were_well_on_it_go_back_too(stage: Stage) -> None:
    stage.spokes.phases = {}
    async with stage.running():
        await stage.given(OK1, 4)
        await stage.until_done()
        stage.spokes.phases = {"c3": "bad"}
        await stage.want(OK2)
        await stage.until(lambda now: now.revs["c3"] == "2" and now.summary["updated"] >= 2)
        await stage.settled()
        stage.pass_time(66)
        stage.spokes.phases = {}
        now = await stage.until_aborted()

    assert now.revs == ALL_ON_ONE
    assert now.generations["c1"] == 3


@check("MW-34")
async def test_all_tolerates_as_many_as_it_says_and_turns_round_for_one_more(stage: Stage) -> None:
    stage.spokes.phases = {}
    async with stage.running():
        await stage.given(
            OK1, 4, all_at_once(maxFailures=1, progressDeadline="60s", failureStrategy="AbortAll")
        )
        await stage.until_done()
        stage.spokes.phases = {"c1": "working"}
        await stage.want(OK2)
        await stage.until(lambda now: now.summary["updated"] == 3)
        stage.pass_time(66)
        now = await stage.settled()
        assert not now.aborted
        assert now.said("Progressing") == ("True", "NewRevisionCreated")

        stage.spokes.phases = {"c1": "working", "c2": "working"}
        stage.reconcile_everything()
        await stage.until(lambda now: now.summary["updated"] == 2)
        stage.pass_time(66)
        now = await stage.until_aborted()

    assert now.revs == ALL_ON_ONE


@check("MW-35")
async def test_one_timeout_in_the_first_group_turns_it_round_and_the_second_never_moves(stage: Stage) -> None:
    stage.spokes.phases = {}
    how: Made = {
        "type": "ProgressivePerGroup",
        "progressivePerGroup": {"maxFailures": 0, "progressDeadline": "60s"},
        "failureStrategy": "AbortAll",
    }
    async with stage.running():
        await stage.place("place", {0: ["a1", "a2"], 1: ["b1", "b2"]})
        await stage.given_set(OK1, {"place": how})
        await stage.until_done()
        stage.spokes.phases = {"a2": "working"}
        await stage.want(OK2)
        await stage.until(lambda now: now.summary["updated"] == 1)
        await stage.settled()
        stage.pass_time(66)
        now = await stage.until_aborted()

    assert set(now.revs.values()) == {"1"}
    assert now.generations == {"a1": 3, "a2": 3, "b1": 1, "b2": 1}


@check("MW-36")
async def test_half_of_four_are_two_and_three_are_too_many(stage: Stage) -> None:
    async with stage.running():
        await stage.given(OK1, 4, progressive(maxFailures="50%", maxConcurrency=4))
        await stage.until_done()
        stage.spokes.phases = {"c1": "working", "c2": "bad"}
        await stage.want(OK2)
        await stage.until(lambda now: now.summary["updated"] == 2)
        await stage.settled()
        stage.pass_time(66)
        assert not (await stage.settled()).aborted

        stage.spokes.phases["c4"] = "working"
        stage.reconcile_everything()
        await stage.until(lambda now: now.summary["updated"] == 1)
        stage.pass_time(66)
        now = await stage.until_aborted()

    assert now.revs == ALL_ON_ONE


@check("MW-37")
async def test_a_rollout_without_a_deadline_never_aborts(stage: Stage) -> None:
    async with stage.running():
        await stage.given(OK1, 4, progressive(progressDeadline="None"))
        await stage.until_done()
        await stage.want(BAD)
        await stage.until(lambda now: now.said("PlacementRolledOut") == ("False", "RolloutDegraded"))
        stage.pass_time(100_000)
        now = await stage.settled()

    assert not now.aborted
    assert now.revs == {"c1": "bad", "c2": "bad", "c3": "1", "c4": "1"}
    assert now.said("Progressing") == ("True", "NewRevisionCreated")


@check("MW-38")
async def test_late_enough_is_a_success_and_too_late_is_too_late(stage: Stage) -> None:
    async with stage.running():
        await stage.given(OK1, 4)
        await stage.until_done()
        await stage.want(SLOW)
        await stage.until(lambda now: now.revs["c2"] == "slow")
        stage.pass_time(33)
        stage.spokes.phases = {f"c{number}": "done" for number in range(1, 5)}
        stage.reconcile_everything()
        slow = await stage.until_done()
        assert not slow.aborted

        stage.spokes.phases = {}
        await stage.want(BAD)
        await stage.until(lambda now: now.revs["c2"] == "bad")
        await stage.settled()
        await stage.stop_agents()
        stage.pass_time(66)
        await stage.until(lambda now: bool(now.aborted))
        stage.spokes.phases = {f"c{number}": "done" for number in range(1, 5)}
        await stage.start_agents()
        now = await stage.until_aborted()

    assert set(now.revs.values()) == {"slow"}


@check("MW-39")
async def test_the_first_rollout_of_all_has_nowhere_to_go_back_to(stage: Stage) -> None:
    async with stage.running():
        await stage.given(BAD, 4)
        await stage.until(lambda now: len(now.works) == 2)
        await stage.settled()
        stage.pass_time(66)
        await stage.until(lambda now: now.said("Progressing")[1] == "ProgressDeadlineExceeded")
        now = await stage.settled()

    assert (now.aborted, now.current) == ("", "")
    assert now.revs == {"c1": "bad", "c2": "bad"}
    assert now.said("PlacementRolledOut") == ("False", "RolloutDegraded")


@check("MW-40")
async def test_an_aborted_rollout_stays_aborted_whatever_else_changes(stage: Stage) -> None:
    async with stage.running():
        await stage.given(OK1, 4)
        await stage.until_done()
        turned = await abort_rollout(stage)

        await stage.client.patch(stage.app, {"metadata": {"labels": {"a": "b"}, "annotations": {"c": "d"}}})
        await stage.stop()
        await stage.start()
        await stage.want(BAD)
        await stage.strategy(all_at_once(maxFailures=3, progressDeadline="1h"))
        now = await stage.settled()
        assert (now.aborted, now.revs, now.is_aborted) == (turned.aborted, ALL_ON_ONE, True)

        await stage.place("more", {0: ["m1"]})
        ways = [{"name": "place", "rolloutStrategy": progressive()}, {"name": "more"}]
        await stage.set(placementRefs=ways)
        await stage.until(lambda now: now.revs.get("m1") == "1")
        await stage.place("place", {0: ["c1", "c2", "c3", "c5"]})
        now = await stage.until(lambda now: now.revs.get("c5") == "1" and "c4" not in now.revs)
        now = await stage.until_aborted()
        assert now.aborted == turned.aborted


@check("MW-40")
async def test_a_revision_that_all_clusters_have_ends_an_abort_at_once(stage: Stage) -> None:
    async with stage.running():
        await stage.given(OK1, 4)
        await stage.until_done()
        turned = await abort_rollout(stage)
        await stage.want(OK1)
        now = await stage.until_done()

    assert now.aborted == ""
    assert now.update == now.current == turned.current
    assert now.row == ("T AsExpected", "T AsExpected", "F NewManifestWorkAvailable", "T Complete")
    assert now.generations == turned.generations


@check("MW-40")
async def test_after_an_abort_something_new_goes_out_and_the_broken_one_may_be_tried_afresh(
    stage: Stage,
) -> None:
    async with stage.running():
        await stage.given(OK1, 4)
        await stage.until_done()
        turned = await abort_rollout(stage)

        await stage.want(SLOW)
        await stage.until(lambda now: now.revs["c2"] == "slow")
        now = await stage.settled()
        assert (now.aborted, now.current) == ("", turned.current)

        async with stage.recording() as rows:
            await stage.want(BAD)
            await stage.until(lambda now: now.revs["c2"] == "bad")
            now = await stage.settled()
            assert not now.aborted
            assert now.said("Progressing") == ("True", "FoundNewRevision")
            stage.pass_time(66)
            now = await stage.until_aborted()
        assert any(shown[2] == "T FoundNewRevision" for shown, *_ in rows)
        assert now.aborted != turned.aborted
        assert now.revs == ALL_ON_ONE

        await stage.want(OK3)
        now = await stage.until_done()

    assert set(now.revs.values()) == {"3"}


@check("MW-41")
async def test_one_placement_that_aborts_takes_all_along_and_one_that_does_not_takes_none(
    stage: Stage,
) -> None:
    async with stage.running():
        await stage.place("p1", {0: ["a1", "a2"]})
        await stage.place("p2", {0: ["b1", "b2"]})
        await stage.given_set(OK1, {"p1": progressive(), "p2": progressive(failureStrategy="")})
        await stage.until_done()

        stage.spokes.phases = {"b1": "working"}
        await stage.want(OK2)
        await stage.until(lambda now: now.summary["updated"] == 3)
        await stage.settled()
        stage.pass_time(66)
        now = await stage.until(lambda now: now.said("Progressing")[1] == "ProgressDeadlineExceeded")
        now = await stage.settled()
        assert (now.aborted, set(now.revs.values())) == ("", {"2"})

        # One after the other: were all well for a moment, there would be nothing to abort.
        stage.spokes.phases = {"a1": "working", "b1": "working"}
        stage.reconcile_everything()
        await stage.until(lambda now: now.summary["updated"] == 2)
        stage.spokes.phases = {"a1": "working"}
        stage.reconcile_everything()
        await stage.until(lambda now: now.summary["updated"] == 3)
        stage.pass_time(66)
        now = await stage.until_aborted()

    assert now.revs == {"a1": "1", "a2": "1", "b1": "1", "b2": "1"}


@check("MW-43")
async def test_an_undo_takes_away_what_the_old_template_did_not_have(stage: Stage) -> None:
    plain = template("1", rules=False)
    rich = {**template("2"), "deleteOption": {"propagationPolicy": "Orphan", "ttlSecondsAfterFinished": 9}}
    async with stage.running():
        await stage.given(plain, 2)
        before = await stage.until_done()
        await stage.want(rich)
        await stage.until_done()
        (old,) = [one for one in before.revisions if one["revision"] == 1]
        kept: Ref = Ref(CONTROLLER_REVISION_VERSION, "ControllerRevision", stage.namespace, meta.name(old))
        await stage.want((await stage.client.get(kept))["data"]["spec"]["manifestWorkTemplate"])
        now = await stage.until_done()

    assert [work["spec"] for work in now.works] == [work["spec"] for work in before.works]
    assert now.update == before.update


@check("MW-44")
async def test_updated_counts_who_is_well_and_reaches_all_just_when_it_becomes_current(stage: Stage) -> None:
    async with stage.running():
        await stage.given(OK1, 4, progressive(maxConcurrency=1))
        await stage.until_done()
        counts: list[tuple[int, bool]] = []

        def note(now: Seen) -> bool:
            if now.revs["c1"] == "2":
                counts.append((now.summary["updated"], now.current == now.update))
            return now.is_done

        await stage.want(OK2)
        now = await stage.until(note, works_first=True)

    assert [count for count, _ in counts] == sorted(count for count, _ in counts)
    assert all((count == 4) == promoted for count, promoted in counts)
    assert now.summary["updated"] == now.summary["desiredTotal"] == 4


@check("MW-45")
async def test_when_it_was_aborted_never_changes_and_goes_with_the_next_template(stage: Stage) -> None:
    async with stage.running():
        await stage.given(OK1, 4)
        await stage.until_done()
        async with stage.recording() as rows:
            turned = await abort_rollout(stage)
            for _ in range(3):
                stage.pass_time(30)
                await stage.settled()
        assert {at for *_, at in rows} == {"", turned.aborted}
        await stage.want(OK2)
        now = await stage.until_done()

    assert now.aborted == ""


@check("MW-46")
async def test_a_third_template_in_the_middle_turns_round_to_the_first(stage: Stage) -> None:
    async with stage.running():
        await stage.given(OK1, 4, revisionHistoryLimit=0)
        first = (await stage.until_done()).update
        stage.spokes.phases = {"c1": "working", "c2": "working"}
        await stage.want(OK2)
        await stage.until(lambda now: now.revs["c2"] == "2")
        await stage.strategy(progressive(maxConcurrency=1))
        stage.spokes.phases = {}
        await stage.want(BAD)
        now = await stage.until(lambda now: now.revs["c1"] == "bad")
        now = await stage.settled()
        assert now.current == first
        assert now.revs == {"c1": "bad", "c2": "2", "c3": "1", "c4": "1"}
        assert [held for _, held in now.history] == ["1", "2", "bad"]
        stage.pass_time(66)
        now = await stage.until_aborted()

    assert now.revs == ALL_ON_ONE
    assert now.current == first
