"""StatefulSets: pods with stable names, created and replaced in order."""

from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lamina.core.model.plan import Create, Delete
from lamina.objects import meta
from lamina.objects.types import Made, Obj
from lamina.simulation import Crashed, SimulatedCluster
from lamina.simulation.cluster.kinds import CONTROLLER_REVISION, POD, VOLUME_CLAIM, make
from tests.unit.actors.workloads.running import (
    SET,
    attend,
    become,
    event_messages,
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


def given_set(**fields: Any) -> SimulatedCluster:
    """Return a cluster with a StatefulSet `web` whose pods are well."""
    cluster = SimulatedCluster()
    cluster.create(stateful_set(**fields))
    live(cluster)
    cluster.journal.clear()
    return cluster


def edit(cluster: SimulatedCluster, **spec: Any) -> None:
    cluster.patch(SET, {"spec": spec})


def update(cluster: SimulatedCluster, image: str) -> None:
    edit(cluster, template=template("web", image))


def revisions(cluster: SimulatedCluster) -> dict[str, int]:
    return {meta.name(one): one["revision"] for one in cluster.listed(CONTROLLER_REVISION)}


def made(cluster: SimulatedCluster) -> list[str]:
    created = [action.obj for action in cluster.journal if isinstance(action, Create)]
    return [meta.name(obj) for obj in created if obj["kind"] == "Pod"]


def deleted(cluster: SimulatedCluster) -> list[str]:
    return [action.ref.name for action in cluster.journal if isinstance(action, Delete)]


# ── making ──


def test_pods_are_made_in_order_each_when_the_one_before_is_ready() -> None:
    cluster = SimulatedCluster()
    cluster.create(stateful_set())

    run(cluster)
    assert names(cluster) == ["web-0"]
    become(cluster, pods(cluster)[0], "Running", ready=False)
    run(cluster)
    assert names(cluster) == ["web-0"]
    well(cluster, pods(cluster)[0])
    run(cluster)
    assert names(cluster) == ["web-0", "web-1"]


def test_a_set_that_hurries_makes_them_all_at_once() -> None:
    cluster = SimulatedCluster()
    cluster.create(stateful_set(podManagementPolicy="Parallel"))

    run(cluster)

    assert names(cluster) == ["web-0", "web-1", "web-2"]


def test_a_pod_knows_who_it_is() -> None:
    cluster = given_set(replicas=1, ordinals={"start": 5}, **CLAIMED)
    [pod] = pods(cluster)
    [revision] = revisions(cluster)

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
    cluster = SimulatedCluster()
    cluster.create(stateful_set(replicas=1, **CLAIMED))

    run(cluster)

    kinds = [action.obj["kind"] for action in cluster.journal if isinstance(action, Create)]
    assert kinds == ["ControllerRevision", "PersistentVolumeClaim", "Pod"]
    [claim] = cluster.listed(VOLUME_CLAIM)
    assert meta.labels(claim) == {"app": "web"}
    assert "status" not in claim and not meta.owner_refs(claim)
    assert event_messages(cluster) == [
        "Create Claim data-web-0 Pod web-0 in StatefulSet web success",
        "Create Pod web-0 in StatefulSet web successful",
    ]


def test_the_status_of_a_set_that_is_well_says_so() -> None:
    cluster = given_set()
    [revision] = revisions(cluster)

    assert status(cluster, SET) == {
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
    cluster = given_set(**CLAIMED)

    run(cluster)

    assert cluster.journal == []


@pytest.mark.parametrize("end", [fail, succeed])
def test_a_pod_that_finished_is_deleted_and_made_again(end: Any) -> None:
    cluster = given_set()
    end(cluster, pods(cluster)[1])

    live(cluster)

    assert names(cluster) == ["web-0", "web-1", "web-2"]
    assert (deleted(cluster), made(cluster)) == (["web-1"], ["web-1"])


def test_a_pod_is_available_some_time_after_it_is_ready() -> None:
    cluster = SimulatedCluster()
    cluster.create(stateful_set(replicas=2, minReadySeconds=10))
    live(cluster)
    assert names(cluster) == ["web-0"]
    assert status(cluster, SET)["readyReplicas"] == 1 and status(cluster, SET)["availableReplicas"] == 0

    wind(cluster, seconds=10)
    live(cluster)

    assert names(cluster) == ["web-0", "web-1"]
    assert status(cluster, SET)["availableReplicas"] == 1


# ── scaling ──


def test_the_highest_goes_first_and_one_at_a_time() -> None:
    cluster = given_set()
    edit(cluster, replicas=1)

    run(cluster)
    assert [meta.name(pod) for pod in pods(cluster) if meta.is_deleting(pod)] == ["web-2"]
    live(cluster)

    assert names(cluster) == ["web-0"]
    assert deleted(cluster) == ["web-2", "web-1"]


def test_nothing_goes_while_a_pod_that_stays_is_ill() -> None:
    cluster = given_set()
    become(cluster, pods(cluster)[0], "Running", ready=False)
    edit(cluster, replicas=1)

    run(cluster)

    assert names(cluster) == ["web-0", "web-1", "web-2"]
    assert not deleted(cluster)


def test_the_first_that_is_ill_may_go_if_it_is_the_last() -> None:
    cluster = given_set()
    become(cluster, pods(cluster)[2], "Running", ready=False)
    edit(cluster, replicas=2)

    live(cluster)

    assert names(cluster) == ["web-0", "web-1"]


def test_other_ordinals_mean_other_pods() -> None:
    cluster = given_set(replicas=2)
    edit(cluster, ordinals={"start": 1})

    live(cluster)

    assert names(cluster) == ["web-1", "web-2"]


# ── updating ──


def test_an_update_goes_from_the_highest_down_each_when_the_one_before_is_available() -> None:
    cluster = given_set()
    update(cluster, "web:2")

    live(cluster)

    assert set(images(cluster).values()) == {"web:2"}
    assert deleted(cluster) == ["web-2", "web-1", "web-0"] == made(cluster)
    after = status(cluster, SET)
    assert after["currentRevision"] == after["updateRevision"]
    assert after["currentReplicas"] == after["updatedReplicas"] == 3


def test_an_update_stops_at_a_pod_that_does_not_become_ready() -> None:
    cluster = given_set()
    update(cluster, "web:broken")

    live(cluster, only(lambda pod: "broken" not in pod["spec"]["containers"][0]["image"]))

    assert images(cluster) == {"web-0": "web:1", "web-1": "web:1", "web-2": "web:broken"}
    now = status(cluster, SET)
    assert now["currentRevision"] != now["updateRevision"]
    assert (now["currentReplicas"], now["updatedReplicas"], now["readyReplicas"]) == (2, 1, 2)


def test_a_partition_keeps_the_lower_pods_where_they_are_even_when_they_are_made_again() -> None:
    cluster = given_set(updateStrategy={"type": "RollingUpdate", "rollingUpdate": {"partition": 2}})
    update(cluster, "web:2")
    live(cluster)
    assert images(cluster) == {"web-0": "web:1", "web-1": "web:1", "web-2": "web:2"}

    cluster.delete(meta.ref(pods(cluster)[0]), grace=0)
    cluster.delete(POD.ref("default", "web-2"), grace=0)
    live(cluster)

    assert images(cluster) == {"web-0": "web:1", "web-1": "web:1", "web-2": "web:2"}
    now = status(cluster, SET)
    assert (now["currentReplicas"], now["updatedReplicas"]) == (2, 1)


def test_on_delete_a_pod_is_new_when_it_is_deleted() -> None:
    cluster = given_set(updateStrategy={"type": "OnDelete"})
    update(cluster, "web:2")
    live(cluster)
    assert set(images(cluster).values()) == {"web:1"}

    cluster.delete(meta.ref(pods(cluster)[1]), grace=0)
    live(cluster)

    assert images(cluster) == {"web-0": "web:1", "web-1": "web:2", "web-2": "web:1"}


def test_a_set_that_hurries_still_updates_one_by_one() -> None:
    cluster = given_set(podManagementPolicy="Parallel")
    update(cluster, "web:2")

    run(cluster)

    assert [meta.name(pod) for pod in pods(cluster) if meta.is_deleting(pod)] == ["web-2"]


def test_going_back_finds_the_old_revision_and_gives_it_the_next_number() -> None:
    cluster = given_set()
    [first] = revisions(cluster)
    update(cluster, "web:2")
    live(cluster)
    update(cluster, "web:1")

    live(cluster)

    assert len(revisions(cluster)) == 2
    assert revisions(cluster)[first] == 3
    assert set(images(cluster).values()) == {"web:1"}


def test_old_revisions_are_forgotten_beyond_the_limit() -> None:
    cluster = given_set(revisionHistoryLimit=2)
    for number in range(2, 7):
        update(cluster, f"web:{number}")
        live(cluster)

    assert sorted(revisions(cluster).values()) == [4, 5, 6]


# ── whose things are ──


def test_a_pod_of_the_right_name_is_taken_in_and_one_of_another_is_not() -> None:
    cluster = SimulatedCluster()
    for name in ("web-0", "stranger"):
        pod = cluster.create(make(POD, name, labels={"app": "web"}, spec={"containers": [{"image": "old"}]}))
        well(cluster, pod)
    cluster.create(stateful_set(replicas=1))

    run(cluster)

    owners = {meta.name(pod): meta.controller_of(pod) for pod in pods(cluster)}
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
def test_claims_have_the_owners_of_the_policy(
    on_deletion: str, on_scaling: str, kept: list[str], condemned: list[str]
) -> None:
    policy = {"whenDeleted": on_deletion, "whenScaled": on_scaling}
    cluster = given_set(replicas=2, persistentVolumeClaimRetentionPolicy=policy, **CLAIMED)
    edit(cluster, replicas=1)

    run(cluster)

    owners = {
        meta.name(one): [ref["kind"] for ref in meta.owner_refs(one)] for one in cluster.listed(VOLUME_CLAIM)
    }
    assert owners == {"data-web-0": kept, "data-web-1": condemned}


def test_a_pod_is_not_made_on_a_claim_that_goes_with_an_earlier_one() -> None:
    policy = {"whenDeleted": "Retain", "whenScaled": "Delete"}
    cluster = given_set(replicas=2, persistentVolumeClaimRetentionPolicy=policy, **CLAIMED)
    edit(cluster, replicas=1)
    live(cluster)
    edit(cluster, replicas=2)

    live(cluster)
    assert names(cluster) == ["web-0"]

    cluster.delete(VOLUME_CLAIM.ref("default", "data-web-1"))
    live(cluster)
    assert names(cluster) == ["web-0", "web-1"]


def test_a_claim_that_was_deleted_comes_back_for_a_pod_that_waits_for_it() -> None:
    cluster = SimulatedCluster()
    cluster.create(stateful_set(replicas=1, **CLAIMED))
    run(cluster)
    cluster.delete(VOLUME_CLAIM.ref("default", "data-web-0"))

    run(cluster)

    assert len(cluster.listed(VOLUME_CLAIM)) == 1


def test_a_set_on_its_way_out_makes_nothing_and_counts_what_is_left() -> None:
    cluster = given_set()
    cluster.patch(SET, {"metadata": {"finalizers": ["hold"]}})
    cluster.delete(SET)
    cluster.delete(meta.ref(pods(cluster)[2]), grace=0)

    run(cluster)

    assert names(cluster) == ["web-0", "web-1"]
    assert status(cluster, SET)["replicas"] == 2


# ── promises ──


def _is_in_order(cluster: SimulatedCluster) -> bool:
    """Say whether no pod was made before all those below it were available."""
    return all(
        all(_is_ready(cluster, lower) for lower in range(number))
        for number in range(3)
        if _is_fresh(cluster, number)
    )


def _is_fresh(cluster: SimulatedCluster, number: int) -> bool:
    pod = cluster.objects.get(POD.ref("default", f"web-{number}"))
    return pod is not None and "status" not in pod


def _is_ready(cluster: SimulatedCluster, number: int) -> bool:
    pod: Obj = cluster.objects.get(POD.ref("default", f"web-{number}")) or {}
    return any(one["status"] == "True" for one in (pod.get("status") or {}).get("conditions") or ())


@settings(deadline=None, max_examples=25)
@given(seed=st.integers(0, 10_000), crash=st.integers(0, 30), second=st.integers(0, 30))
def test_whatever_crashes_there_is_one_pod_a_number_and_they_come_in_order(
    seed: int, crash: int, second: int
) -> None:
    cluster = SimulatedCluster()
    cluster.create(stateful_set(**CLAIMED))
    random = Random(seed)
    crashes = [crash, second]
    for round_ in range(40):
        if round_ == 8:
            update(cluster, "web:2")
        try:
            run(cluster, random=random, crash_after=crashes.pop() if crashes else None)
        except Crashed:
            continue
        assert _is_in_order(cluster)
        ill = [pod for pod in pods(cluster) if meta.is_deleting(pod) or "status" not in pod]
        assert len(ill) <= 1
        for pod in pods(cluster):
            attend(cluster, pod, well)

    assert images(cluster) == {"web-0": "web:2", "web-1": "web:2", "web-2": "web:2"}
    assert sorted(revisions(cluster).values()) == [1, 2]
    assert len(cluster.listed(VOLUME_CLAIM)) == 3


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
    cluster = SimulatedCluster()
    cluster.create(stateful_set(template=whole, selector={"matchLabels": labels}))

    run(cluster)

    assert list(revisions(cluster)) == ["web-7b6ddf7797"]
