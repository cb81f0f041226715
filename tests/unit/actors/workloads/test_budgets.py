"""Budgets of disruption, told on paper."""

from datetime import timedelta
from typing import Any

import pytest

from lamina.actors.workloads.disruption import BUDGETS
from lamina.objects import meta
from lamina.objects.conditions import find
from lamina.objects.times import stamp
from lamina.objects.types import Made, Ref
from lamina.paper import Paper, planned, settle
from lamina.paper.kinds import BUDGET, DEPLOYMENT, EVENT, POD, REPLICA_SET, WIDGET, make

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


def replica_set(paper: Paper, replicas: int, *owners: Made, name: str = "rs") -> Made:
    refs = [meta.owner_ref(owner, controller=True) for owner in owners]
    return paper.create(make(REPLICA_SET, name, ownerReferences=refs, spec={"replicas": replicas}))


def status_of(paper: Paper) -> tuple[int, int, int, int]:
    status = paper.get(REF)["status"]
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
        "nobody is there",
        "half of five, rounded up",
        "one may go",
        "half of five may, rounded up",
        "more may go than there are",
        "nothing is asked",
    ],
)  # fmt: skip
def test_a_budget_counts(spec: Made, ready: int, unready: int, told: tuple[int, ...]) -> None:
    paper = Paper()
    paper.create(budget(**spec))
    owner = replica_set(paper, 5)
    for number in range(ready + unready):
        paper.create(pod(f"p-{number}", owner, ready=number < ready))

    settle(paper, BUDGETS)

    assert status_of(paper) == told


def test_the_scale_of_a_replica_set_is_that_of_its_deployment() -> None:
    paper = Paper()
    paper.create(budget(maxUnavailable=1))
    deployment = paper.create(make(DEPLOYMENT, "d", spec={"replicas": 4}))
    for name, replicas in (("old", 1), ("new", 3)):
        owner = replica_set(paper, replicas, deployment, name=name)
        paper.create(pod(f"{name}-pod", owner))
    settle(paper, BUDGETS)
    assert paper.get(REF)["status"]["expectedPods"] == 8

    paper.patch(meta.ref(deployment), {"spec": {"replicas": 1}})
    settle(paper, BUDGETS)

    assert paper.get(REF)["status"]["expectedPods"] == 2


def test_a_scale_that_cannot_be_found_spares_nobody_and_says_why() -> None:
    paper = Paper()
    paper.create(budget(maxUnavailable=1))
    paper.create(pod("p", paper.create(make(WIDGET, "w"))))

    settle(paper, BUDGETS)

    status = paper.get(REF)["status"]
    said = find(status["conditions"], "DisruptionAllowed")
    assert said is not None
    assert (said["status"], said["reason"]) == ("False", "SyncFailed")
    assert said["message"] == "widgets.ex.example.com does not implement the scale subresource"
    assert status["disruptionsAllowed"] == 0
    assert "CalculateExpectedPodCountFailed" in [one["reason"] for one in paper.listed(EVENT)]


def test_an_eviction_that_is_under_way_counts_until_its_pod_goes_or_should_have() -> None:
    paper = Paper()
    paper.create(budget(minAvailable=1))
    for name in "abc":
        paper.create(pod(name))
    settle(paper, BUDGETS)
    noted = {"a": stamp(paper.now), "b": stamp(paper.now), "gone": stamp(paper.now)}
    paper.patch(REF, {"status": {"disruptionsAllowed": 0, "disruptedPods": noted}})

    settle(paper, BUDGETS)
    assert status_of(paper) == (1, 1, 3, 0)
    assert set(paper.get(REF)["status"]["disruptedPods"]) == {"a", "b"}
    assert planned(paper, BUDGETS, REF).look_again == timedelta(minutes=2)

    paper.now += timedelta(minutes=3)
    settle(paper, BUDGETS)
    assert status_of(paper) == (3, 1, 3, 2)
    assert "disruptedPods" not in paper.get(REF)["status"]


def test_a_pod_that_was_to_go_and_did_not_takes_it_back() -> None:
    paper = Paper()
    said = {"type": "DisruptionTarget", "status": "True", "lastTransitionTime": stamp(paper.now)}
    paper.create(pod("p", status={"phase": "Running", "conditions": [said]}))
    ref = Ref("v1", "Pod", "default", "p")
    assert planned(paper, BUDGETS, ref).look_again == timedelta(minutes=2)

    paper.now += timedelta(minutes=2)
    settle(paper, BUDGETS)

    assert [one["status"] for one in paper.get(ref)["status"]["conditions"]] == ["False"]


def test_a_budget_without_a_selector_covers_nobody_and_an_empty_one_everybody() -> None:
    for selector, many in ((None, 0), ({}, 2)):
        paper = Paper()
        paper.create(budget(minAvailable=0, selector=selector))
        paper.create(pod("a"))
        paper.create({**pod("b"), "metadata": {"name": "b", "namespace": "default"}})

        settle(paper, BUDGETS)

        assert paper.get(REF)["status"]["expectedPods"] == many


def test_pods_that_nobody_manages_are_told_of() -> None:
    paper = Paper()
    paper.create(budget(maxUnavailable=1))
    paper.create(pod("a"))

    settle(paper, BUDGETS)

    assert [one["reason"] for one in paper.listed(EVENT)] == ["UnmanagedPods"]
    assert status_of(paper) == (1, 0, 0, 0)
