"""Deployments: revisions, rollouts, and what is said about them."""

from typing import Any

import pytest

from lamina.actors.workloads.deployment import DEPLOYMENTS
from lamina.core.plan import Patch
from lamina.errors import Forbidden, PlanFailed
from lamina.objects import meta
from lamina.objects.types import Made, Obj, Ref
from lamina.paper import Paper, planned
from lamina.paper.kinds import DEPLOYMENT, REPLICA_SET
from tests.unit.actors.workloads.growing import (
    LABELS,
    WEB,
    active_pods,
    condition,
    deployment,
    edit,
    live,
    pass_time,
    pods,
    recreating,
    replica_set,
    run,
    sets,
    sizes,
    template,
    told,
)

REVISION = "deployment.kubernetes.io/revision"


@pytest.fixture
def paper() -> Paper:
    return Paper()


def _well(image: str) -> bool:
    return "bad" not in image


def _status(paper: Paper) -> Made:
    return {key: value for key, value in paper.get(WEB)["status"].items() if key != "conditions"}


def _images(paper: Paper) -> list[str]:
    return [pod["spec"]["containers"][0]["image"] for pod in active_pods(paper)]


def _annotations(obj: Obj) -> dict[str, str]:
    return {key.rpartition("/")[2]: value for key, value in meta.annotations(obj).items()}


# ── the first rollout ──


def test_a_deployment_makes_a_set_named_after_its_template(paper: Paper) -> None:
    owner = paper.create(
        deployment(replicas=3, annotations={"team": "blue", "deprecated.deployment.rollback.to": ""})
    )

    run(paper)

    (made,) = paper.listed(REPLICA_SET)
    hashed = made["metadata"]["labels"]["pod-template-hash"]
    assert meta.name(made) == f"web-{hashed}"
    assert made["metadata"]["labels"] == {**LABELS, "pod-template-hash": hashed}
    assert made["spec"]["selector"] == {"matchLabels": {**LABELS, "pod-template-hash": hashed}}
    assert made["spec"]["template"] == template(**{"pod-template-hash": hashed})
    assert made["metadata"]["ownerReferences"] == [meta.owner_ref(owner, controller=True, blocks=True)]
    assert _annotations(made) == {
        "revision": "1", "desired-replicas": "3", "max-replicas": "4", "team": "blue",
    }  # fmt: skip
    assert paper.get(WEB)["metadata"]["annotations"][REVISION] == "1"
    assert told(paper, "ScalingReplicaSet") == [f"Scaled up replica set {meta.name(made)} from 0 to 3"]


def test_a_rollout_says_how_it_is_going(paper: Paper) -> None:
    paper.create(deployment(replicas=3))

    run(paper)
    (made,) = paper.listed(REPLICA_SET)
    assert _status(paper) == {
        "observedGeneration": 1,
        "replicas": 3,
        "updatedReplicas": 3,
        "unavailableReplicas": 3,
        "terminatingReplicas": 0,
    }
    assert condition(paper, "Available")["reason"] == "MinimumReplicasUnavailable"
    progressing = condition(paper, "Progressing")
    assert (progressing["status"], progressing["reason"]) == ("True", "ReplicaSetUpdated")
    assert progressing["message"] == f'ReplicaSet "{meta.name(made)}" is progressing.'

    live(paper)
    assert _status(paper) == {
        "observedGeneration": 1,
        "replicas": 3,
        "updatedReplicas": 3,
        "readyReplicas": 3,
        "availableReplicas": 3,
        "terminatingReplicas": 0,
    }
    assert condition(paper, "Available")["reason"] == "MinimumReplicasAvailable"
    progressing = condition(paper, "Progressing")
    assert (progressing["status"], progressing["reason"]) == ("True", "NewReplicaSetAvailable")
    assert progressing["message"] == f'ReplicaSet "{meta.name(made)}" has successfully progressed.'


def test_a_settled_deployment_has_nothing_to_do(paper: Paper) -> None:
    paper.create(deployment())
    live(paper)

    pass_time(paper, hours=1)
    plan = planned(paper, DEPLOYMENTS, WEB)

    assert plan.actions == ()
    assert plan.look_again is None


# ── from one template to the next ──


