"""Deployments: revisions, rollouts, status and events."""

from typing import Any

import pytest

from lamina.actors.workloads.deployment import DEPLOYMENTS
from lamina.core.model.plan import Patch
from lamina.errors import Forbidden, PlanFailed
from lamina.objects import meta
from lamina.objects.types import Made, Obj, Ref
from lamina.simulation import SimulatedCluster, planned
from lamina.simulation.cluster.kinds import DEPLOYMENT, REPLICA_SET
from tests.unit.actors.workloads.growing import (
    LABELS,
    WEB,
    active_pods,
    condition,
    deployment,
    edit,
    event_messages,
    live,
    pass_time,
    pods,
    recreating,
    replica_set,
    run,
    sets,
    sizes,
    template,
)

REVISION = "deployment.kubernetes.io/revision"


@pytest.fixture
def cluster() -> SimulatedCluster:
    return SimulatedCluster()


def _well(image: str) -> bool:
    return "bad" not in image


def _status(cluster: SimulatedCluster) -> Made:
    return {key: value for key, value in cluster.get(WEB)["status"].items() if key != "conditions"}


def _images(cluster: SimulatedCluster) -> list[str]:
    return [pod["spec"]["containers"][0]["image"] for pod in active_pods(cluster)]


def _annotations(obj: Obj) -> dict[str, str]:
    return {key.rpartition("/")[2]: value for key, value in meta.annotations(obj).items()}


# ── the first rollout ──


def test_a_deployment_makes_a_set_named_after_its_template(cluster: SimulatedCluster) -> None:
    owner = cluster.create(
        deployment(replicas=3, annotations={"team": "blue", "deprecated.deployment.rollback.to": ""})
    )

    run(cluster)

    (made,) = cluster.listed(REPLICA_SET)
    hashed = made["metadata"]["labels"]["pod-template-hash"]
    assert meta.name(made) == f"web-{hashed}"
    assert made["metadata"]["labels"] == {**LABELS, "pod-template-hash": hashed}
    assert made["spec"]["selector"] == {"matchLabels": {**LABELS, "pod-template-hash": hashed}}
    assert made["spec"]["template"] == template(**{"pod-template-hash": hashed})
    assert made["metadata"]["ownerReferences"] == [meta.owner_ref(owner, controller=True, blocks=True)]
    assert _annotations(made) == {
        "revision": "1", "desired-replicas": "3", "max-replicas": "4", "team": "blue",
    }  # fmt: skip
    assert cluster.get(WEB)["metadata"]["annotations"][REVISION] == "1"
    assert event_messages(cluster, "ScalingReplicaSet") == [
        f"Scaled up replica set {meta.name(made)} from 0 to 3"
    ]


def test_a_rollout_says_how_it_is_going(cluster: SimulatedCluster) -> None:
    cluster.create(deployment(replicas=3))

    run(cluster)
    (made,) = cluster.listed(REPLICA_SET)
    assert _status(cluster) == {
        "observedGeneration": 1,
        "replicas": 3,
        "updatedReplicas": 3,
        "unavailableReplicas": 3,
        "terminatingReplicas": 0,
    }
    assert condition(cluster, "Available")["reason"] == "MinimumReplicasUnavailable"
    progressing = condition(cluster, "Progressing")
    assert (progressing["status"], progressing["reason"]) == ("True", "ReplicaSetUpdated")
    assert progressing["message"] == f'ReplicaSet "{meta.name(made)}" is progressing.'

    live(cluster)
    assert _status(cluster) == {
        "observedGeneration": 1,
        "replicas": 3,
        "updatedReplicas": 3,
        "readyReplicas": 3,
        "availableReplicas": 3,
        "terminatingReplicas": 0,
    }
    assert condition(cluster, "Available")["reason"] == "MinimumReplicasAvailable"
    progressing = condition(cluster, "Progressing")
    assert (progressing["status"], progressing["reason"]) == ("True", "NewReplicaSetAvailable")
    assert progressing["message"] == f'ReplicaSet "{meta.name(made)}" has successfully progressed.'


