"""What a job's own rules say, and how its indexes are written."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina.actors.workloads import job_indexes
from lamina.actors.workloads.job_pods import wait_for
from lamina.actors.workloads.job_policy import Judged, Verdict, enough, judge
from lamina.objects.types import Made
from lamina.paper import Paper
from lamina.paper.kinds import POD, make
from tests.unit.actors.workloads.running import job


def failed_pod(code: int = 1, **status: Any) -> Made:
    terminated = {"terminated": {"exitCode": code}}
    fields = {"phase": "Failed", "containerStatuses": [{"name": "main", "state": terminated}], **status}
    return make(POD, "task-1", status=fields)


def with_rules(*rules: Made) -> Made:
    return job(podFailurePolicy={"rules": list(rules)})


def on_code(action: str, operator: str, *values: int, **more: Any) -> Made:
    return {"action": action, "onExitCodes": {"operator": operator, "values": list(values), **more}}


def on_condition(action: str, kind: str, status: str = "True") -> Made:
    return {"action": action, "onPodConditions": [{"type": kind, "status": status}]}


SAID = "Container main for pod default/task-1 failed with exit code 42 matching FailJob rule at index 1"


@pytest.mark.parametrize(
    ("rules", "code", "expected"),
    [
        ([], 1, Judged(Verdict.COUNT)),
        ([on_code("Ignore", "In", 42)], 42, Judged(Verdict.IGNORE)),
        ([on_code("Ignore", "In", 42)], 1, Judged(Verdict.COUNT)),
        ([on_code("Ignore", "NotIn", 42)], 1, Judged(Verdict.IGNORE)),
        ([on_code("Ignore", "NotIn", 42)], 0, Judged(Verdict.COUNT)),
        ([on_code("FailIndex", "In", 1, 2)], 2, Judged(Verdict.FAIL_INDEX)),
        ([on_code("Ignore", "In", 42, containerName="other")], 42, Judged(Verdict.COUNT)),
        ([on_code("Count", "In", 1), on_code("FailJob", "In", 42)], 42, Judged(Verdict.FAIL_JOB, SAID)),
        ([on_code("Count", "In", 42), on_code("FailJob", "In", 42)], 42, Judged(Verdict.COUNT)),
    ],
)
def test_the_first_rule_that_matches_an_exit_code_counts(
    rules: list[Made], code: int, expected: Judged
) -> None:
    assert judge(with_rules(*rules), failed_pod(code)) == expected


def test_a_rule_may_look_at_conditions() -> None:
    pod = failed_pod(conditions=[{"type": "DisruptionTarget", "status": "True"}])

    assert judge(with_rules(on_condition("Ignore", "DisruptionTarget")), pod).verdict is Verdict.IGNORE
    assert (
        judge(with_rules(on_condition("Ignore", "DisruptionTarget", "False")), pod).verdict is Verdict.COUNT
    )
    said = judge(with_rules(on_condition("FailJob", "DisruptionTarget")), pod).because
    assert said == "Pod default/task-1 has condition DisruptionTarget matching FailJob rule at index 0"


@pytest.mark.parametrize(
    ("rule", "succeeded", "met"),
    [
        ({"succeededCount": 2}, {0, 3}, True),
        ({"succeededCount": 2}, {0}, False),
        ({"succeededIndexes": "0,2-3"}, {0, 2, 3}, True),
        ({"succeededIndexes": "0,2-3"}, {0, 1, 2}, False),
        ({"succeededIndexes": "0,2-3", "succeededCount": 2}, {0, 1, 2}, True),
        ({"succeededIndexes": "0,2-3", "succeededCount": 1}, {1}, False),
        ({"succeededCount": 0}, set(), False),
    ],
)
def test_when_enough_have_succeeded(rule: Made, succeeded: set[int], met: bool) -> None:
    obj = job(completions=5, completionMode="Indexed", successPolicy={"rules": [rule]})

    assert enough(obj, succeeded) == ("Matched rules at index 0" if met else None)


@pytest.mark.parametrize(
    ("indexes", "text"),
    [
        ((), ""),
        ((3,), "3"),
        ((3, 4), "3,4"),
        ((3, 4, 5), "3-5"),
        ((0, 1, 2, 5, 7, 8), "0-2,5,7,8"),
    ],
)
def test_indexes_are_written_as_pages_are(indexes: tuple[int, ...], text: str) -> None:
    assert job_indexes.written(indexes) == text


@given(st.sets(st.integers(0, 60)))
def test_what_was_written_can_be_read(indexes: set[int]) -> None:
    assert job_indexes.read(job_indexes.written(indexes), 61) == indexes


@given(st.sets(st.integers(0, 60)), st.integers(0, 60))
def test_indexes_that_a_job_no_longer_has_are_left_out(indexes: set[int], completions: int) -> None:
    assert job_indexes.read(job_indexes.written(indexes), completions) == {
        index for index in indexes if index < completions
    }


@pytest.mark.parametrize(("failures", "seconds"), [(1, 10), (2, 20), (3, 40), (6, 320), (7, 600), (40, 600)])
def test_each_failure_doubles_the_wait(failures: int, seconds: int) -> None:
    now = Paper().now

    assert wait_for(failures, now, now).total_seconds() == seconds