def test_a_new_template_is_rolled_out_and_the_old_set_is_kept_empty(paper: Paper) -> None:
    paper.create(deployment(replicas=3))
    live(paper)

    edit(paper, image="web:2")
    live(paper)

    assert sizes(paper) == {"1": 0, "2": 3}
    assert _images(paper) == ["web:2"] * 3
    assert paper.get(WEB)["metadata"]["annotations"][REVISION] == "2"
    old, new = (meta.name(one) for one in sets(paper).values())
    assert told(paper, "ScalingReplicaSet")[1:] == [
        f"Scaled up replica set {new} from 0 to 1",
        f"Scaled down replica set {old} from 3 to 2",
        f"Scaled up replica set {new} from 1 to 2",
        f"Scaled down replica set {old} from 2 to 1",
        f"Scaled up replica set {new} from 2 to 3",
        f"Scaled down replica set {old} from 1 to 0",
    ]


def test_a_bad_image_stalls_where_the_limits_say(paper: Paper) -> None:
    paper.create(deployment(replicas=10, spec={"progressDeadlineSeconds": 5}))
    live(paper)

    edit(paper, image="web:bad")
    live(paper, _well)

    assert sizes(paper) == {"1": 8, "2": 5}
    assert _status(paper)["unavailableReplicas"] == 5
    assert planned(paper, DEPLOYMENTS, WEB).look_again is not None

    pass_time(paper, seconds=6)
    live(paper, _well)
    progressing = condition(paper, "Progressing")
    assert (progressing["status"], progressing["reason"]) == ("False", "ProgressDeadlineExceeded")
    assert progressing["message"] == f'ReplicaSet "{meta.name(sets(paper)["2"])}" has timed out progressing.'
    assert planned(paper, DEPLOYMENTS, WEB).look_again is None


def test_going_back_uses_the_old_set_again_under_a_new_number(paper: Paper) -> None:
    paper.create(deployment(replicas=3))
    live(paper)
    edit(paper, image="web:bad")
    live(paper, _well)

    edit(paper, image="web:1")
    live(paper, _well)

    assert sizes(paper) == {"2": 0, "3": 3}
    assert _annotations(sets(paper)["3"])["revision-history"] == "1"
    assert _images(paper) == ["web:1"] * 3
    assert condition(paper, "Progressing")["reason"] == "NewReplicaSetAvailable"


def test_rolling_over_starts_from_the_old_pods_that_are_not_available(paper: Paper) -> None:
    paper.create(deployment(replicas=4))
    live(paper)
    edit(paper, image="web:bad")
    live(paper, _well)
    assert sizes(paper) == {"1": 3, "2": 2}

    edit(paper, image="web:3")
    live(paper, _well)

    assert sizes(paper) == {"1": 0, "2": 0, "3": 4}


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
    paper: Paper, replicas: int, surge: Any, unavailable: Any, first: dict[str, int]
) -> None:
    strategy = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": surge, "maxUnavailable": unavailable}}
    paper.create(deployment(replicas=replicas, spec={"strategy": strategy}))
    live(paper)
    edit(paper, image="web:2")

    for action in planned(paper, DEPLOYMENTS, WEB).actions:
        paper.perform(action)

    assert sizes(paper) == first


def test_recreating_waits_for_the_last_old_pod(paper: Paper) -> None:
    paper.create(recreating(replicas=3))
    live(paper)

    edit(paper, image="web:2")
    run(paper)
    assert sizes(paper) == {"1": 0}
    assert len(pods(paper)) == 3 and not active_pods(paper)

    *others, last = pods(paper)
    for pod in others:
        paper.delete(meta.ref(pod), grace=0)
    run(paper)
    assert sizes(paper) == {"1": 0}, "one is still on its way out"

    paper.delete(meta.ref(last), grace=0)
    live(paper)
    assert sizes(paper) == {"1": 0, "2": 3}
    assert _images(paper) == ["web:2"] * 3


def test_min_ready_seconds_reach_the_set_and_hold_a_rollout_up(paper: Paper) -> None:
    paper.create(deployment(replicas=2, spec={"minReadySeconds": 10}))
    live(paper)
    assert condition(paper, "Available")["status"] == "False"
    assert sets(paper)["1"]["spec"]["minReadySeconds"] == 10

    pass_time(paper, seconds=10)
    live(paper)
    assert condition(paper, "Available")["status"] == "True"

    edit(paper, minReadySeconds=0)
    live(paper)
    assert not sets(paper)["1"]["spec"]["minReadySeconds"]


# ── sizes ──