def test_a_settled_deployment_has_nothing_to_do(cluster: SimulatedCluster) -> None:
    cluster.create(deployment())
    live(cluster)

    pass_time(cluster, hours=1)
    plan = planned(cluster, DEPLOYMENTS, WEB)

    assert plan.actions == ()
    assert plan.requeue_after is None


# ── from one template to the next ──


def test_a_new_template_is_rolled_out_and_the_old_set_is_kept_empty(cluster: SimulatedCluster) -> None:
    cluster.create(deployment(replicas=3))
    live(cluster)

    edit(cluster, image="web:2")
    live(cluster)

    assert sizes(cluster) == {"1": 0, "2": 3}
    assert _images(cluster) == ["web:2"] * 3
    assert cluster.get(WEB)["metadata"]["annotations"][REVISION] == "2"
    old, new = (meta.name(one) for one in sets(cluster).values())
    assert event_messages(cluster, "ScalingReplicaSet")[1:] == [
        f"Scaled up replica set {new} from 0 to 1",
        f"Scaled down replica set {old} from 3 to 2",
        f"Scaled up replica set {new} from 1 to 2",
        f"Scaled down replica set {old} from 2 to 1",
        f"Scaled up replica set {new} from 2 to 3",
        f"Scaled down replica set {old} from 1 to 0",
    ]


def test_a_bad_image_stalls_where_the_limits_say(cluster: SimulatedCluster) -> None:
    cluster.create(deployment(replicas=10, spec={"progressDeadlineSeconds": 5}))
    live(cluster)

    edit(cluster, image="web:bad")
    live(cluster, _well)

    assert sizes(cluster) == {"1": 8, "2": 5}
    assert _status(cluster)["unavailableReplicas"] == 5
    assert planned(cluster, DEPLOYMENTS, WEB).requeue_after is not None

    pass_time(cluster, seconds=6)
    live(cluster, _well)
    progressing = condition(cluster, "Progressing")
    assert (progressing["status"], progressing["reason"]) == ("False", "ProgressDeadlineExceeded")
    assert (
        progressing["message"] == f'ReplicaSet "{meta.name(sets(cluster)["2"])}" has timed out progressing.'
    )
    assert planned(cluster, DEPLOYMENTS, WEB).requeue_after is None


def test_going_back_uses_the_old_set_again_under_a_new_number(cluster: SimulatedCluster) -> None:
    cluster.create(deployment(replicas=3))
    live(cluster)
    edit(cluster, image="web:bad")
    live(cluster, _well)

    edit(cluster, image="web:1")
    live(cluster, _well)

    assert sizes(cluster) == {"2": 0, "3": 3}
    assert _annotations(sets(cluster)["3"])["revision-history"] == "1"
    assert _images(cluster) == ["web:1"] * 3
    assert condition(cluster, "Progressing")["reason"] == "NewReplicaSetAvailable"


def test_rolling_over_starts_from_the_old_pods_that_are_not_available(cluster: SimulatedCluster) -> None:
    cluster.create(deployment(replicas=4))
    live(cluster)
    edit(cluster, image="web:bad")
    live(cluster, _well)
    assert sizes(cluster) == {"1": 3, "2": 2}

    edit(cluster, image="web:3")
    live(cluster, _well)

    assert sizes(cluster) == {"1": 0, "2": 0, "3": 4}


@pytest.mark.parametrize(
    ("replicas", "surge", "unavailable", "first"),
    [
        (10, "25%", "25%", {"1": 8, "2": 3}),
        (10, 0,     1,     {"1": 9, "2": 0}),
        (10, 1,     0,     {"1": 10, "2": 1}),
        (1,  "25%", "25%", {"1": 1, "2": 1}),
        (4,  "100%", "0%", {"1": 4, "2": 4}),
        (3,  "0%",  "1%",  {"1": 2, "2": 0}),
    ],
)  # fmt: skip
def test_the_first_step_of_a_rollout(
    cluster: SimulatedCluster, replicas: int, surge: Any, unavailable: Any, first: dict[str, int]
) -> None:
    strategy = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": surge, "maxUnavailable": unavailable}}
    cluster.create(deployment(replicas=replicas, spec={"strategy": strategy}))
    live(cluster)
    edit(cluster, image="web:2")

    for action in planned(cluster, DEPLOYMENTS, WEB).actions:
        cluster.perform(action)

    assert sizes(cluster) == first


