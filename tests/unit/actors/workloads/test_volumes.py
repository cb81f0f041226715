"""Volume binding and provisioning in a simulated cluster."""

from random import Random
from typing import Any

import pytest

from lamina.actors.workloads.ephemeral import EPHEMERAL_CLAIMS
from lamina.actors.workloads.pv_binder import CLAIMS
from lamina.actors.workloads.pv_match import smallest_fit
from lamina.actors.workloads.pv_phase import HELD_CLAIMS, VOLUMES
from lamina.actors.workloads.pv_provisioner import PROVISIONING, STANDARD
from lamina.objects import meta
from lamina.objects.types import Made, Ref
from lamina.simulation import Crashed, SimulatedCluster, settle
from lamina.simulation.cluster.kinds import EVENT, POD, STORAGE_CLASS, VOLUME, VOLUME_CLAIM, make

CONTROLLERS = (CLAIMS, VOLUMES, HELD_CLAIMS, PROVISIONING)
ONCE = "ReadWriteOnce"


def claim(name: str = "c", size: str = "1Gi", **spec: Any) -> Made:
    usual = {"accessModes": [ONCE], "resources": {"requests": {"storage": size}}, "storageClassName": "own"}
    made = make(VOLUME_CLAIM, name, spec={**usual, **spec}, status={"phase": "Pending"})
    made["metadata"]["finalizers"] = ["kubernetes.io/pvc-protection"]
    return made


def volume(name: str, size: str = "1Gi", **spec: Any) -> Made:
    usual = {"accessModes": [ONCE], "capacity": {"storage": size}, "storageClassName": "own"}
    labels = spec.pop("labels", {})
    made = make(VOLUME, name, labels=labels, spec={**usual, **spec}, status={"phase": "Available"})
    made["metadata"]["finalizers"] = ["kubernetes.io/pv-protection"]
    return made


def standard(**fields: Any) -> Made:
    return make(STORAGE_CLASS, "standard", **{**STANDARD, "metadata": {}, **fields}) | {
        "metadata": {"name": "standard", "annotations": STANDARD["metadata"]["annotations"]}
    }


def at(name: str = "c") -> Ref:
    return Ref("v1", "PersistentVolumeClaim", "default", name)


def phases(cluster: SimulatedCluster) -> dict[str, str]:
    return {
        meta.name(one): one["status"]["phase"]
        for one in (*cluster.listed(VOLUME_CLAIM), *cluster.listed(VOLUME))
    }


def reasons(cluster: SimulatedCluster) -> list[str]:
    return sorted(one["reason"] for one in cluster.listed(EVENT))


@pytest.mark.parametrize("seed", range(5))
def test_each_claim_gets_a_volume_and_each_volume_a_claim(seed: int) -> None:
    cluster = SimulatedCluster()
    for number in range(4):
        cluster.create(volume(f"v-{number}", f"{number + 1}Gi"))
        cluster.create(claim(f"c-{number}", f"{number + 1}Gi"))

    settle(cluster, *CONTROLLERS, random=Random(seed))

    assert set(phases(cluster).values()) == {"Bound"}
    pairs = {meta.name(one): one["spec"]["volumeName"] for one in cluster.listed(VOLUME_CLAIM)}
    back = {one["spec"]["claimRef"]["name"]: meta.name(one) for one in cluster.listed(VOLUME)}
    assert pairs == back