def test_a_new_size_is_no_rollout(paper: Paper) -> None:
    paper.create(deployment(replicas=3))
    live(paper)
    before = condition(paper, "Progressing")

    edit(paper, replicas=5)
    live(paper)

    assert sizes(paper) == {"1": 5}
    assert _annotations(sets(paper)["1"])["desired-replicas"] == "5"
    assert _annotations(sets(paper)["1"])["max-replicas"] == "7"
    assert condition(paper, "Progressing") == before
    assert told(paper, "ScalingReplicaSet")[-1].endswith("from 3 to 5")


def test_a_new_size_in_the_middle_of_a_rollout_is_shared_out(paper: Paper) -> None:
    strategy = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 3, "maxUnavailable": 2}}
    paper.create(deployment(replicas=10, spec={"strategy": strategy}))
    live(paper)
    edit(paper, image="web:bad")
    live(paper, _well)
    assert sizes(paper) == {"1": 8, "2": 5}

    edit(paper, replicas=15)
    live(paper, _well)

    assert sizes(paper) == {"1": 11, "2": 7}


def test_scaling_to_nothing_empties_every_set(paper: Paper) -> None:
    paper.create(deployment(replicas=4))
    live(paper)
    edit(paper, image="web:bad")
    live(paper, _well)

    edit(paper, replicas=0)
    live(paper, _well)

    assert set(sizes(paper).values()) == {0}
    assert condition(paper, "Available")["status"] == "True"


def test_a_paused_deployment_is_scaled_and_not_rolled_out(paper: Paper) -> None:
    paper.create(deployment(replicas=3))
    live(paper)
    edit(paper, paused=True)
    live(paper)
    progressing = condition(paper, "Progressing")
    assert (progressing["status"], progressing["reason"]) == ("Unknown", "DeploymentPaused")
    assert progressing["message"] == "Deployment is paused"

    edit(paper, image="web:2", replicas=5)
    live(paper)
    assert sizes(paper) == {"1": 5}
    assert _images(paper) == ["web:1"] * 5

    edit(paper, paused=None)
    live(paper)
    assert sizes(paper) == {"1": 0, "2": 5}
    assert condition(paper, "Progressing")["reason"] == "NewReplicaSetAvailable"


def test_a_deployment_that_is_resumed_has_its_deadline_anew(paper: Paper) -> None:
    paper.create(deployment(replicas=3, spec={"progressDeadlineSeconds": 60}))
    live(paper)
    edit(paper, paused=True)
    live(paper)
    edit(paper, image="web:bad")
    pass_time(paper, hours=1)

    edit(paper, paused=False)
    live(paper, _well)
    assert condition(paper, "Progressing")["status"] == "True"

    pass_time(paper, seconds=61)
    live(paper, _well)
    assert condition(paper, "Progressing")["reason"] == "ProgressDeadlineExceeded"


def test_without_a_deadline_nothing_is_said_of_progress(paper: Paper) -> None:
    paper.create(deployment(replicas=1, spec={"progressDeadlineSeconds": 2**31 - 1}))

    live(paper)

    assert condition(paper, "Progressing") == {}
    assert condition(paper, "Available")["status"] == "True"


# ── history ──


def test_sets_beyond_the_history_limit_are_forgotten_oldest_first(paper: Paper) -> None:
    paper.create(deployment(replicas=1, spec={"revisionHistoryLimit": 2}))
    live(paper)

    for number in range(2, 6):
        edit(paper, image=f"web:{number}")
        live(paper)

    assert sizes(paper) == {"3": 0, "4": 0, "5": 1}


def test_a_set_that_has_pods_is_not_forgotten(paper: Paper) -> None:
    paper.create(deployment(replicas=4, spec={"revisionHistoryLimit": 0}))
    live(paper)

    edit(paper, image="web:bad")
    live(paper, _well)

    assert set(sets(paper)) == {"1", "2"}


def test_annotations_follow_the_deployment_to_its_new_set(paper: Paper) -> None:
    paper.create(deployment(replicas=1, annotations={"kubernetes.io/change-cause": "first"}))
    live(paper)
    edit(paper, image="web:2")
    paper.patch(WEB, {"metadata": {"annotations": {"kubernetes.io/change-cause": "second"}}})
    live(paper)

    causes = {number: _annotations(one)["change-cause"] for number, one in sets(paper).items()}
    assert causes == {"1": "first", "2": "second"}


