"""Cron jobs: a job each time a schedule is due."""

from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lamina.actors.workloads.cronjob import CRON_JOBS, job_name, make_job
from lamina.objects import meta
from lamina.objects.times import stamp
from lamina.objects.types import Made
from lamina.paper import Crashed, Paper, planned
from lamina.paper.kinds import JOB, make
from tests.unit.actors.workloads.running import (
    TICK,
    cron_job,
    fail,
    live,
    pods,
    run,
    status,
    succeed,
    told,
    well,
    wind,
)

FIRST = "tick-29453761"
"""The job of the first minute of 2026."""


def given_cron(schedule: str = "* * * * *", **spec: Any) -> Paper:
    paper = Paper()
    paper.create(cron_job(schedule, **spec))
    run(paper)
    return paper


def jobs(paper: Paper) -> list[str]:
    return sorted(meta.name(job) for job in paper.listed(JOB))


def active(paper: Paper) -> list[str]:
    return [one["name"] for one in status(paper, TICK).get("active") or ()]


def later(paper: Paper, **span: float) -> None:
    wind(paper, **span)
    run(paper)


def test_nothing_happens_before_it_is_due() -> None:
    paper = given_cron()
    plan = planned(paper, CRON_JOBS, TICK)

    assert jobs(paper) == []
    assert plan.look_again == timedelta(seconds=60.1)


def test_a_job_is_made_when_it_is_due_and_noted() -> None:
    paper = given_cron()

    later(paper, seconds=61)

    assert jobs(paper) == [FIRST] == active(paper)
    [made] = paper.listed(JOB)
    assert meta.labels(made) == {"by": "tick"}
    assert meta.annotations(made) == {
        "batch.kubernetes.io/cronjob-scheduled-timestamp": "2026-01-01T00:01:00Z"
    }
    owner = meta.controller_of(made)
    assert owner is not None and (owner["kind"], owner["name"]) == ("CronJob", "tick")
    assert status(paper, TICK)["lastScheduleTime"] == "2026-01-01T00:01:00Z"
    assert told(paper, "SuccessfulCreate")[0] == f"Created job {FIRST}"


def test_once_is_enough() -> None:
    paper = given_cron()
    later(paper, seconds=61)
    run(paper)
    paper.journal.clear()

    later(paper, seconds=20)

    assert paper.journal == []


def test_only_the_latest_of_what_was_missed_is_made() -> None:
    paper = given_cron("*/10 * * * *")

    later(paper, minutes=45)

    assert jobs(paper) == [job_name(paper.get(TICK), datetime(2026, 1, 1, 0, 40, tzinfo=UTC))]


def test_very_many_missed_times_are_told() -> None:
    paper = given_cron()

    later(paper, hours=2, seconds=5)

    assert len(jobs(paper)) == 1
    assert told(paper, "TooManyMissedTimes")


def test_what_is_too_late_is_missed() -> None:
    paper = given_cron("0 * * * *", startingDeadlineSeconds=30)

    later(paper, hours=1, seconds=31)
    assert jobs(paper) == []

    later(paper, minutes=59, seconds=34)
    assert len(jobs(paper)) == 1


def test_the_time_is_the_zones() -> None:
    paper = given_cron("0 9 * * *", timeZone="Asia/Tokyo")

    later(paper, days=1, seconds=1)

    [made] = paper.listed(JOB)
    shown = meta.annotations(made)["batch.kubernetes.io/cronjob-scheduled-timestamp"]
    assert shown == "2026-01-02T09:00:00+09:00"


def test_a_suspended_cron_job_makes_nothing() -> None:
    paper = given_cron(suspend=True)

    later(paper, hours=1)

    assert jobs(paper) == []
    assert planned(paper, CRON_JOBS, TICK).look_again is None


# ── side by side ──


def test_several_may_run_side_by_side() -> None:
    paper = given_cron()
    later(paper, seconds=61)
    later(paper, seconds=60)

    assert len(active(paper)) == 2


def test_one_waits_for_the_other_where_that_is_asked_for() -> None:
    paper = given_cron(concurrencyPolicy="Forbid")
    later(paper, seconds=61)
    later(paper, seconds=60)
    assert jobs(paper) == [FIRST] == active(paper)
    assert len(told(paper, "JobAlreadyActive")) >= 1

    wind(paper, seconds=10)
    live(paper, succeed)

    assert len(jobs(paper)) == 2


