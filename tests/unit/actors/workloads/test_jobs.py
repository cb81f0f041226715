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
from lamina.paper import Crashed, Paper, planned
from lamina.paper.kinds import JOB, POD, make
from tests.unit.actors.workloads.running import (
    TASK,
    Kubelet,
    attend,
    become,
    conditions,
    fail,
    job,
    live,
    names,
    pods,
    run,
    status,
    succeed,
    told,
    well,
    wind,
)

COMPLETE = [("SuccessCriteriaMet", "True", "CompletionsReached"), ("Complete", "True", "CompletionsReached")]


def begun(**spec: Any) -> Paper:
    """Return a cluster with a Job `task` that has made its first pods."""
    paper = Paper()
    paper.create(job(**spec))
    run(paper)
    return paper


def index(pod: Obj) -> str:
    return meta.annotations(pod)["batch.kubernetes.io/job-completion-index"]


def failing_with(code: int) -> Kubelet:
    return lambda paper, pod: become(paper, pod, "Failed", code=code)


def active(paper: Paper) -> list[Made]:
    return [pod for pod in pods(paper) if "status" not in pod and not meta.is_deleting(pod)]


def keep_going(paper: Paper, kubelet: Kubelet) -> None:
    """Let time pass until the job is over."""
    while not any(name in ("Complete", "Failed") for name, _, _ in conditions(paper, TASK)):
        live(paper, kubelet)
        wind(paper, minutes=10)


# ── running ──


def test_a_job_makes_its_pod_says_so_and_waits() -> None:
    paper = begun()
    [pod] = pods(paper)

    assert meta.finalizers(pod) == ["batch.kubernetes.io/job-tracking"]
    assert status(paper, TASK) == {
        "startTime": "2026-01-01T00:00:00Z",
        "active": 1,
        "ready": 0,
        "terminating": 0,
        "uncountedTerminatedPods": {},
    }
    assert told(paper) == [f"Created pod: {meta.name(pod)}"]


def test_a_pod_that_is_ready_is_counted_as_ready() -> None:
    paper = begun()

    live(paper, well)

    assert (status(paper, TASK)["active"], status(paper, TASK)["ready"]) == (1, 1)


def test_a_job_whose_pod_succeeded_is_complete_and_lets_it_go() -> None:
    paper = begun()

    live(paper, succeed)

    assert conditions(paper, TASK) == COMPLETE
    now = status(paper, TASK)
    assert now["succeeded"] == 1 and now["completionTime"] == "2026-01-01T00:00:00Z"
    assert "active" not in now and now["uncountedTerminatedPods"] == {}
    assert not meta.finalizers(pods(paper)[0])
    assert told(paper)[-1] == "Job completed"


def test_no_more_run_side_by_side_than_may_and_no_more_than_are_left() -> None:
    paper = begun(completions=5, parallelism=2)
    most = 0
    for _ in range(10):
        most = max(most, len(active(paper)))
        for pod in active(paper)[:1]:
            succeed(paper, pod)
        run(paper)

    assert most == 2
    assert len(names(paper)) == 5
    assert conditions(paper, TASK) == COMPLETE


def test_without_completions_one_success_is_enough_and_the_others_may_finish() -> None:
    paper = begun(completions=None, parallelism=3)
    first, second, third = pods(paper)
    succeed(paper, first)
    run(paper)
    assert len(pods(paper)) == 3 and not conditions(paper, TASK)

    succeed(paper, second)
    fail(paper, third)
    run(paper)

    assert conditions(paper, TASK) == COMPLETE


def test_a_job_that_wants_nothing_is_complete_at_once() -> None:
    paper = begun(completions=0, parallelism=0)

    assert conditions(paper, TASK) == COMPLETE and not pods(paper)


def test_fewer_at_once_means_that_some_go_uncounted() -> None:
    paper = begun(completions=5, parallelism=3)
    live(paper, well)
    paper.patch(TASK, {"spec": {"parallelism": 1}})

    live(paper, well)

    assert len(pods(paper)) == 1
    assert "failed" not in status(paper, TASK)


# ── failing ──


def test_a_pod_that_failed_is_replaced_later_each_time() -> None:
    paper = begun()
    made = []
    for _ in range(4):
        live(paper, fail)
        plan = planned(paper, JOBS, TASK)
        assert plan.look_again is not None
        made.append((len(pods(paper)), plan.look_again.total_seconds()))
        wind(paper, seconds=plan.look_again.total_seconds())

    assert made == [(1, 10), (2, 20), (3, 40), (4, 80)]


def test_a_job_fails_when_more_pods_failed_than_may() -> None:
    paper = begun(backoffLimit=2)

    keep_going(paper, fail)

    reason = "BackoffLimitExceeded"
    assert conditions(paper, TASK) == [("FailureTarget", "True", reason), ("Failed", "True", reason)]
    assert status(paper, TASK)["failed"] == 3 == len(pods(paper))
    assert told(paper)[-1] == "Job has reached the specified backoff limit"
    assert "completionTime" not in status(paper, TASK)


