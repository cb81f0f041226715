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
from lamina.simulation import Crashed, SimulatedCluster, planned
from lamina.simulation.cluster.kinds import JOB, make
from tests.unit.actors.workloads.running import (
    TICK,
    cron_job,
    event_messages,
    fail,
    live,
    pods,
    run,
    status,
    succeed,
    well,
    wind,
)

FIRST = "tick-29453761"
"""The job of the first minute of 2026."""


def given_cron(schedule: str = "* * * * *", **spec: Any) -> SimulatedCluster:
    cluster = SimulatedCluster()
    cluster.create(cron_job(schedule, **spec))
    run(cluster)
    return cluster


def jobs(cluster: SimulatedCluster) -> list[str]:
    return sorted(meta.name(job) for job in cluster.listed(JOB))


def active(cluster: SimulatedCluster) -> list[str]:
    return [one["name"] for one in status(cluster, TICK).get("active") or ()]


def later(cluster: SimulatedCluster, **span: float) -> None:
    wind(cluster, **span)
    run(cluster)


def test_nothing_happens_before_it_is_due() -> None:
    cluster = given_cron()
    plan = planned(cluster, CRON_JOBS, TICK)

    assert jobs(cluster) == []
    assert plan.requeue_after == timedelta(seconds=60.1)


def test_a_job_is_made_when_it_is_due_and_noted() -> None:
    cluster = given_cron()

    later(cluster, seconds=61)

    assert jobs(cluster) == [FIRST] == active(cluster)
    [made] = cluster.listed(JOB)
    assert meta.labels(made) == {"by": "tick"}
    assert meta.annotations(made) == {
        "batch.kubernetes.io/cronjob-scheduled-timestamp": "2026-01-01T00:01:00Z"
    }
    owner = meta.controller_of(made)
    assert owner is not None and (owner["kind"], owner["name"]) == ("CronJob", "tick")
    assert status(cluster, TICK)["lastScheduleTime"] == "2026-01-01T00:01:00Z"
    assert event_messages(cluster, "SuccessfulCreate")[0] == f"Created job {FIRST}"


def test_once_is_enough() -> None:
    cluster = given_cron()
    later(cluster, seconds=61)
    run(cluster)
    cluster.journal.clear()

    later(cluster, seconds=20)

    assert cluster.journal == []


def test_only_the_latest_of_what_was_missed_is_made() -> None:
    cluster = given_cron("*/10 * * * *")

    later(cluster, minutes=45)

    assert jobs(cluster) == [job_name(cluster.get(TICK), datetime(2026, 1, 1, 0, 40, tzinfo=UTC))]


def test_very_many_missed_times_are_told() -> None:
    cluster = given_cron()

    later(cluster, hours=2, seconds=5)

    assert len(jobs(cluster)) == 1
    assert event_messages(cluster, "TooManyMissedTimes")


def test_what_is_too_late_is_missed() -> None:
    cluster = given_cron("0 * * * *", startingDeadlineSeconds=30)

    later(cluster, hours=1, seconds=31)
    assert jobs(cluster) == []

    later(cluster, minutes=59, seconds=34)
    assert len(jobs(cluster)) == 1


def test_the_time_is_the_zones() -> None:
    cluster = given_cron("0 9 * * *", timeZone="Asia/Tokyo")

    later(cluster, days=1, seconds=1)

    [made] = cluster.listed(JOB)
    shown = meta.annotations(made)["batch.kubernetes.io/cronjob-scheduled-timestamp"]
    assert shown == "2026-01-02T09:00:00+09:00"


def test_a_suspended_cron_job_makes_nothing() -> None:
    cluster = given_cron(suspend=True)

    later(cluster, hours=1)

    assert jobs(cluster) == []
    assert planned(cluster, CRON_JOBS, TICK).requeue_after is None


# ── side by side ──


def test_several_may_run_side_by_side() -> None:
    cluster = given_cron()
    later(cluster, seconds=61)
    later(cluster, seconds=60)

    assert len(active(cluster)) == 2


def test_one_waits_for_the_other_where_that_is_asked_for() -> None:
    cluster = given_cron(concurrencyPolicy="Forbid")
    later(cluster, seconds=61)
    later(cluster, seconds=60)
    assert jobs(cluster) == [FIRST] == active(cluster)
    assert len(event_messages(cluster, "JobAlreadyActive")) >= 1

    wind(cluster, seconds=10)
    live(cluster, succeed)

    assert len(jobs(cluster)) == 2