def test_recreating_waits_for_the_last_old_pod(cluster: SimulatedCluster) -> None:
    cluster.create(recreating(replicas=3))
    live(cluster)

    edit(cluster, image="web:2")
    run(cluster)
    assert sizes(cluster) == {"1": 0}
    assert len(pods(cluster)) == 3 and not active_pods(cluster)

    *others, last = pods(cluster)
    for pod in others:
        cluster.delete(meta.ref(pod), grace=0)
    run(cluster)
    assert sizes(cluster) == {"1": 0}, "one is still on its way out"

    cluster.delete(meta.ref(last), grace=0)
    live(cluster)
    assert sizes(cluster) == {"1": 0, "2": 3}
    assert _images(cluster) == ["web:2"] * 3


def test_min_ready_seconds_reach_the_set_and_hold_a_rollout_up(cluster: SimulatedCluster) -> None:
    cluster.create(deployment(replicas=2, spec={"minReadySeconds": 10}))
    live(cluster)
    assert condition(cluster, "Available")["status"] == "False"
    assert sets(cluster)["1"]["spec"]["minReadySeconds"] == 10

    pass_time(cluster, seconds=10)
    live(cluster)
    assert condition(cluster, "Available")["status"] == "True"

    edit(cluster, minReadySeconds=0)
    live(cluster)
    assert not sets(cluster)["1"]["spec"]["minReadySeconds"]


# ── sizes ──


def test_a_new_size_is_no_rollout(cluster: SimulatedCluster) -> None:
    cluster.create(deployment(replicas=3))
    live(cluster)
    before = condition(cluster, "Progressing")

    edit(cluster, replicas=5)
    live(cluster)

    assert sizes(cluster) == {"1": 5}
    assert _annotations(sets(cluster)["1"])["desired-replicas"] == "5"
    assert _annotations(sets(cluster)["1"])["max-replicas"] == "7"
    assert condition(cluster, "Progressing") == before
    assert event_messages(cluster, "ScalingReplicaSet")[-1].endswith("from 3 to 5")


def test_a_new_size_in_the_middle_of_a_rollout_is_shared_out(cluster: SimulatedCluster) -> None:
    strategy = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 3, "maxUnavailable": 2}}
    cluster.create(deployment(replicas=10, spec={"strategy": strategy}))
    live(cluster)
    edit(cluster, image="web:bad")
    live(cluster, _well)
    assert sizes(cluster) == {"1": 8, "2": 5}

    edit(cluster, replicas=15)
    live(cluster, _well)

    assert sizes(cluster) == {"1": 11, "2": 7}


def test_scaling_to_nothing_empties_every_set(cluster: SimulatedCluster) -> None:
    cluster.create(deployment(replicas=4))
    live(cluster)
    edit(cluster, image="web:bad")
    live(cluster, _well)

    edit(cluster, replicas=0)
    live(cluster, _well)

    assert set(sizes(cluster).values()) == {0}
    assert condition(cluster, "Available")["status"] == "True"


def test_a_paused_deployment_is_scaled_and_not_rolled_out(cluster: SimulatedCluster) -> None:
    cluster.create(deployment(replicas=3))
    live(cluster)
    edit(cluster, paused=True)
    live(cluster)
    progressing = condition(cluster, "Progressing")
    assert (progressing["status"], progressing["reason"]) == ("Unknown", "DeploymentPaused")
    assert progressing["message"] == "Deployment is paused"

    edit(cluster, image="web:2", replicas=5)
    live(cluster)
    assert sizes(cluster) == {"1": 5}
    assert _images(cluster) == ["web:1"] * 5

    edit(cluster, paused=None)
    live(cluster)
    assert sizes(cluster) == {"1": 0, "2": 5}
    assert condition(cluster, "Progressing")["reason"] == "NewReplicaSetAvailable"


