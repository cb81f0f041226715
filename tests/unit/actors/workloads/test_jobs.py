"""Jobs: pods that run until enough of them have succeeded."""

from datetime import timedelta
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lamina.actors.workloads.job import JOBS
from lamina.objects import meta
from lamina.objects.types import Made, Obj
from lamina.simulation import Crashed, SimulatedCluster, planned
from lamina.simulation.cluster.kinds import JOB, POD, make
from tests.unit.actors.workloads.running import (
    TASK,
    Kubelet,
    attend,
    become,
    conditions,
    event_messages,
    fail,
    job,
    live,
    names,
    pods,
    run,
    status,
    succeed,
    well,
    wind,
)

COMPLETE = [("SuccessCriteriaMet", "True", "CompletionsReached"), ("Complete", "True", "CompletionsReached")]


def begun(**spec: Any) -> SimulatedCluster:
    """Return a cluster with a Job `task` that has made its first pods."""
    cluster = SimulatedCluster()
    cluster.create(job(**spec))
    run(cluster)
    return cluster


def index(pod: Obj) -> str:
    return meta.annotations(pod)["batch.kubernetes.io/job-completion-index"]


def failing_with(code: int) -> Kubelet:
    return lambda cluster, pod: become(cluster, pod, "Failed", code=code)


def active(cluster: SimulatedCluster) -> list[Made]:
    return [pod for pod in pods(cluster) if "status" not in pod and not meta.is_deleting(pod)]


def keep_going(cluster: SimulatedCluster, kubelet: Kubelet) -> None:
    """Let time pass until the job is over."""
    while not any(name in ("Complete", "Failed") for name, _, _ in conditions(cluster, TASK)):
        live(cluster, kubelet)
        wind(cluster, minutes=10)


# ── running ──


def test_a_job_makes_its_pod_says_so_and_waits() -> None:
    cluster = begun()
    [pod] = pods(cluster)

    assert meta.finalizers(pod) == ["batch.kubernetes.io/job-tracking"]
    assert status(cluster, TASK) == {
        "startTime": "2026-01-01T00:00:00Z",
        "active": 1,
        "ready": 0,
        "terminating": 0,
        "uncountedTerminatedPods": {},
    }
    assert event_messages(cluster) == [f"Created pod: {meta.name(pod)}"]


def test_a_pod_that_is_ready_is_counted_as_ready() -> None:
    cluster = begun()

    live(cluster, well)

    assert (status(cluster, TASK)["active"], status(cluster, TASK)["ready"]) == (1, 1)


def test_a_job_whose_pod_succeeded_is_complete_and_lets_it_go() -> None:
    cluster = begun()

    live(cluster, succeed)

    assert conditions(cluster, TASK) == COMPLETE
    now = status(cluster, TASK)
    assert now["succeeded"] == 1 and now["completionTime"] == "2026-01-01T00:00:00Z"
    assert "active" not in now and now["uncountedTerminatedPods"] == {}
    assert not meta.finalizers(pods(cluster)[0])
    assert event_messages(cluster)[-1] == "Job completed"


def test_no_more_run_side_by_side_than_may_and_no_more_than_are_left() -> None:
    cluster = begun(completions=5, parallelism=2)
    most = 0
    for _ in range(10):
        most = max(most, len(active(cluster)))
        for pod in active(cluster)[:1]:
            succeed(cluster, pod)
        run(cluster)

    assert most == 2
    assert len(names(cluster)) == 5
    assert conditions(cluster, TASK) == COMPLETE


def test_without_completions_one_success_is_enough_and_the_others_may_finish() -> None:
    cluster = begun(completions=None, parallelism=3)
    first, second, third = pods(cluster)
    succeed(cluster, first)
    run(cluster)
    assert len(pods(cluster)) == 3 and not conditions(cluster, TASK)

    succeed(cluster, second)
    fail(cluster, third)
    run(cluster)

    assert conditions(cluster, TASK) == COMPLETE


def test_a_job_that_wants_nothing_is_complete_at_once() -> None:
    cluster = begun(completions=0, parallelism=0)

    assert conditions(cluster, TASK) == COMPLETE and not pods(cluster)


