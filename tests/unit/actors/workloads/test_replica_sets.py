"""As many pods as were asked for, and what a ReplicaSet says about them."""

from random import Random
from typing import Any

import pytest

from lamina.actors.workloads.replicas import BURST
from lamina.actors.workloads.replicaset import REPLICA_SETS
from lamina.actors.workloads.replication import REPLICATION_CONTROLLERS
from lamina.core.plan import Create, Delete
from lamina.core.questions import Answers
from lamina.errors import Cause, Forbidden, PlanFailed
from lamina.objects import meta
from lamina.objects.types import Ref
from lamina.paper import Crashed, Paper, planned, settle
from lamina.paper.kinds import POD, REPLICATION_CONTROLLER, make
from tests.unit.actors.workloads.growing import (
    LABELS,
    SET,
    active_pods,
    become,
    condition,
    names,
    pass_time,
    pods,
    replica_set,
    template,
    told,
)


@pytest.fixture
def paper() -> Paper:
    return Paper()


def _status(paper: Paper, ref: Ref = SET) -> dict[str, Any]:
    return dict(paper.get(ref)["status"])


def test_a_set_makes_its_pods_of_its_template(paper: Paper) -> None:
    owner = paper.create(replica_set(replicas=3))

    settle(paper, REPLICA_SETS)

    made = pods(paper)
    assert len(made) == 3
    for pod in made:
        assert pod["metadata"]["generateName"] == "web-"
        assert pod["metadata"]["name"].startswith("web-") and len(pod["metadata"]["name"]) == len("web-") + 5
        assert pod["metadata"]["labels"] == LABELS
        assert pod["metadata"]["ownerReferences"] == [meta.owner_ref(owner, controller=True, blocks=True)]
        assert pod["spec"] == template()["spec"]
    assert sorted(told(paper, "SuccessfulCreate")) == sorted(f"Created pod: {name}" for name in names(made))


def test_a_set_says_what_it_sees(paper: Paper) -> None:
    paper.create(replica_set(replicas=3))
    settle(paper, REPLICA_SETS)
    first, second, _ = pods(paper)

    become(paper, first)
    become(paper, second, ready=False)
    settle(paper, REPLICA_SETS)

    assert _status(paper) == {
        "replicas": 3,
        "fullyLabeledReplicas": 3,
        "readyReplicas": 1,
        "availableReplicas": 1,
        "terminatingReplicas": 0,
        "observedGeneration": 1,
    }


def test_a_pod_is_available_once_it_has_been_ready_long_enough(paper: Paper) -> None:
    paper.create(replica_set(replicas=1, spec={"minReadySeconds": 30}))
    settle(paper, REPLICA_SETS)
    become(paper, pods(paper)[0])

    settle(paper, REPLICA_SETS)
    assert "availableReplicas" not in _status(paper)
    plan = planned(paper, REPLICA_SETS, SET)
    assert plan.look_again is not None

    paper.now += plan.look_again
    settle(paper, REPLICA_SETS)
    assert _status(paper)["availableReplicas"] == 1


def test_a_pod_that_finished_or_is_on_its_way_out_is_made_up_for(paper: Paper) -> None:
    paper.create(replica_set(replicas=2))
    settle(paper, REPLICA_SETS)
    first, second = pods(paper)

    become(paper, first)
    paper.patch(meta.ref(first), {"status": {"phase": "Failed"}})
    become(paper, second)
    paper.delete(meta.ref(second))
    settle(paper, REPLICA_SETS)

    assert len(pods(paper)) == 4
    assert _status(paper)["replicas"] == 2
    assert _status(paper)["terminatingReplicas"] == 1


def test_a_pod_that_is_gone_does_not_come_back_under_its_name(paper: Paper) -> None:
    paper.create(replica_set(replicas=1))
    settle(paper, REPLICA_SETS)
    (gone,) = pods(paper)

    paper.delete(meta.ref(gone))
    settle(paper, REPLICA_SETS)

    (new,) = pods(paper)
    assert meta.name(new) != meta.name(gone)


def test_the_pods_that_will_be_missed_least_go_first(paper: Paper) -> None:
    paper.create(replica_set(replicas=3))
    settle(paper, REPLICA_SETS)
    unready, *others = pods(paper)
    for pod in others:
        become(paper, pod)

    paper.patch(SET, {"spec": {"replicas": 2}})
    settle(paper, REPLICA_SETS)

    assert names(active_pods(paper)) == names(others)
    assert told(paper, "SuccessfulDelete") == [f"Deleted pod: {meta.name(unready)}"]


def test_a_set_takes_in_pods_that_match_and_nobody_controls(paper: Paper) -> None:
    orphan = paper.create(make(POD, "stray", labels=LABELS))
    paper.create(make(POD, "other", labels={"app": "other"}))
    owner = paper.create(replica_set(replicas=2))

    settle(paper, REPLICA_SETS)

    assert meta.is_controlled_by(paper.get(meta.ref(orphan)), meta.uid(owner))
    assert len(pods(paper)) == 3, "one was there, and does not have to be made"


def test_a_set_lets_go_of_pods_that_no_longer_match(paper: Paper) -> None:
    paper.create(replica_set(replicas=1))
    settle(paper, REPLICA_SETS)
    (pod,) = pods(paper)

    paper.patch(meta.ref(pod), {"metadata": {"labels": {"app": "debug"}}})
    settle(paper, REPLICA_SETS)

    released = paper.get(meta.ref(pod))
    assert meta.owner_refs(released) == ()
    assert len(pods(paper)) == 2