def test_a_deployment_that_is_resumed_has_its_deadline_anew(cluster: SimulatedCluster) -> None:
    cluster.create(deployment(replicas=3, spec={"progressDeadlineSeconds": 60}))
    live(cluster)
    edit(cluster, paused=True)
    live(cluster)
    edit(cluster, image="web:bad")
    pass_time(cluster, hours=1)

    edit(cluster, paused=False)
    live(cluster, _well)
    assert condition(cluster, "Progressing")["status"] == "True"

    pass_time(cluster, seconds=61)
    live(cluster, _well)
    assert condition(cluster, "Progressing")["reason"] == "ProgressDeadlineExceeded"


def test_without_a_deadline_nothing_is_said_of_progress(cluster: SimulatedCluster) -> None:
    cluster.create(deployment(replicas=1, spec={"progressDeadlineSeconds": 2**31 - 1}))

    live(cluster)

    assert condition(cluster, "Progressing") == {}
    assert condition(cluster, "Available")["status"] == "True"


# ── history ──


def test_sets_beyond_the_history_limit_are_forgotten_oldest_first(cluster: SimulatedCluster) -> None:
    cluster.create(deployment(replicas=1, spec={"revisionHistoryLimit": 2}))
    live(cluster)

    for number in range(2, 6):
        edit(cluster, image=f"web:{number}")
        live(cluster)

    assert sizes(cluster) == {"3": 0, "4": 0, "5": 1}


def test_a_set_that_has_pods_is_not_forgotten(cluster: SimulatedCluster) -> None:
    cluster.create(deployment(replicas=4, spec={"revisionHistoryLimit": 0}))
    live(cluster)

    edit(cluster, image="web:bad")
    live(cluster, _well)

    assert set(sets(cluster)) == {"1", "2"}


def test_annotations_follow_the_deployment_to_its_new_set(cluster: SimulatedCluster) -> None:
    cluster.create(deployment(replicas=1, annotations={"kubernetes.io/change-cause": "first"}))
    live(cluster)
    edit(cluster, image="web:2")
    cluster.patch(WEB, {"metadata": {"annotations": {"kubernetes.io/change-cause": "second"}}})
    live(cluster)

    causes = {number: _annotations(one)["change-cause"] for number, one in sets(cluster).items()}
    assert causes == {"1": "first", "2": "second"}


def test_an_annotation_may_still_ask_for_a_rollback(cluster: SimulatedCluster) -> None:
    cluster.create(deployment(replicas=1, annotations={"cause": "first"}))
    live(cluster)
    edit(cluster, image="web:2")
    cluster.patch(WEB, {"metadata": {"annotations": {"cause": "second"}}})
    live(cluster)

    cluster.patch(WEB, {"metadata": {"annotations": {"deprecated.deployment.rollback.to": "0"}}})
    live(cluster)

    there = cluster.get(WEB)
    assert there["spec"]["template"] == template("web:1")
    assert meta.annotations(there) == {"cause": "first", REVISION: "3"}
    assert event_messages(cluster, "DeploymentRollback") == ['Rolled back deployment "web" to revision 1']


@pytest.mark.parametrize(
    ("to", "reason", "message"),
    [
        ("7", "DeploymentRollbackRevisionNotFound", "Unable to find the revision to rollback to."),
        ("0", "DeploymentRollbackRevisionNotFound", "Unable to find last revision."),
        (
            "1",
            "DeploymentRollbackTemplateUnchanged",
            'The rollback revision contains the same template as current deployment "web"',
        ),
    ],
)
def test_a_rollback_that_cannot_be_is_told(
    cluster: SimulatedCluster, to: str, reason: str, message: str
) -> None:
    cluster.create(deployment(replicas=1))
    live(cluster)

    cluster.patch(WEB, {"metadata": {"annotations": {"deprecated.deployment.rollback.to": to}}})
    live(cluster)

    assert event_messages(cluster, reason) == [message]
    assert "deprecated.deployment.rollback.to" not in meta.annotations(cluster.get(WEB))