def test_one_takes_the_place_of_the_other_where_that_is_asked_for() -> None:
    cluster = given_cron(concurrencyPolicy="Replace")
    later(cluster, seconds=61)
    later(cluster, seconds=60)

    assert len(jobs(cluster)) == 1 and jobs(cluster) != [FIRST]
    assert active(cluster) == jobs(cluster)
    assert event_messages(cluster, "SuccessfulDelete") == [f"Deleted job {FIRST}"]


# ── what becomes of jobs ──


def test_a_job_that_completed_is_no_longer_active_and_its_time_is_kept() -> None:
    cluster = given_cron()
    later(cluster, seconds=61)

    live(cluster, succeed)

    assert active(cluster) == []
    assert status(cluster, TICK)["lastSuccessfulTime"] == stamp(cluster.now)
    assert event_messages(cluster, "SawCompletedJob") == [f"Saw completed job: {FIRST}, condition: Complete"]


@pytest.mark.parametrize(("end", "kept"), [(succeed, 3), (fail, 1)])
def test_finished_jobs_are_kept_as_many_as_the_limits_say(end: Any, kept: int) -> None:
    cluster = given_cron()
    cluster.patch(TICK, {"spec": {"jobTemplate": {"spec": {"backoffLimit": 0}}}})
    for _ in range(6):
        later(cluster, seconds=60.1)
        live(cluster, end)

    assert len(jobs(cluster)) == kept
    assert jobs(cluster)[-1] == job_name(cluster.get(TICK), datetime(2026, 1, 1, 0, 6, tzinfo=UTC))


def test_an_active_job_that_is_gone_is_noted_no_longer() -> None:
    cluster = given_cron()
    later(cluster, seconds=61)
    cluster.delete(JOB.ref("default", FIRST))

    run(cluster)

    assert active(cluster) == []
    assert event_messages(cluster, "MissingJob") == [f"Active job went missing: {FIRST}"]


def test_a_job_made_by_hand_is_not_counted() -> None:
    cluster = given_cron()
    spec = cluster.get(TICK)["spec"]["jobTemplate"]["spec"]
    cluster.create(
        make(JOB, "by-hand", spec=spec, ownerReferences=[meta.owner_ref(cluster.get(TICK), controller=True)])
    )

    run(cluster)

    assert active(cluster) == []
    assert event_messages(cluster, "UnexpectedJob") == [
        "Saw a job that the controller did not create or forgot: by-hand"
    ]


def test_a_job_of_another_owner_with_the_name_is_left_alone() -> None:
    cluster = given_cron()
    cluster.create(make(JOB, FIRST, spec={"suspend": True, "selector": {}, "template": {"spec": {}}}))

    later(cluster, seconds=61)

    assert jobs(cluster) == [FIRST] and active(cluster) == []


@pytest.mark.parametrize(
    ("spec", "reason"),
    [
        ({"schedule": "0 0 30 2 *"}, "InvalidSchedule"),
        ({"schedule": "often"}, "UnparseableSchedule"),
        ({"timeZone": "Mars/Olympus"}, "UnknownTimeZone"),
    ],
)
def test_what_cannot_be_met_is_told(spec: Made, reason: str) -> None:
    cluster = given_cron(**spec)

    later(cluster, hours=1)

    assert event_messages(cluster, reason) and not jobs(cluster)


def test_the_job_of_a_minute_has_a_name_of_its_own() -> None:
    cluster = given_cron()
    at = datetime(2026, 1, 1, 0, 1, tzinfo=UTC)

    assert make_job(cluster.get(TICK), at)["metadata"]["name"] == FIRST


@settings(deadline=None, max_examples=25)
@given(seed=st.integers(0, 10_000), crashes=st.lists(st.integers(0, 6), min_size=1, max_size=5))
def test_whatever_crashes_every_minute_has_one_job(seed: int, crashes: list[int]) -> None:
    cluster = given_cron(successfulJobsHistoryLimit=100)
    random = Random(seed)
    made: set[str] = set()
    for crash_after in [*crashes, None]:
        wind(cluster, seconds=60)
        try:
            run(cluster, random=random, crash_after=crash_after)
        except Crashed:
            run(cluster, random=random)
        made |= set(jobs(cluster))
        for pod in pods(cluster):
            if "status" not in pod:
                random.choice([succeed, well])(cluster, pod)
        run(cluster, random=random)

    assert len(made) == len(crashes) + 1 == len(jobs(cluster))
    running = {meta.name(job) for job in cluster.listed(JOB) if job["status"].get("active")}
    assert set(active(cluster)) == running