def test_fewer_at_once_means_that_some_go_uncounted() -> None:
    cluster = begun(completions=5, parallelism=3)
    live(cluster, well)
    cluster.patch(TASK, {"spec": {"parallelism": 1}})

    live(cluster, well)

    assert len(pods(cluster)) == 1
    assert "failed" not in status(cluster, TASK)


# ── failing ──


def test_a_pod_that_failed_is_replaced_later_each_time() -> None:
    cluster = begun()
    made = []
    for _ in range(4):
        live(cluster, fail)
        plan = planned(cluster, JOBS, TASK)
        assert plan.requeue_after is not None
        made.append((len(pods(cluster)), plan.requeue_after.total_seconds()))
        wind(cluster, seconds=plan.requeue_after.total_seconds())

    assert made == [(1, 10), (2, 20), (3, 40), (4, 80)]


def test_a_job_fails_when_more_pods_failed_than_may() -> None:
    cluster = begun(backoffLimit=2)

    keep_going(cluster, fail)

    reason = "BackoffLimitExceeded"
    assert conditions(cluster, TASK) == [("FailureTarget", "True", reason), ("Failed", "True", reason)]
    assert status(cluster, TASK)["failed"] == 3 == len(pods(cluster))
    assert event_messages(cluster)[-1] == "Job has reached the specified backoff limit"
    assert "completionTime" not in status(cluster, TASK)


def test_what_still_runs_when_a_job_fails_is_stopped_and_counted() -> None:
    cluster = begun(completions=3, parallelism=3, backoffLimit=0)
    first, *others = pods(cluster)
    for pod in others:
        well(cluster, pod)
    fail(cluster, first)

    live(cluster)

    assert conditions(cluster, TASK)[-1] == ("Failed", "True", "BackoffLimitExceeded")
    assert status(cluster, TASK)["failed"] == 3
    assert names(cluster) == [meta.name(first)]


def test_restarts_count_where_the_kubelet_does_the_restarting() -> None:
    cluster = begun(backoffLimit=3)
    restarting = dict(cluster.get(TASK)["spec"]["template"]["spec"], restartPolicy="OnFailure")
    cluster.patch(TASK, {"spec": {"template": {"spec": restarting}}})
    [pod] = pods(cluster)
    well(cluster, pod)
    cluster.patch(meta.ref(pod), {"status": {"containerStatuses": [{"name": "main", "restartCount": 3}]}})

    live(cluster)

    assert conditions(cluster, TASK)[-1] == ("Failed", "True", "BackoffLimitExceeded")


def test_a_job_fails_when_it_takes_too_long() -> None:
    cluster = begun(activeDeadlineSeconds=60)
    live(cluster, well)
    assert planned(cluster, JOBS, TASK).requeue_after == timedelta(seconds=60)
    wind(cluster, seconds=60)

    live(cluster, well)

    reason = "DeadlineExceeded"
    assert conditions(cluster, TASK) == [("FailureTarget", "True", reason), ("Failed", "True", reason)]
    assert event_messages(cluster)[-1] == "Job was active longer than specified deadline"
    assert not pods(cluster)


def test_a_rule_can_end_a_job_at_once_or_ignore_what_happened() -> None:
    rules = [
        {"action": "FailJob", "onExitCodes": {"operator": "In", "values": [42]}},
        {"action": "Ignore", "onExitCodes": {"operator": "In", "values": [7]}},
    ]
    cluster = begun(backoffLimit=0, podFailurePolicy={"rules": rules}, podReplacementPolicy="Failed")
    [pod] = pods(cluster)
    become(cluster, pod, "Failed", code=7)
    run(cluster)
    assert not conditions(cluster, TASK)
    wind(cluster, seconds=10)
    run(cluster)

    live(cluster, failing_with(42))

    assert conditions(cluster, TASK)[-1] == ("Failed", "True", "PodFailurePolicy")
    assert status(cluster, TASK)["failed"] == 1
    assert event_messages(cluster)[-1].endswith("failed with exit code 42 matching FailJob rule at index 0")


