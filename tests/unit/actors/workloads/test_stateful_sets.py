"""Stateful sets: pods with names that stay, made and replaced in order."""

from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lamina.core.plan import Create, Delete
from lamina.objects import meta
from lamina.objects.types import Made, Obj
from lamina.paper import Crashed, Paper
from lamina.paper.kinds import CONTROLLER_REVISION, POD, VOLUME_CLAIM, make
from tests.unit.actors.workloads.running import (
    SET,
    attend,
    become,
    fail,
    images,
    live,
    names,
    only,
    pods,
    run,
    stateful_set,
    status,
    succeed,
    template,
    told,
    well,
    wind,
)

CLAIMED: dict[str, Any] = {
    "volumeClaimTemplates": [
        {
            "metadata": {"name": "data"},
            "spec": {"accessModes": ["ReadWriteOnce"]},
            "status": {"phase": "Pending"},
        }
    ]
}


def given_set(**fields: Any) -> Paper:
    """Return a cluster with a StatefulSet `web` whose pods are well."""
    paper = Paper()
    paper.create(stateful_set(**fields))
    live(paper)
    paper.journal.clear()
    return paper


def edit(paper: Paper, **spec: Any) -> None:
    paper.patch(SET, {"spec": spec})


def update(paper: Paper, image: str) -> None:
    edit(paper, template=template("web", image))


def revisions(paper: Paper) -> dict[str, int]:
    return {meta.name(one): one["revision"] for one in paper.listed(CONTROLLER_REVISION)}


def made(paper: Paper) -> list[str]:
    created = [action.obj for action in paper.journal if isinstance(action, Create)]
    return [meta.name(obj) for obj in created if obj["kind"] == "Pod"]


def deleted(paper: Paper) -> list[str]:
    return [action.ref.name for action in paper.journal if isinstance(action, Delete)]


# ── making ──


def test_pods_are_made_in_order_each_when_the_one_before_is_ready() -> None:
    paper = Paper()
    paper.create(stateful_set())

    run(paper)
    assert names(paper) == ["web-0"]
    become(paper, pods(paper)[0], "Running", ready=False)
    run(paper)
    assert names(paper) == ["web-0"]
    well(paper, pods(paper)[0])
    run(paper)
    assert names(paper) == ["web-0", "web-1"]


def test_a_set_that_hurries_makes_them_all_at_once() -> None:
    paper = Paper()
    paper.create(stateful_set(podManagementPolicy="Parallel"))

    run(paper)

    assert names(paper) == ["web-0", "web-1", "web-2"]


def test_a_pod_knows_who_it_is() -> None:
    paper = given_set(replicas=1, ordinals={"start": 5}, **CLAIMED)
    [pod] = pods(paper)
    [revision] = revisions(paper)

    assert meta.name(pod) == "web-5"
    assert meta.labels(pod) == {
        "app": "web",
        "statefulset.kubernetes.io/pod-name": "web-5",
        "apps.kubernetes.io/pod-index": "5",
        "controller-revision-hash": revision,
    }
    assert (pod["spec"]["hostname"], pod["spec"]["subdomain"]) == ("web-5", "web")
    assert pod["spec"]["volumes"] == [{"name": "data", "persistentVolumeClaim": {"claimName": "data-web-5"}}]


def test_claims_come_before_their_pod_and_carry_the_labels_of_the_selector() -> None:
    paper = Paper()
    paper.create(stateful_set(replicas=1, **CLAIMED))

    run(paper)

    kinds = [action.obj["kind"] for action in paper.journal if isinstance(action, Create)]
    assert kinds == ["ControllerRevision", "PersistentVolumeClaim", "Pod"]
    [claim] = paper.listed(VOLUME_CLAIM)
    assert meta.labels(claim) == {"app": "web"}
    assert "status" not in claim and not meta.owner_refs(claim)
    assert told(paper) == [
        "Create Claim data-web-0 Pod web-0 in StatefulSet web success",
        "Create Pod web-0 in StatefulSet web successful",
    ]