@pytest.mark.parametrize(
    ("volumes", "asks", "chosen"),
    [
        ([volume("a", "5Gi"), volume("b", "2Gi")], {}, "b"),
        ([volume("a", "512Mi")], {}, None),
        ([volume("a", storageClassName="other")], {}, None),
        ([volume("a"), volume("b", labels={"x": "y"})], {"selector": {"matchLabels": {"x": "y"}}}, "b"),
        (
            [volume("a"), volume("b", accessModes=[ONCE, "ReadWriteMany"])],
            {"accessModes": ["ReadWriteMany"]},
            "b",
        ),
        ([volume("a", "1Gi", accessModes=[ONCE, "ReadWriteMany"]), volume("b", "5Gi")], {}, "b"),
        ([volume("a", claimRef={"name": "z"})], {}, None),
        ([{**volume("a"), "status": {"phase": "Released"}}], {}, None),
        ([volume("a", volumeMode="Block")], {}, None),
    ],
    ids=[
        "the smallest that fits",
        "none that is too small",
        "none of another class",
        "one with the right labels",
        "one that can be reached as asked",
        "the one with the fewest ways of access",
        "none that is taken",
        "none that another claim had",
        "none of another mode",
    ],
)
def test_a_claim_gets(volumes: list[Made], asks: Made, chosen: str | None) -> None:
    found = smallest_fit(volumes, claim(**asks))

    assert (meta.name(found) if found else None) == chosen


def test_a_claim_of_our_class_is_provided_for_and_its_volume_goes_with_it() -> None:
    cluster = SimulatedCluster()
    cluster.create(standard())
    made = cluster.create(claim(storageClassName="standard"))
    settle(cluster, *CONTROLLERS)
    name = f"pvc-{meta.uid(made)}"
    assert phases(cluster) == {"c": "Bound", name: "Bound"}
    assert cluster.get(at())["status"]["capacity"] == {"storage": "1Gi"}
    assert reasons(cluster) == ["ExternalProvisioning", "Provisioning", "ProvisioningSucceeded"]

    cluster.delete(at())
    settle(cluster, *CONTROLLERS)

    assert phases(cluster) == {}


def test_a_volume_that_is_to_be_kept_is_released() -> None:
    cluster = SimulatedCluster()
    cluster.create(standard(reclaimPolicy="Retain"))
    cluster.create(claim(storageClassName="standard"))
    settle(cluster, *CONTROLLERS)

    cluster.delete(at())
    settle(cluster, *CONTROLLERS)

    assert list(phases(cluster).values()) == ["Released"]


def test_a_claim_grows_and_its_volume_with_it() -> None:
    cluster = SimulatedCluster()
    cluster.create(standard())
    cluster.create(claim(storageClassName="standard"))
    settle(cluster, *CONTROLLERS)

    cluster.patch(at(), {"spec": {"resources": {"requests": {"storage": "2Gi"}}}})
    settle(cluster, *CONTROLLERS)

    assert cluster.get(at())["status"]["capacity"] == {"storage": "2Gi"}
    assert cluster.listed(VOLUME)[0]["spec"]["capacity"] == {"storage": "2Gi"}


def test_a_claim_that_leaves_it_to_others_is_given_the_usual_class_once_there_is_one() -> None:
    cluster = SimulatedCluster()
    cluster.create(claim(storageClassName=None))
    settle(cluster, *CONTROLLERS)
    assert reasons(cluster) == ["FailedBinding"]

    cluster.create(standard())
    settle(cluster, *CONTROLLERS)

    assert cluster.get(at())["status"]["phase"] == "Bound"


def test_a_claim_waits_for_its_first_consumer() -> None:
    cluster = SimulatedCluster()
    cluster.create(standard(volumeBindingMode="WaitForFirstConsumer"))
    cluster.create(claim(storageClassName="standard"))
    settle(cluster, *CONTROLLERS)
    assert reasons(cluster) == ["WaitForFirstConsumer"]

    used = {"name": "v", "persistentVolumeClaim": {"claimName": "c"}}
    cluster.create(make(POD, "p", spec={"volumes": [used]}))
    settle(cluster, *CONTROLLERS)
    assert phases(cluster) == {"c": "Pending"}

    cluster.patch(Ref("v1", "Pod", "default", "p"), {"spec": {"nodeName": "n"}})
    settle(cluster, *CONTROLLERS)
    assert cluster.get(at())["status"]["phase"] == "Bound"
    assert meta.annotations(cluster.get(at()))["volume.kubernetes.io/selected-node"] == "n"