def test_a_deleted_pod_is_replaced_at_once_or_when_it_has_gone() -> None:
    for policy, expected in (("TerminatingOrFailed", 1), ("Failed", 0)):
        cluster = begun(podReplacementPolicy=policy)
        live(cluster, well)
        wind(cluster, minutes=1)
        cluster.delete(meta.ref(pods(cluster)[0]))
        wind(cluster, minutes=1)

        run(cluster)

        assert len(active(cluster)) == expected
        assert status(cluster, TASK)["terminating"] == 1


# ── parts ──


def indexed(**spec: Any) -> SimulatedCluster:
    return begun(**{"completions": 4, "parallelism": 2, "completionMode": "Indexed", **spec})


def test_a_pod_knows_which_part_of_the_job_it_does() -> None:
    cluster = indexed()
    second = pods(cluster)[1]

    assert names(cluster)[1].startswith("task-1-")
    assert second["metadata"]["generateName"] == "task-1-"
    assert index(second) == meta.labels(second)["batch.kubernetes.io/job-completion-index"] == "1"
    assert second["spec"]["hostname"] == "task-1"
    [variable] = second["spec"]["containers"][0]["env"]
    assert variable["name"] == "JOB_COMPLETION_INDEX"


def test_each_part_is_done_once() -> None:
    cluster = indexed()

    live(cluster, succeed)

    assert sorted(map(index, pods(cluster))) == ["0", "1", "2", "3"]
    assert status(cluster, TASK)["completedIndexes"] == "0-3"
    assert conditions(cluster, TASK) == COMPLETE


def test_a_part_that_failed_is_done_again() -> None:
    cluster = indexed()
    fail(cluster, pods(cluster)[0])
    run(cluster)
    wind(cluster, seconds=10)

    live(cluster, succeed)

    assert status(cluster, TASK)["completedIndexes"] == "0-3"
    assert status(cluster, TASK)["failed"] == 1


def test_failures_can_be_counted_for_each_part() -> None:
    cluster = indexed(backoffLimit=1000, backoffLimitPerIndex=1)

    def kubelet(cluster: SimulatedCluster, pod: Obj) -> None:
        (fail if index(pod) == "1" else succeed)(cluster, pod)

    keep_going(cluster, kubelet)

    now = status(cluster, TASK)
    assert (now["completedIndexes"], now["failedIndexes"]) == ("0,2,3", "1")
    assert conditions(cluster, TASK)[-1] == ("Failed", "True", "FailedIndexes")
    counts = [
        meta.annotations(pod)["batch.kubernetes.io/job-index-failure-count"]
        for pod in pods(cluster)
        if index(pod) == "1"
    ]
    assert sorted(counts) == ["0", "1"]


def test_too_many_failed_parts_end_a_job() -> None:
    cluster = indexed(backoffLimit=1000, backoffLimitPerIndex=0, maxFailedIndexes=1)

    keep_going(cluster, fail)

    assert conditions(cluster, TASK)[-1] == ("Failed", "True", "MaxFailedIndexesExceeded")


def test_some_parts_may_be_enough() -> None:
    cluster = indexed(parallelism=4, successPolicy={"rules": [{"succeededIndexes": "0"}]})
    first, *others = pods(cluster)
    for pod in others:
        well(cluster, pod)
    succeed(cluster, first)

    live(cluster)

    assert conditions(cluster, TASK) == [
        ("SuccessCriteriaMet", "True", "SuccessPolicy"),
        ("Complete", "True", "SuccessPolicy"),
    ]
    assert names(cluster) == [meta.name(first)]
    assert status(cluster, TASK)["completedIndexes"] == "0"
    assert "failed" not in status(cluster, TASK)


# ── waiting ──


def test_a_suspended_job_runs_nothing_and_begins_anew_when_it_goes_on() -> None:
    cluster = begun()
    live(cluster, well)
    cluster.patch(TASK, {"spec": {"suspend": True}})
    live(cluster, well)
    assert not pods(cluster) and "active" not in status(cluster, TASK)
    assert conditions(cluster, TASK) == [("Suspended", "True", "JobSuspended")]
    assert "failed" not in status(cluster, TASK)

    wind(cluster, hours=1)
    cluster.patch(TASK, {"spec": {"suspend": False}})
    run(cluster)

    assert len(pods(cluster)) == 1
    assert conditions(cluster, TASK) == [("Suspended", "False", "JobResumed")]
    assert status(cluster, TASK)["startTime"] == "2026-01-01T01:00:00Z"
    assert [one for one in event_messages(cluster) if one.startswith("Job ")] == [
        "Job suspended",
        "Job resumed",
    ]


