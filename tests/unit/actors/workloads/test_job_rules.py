"""A job's pod failure policy, success policy and backoff."""

from typing import Any

import pytest

from lamina.actors.workloads.job_pods import backoff
from lamina.actors.workloads.job_policy import Action, PolicyMatch, match_failure_policy, matched_success_rule
from lamina.objects.types import Made
from lamina.simulation import SimulatedCluster
from lamina.simulation.cluster.kinds import POD, make
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
        ([], 1, PolicyMatch(Action.COUNT)),
        ([on_code("Ignore", "In", 42)], 42, PolicyMatch(Action.IGNORE)),
        ([on_code("Ignore", "In", 42)], 1, PolicyMatch(Action.COUNT)),
        ([on_code("Ignore", "NotIn", 42)], 1, PolicyMatch(Action.IGNORE)),
        ([on_code("Ignore", "NotIn", 42)], 0, PolicyMatch(Action.COUNT)),
        ([on_code("FailIndex", "In", 1, 2)], 2, PolicyMatch(Action.FAIL_INDEX)),
        ([on_code("Ignore", "In", 42, containerName="other")], 42, PolicyMatch(Action.COUNT)),
        ([on_code("Count", "In", 1), on_code("FailJob", "In", 42)], 42, PolicyMatch(Action.FAIL_JOB, SAID)),
        ([on_code("Count", "In", 42), on_code("FailJob", "In", 42)], 42, PolicyMatch(Action.COUNT)),
    ],
)
def test_the_first_rule_that_matches_an_exit_code_counts(
    rules: list[Made], code: int, expected: PolicyMatch
) -> None:
    assert match_failure_policy(with_rules(*rules), failed_pod(code)) == expected


def test_a_rule_may_look_at_conditions() -> None:
    pod = failed_pod(conditions=[{"type": "DisruptionTarget", "status": "True"}])

    assert (
        match_failure_policy(with_rules(on_condition("Ignore", "DisruptionTarget")), pod).action
        is Action.IGNORE
    )
    assert (
        match_failure_policy(with_rules(on_condition("Ignore", "DisruptionTarget", "False")), pod).action
        is Action.COUNT
    )
    said = match_failure_policy(with_rules(on_condition("FailJob", "DisruptionTarget")), pod).because
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

    assert matched_success_rule(obj, succeeded) == ("Matched rules at index 0" if met else None)


@pytest.mark.parametrize(("failures", "seconds"), [(1, 10), (2, 20), (3, 40), (6, 320), (7, 600), (40, 600)])
def test_each_failure_doubles_the_wait(failures: int, seconds: int) -> None:
    now = SimulatedCluster().now

    assert backoff(failures, now, now).total_seconds() == seconds