def test_a_set_on_its_way_out_makes_claims_and_deletes_nothing(paper: Paper) -> None:
    paper.create(make(POD, "stray", labels=LABELS))
    owner = paper.create(replica_set(replicas=3, finalizers=["somebody/holds-it"]))
    paper.delete(meta.ref(owner))

    settle(paper, REPLICA_SETS)

    assert names(pods(paper)) == ["stray"]
    assert not meta.owner_refs(pods(paper)[0])
    assert _status(paper)["replicas"] == 0


def test_a_set_that_only_seems_to_be_there_takes_nothing_in(paper: Paper) -> None:
    paper.create(make(POD, "stray", labels=LABELS))
    paper.create(replica_set(replicas=1))
    view = REPLICA_SETS.gather(paper.world(REPLICA_SETS), SET)
    assert view is not None
    paper.delete(SET)
    again = paper.create(replica_set(replicas=1))

    asked = REPLICA_SETS.questions(view, Answers())
    answers = Answers() | {question: paper.answer(question) for question in asked}
    plan = REPLICA_SETS.plan(view, answers, paper.now)

    assert asked
    assert not any(stage.name == "claim pods" for stage in plan.stages)
    assert meta.uid(again) != meta.uid(view.owner)


def test_pods_are_made_one_then_two_then_four_and_no_more_than_a_burst_at_once(paper: Paper) -> None:
    paper.create(replica_set(replicas=1200))

    plan = planned(paper, REPLICA_SETS, SET)

    batches = [len(stage.actions) for stage in plan.stages if stage.name == "make pods"]
    assert batches[:4] == [1, 2, 4, 8]
    assert sum(batches) == BURST
    made = [action.ref.name for action in plan.actions if isinstance(action, Create)]
    assert len(set(made)) == BURST


def test_a_burst_is_not_told_pod_by_pod(paper: Paper) -> None:
    paper.create(replica_set(replicas=100))

    settle(paper, REPLICA_SETS)

    messages = told(paper, "SuccessfulCreate")
    assert len(messages) == 10
    assert messages[-1].startswith("(combined from similar events): Created pod: web-")


def test_a_refused_pod_is_said_on_the_set_and_told(paper: Paper) -> None:
    paper.create(replica_set(replicas=3))
    refused = PlanFailed([Forbidden('pods "web-x" is forbidden: exceeded quota: q')])

    plan = REPLICA_SETS.complain(paper.world(REPLICA_SETS), SET, refused, paper.now)
    for action in plan.actions:
        paper.perform(action)

    said = condition(paper, "ReplicaFailure", SET)
    assert (said["status"], said["reason"]) == ("True", "FailedCreate")
    assert said["message"] == 'pods "web-x" is forbidden: exceeded quota: q'
    assert told(paper, "FailedCreate") == ['Error creating: pods "web-x" is forbidden: exceeded quota: q']

    settle(paper, REPLICA_SETS)
    assert condition(paper, "ReplicaFailure", SET) == {}, "it is taken back once the pods are there"


def test_an_ending_namespace_is_no_failure(paper: Paper) -> None:
    paper.create(replica_set(replicas=3))
    ending = Forbidden("it is being terminated", causes=[Cause("NamespaceTerminating", "", "")])

    plan = REPLICA_SETS.complain(paper.world(REPLICA_SETS), SET, PlanFailed([ending]), paper.now)

    assert plan.actions == ()


def test_a_plan_carried_out_twice_makes_each_pod_once(paper: Paper) -> None:
    paper.create(replica_set(replicas=4))

    once = planned(paper, REPLICA_SETS, SET)
    twice = planned(paper, REPLICA_SETS, SET)

    assert once == twice


@pytest.mark.parametrize("crash", range(12))
def test_a_crash_after_any_write_leaves_neither_too_many_pods_nor_too_few(crash: int) -> None:
    paper = Paper()
    paper.create(replica_set(replicas=5))
    try:
        settle(paper, REPLICA_SETS, crash_after=crash, random=Random(crash))
    except Crashed:
        assert len(pods(paper)) <= 5
    settle(paper, REPLICA_SETS)

    assert len(pods(paper)) == 5
    assert not [action for action in paper.journal if isinstance(action, Delete)]


def test_a_replication_controller_selects_by_plain_labels(paper: Paper) -> None:
    spec = {"replicas": 2, "selector": LABELS, "template": template()}
    paper.create(make(REPLICATION_CONTROLLER, "web", spec=spec))

    settle(paper, REPLICATION_CONTROLLERS)

    status = paper.get(Ref("v1", "ReplicationController", "default", "web"))["status"]
    assert status == {"replicas": 2, "fullyLabeledReplicas": 2, "observedGeneration": 1}
    (event,) = {
        (action.event["source"]["component"], action.event["involvedObject"]["kind"])
        for action in paper.journal
        if hasattr(action, "event")
    }
    assert event == ("replication-controller", "ReplicationController")


def test_a_settled_set_has_nothing_to_do(paper: Paper) -> None:
    paper.create(replica_set(replicas=2))
    settle(paper, REPLICA_SETS)
    for pod in pods(paper):
        become(paper, pod)
    settle(paper, REPLICA_SETS)

    pass_time(paper, hours=1)
    assert planned(paper, REPLICA_SETS, SET).actions == ()
