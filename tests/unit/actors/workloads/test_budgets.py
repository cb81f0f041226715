"""PodDisruptionBudgets in a simulated cluster."""

from datetime import timedelta
from typing import Any

import pytest

from lamina.actors.workloads.disruption import BUDGETS
from lamina.objects import meta
from lamina.objects.conditions import find
from lamina.objects.times import stamp
from lamina.objects.types import Made, Ref
from lamina.simulation import SimulatedCluster, planned, settle
from lamina.simulation.cluster.kinds import BUDGET, DEPLOYMENT, EVENT, POD, REPLICA_SET, WIDGET, make

REF = Ref("policy/v1", "PodDisruptionBudget", "default", "b")


def budget(**spec: Any) -> Made:
    made = make(BUDGET, "b", spec={"selector": {"matchLabels": {"app": "a"}}, **spec})
    made["metadata"]["generation"] = 1
    return made


def pod(name: str, *owners: Made, ready: bool = True, **fields: Any) -> Made:
    refs = [meta.owner_ref(owner, controller=True) for owner in owners]
    status = {"phase": "Running", "conditions": [{"type": "Ready", "status": str(ready)}]}
    return make(
        POD, name, labels={"app": "a"}, ownerReferences=refs, **{"spec": {}, "status": status, **fields}
    )


def replica_set(cluster: SimulatedCluster, replicas: int, *owners: Made, name: str = "rs") -> Made:
    refs = [meta.owner_ref(owner, controller=True) for owner in owners]
    return cluster.create(make(REPLICA_SET, name, ownerReferences=refs, spec={"replicas": replicas}))


def status_of(cluster: SimulatedCluster) -> tuple[int, int, int, int]:
    status = cluster.get(REF)["status"]
    return (
        status["currentHealthy"],
        status["desiredHealthy"],
        status["expectedPods"],
        status["disruptionsAllowed"],
    )


@pytest.mark.parametrize(
    ("spec", "ready", "unready", "told"),
    [
        ({"minAvailable": 1}, 3, 0, (3, 1, 3, 2)),
        ({"minAvailable": 3}, 3, 0, (3, 3, 3, 0)),
        ({"minAvailable": 2}, 1, 2, (1, 2, 3, 0)),
        ({"minAvailable": 1}, 0, 0, (0, 1, 0, 0)),
        ({"minAvailable": "50%"}, 3, 0, (3, 3, 5, 0)),
        ({"maxUnavailable": 1}, 5, 0, (5, 4, 5, 1)),
        ({"maxUnavailable": "50%"}, 5, 0, (5, 2, 5, 3)),
        ({"maxUnavailable": 9}, 2, 0, (2, 0, 5, 2)),
        ({}, 2, 0, (2, 0, 2, 2)),
    ],
    ids=[
        "one has to stay",
        "all have to",
        "too few are well",
        "no pods",
        "half of five, rounded up",
        "one may go",
        "half of five may, rounded up",
        "more may go than there are",
        "nothing is asked",
    ],
)  # fmt: skip
def test_a_budget_counts(spec: Made, ready: int, unready: int, told: tuple[int, ...]) -> None:
    cluster = SimulatedCluster()
    cluster.create(budget(**spec))
    owner = replica_set(cluster, 5)
    for number in range(ready + unready):
        cluster.create(pod(f"p-{number}", owner, ready=number < ready))

    settle(cluster, BUDGETS)

    assert status_of(cluster) == told


def test_the_scale_of_a_replica_set_is_that_of_its_deployment() -> None:
    cluster = SimulatedCluster()
    cluster.create(budget(maxUnavailable=1))
    deployment = cluster.create(make(DEPLOYMENT, "d", spec={"replicas": 4}))
    for name, replicas in (("old", 1), ("new", 3)):
        owner = replica_set(cluster, replicas, deployment, name=name)
        cluster.create(pod(f"{name}-pod", owner))
    settle(cluster, BUDGETS)
    assert cluster.get(REF)["status"]["expectedPods"] == 8

    cluster.patch(meta.ref(deployment), {"spec": {"replicas": 1}})
    settle(cluster, BUDGETS)

    assert cluster.get(REF)["status"]["expectedPods"] == 2


def test_a_scale_that_cannot_be_found_allows_no_disruption_and_says_why() -> None:
    cluster = SimulatedCluster()
    cluster.create(budget(maxUnavailable=1))
    cluster.create(pod("p", cluster.create(make(WIDGET, "w"))))

    settle(cluster, BUDGETS)

    status = cluster.get(REF)["status"]
    said = find(status["conditions"], "DisruptionAllowed")
    assert said is not None
    assert (said["status"], said["reason"]) == ("False", "SyncFailed")
    assert said["message"] == "widgets.ex.example.com does not implement the scale subresource"
    assert status["disruptionsAllowed"] == 0
    assert "CalculateExpectedPodCountFailed" in [one["reason"] for one in cluster.listed(EVENT)]


def test_an_eviction_that_is_under_way_counts_until_its_pod_goes_or_should_have() -> None:
    cluster = SimulatedCluster()
    cluster.create(budget(minAvailable=1))
    for name in "abc":
        cluster.create(pod(name))
    settle(cluster, BUDGETS)
    noted = {"a": stamp(cluster.now), "b": stamp(cluster.now), "gone": stamp(cluster.now)}
    cluster.patch(REF, {"status": {"disruptionsAllowed": 0, "disruptedPods": noted}})

    settle(cluster, BUDGETS)
    assert status_of(cluster) == (1, 1, 3, 0)
    assert set(cluster.get(REF)["status"]["disruptedPods"]) == {"a", "b"}
    assert planned(cluster, BUDGETS, REF).requeue_after == timedelta(minutes=2)

    cluster.now += timedelta(minutes=3)
    settle(cluster, BUDGETS)
    assert status_of(cluster) == (3, 1, 3, 2)
    assert "disruptedPods" not in cluster.get(REF)["status"]


def test_a_pod_that_was_to_go_and_did_not_takes_it_back() -> None:
    cluster = SimulatedCluster()
    said = {"type": "DisruptionTarget", "status": "True", "lastTransitionTime": stamp(cluster.now)}
    cluster.create(pod("p", status={"phase": "Running", "conditions": [said]}))
    ref = Ref("v1", "Pod", "default", "p")
    assert planned(cluster, BUDGETS, ref).requeue_after == timedelta(minutes=2)

    cluster.now += timedelta(minutes=2)
    settle(cluster, BUDGETS)

    assert [one["status"] for one in cluster.get(ref)["status"]["conditions"]] == ["False"]


def test_a_budget_without_a_selector_covers_no_pods_and_an_empty_one_all() -> None:
    for selector, many in ((None, 0), ({}, 2)):
        cluster = SimulatedCluster()
        cluster.create(budget(minAvailable=0, selector=selector))
        cluster.create(pod("a"))
        cluster.create({**pod("b"), "metadata": {"name": "b", "namespace": "default"}})

        settle(cluster, BUDGETS)

        assert cluster.get(REF)["status"]["expectedPods"] == many


def test_unmanaged_pods_are_reported() -> None:
    cluster = SimulatedCluster()
    cluster.create(budget(maxUnavailable=1))
    cluster.create(pod("a"))

    settle(cluster, BUDGETS)

    assert [one["reason"] for one in cluster.listed(EVENT)] == ["UnmanagedPods"]
    assert status_of(cluster) == (1, 0, 0, 0)