def test_an_annotation_may_still_ask_for_a_rollback(paper: Paper) -> None:
    paper.create(deployment(replicas=1, annotations={"cause": "first"}))
    live(paper)
    edit(paper, image="web:2")
    paper.patch(WEB, {"metadata": {"annotations": {"cause": "second"}}})
    live(paper)

    paper.patch(WEB, {"metadata": {"annotations": {"deprecated.deployment.rollback.to": "0"}}})
    live(paper)

    there = paper.get(WEB)
    assert there["spec"]["template"] == template("web:1")
    assert meta.annotations(there) == {"cause": "first", REVISION: "3"}
    assert told(paper, "DeploymentRollback") == ['Rolled back deployment "web" to revision 1']


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
def test_a_rollback_that_cannot_be_is_told(paper: Paper, to: str, reason: str, message: str) -> None:
    paper.create(deployment(replicas=1))
    live(paper)

    paper.patch(WEB, {"metadata": {"annotations": {"deprecated.deployment.rollback.to": to}}})
    live(paper)

    assert told(paper, reason) == [message]
    assert "deprecated.deployment.rollback.to" not in meta.annotations(paper.get(WEB))


# ── other people's sets ──


def test_a_set_of_the_same_template_is_taken_in(paper: Paper) -> None:
    hashed = {**LABELS, "pod-template-hash": "abc"}
    spec = {"selector": {"matchLabels": hashed}, "template": template(**{"pod-template-hash": "abc"})}
    orphan = paper.create(replica_set("left-behind", replicas=3, labels=hashed, spec=spec))
    owner = paper.create(deployment(replicas=3))

    live(paper)

    (taken,) = paper.listed(REPLICA_SET)
    assert meta.name(taken) == meta.name(orphan)
    assert meta.is_controlled_by(taken, meta.uid(owner))
    assert condition(paper, "Progressing")["reason"] == "NewReplicaSetAvailable"
    assert paper.get(WEB)["metadata"]["annotations"][REVISION] == "1"


def test_a_set_whose_labels_change_is_let_go(paper: Paper) -> None:
    paper.create(deployment(replicas=1))
    live(paper)
    (made,) = paper.listed(REPLICA_SET)

    paper.patch(meta.ref(made), {"metadata": {"labels": {"app": "other"}}})
    run(paper)

    assert meta.owner_refs(paper.get(meta.ref(made))) == ()


def test_a_name_that_is_taken_makes_for_another(paper: Paper) -> None:
    paper.create(deployment(replicas=1))
    plan = planned(paper, DEPLOYMENTS, WEB)
    name = plan.actions[0].ref.name
    paper.create(replica_set(name, replicas=0, image="other", labels={"app": "other"}))

    live(paper)

    assert paper.get(WEB)["status"]["collisionCount"] == 1
    assert len(paper.listed(REPLICA_SET)) == 2
    assert condition(paper, "Progressing")["reason"] == "NewReplicaSetAvailable"


def test_a_set_that_cannot_be_made_is_said_and_told(paper: Paper) -> None:
    paper.create(deployment(replicas=1))
    refused = PlanFailed([Forbidden("no more sets")])

    for action in DEPLOYMENTS.complain(paper.world(DEPLOYMENTS), WEB, refused, paper.now).actions:
        paper.perform(action)

    said = condition(paper, "Progressing")
    assert (said["status"], said["reason"]) == ("False", "ReplicaSetCreateError")
    assert said["message"].startswith('Failed to create new replica set "web-')
    assert said["message"].endswith('": no more sets')


def test_pods_that_are_refused_are_said_on_the_deployment_too(paper: Paper) -> None:
    paper.create(deployment(replicas=1))
    run(paper)
    (made,) = paper.listed(REPLICA_SET)
    failure = {
        "type": "ReplicaFailure",
        "status": "True",
        "reason": "FailedCreate",
        "message": "quota",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }
    paper.patch(meta.ref(made), {"status": {"conditions": [failure]}})

    for action in planned(paper, DEPLOYMENTS, WEB).actions:
        paper.perform(action)

    said = condition(paper, "ReplicaFailure")
    assert said == {**failure, "lastUpdateTime": failure["lastTransitionTime"]}


def test_a_deployment_on_its_way_out_only_says_how_it_stands(paper: Paper) -> None:
    paper.create(deployment(replicas=3, finalizers=["somebody/holds-it"]))
    live(paper)
    edit(paper, image="web:2")
    paper.delete(WEB)

    plan = planned(paper, DEPLOYMENTS, WEB)

    assert all(isinstance(action, Patch) and action.subresource == "status" for action in plan.actions)
    assert plan.actions
    assert Ref(*WEB[:4]) == meta.ref(paper.listed(DEPLOYMENT)[0])