def test_the_status_of_a_set_that_is_well_says_so() -> None:
    paper = given_set()
    [revision] = revisions(paper)

    assert status(paper, SET) == {
        "observedGeneration": 1,
        "replicas": 3,
        "readyReplicas": 3,
        "currentReplicas": 3,
        "updatedReplicas": 3,
        "availableReplicas": 3,
        "currentRevision": revision,
        "updateRevision": revision,
        "collisionCount": 0,
    }


def test_a_set_that_is_well_is_left_alone() -> None:
    paper = given_set(**CLAIMED)

    run(paper)

    assert paper.journal == []


@pytest.mark.parametrize("end", [fail, succeed])
def test_a_pod_that_finished_is_deleted_and_made_again(end: Any) -> None:
    paper = given_set()
    end(paper, pods(paper)[1])

    live(paper)

    assert names(paper) == ["web-0", "web-1", "web-2"]
    assert (deleted(paper), made(paper)) == (["web-1"], ["web-1"])


def test_a_pod_is_available_some_time_after_it_is_ready() -> None:
    paper = Paper()
    paper.create(stateful_set(replicas=2, minReadySeconds=10))
    live(paper)
    assert names(paper) == ["web-0"]
    assert status(paper, SET)["readyReplicas"] == 1 and status(paper, SET)["availableReplicas"] == 0

    wind(paper, seconds=10)
    live(paper)

    assert names(paper) == ["web-0", "web-1"]
    assert status(paper, SET)["availableReplicas"] == 1


# ── scaling ──


def test_the_highest_goes_first_and_one_at_a_time() -> None:
    paper = given_set()
    edit(paper, replicas=1)

    run(paper)
    assert [meta.name(pod) for pod in pods(paper) if meta.is_deleting(pod)] == ["web-2"]
    live(paper)

    assert names(paper) == ["web-0"]
    assert deleted(paper) == ["web-2", "web-1"]


def test_nothing_goes_while_a_pod_that_stays_is_ill() -> None:
    paper = given_set()
    become(paper, pods(paper)[0], "Running", ready=False)
    edit(paper, replicas=1)

    run(paper)

    assert names(paper) == ["web-0", "web-1", "web-2"]
    assert not deleted(paper)


def test_the_first_that_is_ill_may_go_if_it_is_the_last() -> None:
    paper = given_set()
    become(paper, pods(paper)[2], "Running", ready=False)
    edit(paper, replicas=2)

    live(paper)

    assert names(paper) == ["web-0", "web-1"]


def test_other_ordinals_mean_other_pods() -> None:
    paper = given_set(replicas=2)
    edit(paper, ordinals={"start": 1})

    live(paper)

    assert names(paper) == ["web-1", "web-2"]


# ── updating ──


def test_an_update_goes_from_the_highest_down_each_when_the_one_before_is_available() -> None:
    paper = given_set()
    update(paper, "web:2")

    live(paper)

    assert set(images(paper).values()) == {"web:2"}
    assert deleted(paper) == ["web-2", "web-1", "web-0"] == made(paper)
    after = status(paper, SET)
    assert after["currentRevision"] == after["updateRevision"]
    assert after["currentReplicas"] == after["updatedReplicas"] == 3


def test_an_update_stops_at_a_pod_that_does_not_become_ready() -> None:
    paper = given_set()
    update(paper, "web:broken")

    live(paper, only(lambda pod: "broken" not in pod["spec"]["containers"][0]["image"]))

    assert images(paper) == {"web-0": "web:1", "web-1": "web:1", "web-2": "web:broken"}
    now = status(paper, SET)
    assert now["currentRevision"] != now["updateRevision"]
    assert (now["currentReplicas"], now["updatedReplicas"], now["readyReplicas"]) == (2, 1, 2)