def test_what_still_runs_when_a_job_fails_is_stopped_and_counted() -> None:
    paper = begun(completions=3, parallelism=3, backoffLimit=0)
    first, *others = pods(paper)
    for pod in others:
        well(paper, pod)
    fail(paper, first)

    live(paper)

    assert conditions(paper, TASK)[-1] == ("Failed", "True", "BackoffLimitExceeded")
    assert status(paper, TASK)["failed"] == 3
    assert names(paper) == [meta.name(first)]


def test_restarts_count_where_the_kubelet_does_the_restarting() -> None:
    paper = begun(backoffLimit=3)
    restarting = dict(paper.get(TASK)["spec"]["template"]["spec"], restartPolicy="OnFailure")
    paper.patch(TASK, {"spec": {"template": {"spec": restarting}}})
    [pod] = pods(paper)
    well(paper, pod)
    paper.patch(meta.ref(pod), {"status": {"containerStatuses": [{"name": "main", "restartCount": 3}]}})

    live(paper)

    assert conditions(paper, TASK)[-1] == ("Failed", "True", "BackoffLimitExceeded")


def test_a_job_fails_when_it_takes_too_long() -> None:
    paper = begun(activeDeadlineSeconds=60)
    live(paper, well)
    assert planned(paper, JOBS, TASK).look_again == timedelta(seconds=60)
    wind(paper, seconds=60)

    live(paper, well)

    reason = "DeadlineExceeded"
    assert conditions(paper, TASK) == [("FailureTarget", "True", reason), ("Failed", "True", reason)]
    assert told(paper)[-1] == "Job was active longer than specified deadline"
    assert not pods(paper)


def test_a_rule_can_end_a_job_at_once_or_ignore_what_happened() -> None:
    rules = [
        {"action": "FailJob", "onExitCodes": {"operator": "In", "values": [42]}},
        {"action": "Ignore", "onExitCodes": {"operator": "In", "values": [7]}},
    ]
    paper = begun(backoffLimit=0, podFailurePolicy={"rules": rules}, podReplacementPolicy="Failed")
    [pod] = pods(paper)
    become(paper, pod, "Failed", code=7)
    run(paper)
    assert not conditions(paper, TASK)
    wind(paper, seconds=10)
    run(paper)

    live(paper, failing_with(42))

    assert conditions(paper, TASK)[-1] == ("Failed", "True", "PodFailurePolicy")
    assert status(paper, TASK)["failed"] == 1
    assert told(paper)[-1].endswith("failed with exit code 42 matching FailJob rule at index 0")


def test_a_pod_that_somebody_deletes_is_replaced_at_once_or_when_it_has_gone() -> None:
    for policy, expected in (("TerminatingOrFailed", 1), ("Failed", 0)):
        paper = begun(podReplacementPolicy=policy)
        live(paper, well)
        wind(paper, minutes=1)
        paper.delete(meta.ref(pods(paper)[0]))
        wind(paper, minutes=1)

        run(paper)

        assert len(active(paper)) == expected
        assert status(paper, TASK)["terminating"] == 1


# ── parts ──


def indexed(**spec: Any) -> Paper:
    return begun(**{"completions": 4, "parallelism": 2, "completionMode": "Indexed", **spec})


def test_a_pod_knows_which_part_of_the_job_it_does() -> None:
    paper = indexed()
    second = pods(paper)[1]

    assert names(paper)[1].startswith("task-1-")
    assert second["metadata"]["generateName"] == "task-1-"
    assert index(second) == meta.labels(second)["batch.kubernetes.io/job-completion-index"] == "1"
    assert second["spec"]["hostname"] == "task-1"
    [variable] = second["spec"]["containers"][0]["env"]
    assert variable["name"] == "JOB_COMPLETION_INDEX"


def test_each_part_is_done_once() -> None:
    paper = indexed()

    live(paper, succeed)

    assert sorted(map(index, pods(paper))) == ["0", "1", "2", "3"]
    assert status(paper, TASK)["completedIndexes"] == "0-3"
    assert conditions(paper, TASK) == COMPLETE


def test_a_part_that_failed_is_done_again() -> None:
    paper = indexed()
    fail(paper, pods(paper)[0])
    run(paper)
    wind(paper, seconds=10)

    live(paper, succeed)

    assert status(paper, TASK)["completedIndexes"] == "0-3"
    assert status(paper, TASK)["failed"] == 1


def test_failures_can_be_counted_for_each_part() -> None:
    paper = indexed(backoffLimit=1000, backoffLimitPerIndex=1)

    def kubelet(paper: Paper, pod: Obj) -> None:
        (fail if index(pod) == "1" else succeed)(paper, pod)

    keep_going(paper, kubelet)

    now = status(paper, TASK)
    assert (now["completedIndexes"], now["failedIndexes"]) == ("0,2,3", "1")
    assert conditions(paper, TASK)[-1] == ("Failed", "True", "FailedIndexes")
    counts = [
        meta.annotations(pod)["batch.kubernetes.io/job-index-failure-count"]
        for pod in pods(paper)
        if index(pod) == "1"
    ]
    assert sorted(counts) == ["0", "1"]