def test_one_takes_the_place_of_the_other_where_that_is_asked_for() -> None:
    paper = given_cron(concurrencyPolicy="Replace")
    later(paper, seconds=61)
    later(paper, seconds=60)

    assert len(jobs(paper)) == 1 and jobs(paper) != [FIRST]
    assert active(paper) == jobs(paper)
    assert told(paper, "SuccessfulDelete") == [f"Deleted job {FIRST}"]


# ── what becomes of jobs ──


def test_a_job_that_completed_is_no_longer_active_and_its_time_is_kept() -> None:
    paper = given_cron()
    later(paper, seconds=61)

    live(paper, succeed)

    assert active(paper) == []
    assert status(paper, TICK)["lastSuccessfulTime"] == stamp(paper.now)
    assert told(paper, "SawCompletedJob") == [f"Saw completed job: {FIRST}, condition: Complete"]


@pytest.mark.parametrize(("end", "kept"), [(succeed, 3), (fail, 1)])
def test_finished_jobs_are_kept_as_many_as_the_limits_say(end: Any, kept: int) -> None:
    paper = given_cron()
    paper.patch(TICK, {"spec": {"jobTemplate": {"spec": {"backoffLimit": 0}}}})
    for _ in range(6):
        later(paper, seconds=60.1)
        live(paper, end)

    assert len(jobs(paper)) == kept
    assert jobs(paper)[-1] == job_name(paper.get(TICK), datetime(2026, 1, 1, 0, 6, tzinfo=UTC))


def test_an_active_job_that_is_gone_is_noted_no_longer() -> None:
    paper = given_cron()
    later(paper, seconds=61)
    paper.delete(JOB.ref("default", FIRST))

    run(paper)

    assert active(paper) == []
    assert told(paper, "MissingJob") == [f"Active job went missing: {FIRST}"]


def test_a_job_that_somebody_made_by_hand_is_not_counted() -> None:
    paper = given_cron()
    spec = paper.get(TICK)["spec"]["jobTemplate"]["spec"]
    paper.create(
        make(JOB, "by-hand", spec=spec, ownerReferences=[meta.owner_ref(paper.get(TICK), controller=True)])
    )

    run(paper)

    assert active(paper) == []
    assert told(paper, "UnexpectedJob") == ["Saw a job that the controller did not create or forgot: by-hand"]


def test_a_name_that_somebody_else_has_taken_is_left_to_them() -> None:
    paper = given_cron()
    paper.create(make(JOB, FIRST, spec={"suspend": True, "selector": {}, "template": {"spec": {}}}))

    later(paper, seconds=61)

    assert jobs(paper) == [FIRST] and active(paper) == []


@pytest.mark.parametrize(
    ("spec", "reason"),
    [
        ({"schedule": "0 0 30 2 *"}, "InvalidSchedule"),
        ({"schedule": "often"}, "UnparseableSchedule"),
        ({"timeZone": "Mars/Olympus"}, "UnknownTimeZone"),
    ],
)
def test_what_cannot_be_met_is_told(spec: Made, reason: str) -> None:
    paper = given_cron(**spec)

    later(paper, hours=1)

    assert told(paper, reason) and not jobs(paper)


def test_the_job_of_a_minute_has_a_name_of_its_own() -> None:
    paper = given_cron()
    at = datetime(2026, 1, 1, 0, 1, tzinfo=UTC)

    assert make_job(paper.get(TICK), at)["metadata"]["name"] == FIRST


@settings(deadline=None, max_examples=25)
@given(seed=st.integers(0, 10_000), crashes=st.lists(st.integers(0, 6), min_size=1, max_size=5))
def test_whatever_crashes_every_minute_has_one_job(seed: int, crashes: list[int]) -> None:
    paper = given_cron(successfulJobsHistoryLimit=100)
    random = Random(seed)
    made: set[str] = set()
    for crash_after in [*crashes, None]:
        wind(paper, seconds=60)
        try:
            run(paper, random=random, crash_after=crash_after)
        except Crashed:
            run(paper, random=random)
        made |= set(jobs(paper))
        for pod in pods(paper):
            if "status" not in pod:
                random.choice([succeed, well])(paper, pod)
        run(paper, random=random)

    assert len(made) == len(crashes) + 1 == len(jobs(paper))
    running = {meta.name(job) for job in paper.listed(JOB) if job["status"].get("active")}
    assert set(active(paper)) == running
