"""ReplicaSets: their pods and their status."""

from random import Random
from typing import Any

import pytest

from lamina.actors.workloads.replica_sync import BURST
from lamina.actors.workloads.replicaset import REPLICA_SETS
from lamina.actors.workloads.replicationcontroller import REPLICATION_CONTROLLERS
from lamina.core.model.plan import Create, Delete
from lamina.core.model.queries import Answers
from lamina.errors import Cause, Forbidden, PlanFailed
from lamina.objects import meta
from lamina.objects.types import Ref
from lamina.simulation import Crashed, SimulatedCluster, planned, settle
from lamina.simulation.cluster.kinds import POD, REPLICATION_CONTROLLER, make
from tests.unit.actors.workloads.growing import (
    LABELS,
    SET,
    active_pods,
    become,
    condition,
    event_messages,
    names,
    pass_time,
    pods,
    replica_set,
    template,
)


@pytest.fixture
def cluster() -> SimulatedCluster:
    return SimulatedCluster()


def _status(cluster: SimulatedCluster, ref: Ref = SET) -> dict[str, Any]:
    return dict(cluster.get(ref)["status"])


def test_a_set_makes_its_pods_of_its_template(cluster: SimulatedCluster) -> None:
    owner = cluster.create(replica_set(replicas=3))

    settle(cluster, REPLICA_SETS)

    made = pods(cluster)
    assert len(made) == 3
    for pod in made:
        assert pod["metadata"]["generateName"] == "web-"
        assert pod["metadata"]["name"].startswith("web-") and len(pod["metadata"]["name"]) == len("web-") + 5
        assert pod["metadata"]["labels"] == LABELS
        assert pod["metadata"]["ownerReferences"] == [meta.owner_ref(owner, controller=True, blocks=True)]
        assert pod["spec"] == template()["spec"]
    assert sorted(event_messages(cluster, "SuccessfulCreate")) == sorted(
        f"Created pod: {name}" for name in names(made)
    )


def test_a_set_says_what_it_sees(cluster: SimulatedCluster) -> None:
    cluster.create(replica_set(replicas=3))
    settle(cluster, REPLICA_SETS)
    first, second, _ = pods(cluster)

    become(cluster, first)
    become(cluster, second, ready=False)
    settle(cluster, REPLICA_SETS)

    assert _status(cluster) == {
        "replicas": 3,
        "fullyLabeledReplicas": 3,
        "readyReplicas": 1,
        "availableReplicas": 1,
        "terminatingReplicas": 0,
        "observedGeneration": 1,
    }


def test_a_pod_is_available_once_it_has_been_ready_long_enough(cluster: SimulatedCluster) -> None:
    cluster.create(replica_set(replicas=1, spec={"minReadySeconds": 30}))
    settle(cluster, REPLICA_SETS)
    become(cluster, pods(cluster)[0])

    settle(cluster, REPLICA_SETS)
    assert "availableReplicas" not in _status(cluster)
    plan = planned(cluster, REPLICA_SETS, SET)
    assert plan.requeue_after is not None

    cluster.now += plan.requeue_after
    settle(cluster, REPLICA_SETS)
    assert _status(cluster)["availableReplicas"] == 1


def test_a_pod_that_finished_or_is_on_its_way_out_is_made_up_for(cluster: SimulatedCluster) -> None:
    cluster.create(replica_set(replicas=2))
    settle(cluster, REPLICA_SETS)
    first, second = pods(cluster)

    become(cluster, first)
    cluster.patch(meta.ref(first), {"status": {"phase": "Failed"}})
    become(cluster, second)
    cluster.delete(meta.ref(second))
    settle(cluster, REPLICA_SETS)

    assert len(pods(cluster)) == 4
    assert _status(cluster)["replicas"] == 2
    assert _status(cluster)["terminatingReplicas"] == 1


def test_a_pod_that_is_gone_does_not_come_back_under_its_name(cluster: SimulatedCluster) -> None:
    cluster.create(replica_set(replicas=1))
    settle(cluster, REPLICA_SETS)
    (gone,) = pods(cluster)

    cluster.delete(meta.ref(gone))
    settle(cluster, REPLICA_SETS)

    (new,) = pods(cluster)
    assert meta.name(new) != meta.name(gone)


def test_the_pods_that_will_be_missed_least_go_first(cluster: SimulatedCluster) -> None:
    cluster.create(replica_set(replicas=3))
    settle(cluster, REPLICA_SETS)
    unready, *others = pods(cluster)
    for pod in others:
        become(cluster, pod)

    cluster.patch(SET, {"spec": {"replicas": 2}})
    settle(cluster, REPLICA_SETS)

    assert names(active_pods(cluster)) == names(others)
    assert event_messages(cluster, "SuccessfulDelete") == [f"Deleted pod: {meta.name(unready)}"]


def test_a_set_adopts_pods_that_match_and_have_no_controller(cluster: SimulatedCluster) -> None:
    orphan = cluster.create(make(POD, "stray", labels=LABELS))
    cluster.create(make(POD, "other", labels={"app": "other"}))
    owner = cluster.create(replica_set(replicas=2))

    settle(cluster, REPLICA_SETS)

    assert meta.is_controlled_by(cluster.get(meta.ref(orphan)), meta.uid(owner))
    assert len(pods(cluster)) == 3, "one was there, and does not have to be made"


def test_a_set_lets_go_of_pods_that_no_longer_match(cluster: SimulatedCluster) -> None:
    cluster.create(replica_set(replicas=1))
    settle(cluster, REPLICA_SETS)
    (pod,) = pods(cluster)

    cluster.patch(meta.ref(pod), {"metadata": {"labels": {"app": "debug"}}})
    settle(cluster, REPLICA_SETS)

    released = cluster.get(meta.ref(pod))
    assert meta.owner_refs(released) == ()
    assert len(pods(cluster)) == 2