def test_a_claim_that_is_in_use_stays_until_it_is_not() -> None:
    cluster = SimulatedCluster()
    cluster.create(volume("v"))
    cluster.create(claim())
    used = {"name": "v", "persistentVolumeClaim": {"claimName": "c"}}
    cluster.create(make(POD, "p", spec={"nodeName": "n", "volumes": [used]}))
    settle(cluster, *CONTROLLERS)

    cluster.delete(at())
    cluster.delete(Ref("v1", "PersistentVolume", "", "v"))
    settle(cluster, *CONTROLLERS)
    assert phases(cluster) == {"c": "Bound", "v": "Bound"}

    cluster.delete(Ref("v1", "Pod", "default", "p"), grace=0)
    settle(cluster, *CONTROLLERS)
    assert phases(cluster) == {}


def test_a_claim_that_asks_for_a_volume_by_name_gets_it_or_none() -> None:
    cluster = SimulatedCluster()
    cluster.create(volume("v", "1Gi"))
    cluster.create(claim("large", "2Gi", volumeName="v"))
    settle(cluster, *CONTROLLERS)
    assert reasons(cluster) == ["VolumeMismatch"]

    cluster.create(claim("fits", volumeName="v"))
    settle(cluster, *CONTROLLERS)

    assert phases(cluster) == {"large": "Pending", "fits": "Bound", "v": "Bound"}
    assert meta.annotations(cluster.get(at("fits"))) == {"pv.kubernetes.io/bind-completed": "yes"}
    assert "FailedBinding" in reasons(cluster)


def test_a_claim_whose_volume_goes_is_lost() -> None:
    cluster = SimulatedCluster()
    cluster.create({**volume("v"), "metadata": {"name": "v"}})
    cluster.create(claim())
    settle(cluster, *CONTROLLERS)

    cluster.delete(Ref("v1", "PersistentVolume", "", "v"))
    settle(cluster, *CONTROLLERS)

    assert phases(cluster) == {"c": "Lost"}
    assert reasons(cluster) == ["ClaimLost"]


def test_a_claim_that_a_pod_brings_is_made_for_it() -> None:
    cluster = SimulatedCluster()
    cluster.create(standard())
    asked = {
        "accessModes": [ONCE],
        "resources": {"requests": {"storage": "1Gi"}},
        "storageClassName": "standard",
    }
    template = {"metadata": {"labels": {"x": "y"}}, "spec": asked}
    brought = {"name": "v", "ephemeral": {"volumeClaimTemplate": template}}
    pod = cluster.create(make(POD, "p", spec={"nodeName": "n", "volumes": [brought]}))

    settle(cluster, *CONTROLLERS, EPHEMERAL_CLAIMS)

    made = cluster.get(at("p-v"))
    assert made["status"]["phase"] == "Bound"
    assert meta.labels(made) == {"x": "y"}
    assert meta.is_controlled_by(made, meta.uid(pod))


def test_a_claim_of_another_owner_is_left_alone() -> None:
    cluster = SimulatedCluster()
    cluster.create(claim("p-v"))
    cluster.create(
        make(POD, "p", spec={"volumes": [{"name": "v", "ephemeral": {"volumeClaimTemplate": {}}}]})
    )

    settle(cluster, EPHEMERAL_CLAIMS)

    assert reasons(cluster) == ["FailedBinding"]
    assert not meta.owner_refs(cluster.get(at("p-v")))


@pytest.mark.parametrize("crash_after", range(8))
def test_a_binding_that_a_crash_interrupted_is_finished(crash_after: int) -> None:
    cluster = SimulatedCluster()
    cluster.create(standard())
    cluster.create(claim(storageClassName="standard"))
    try:
        settle(cluster, *CONTROLLERS, crash_after=crash_after)
    except Crashed:
        settle(cluster, *CONTROLLERS)

    assert sorted(phases(cluster).values()) == ["Bound", "Bound"]
    assert len(cluster.listed(VOLUME)) == 1