def test_a_partition_keeps_the_lower_pods_where_they_are_even_when_they_are_made_again() -> None:
    paper = given_set(updateStrategy={"type": "RollingUpdate", "rollingUpdate": {"partition": 2}})
    update(paper, "web:2")
    live(paper)
    assert images(paper) == {"web-0": "web:1", "web-1": "web:1", "web-2": "web:2"}

    paper.delete(meta.ref(pods(paper)[0]), grace=0)
    paper.delete(POD.ref("default", "web-2"), grace=0)
    live(paper)

    assert images(paper) == {"web-0": "web:1", "web-1": "web:1", "web-2": "web:2"}
    now = status(paper, SET)
    assert (now["currentReplicas"], now["updatedReplicas"]) == (2, 1)


def test_on_delete_a_pod_is_new_when_somebody_deletes_it() -> None:
    paper = given_set(updateStrategy={"type": "OnDelete"})
    update(paper, "web:2")
    live(paper)
    assert set(images(paper).values()) == {"web:1"}

    paper.delete(meta.ref(pods(paper)[1]), grace=0)
    live(paper)

    assert images(paper) == {"web-0": "web:1", "web-1": "web:2", "web-2": "web:1"}


def test_a_set_that_hurries_still_updates_one_by_one() -> None:
    paper = given_set(podManagementPolicy="Parallel")
    update(paper, "web:2")

    run(paper)

    assert [meta.name(pod) for pod in pods(paper) if meta.is_deleting(pod)] == ["web-2"]


def test_going_back_finds_the_old_revision_and_gives_it_the_next_number() -> None:
    paper = given_set()
    [first] = revisions(paper)
    update(paper, "web:2")
    live(paper)
    update(paper, "web:1")

    live(paper)

    assert len(revisions(paper)) == 2
    assert revisions(paper)[first] == 3
    assert set(images(paper).values()) == {"web:1"}


def test_old_revisions_are_forgotten_beyond_the_limit() -> None:
    paper = given_set(revisionHistoryLimit=2)
    for number in range(2, 7):
        update(paper, f"web:{number}")
        live(paper)

    assert sorted(revisions(paper).values()) == [4, 5, 6]


# ── whose things are ──


def test_a_pod_of_the_right_name_is_taken_in_and_one_of_another_is_not() -> None:
    paper = Paper()
    for name in ("web-0", "stranger"):
        pod = paper.create(make(POD, name, labels={"app": "web"}, spec={"containers": [{"image": "old"}]}))
        well(paper, pod)
    paper.create(stateful_set(replicas=1))

    run(paper)

    owners = {meta.name(pod): meta.controller_of(pod) for pod in pods(paper)}
    assert owners["stranger"] is None
    assert owners["web-0"] is not None and owners["web-0"]["name"] == "web"


@pytest.mark.parametrize(
    ("on_deletion", "on_scaling", "kept", "condemned"),
    [
        ("Retain", "Retain", [],              []),
        ("Delete", "Retain", ["StatefulSet"], ["StatefulSet"]),
        ("Retain", "Delete", [],              ["Pod"]),
        ("Delete", "Delete", ["StatefulSet"], ["Pod"]),
    ],
)  # fmt: skip
def test_claims_belong_to_whom_the_policy_says(
    on_deletion: str, on_scaling: str, kept: list[str], condemned: list[str]
) -> None:
    policy = {"whenDeleted": on_deletion, "whenScaled": on_scaling}
    paper = given_set(replicas=2, persistentVolumeClaimRetentionPolicy=policy, **CLAIMED)
    edit(paper, replicas=1)

    run(paper)

    owners = {
        meta.name(one): [ref["kind"] for ref in meta.owner_refs(one)] for one in paper.listed(VOLUME_CLAIM)
    }
    assert owners == {"data-web-0": kept, "data-web-1": condemned}