# ── other people's sets ──


def test_a_set_of_the_same_template_is_taken_in(cluster: SimulatedCluster) -> None:
    hashed = {**LABELS, "pod-template-hash": "abc"}
    spec = {"selector": {"matchLabels": hashed}, "template": template(**{"pod-template-hash": "abc"})}
    orphan = cluster.create(replica_set("left-behind", replicas=3, labels=hashed, spec=spec))
    owner = cluster.create(deployment(replicas=3))

    live(cluster)

    (taken,) = cluster.listed(REPLICA_SET)
    assert meta.name(taken) == meta.name(orphan)
    assert meta.is_controlled_by(taken, meta.uid(owner))
    assert condition(cluster, "Progressing")["reason"] == "NewReplicaSetAvailable"
    assert cluster.get(WEB)["metadata"]["annotations"][REVISION] == "1"


def test_a_set_whose_labels_change_is_let_go(cluster: SimulatedCluster) -> None:
    cluster.create(deployment(replicas=1))
    live(cluster)
    (made,) = cluster.listed(REPLICA_SET)

    cluster.patch(meta.ref(made), {"metadata": {"labels": {"app": "other"}}})
    run(cluster)

    assert meta.owner_refs(cluster.get(meta.ref(made))) == ()


def test_a_name_that_is_taken_makes_for_another(cluster: SimulatedCluster) -> None:
    cluster.create(deployment(replicas=1))
    plan = planned(cluster, DEPLOYMENTS, WEB)
    name = plan.actions[0].ref.name
    cluster.create(replica_set(name, replicas=0, image="other", labels={"app": "other"}))

    live(cluster)

    assert cluster.get(WEB)["status"]["collisionCount"] == 1
    assert len(cluster.listed(REPLICA_SET)) == 2
    assert condition(cluster, "Progressing")["reason"] == "NewReplicaSetAvailable"


def test_a_set_that_cannot_be_made_is_said_and_told(cluster: SimulatedCluster) -> None:
    cluster.create(deployment(replicas=1))
    refused = PlanFailed([Forbidden("no more sets")])

    for action in DEPLOYMENTS.complain(cluster.world(DEPLOYMENTS), WEB, refused, cluster.now).actions:
        cluster.perform(action)

    said = condition(cluster, "Progressing")
    assert (said["status"], said["reason"]) == ("False", "ReplicaSetCreateError")
    assert said["message"].startswith('Failed to create new replica set "web-')
    assert said["message"].endswith('": no more sets')


def test_pods_that_are_refused_are_said_on_the_deployment_too(cluster: SimulatedCluster) -> None:
    cluster.create(deployment(replicas=1))
    run(cluster)
    (made,) = cluster.listed(REPLICA_SET)
    failure = {
        "type": "ReplicaFailure",
        "status": "True",
        "reason": "FailedCreate",
        "message": "quota",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }
    cluster.patch(meta.ref(made), {"status": {"conditions": [failure]}})

    for action in planned(cluster, DEPLOYMENTS, WEB).actions:
        cluster.perform(action)

    said = condition(cluster, "ReplicaFailure")
    assert said == {**failure, "lastUpdateTime": failure["lastTransitionTime"]}


def test_a_deployment_on_its_way_out_only_says_how_it_stands(cluster: SimulatedCluster) -> None:
    cluster.create(deployment(replicas=3, finalizers=["somebody/holds-it"]))
    live(cluster)
    edit(cluster, image="web:2")
    cluster.delete(WEB)

    plan = planned(cluster, DEPLOYMENTS, WEB)

    assert all(isinstance(action, Patch) and action.subresource == "status" for action in plan.actions)
    assert plan.actions
    assert Ref(*WEB[:4]) == meta.ref(cluster.listed(DEPLOYMENT)[0])
