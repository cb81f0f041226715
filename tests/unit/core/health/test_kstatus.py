"""The health of objects of well-known kinds."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina.core.health.kstatus import SETTLED, Health, health, is_well_known, reported_health
from lamina.objects.types import Made, Obj

WAITS_FOR_CONTROLLER = Health("its controller has not observed its spec yet")


WITH_GENERATION = ("Deployment", "ReplicaSet", "ReplicationController", "StatefulSet", "DaemonSet")
API_VERSIONS = {"Job": "batch/v1", "Pod": "v1", "ReplicationController": "v1"}


def workload(kind: str, spec: Obj | None = None, *, generation: int = 1, **status: Any) -> Made:
    return {
        "apiVersion": API_VERSIONS.get(kind, "apps/v1"),
        "kind": kind,
        "metadata": {"name": "a", "generation": generation},
        "spec": spec or {},
        "status": {"observedGeneration": generation, **status},
    }


def conditions(**held: str) -> list[Made]:
    return [{"type": name, "status": status} for name, status in held.items()]


# Any kind


@pytest.mark.parametrize(
    "obj",
    [
        {"apiVersion": "v1", "kind": "ConfigMap"},
        {"apiVersion": "example.com/v1", "kind": "Deployment", "status": {"replicas": 0}},
        {"apiVersion": "example.com/v1", "kind": "Pod", "status": {"phase": "Failed"}},
        {"apiVersion": "v1", "kind": "Deployment", "status": {"replicas": 0}},
        {},
    ],
)
def test_an_object_of_another_kind_is_settled_once_it_exists(obj: Obj) -> None:
    assert health(obj) == SETTLED
    assert not is_well_known(obj)


@pytest.mark.parametrize("kind", WITH_GENERATION)
@pytest.mark.parametrize("observed", [None, 0, 1])
def test_a_status_of_an_older_generation_says_nothing(kind: str, observed: int | None) -> None:
    full: dict[str, Any] = {
        "replicas": 1,
        "updatedReplicas": 1,
        "availableReplicas": 1,
        "desiredNumberScheduled": 1,
        "updatedNumberScheduled": 1,
        "numberAvailable": 1,
    }
    obj = workload(kind, generation=2, **full)
    obj["status"]["observedGeneration"] = observed

    assert health(obj) == WAITS_FOR_CONTROLLER


@pytest.mark.parametrize("kind", WITH_GENERATION)
def test_an_object_without_a_status_waits_for_its_controller(kind: str) -> None:
    obj = workload(kind)
    del obj["status"]

    assert health(obj) == WAITS_FOR_CONTROLLER


# Deployment


@pytest.mark.parametrize(
    ("wanted", "status", "waiting"),
    [
        (3, {"replicas": 3, "updatedReplicas": 3, "availableReplicas": 3}, ""),
        (3, {"replicas": 2, "updatedReplicas": 2, "availableReplicas": 2}, "2 of 3 replicas are updated"),
        (3, {},                                                            "0 of 3 replicas are updated"),
        (3, {"replicas": 4, "updatedReplicas": 3, "availableReplicas": 4}, "old replicas are still running"),
        (3, {"replicas": 3, "updatedReplicas": 3, "availableReplicas": 1}, "1 of 3 replicas are available"),
        (0, {},                                                            ""),
        (0, {"replicas": 1},                                               "old replicas are still running"),
        (None, {"replicas": 1, "updatedReplicas": 1, "availableReplicas": 1}, ""),
        (None, {},                                                         "0 of 1 replicas are updated"),
    ],
)  # fmt: skip
def test_a_deployment_waits_for_its_replicas(wanted: int | None, status: Obj, waiting: str) -> None:
    spec = {} if wanted is None else {"replicas": wanted}

    assert health(workload("Deployment", spec, **status)) == Health(waiting)


def test_a_deployment_past_its_deadline_has_failed_with_the_message_of_its_condition() -> None:
    late = {"type": "Progressing", "status": "False", "reason": "ProgressDeadlineExceeded"}

    assert health(workload("Deployment", conditions=[late])).failed == "ProgressDeadlineExceeded"
    said = {**late, "message": "no quota"}
    assert health(workload("Deployment", conditions=[said])).failed == "no quota"


def test_a_deployment_that_progresses_has_not_failed() -> None:
    going = {"type": "Progressing", "status": "True", "reason": "ReplicaSetUpdated"}

    assert not health(workload("Deployment", conditions=[going])).failed


# ReplicaSet and ReplicationController


@pytest.mark.parametrize("kind", ["ReplicaSet", "ReplicationController"])
@pytest.mark.parametrize(
    ("wanted", "status", "waiting"),
    [
        (3,    {"replicas": 3, "readyReplicas": 3, "availableReplicas": 3}, ""),
        (3,    {"replicas": 3, "readyReplicas": 3, "availableReplicas": 2}, "2 of 3 replicas are available"),
        (3,    {"replicas": 3, "readyReplicas": 3},                         "0 of 3 replicas are available"),
        (3,    {"replicas": 4, "availableReplicas": 4},                     "4 replicas are still running, and 3 are wanted"),
        (0,    {"replicas": 1},                                             "1 replicas are still running, and 0 are wanted"),
        (0,    {},                                                          ""),
        (None, {"replicas": 1, "availableReplicas": 1},                     ""),
        (None, {},                                                          "0 of 1 replicas are available"),
    ],
)  # fmt: skip
def test_a_replica_set_waits_for_its_replicas(
    kind: str, wanted: int | None, status: Obj, waiting: str
) -> None:
    spec = {} if wanted is None else {"replicas": wanted}

    assert health(workload(kind, spec, **status)) == Health(waiting)


@pytest.mark.parametrize(
    ("kind", "missing"),
    [
        ("Deployment", "0 of 1 replicas are updated"),
        ("ReplicaSet", "0 of 1 replicas are available"),
        ("ReplicationController", "0 of 1 replicas are available"),
    ],
)
@pytest.mark.parametrize(
    ("condition", "because"),
    [
        ({"status": "True", "message": "exceeded quota"}, ": exceeded quota"),
        ({"status": "True"}, ""),
        ({"status": "False", "message": "exceeded quota"}, ""),
    ],
)
def test_replicas_that_are_refused_are_missing_for_that_reason(
    kind: str, missing: str, condition: Obj, because: str
) -> None:
    refused = [{"type": "ReplicaFailure", **condition}]

    assert health(workload(kind, conditions=refused)) == Health(f"{missing}{because}")


def test_a_refusal_says_nothing_about_replicas_that_are_there() -> None:
    refused = conditions(ReplicaFailure="True")

    assert health(workload("ReplicaSet", replicas=1, availableReplicas=1, conditions=refused)) == SETTLED


# StatefulSet


@pytest.mark.parametrize(
    ("spec", "status", "waiting"),
    [
        ({"replicas": 3}, {"updatedReplicas": 3, "availableReplicas": 3},  ""),
        ({"replicas": 3}, {"updatedReplicas": 3, "readyReplicas": 3},      ""),
        ({"replicas": 3}, {"updatedReplicas": 1, "availableReplicas": 3},  "1 of 3 replicas are updated"),
        ({"replicas": 3}, {"updatedReplicas": 3, "availableReplicas": 2},  "2 of 3 replicas are available"),
        ({"replicas": 3}, {"updatedReplicas": 3, "availableReplicas": 0, "readyReplicas": 3}, "0 of 3 replicas are available"),
        ({"replicas": 3, "updateStrategy": {"type": "OnDelete"}}, {"availableReplicas": 3}, ""),
        ({"replicas": 3, "updateStrategy": {"rollingUpdate": {"partition": 2}}}, {"updatedReplicas": 1, "availableReplicas": 3}, ""),
        ({"replicas": 3, "updateStrategy": {"rollingUpdate": {"partition": 2}}}, {"availableReplicas": 3}, "0 of 1 replicas are updated"),
        ({"replicas": 3, "updateStrategy": {"rollingUpdate": {"partition": 9}}}, {"availableReplicas": 3}, ""),
    ],
)  # fmt: skip
def test_a_stateful_set_waits_for_the_replicas_that_are_due(spec: Obj, status: Obj, waiting: str) -> None:
    assert health(workload("StatefulSet", spec, **status)) == Health(waiting)


# DaemonSet


@pytest.mark.parametrize(
    ("strategy", "updated", "available", "waiting"),
    [
        ("RollingUpdate", 2, 2, ""),
        ("RollingUpdate", 1, 2, "1 of 2 pods are updated"),
        ("RollingUpdate", 2, 1, "1 of 2 pods are available"),
        ("OnDelete",      0, 2, ""),
        ("OnDelete",      0, 1, "1 of 2 pods are available"),
    ],
)  # fmt: skip
def test_a_daemon_set_waits_for_its_pods(strategy: str, updated: int, available: int, waiting: str) -> None:
    spec = {"updateStrategy": {"type": strategy}}
    counts = {
        "desiredNumberScheduled": 2,
        "updatedNumberScheduled": updated,
        "numberAvailable": available,
    }

    assert health(workload("DaemonSet", spec, **counts)) == Health(waiting)


# Job


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        ({},                                                       SETTLED),
        ({"active": 1},                                            SETTLED),
        ({"failed": 2},                                            Health("2 pods have failed")),
        ({"failed": 2, "conditions": conditions(Complete="True")}, SETTLED),
        ({"conditions": conditions(Failed="False")},               SETTLED),
        ({"conditions": conditions(Failed="True")},                Health("it has failed", "it has failed")),
        ({"conditions": [{"type": "Failed", "status": "True", "reason": "BackoffLimitExceeded"}]}, Health("it has failed", "BackoffLimitExceeded")),
        ({"conditions": [{"type": "Failed", "status": "True", "message": "too often"}]}, Health("it has failed", "too often")),
    ],
)  # fmt: skip
def test_a_job_is_settled_unless_its_pods_fail(status: Obj, expected: Health) -> None:
    assert health(workload("Job", **status)) == expected


# Pod


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        ({},                                                                       Health("it is not ready")),
        ({"phase": "Pending"},                                                     Health("it is not ready")),
        ({"phase": "Pending", "conditions": conditions(PodScheduled="False")},     Health("it is not scheduled")),
        ({"phase": "Pending", "conditions": [{"type": "PodScheduled", "status": "False", "message": "no node"}]}, Health("it is not scheduled: no node")),
        ({"phase": "Pending", "conditions": conditions(PodScheduled="True", Ready="False")}, Health("it is not ready")),
        ({"phase": "Running"},                                                     Health("it is not ready")),
        ({"phase": "Running", "conditions": conditions(Ready="Unknown")},          Health("it is not ready")),
        ({"phase": "Running", "conditions": [{"type": "Ready", "status": "False", "message": "main crashes"}]}, Health("it is not ready: main crashes")),
        ({"phase": "Running", "conditions": conditions(Ready="True")},             SETTLED),
        ({"phase": "Succeeded", "conditions": conditions(Ready="False")},          SETTLED),
        ({"phase": "Failed"},                                                      Health("it has failed", "it has failed")),
        ({"phase": "Failed", "reason": "Evicted"},                                 Health("it has failed", "Evicted")),
        ({"phase": "Failed", "reason": "Evicted", "message": "low on memory"},     Health("it has failed", "low on memory")),
    ],
)  # fmt: skip
def test_a_pod_waits_until_it_is_ready_or_has_succeeded(status: Obj, expected: Health) -> None:
    assert health(workload("Pod", **status)) == expected


# What conditions report


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ({"type": "Failed", "status": "True"},                           Health("Failed is True", "Failed is True")),
        ({"type": "Degraded", "status": "True", "message": "no disk"},   Health("Degraded is True: no disk", "Degraded is True: no disk")),
        ({"type": "ReplicaFailure", "status": "True", "reason": "Quota"}, Health("ReplicaFailure is True: Quota", "ReplicaFailure is True: Quota")),
        ({"type": "Applied", "status": "False"},                         Health("Applied is False")),
        ({"type": "Available", "status": "False", "message": "not yet"}, Health("Available is False: not yet")),
        ({"type": "Ready", "status": "False"},                           Health("Ready is False")),
        ({"type": "Ready", "status": "Unknown"},                         SETTLED),
        ({"type": "Ready", "status": "True"},                            SETTLED),
        ({"type": "Progressing", "status": "True"},                      SETTLED),
        ({"type": "Progressing", "status": "False"},                     SETTLED),
        ({"status": "True"},                                             SETTLED),
    ],
)  # fmt: skip
def test_an_object_is_as_healthy_as_its_usual_conditions_report(condition: Obj, expected: Health) -> None:
    obj = {"apiVersion": "example.com/v1", "kind": "Thing", "status": {"conditions": [condition]}}

    assert reported_health(obj) == expected
    assert health(obj) == SETTLED


@pytest.mark.parametrize(
    "status", [None, {}, {"conditions": None}, {"conditions": "none"}, {"conditions": [1]}]
)
def test_an_object_that_reports_no_conditions_is_settled(status: Any) -> None:
    assert reported_health({"apiVersion": "v1", "kind": "Thing", "status": status}) == SETTLED


def test_a_failure_is_reported_before_what_is_not_ready() -> None:
    obj = workload("Thing", conditions=conditions(Ready="False", Failed="True"))

    assert reported_health(obj).failed == "Failed is True"


# All of them


@given(
    kind=st.sampled_from((*WITH_GENERATION, "Pod", "Job")),
    wanted=st.integers(0, 3),
    counts=st.lists(st.integers(0, 4), min_size=7, max_size=7),
)
def test_what_has_failed_always_waits_and_what_is_settled_does_neither(
    kind: str, wanted: int, counts: list[int]
) -> None:
    names = [
        "replicas",
        "updatedReplicas",
        "availableReplicas",
        "desiredNumberScheduled",
        "updatedNumberScheduled",
        "numberAvailable",
        "failed",
    ]
    status: dict[str, Any] = dict(zip(names, counts, strict=True))
    obj = workload(kind, {"replicas": wanted}, **status)
    found = health(obj)

    assert is_well_known(obj)
    assert bool(found.waiting) or not found.failed
    assert (found == SETTLED) is (not found.waiting)