def test_a_job_that_begins_suspended_has_not_started() -> None:
    cluster = begun(suspend=True)

    assert "startTime" not in status(cluster, TASK) and not pods(cluster)


def test_a_job_of_another_manager_is_left_alone() -> None:
    cluster = begun(managedBy="example.com/other")

    assert not pods(cluster) and not status(cluster, TASK)


# ── going ──


def test_a_finished_job_goes_when_its_time_is_up() -> None:
    cluster = begun(ttlSecondsAfterFinished=30)
    live(cluster, succeed)
    wind(cluster, seconds=29)
    run(cluster)
    assert not meta.is_deleting(cluster.get(TASK))

    wind(cluster, seconds=1)
    run(cluster)

    assert meta.is_deleting(cluster.get(TASK))
    assert meta.finalizers(cluster.get(TASK)) == ["foregroundDeletion"]


def test_pods_of_a_job_that_is_gone_are_let_go() -> None:
    cluster = begun()
    live(cluster, well)
    cluster.delete(TASK)

    run(cluster)

    assert not meta.finalizers(pods(cluster)[0])


def test_a_job_on_its_way_out_makes_nothing_and_lets_its_pods_go() -> None:
    cluster = begun(completions=2, parallelism=2)
    cluster.patch(TASK, {"metadata": {"finalizers": ["hold"]}})
    cluster.delete(TASK)
    cluster.delete(meta.ref(pods(cluster)[0]))

    run(cluster)

    assert len(pods(cluster)) == 1
    assert not meta.finalizers(pods(cluster)[0])


def test_a_pod_that_matches_is_taken_in_and_tracked() -> None:
    cluster = SimulatedCluster()
    cluster.create(make(POD, "found", labels={"job-name": "task"}, spec={"containers": []}))
    cluster.create(job())

    run(cluster)

    [pod] = pods(cluster)
    assert meta.finalizers(pod) == ["batch.kubernetes.io/job-tracking"]
    assert meta.controller_of(pod) is not None


# ── promises ──


@pytest.mark.parametrize("mode", ["NonIndexed", "Indexed"])
@settings(deadline=None, max_examples=30)
@given(
    seed=st.integers(0, 10_000),
    crashes=st.lists(st.one_of(st.none(), st.integers(0, 12)), max_size=6),
    failures=st.integers(0, 3),
)
def test_whatever_crashes_every_pod_is_counted_once(
    mode: str, seed: int, crashes: list[int | None], failures: int
) -> None:
    cluster = SimulatedCluster()
    cluster.create(job(completions=4, parallelism=2, completionMode=mode, backoffLimit=10))
    random = Random(seed)
    left = failures

    def kubelet(cluster: SimulatedCluster, pod: Obj) -> None:
        nonlocal left
        if left and random.random() < 0.5:
            left -= 1
            fail(cluster, pod)
        else:
            succeed(cluster, pod)

    for crash in [*crashes, *[None] * 40]:
        try:
            run(cluster, random=random, crash_after=crash)
        except Crashed:
            continue
        assert len(active(cluster)) <= 2
        if ("Complete", "True", "CompletionsReached") in conditions(cluster, TASK):
            break
        for pod in pods(cluster):
            attend(cluster, pod, kubelet)
        wind(cluster, minutes=11)
    run(cluster)

    ends = [pod["status"]["phase"] for pod in pods(cluster)]
    assert (ends.count("Succeeded"), ends.count("Failed")) == (4, failures - left)
    assert status(cluster, TASK).get("succeeded") == 4
    assert status(cluster, TASK).get("failed", 0) == failures - left
    assert conditions(cluster, TASK) == COMPLETE
    assert not any(meta.finalizers(pod) for pod in pods(cluster))
    assert cluster.listed(JOB)