def test_a_set_on_its_way_out_makes_claims_and_deletes_nothing(cluster: SimulatedCluster) -> None:
    cluster.create(make(POD, "stray", labels=LABELS))
    owner = cluster.create(replica_set(replicas=3, finalizers=["somebody/holds-it"]))
    cluster.delete(meta.ref(owner))

    settle(cluster, REPLICA_SETS)

    assert names(pods(cluster)) == ["stray"]
    assert not meta.owner_refs(pods(cluster)[0])
    assert _status(cluster)["replicas"] == 0


def test_a_set_that_only_seems_to_be_there_takes_nothing_in(cluster: SimulatedCluster) -> None:
    cluster.create(make(POD, "stray", labels=LABELS))
    cluster.create(replica_set(replicas=1))
    view = REPLICA_SETS.gather(cluster.world(REPLICA_SETS), SET)
    assert view is not None
    cluster.delete(SET)
    again = cluster.create(replica_set(replicas=1))

    asked = REPLICA_SETS.queries(view, Answers())
    answers = Answers() | {question: cluster.answer(question) for question in asked}
    plan = REPLICA_SETS.plan(view, answers, cluster.now)

    assert asked
    assert not any(stage.name == "claim pods" for stage in plan.stages)
    assert meta.uid(again) != meta.uid(view.owner)


def test_pods_are_made_one_then_two_then_four_and_no_more_than_a_burst_at_once(
    cluster: SimulatedCluster,
) -> None:
    cluster.create(replica_set(replicas=1200))

    plan = planned(cluster, REPLICA_SETS, SET)

    batches = [len(stage.actions) for stage in plan.stages if stage.name == "create pods"]
    assert batches[:4] == [1, 2, 4, 8]
    assert sum(batches) == BURST
    made = [action.ref.name for action in plan.actions if isinstance(action, Create)]
    assert len(set(made)) == BURST


def test_a_burst_is_not_told_pod_by_pod(cluster: SimulatedCluster) -> None:
    cluster.create(replica_set(replicas=100))

    settle(cluster, REPLICA_SETS)

    messages = event_messages(cluster, "SuccessfulCreate")
    assert len(messages) == 10
    assert messages[-1].startswith("(combined from similar events): Created pod: web-")


def test_a_refused_pod_is_said_on_the_set_and_told(cluster: SimulatedCluster) -> None:
    cluster.create(replica_set(replicas=3))
    refused = PlanFailed([Forbidden('pods "web-x" is forbidden: exceeded quota: q')])

    plan = REPLICA_SETS.complain(cluster.world(REPLICA_SETS), SET, refused, cluster.now)
    for action in plan.actions:
        cluster.perform(action)

    said = condition(cluster, "ReplicaFailure", SET)
    assert (said["status"], said["reason"]) == ("True", "FailedCreate")
    assert said["message"] == 'pods "web-x" is forbidden: exceeded quota: q'
    assert event_messages(cluster, "FailedCreate") == [
        'Error creating: pods "web-x" is forbidden: exceeded quota: q'
    ]

    settle(cluster, REPLICA_SETS)
    assert condition(cluster, "ReplicaFailure", SET) == {}, "it is taken back once the pods are there"


def test_an_ending_namespace_is_no_failure(cluster: SimulatedCluster) -> None:
    cluster.create(replica_set(replicas=3))
    ending = Forbidden("it is being terminated", causes=[Cause("NamespaceTerminating", "", "")])

    plan = REPLICA_SETS.complain(cluster.world(REPLICA_SETS), SET, PlanFailed([ending]), cluster.now)

    assert plan.actions == ()


def test_a_plan_carried_out_twice_makes_each_pod_once(cluster: SimulatedCluster) -> None:
    cluster.create(replica_set(replicas=4))

    once = planned(cluster, REPLICA_SETS, SET)
    twice = planned(cluster, REPLICA_SETS, SET)

    assert once == twice


@pytest.mark.parametrize("crash", range(12))
def test_a_crash_after_any_write_leaves_neither_too_many_pods_nor_too_few(crash: int) -> None:
    cluster = SimulatedCluster()
    cluster.create(replica_set(replicas=5))
    try:
        settle(cluster, REPLICA_SETS, crash_after=crash, random=Random(crash))
    except Crashed:
        assert len(pods(cluster)) <= 5
    settle(cluster, REPLICA_SETS)

    assert len(pods(cluster)) == 5
    assert not [action for action in cluster.journal if isinstance(action, Delete)]


def test_a_replication_controller_selects_by_plain_labels(cluster: SimulatedCluster) -> None:
    spec = {"replicas": 2, "selector": LABELS, "template": template()}
    cluster.create(make(REPLICATION_CONTROLLER, "web", spec=spec))

    settle(cluster, REPLICATION_CONTROLLERS)

    status = cluster.get(Ref("v1", "ReplicationController", "default", "web"))["status"]
    assert status == {"replicas": 2, "fullyLabeledReplicas": 2, "observedGeneration": 1}
    (event,) = {
        (action.event["source"]["component"], action.event["involvedObject"]["kind"])
        for action in cluster.journal
        if hasattr(action, "event")
    }
    assert event == ("replication-controller", "ReplicationController")


def test_a_settled_set_has_nothing_to_do(cluster: SimulatedCluster) -> None:
    cluster.create(replica_set(replicas=2))
    settle(cluster, REPLICA_SETS)
    for pod in pods(cluster):
        become(cluster, pod)
    settle(cluster, REPLICA_SETS)

    pass_time(cluster, hours=1)
    assert planned(cluster, REPLICA_SETS, SET).actions == ()