def test_too_many_failed_parts_end_a_job() -> None:
    paper = indexed(backoffLimit=1000, backoffLimitPerIndex=0, maxFailedIndexes=1)

    keep_going(paper, fail)

    assert conditions(paper, TASK)[-1] == ("Failed", "True", "MaxFailedIndexesExceeded")


def test_some_parts_may_be_enough() -> None:
    paper = indexed(parallelism=4, successPolicy={"rules": [{"succeededIndexes": "0"}]})
    first, *others = pods(paper)
    for pod in others:
        well(paper, pod)
    succeed(paper, first)

    live(paper)

    assert conditions(paper, TASK) == [
        ("SuccessCriteriaMet", "True", "SuccessPolicy"),
        ("Complete", "True", "SuccessPolicy"),
    ]
    assert names(paper) == [meta.name(first)]
    assert status(paper, TASK)["completedIndexes"] == "0"
    assert "failed" not in status(paper, TASK)


# ── waiting ──


def test_a_suspended_job_runs_nothing_and_begins_anew_when_it_goes_on() -> None:
    paper = begun()
    live(paper, well)
    paper.patch(TASK, {"spec": {"suspend": True}})
    live(paper, well)
    assert not pods(paper) and "active" not in status(paper, TASK)
    assert conditions(paper, TASK) == [("Suspended", "True", "JobSuspended")]
    assert "failed" not in status(paper, TASK)

    wind(paper, hours=1)
    paper.patch(TASK, {"spec": {"suspend": False}})
    run(paper)

    assert len(pods(paper)) == 1
    assert conditions(paper, TASK) == [("Suspended", "False", "JobResumed")]
    assert status(paper, TASK)["startTime"] == "2026-01-01T01:00:00Z"
    assert [one for one in told(paper) if one.startswith("Job ")] == ["Job suspended", "Job resumed"]


def test_a_job_that_begins_suspended_has_not_started() -> None:
    paper = begun(suspend=True)

    assert "startTime" not in status(paper, TASK) and not pods(paper)


def test_a_job_that_somebody_else_manages_is_left_alone() -> None:
    paper = begun(managedBy="example.com/other")

    assert not pods(paper) and not status(paper, TASK)


# ── going ──


def test_a_finished_job_goes_when_its_time_is_up() -> None:
    paper = begun(ttlSecondsAfterFinished=30)
    live(paper, succeed)
    wind(paper, seconds=29)
    run(paper)
    assert not meta.is_deleting(paper.get(TASK))

    wind(paper, seconds=1)
    run(paper)

    assert meta.is_deleting(paper.get(TASK))
    assert meta.finalizers(paper.get(TASK)) == ["foregroundDeletion"]


def test_pods_of_a_job_that_is_gone_are_let_go() -> None:
    paper = begun()
    live(paper, well)
    paper.delete(TASK)

    run(paper)

    assert not meta.finalizers(pods(paper)[0])


def test_a_job_on_its_way_out_makes_nothing_and_lets_its_pods_go() -> None:
    paper = begun(completions=2, parallelism=2)
    paper.patch(TASK, {"metadata": {"finalizers": ["hold"]}})
    paper.delete(TASK)
    paper.delete(meta.ref(pods(paper)[0]))

    run(paper)

    assert len(pods(paper)) == 1
    assert not meta.finalizers(pods(paper)[0])


def test_a_pod_that_matches_is_taken_in_and_tracked() -> None:
    paper = Paper()
    paper.create(make(POD, "found", labels={"job-name": "task"}, spec={"containers": []}))
    paper.create(job())

    run(paper)

    [pod] = pods(paper)
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
    paper = Paper()
    paper.create(job(completions=4, parallelism=2, completionMode=mode, backoffLimit=10))
    random = Random(seed)
    left = failures

    def kubelet(paper: Paper, pod: Obj) -> None:
        nonlocal left
        if left and random.random() < 0.5:
            left -= 1
            fail(paper, pod)
        else:
            succeed(paper, pod)

    for crash in [*crashes, *[None] * 40]:
        try:
            run(paper, random=random, crash_after=crash)
        except Crashed:
            continue
        assert len(active(paper)) <= 2
        if ("Complete", "True", "CompletionsReached") in conditions(paper, TASK):
            break
        for pod in pods(paper):
            attend(paper, pod, kubelet)
        wind(paper, minutes=11)
    run(paper)

    ends = [pod["status"]["phase"] for pod in pods(paper)]
    assert (ends.count("Succeeded"), ends.count("Failed")) == (4, failures - left)
    assert status(paper, TASK).get("succeeded") == 4
    assert status(paper, TASK).get("failed", 0) == failures - left
    assert conditions(paper, TASK) == COMPLETE
    assert not any(meta.finalizers(pod) for pod in pods(paper))
    assert paper.listed(JOB)