def test_a_pod_is_not_made_on_a_claim_that_goes_with_an_earlier_one() -> None:
    policy = {"whenDeleted": "Retain", "whenScaled": "Delete"}
    paper = given_set(replicas=2, persistentVolumeClaimRetentionPolicy=policy, **CLAIMED)
    edit(paper, replicas=1)
    live(paper)
    edit(paper, replicas=2)

    live(paper)
    assert names(paper) == ["web-0"]

    paper.delete(VOLUME_CLAIM.ref("default", "data-web-1"))
    live(paper)
    assert names(paper) == ["web-0", "web-1"]


def test_a_claim_that_was_deleted_comes_back_for_a_pod_that_waits_for_it() -> None:
    paper = Paper()
    paper.create(stateful_set(replicas=1, **CLAIMED))
    run(paper)
    paper.delete(VOLUME_CLAIM.ref("default", "data-web-0"))

    run(paper)

    assert len(paper.listed(VOLUME_CLAIM)) == 1


def test_a_set_on_its_way_out_makes_nothing_and_counts_what_is_left() -> None:
    paper = given_set()
    paper.patch(SET, {"metadata": {"finalizers": ["hold"]}})
    paper.delete(SET)
    paper.delete(meta.ref(pods(paper)[2]), grace=0)

    run(paper)

    assert names(paper) == ["web-0", "web-1"]
    assert status(paper, SET)["replicas"] == 2


# ── promises ──


def _is_in_order(paper: Paper) -> bool:
    """Say whether no pod was made before all those below it were available."""
    return all(
        all(_is_ready(paper, lower) for lower in range(number))
        for number in range(3)
        if _is_fresh(paper, number)
    )


def _is_fresh(paper: Paper, number: int) -> bool:
    pod = paper.objects.get(POD.ref("default", f"web-{number}"))
    return pod is not None and "status" not in pod


def _is_ready(paper: Paper, number: int) -> bool:
    pod: Obj = paper.objects.get(POD.ref("default", f"web-{number}")) or {}
    return any(one["status"] == "True" for one in (pod.get("status") or {}).get("conditions") or ())


@settings(deadline=None, max_examples=25)
@given(seed=st.integers(0, 10_000), crash=st.integers(0, 30), second=st.integers(0, 30))
def test_whatever_crashes_there_is_one_pod_a_number_and_they_come_in_order(
    seed: int, crash: int, second: int
) -> None:
    paper = Paper()
    paper.create(stateful_set(**CLAIMED))
    random = Random(seed)
    crashes = [crash, second]
    for round_ in range(40):
        if round_ == 8:
            update(paper, "web:2")
        try:
            run(paper, random=random, crash_after=crashes.pop() if crashes else None)
        except Crashed:
            continue
        assert _is_in_order(paper)
        ill = [pod for pod in pods(paper) if meta.is_deleting(pod) or "status" not in pod]
        assert len(ill) <= 1
        for pod in pods(paper):
            attend(paper, pod, well)

    assert images(paper) == {"web-0": "web:2", "web-1": "web:2", "web-2": "web:2"}
    assert sorted(revisions(paper).values()) == [1, 2]
    assert len(paper.listed(VOLUME_CLAIM)) == 3


def test_the_name_of_a_revision_is_the_one_a_real_controller_gives() -> None:
    container: Made = {
        "image": "pg",
        "imagePullPolicy": "Always",
        "name": "c",
        "resources": {},
        "terminationMessagePath": "/dev/termination-log",
        "terminationMessagePolicy": "File",
        "volumeMounts": [{"mountPath": "/d", "name": "data"}],
    }
    spec = {
        "containers": [container],
        "dnsPolicy": "ClusterFirst",
        "restartPolicy": "Always",
        "schedulerName": "default-scheduler",
        "securityContext": {},
        "terminationGracePeriodSeconds": 30,
    }
    labels = {"app": "db"}
    whole = {"metadata": {"labels": labels}, "spec": spec}
    paper = Paper()
    paper.create(stateful_set(template=whole, selector={"matchLabels": labels}))

    run(paper)

    assert list(revisions(paper)) == ["web-7b6ddf7797"]
