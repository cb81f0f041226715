"""Claims that bind and volumes that are made, told on paper."""

from random import Random
from typing import Any

import pytest

from lamina.actors.workloads.claims import CLAIMS
from lamina.actors.workloads.ephemeral import EPHEMERAL_CLAIMS
from lamina.actors.workloads.matching import smallest_fit
from lamina.actors.workloads.provisioning import PROVISIONING, STANDARD
from lamina.actors.workloads.volumes import HELD_CLAIMS, VOLUMES
from lamina.objects import meta
from lamina.objects.types import Made, Ref
from lamina.paper import Crashed, Paper, settle
from lamina.paper.kinds import EVENT, POD, STORAGE_CLASS, VOLUME, VOLUME_CLAIM, make

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


def phases(paper: Paper) -> dict[str, str]:
    return {
        meta.name(one): one["status"]["phase"] for one in (*paper.listed(VOLUME_CLAIM), *paper.listed(VOLUME))
    }


def reasons(paper: Paper) -> list[str]:
    return sorted(one["reason"] for one in paper.listed(EVENT))


@pytest.mark.parametrize("seed", range(5))
def test_each_claim_gets_a_volume_and_each_volume_a_claim(seed: int) -> None:
    paper = Paper()
    for number in range(4):
        paper.create(volume(f"v-{number}", f"{number + 1}Gi"))
        paper.create(claim(f"c-{number}", f"{number + 1}Gi"))

    settle(paper, *CONTROLLERS, random=Random(seed))

    assert set(phases(paper).values()) == {"Bound"}
    pairs = {meta.name(one): one["spec"]["volumeName"] for one in paper.listed(VOLUME_CLAIM)}
    back = {one["spec"]["claimRef"]["name"]: meta.name(one) for one in paper.listed(VOLUME)}
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
        "none that was somebody else's",
        "none of another mode",
    ],
)
def test_a_claim_gets(volumes: list[Made], asks: Made, chosen: str | None) -> None:
    found = smallest_fit(volumes, claim(**asks))

    assert (meta.name(found) if found else None) == chosen


def test_a_claim_of_our_class_is_provided_for_and_its_volume_goes_with_it() -> None:
    paper = Paper()
    paper.create(standard())
    made = paper.create(claim(storageClassName="standard"))
    settle(paper, *CONTROLLERS)
    name = f"pvc-{meta.uid(made)}"
    assert phases(paper) == {"c": "Bound", name: "Bound"}
    assert paper.get(at())["status"]["capacity"] == {"storage": "1Gi"}
    assert reasons(paper) == ["ExternalProvisioning", "Provisioning", "ProvisioningSucceeded"]

    paper.delete(at())
    settle(paper, *CONTROLLERS)

    assert phases(paper) == {}


def test_a_volume_that_is_to_be_kept_is_released() -> None:
    paper = Paper()
    paper.create(standard(reclaimPolicy="Retain"))
    paper.create(claim(storageClassName="standard"))
    settle(paper, *CONTROLLERS)

    paper.delete(at())
    settle(paper, *CONTROLLERS)

    assert list(phases(paper).values()) == ["Released"]


def test_a_claim_grows_and_its_volume_with_it() -> None:
    paper = Paper()
    paper.create(standard())
    paper.create(claim(storageClassName="standard"))
    settle(paper, *CONTROLLERS)

    paper.patch(at(), {"spec": {"resources": {"requests": {"storage": "2Gi"}}}})
    settle(paper, *CONTROLLERS)

    assert paper.get(at())["status"]["capacity"] == {"storage": "2Gi"}
    assert paper.listed(VOLUME)[0]["spec"]["capacity"] == {"storage": "2Gi"}


def test_a_claim_that_leaves_it_to_others_is_given_the_usual_class_once_there_is_one() -> None:
    paper = Paper()
    paper.create(claim(storageClassName=None))
    settle(paper, *CONTROLLERS)
    assert reasons(paper) == ["FailedBinding"]

    paper.create(standard())
    settle(paper, *CONTROLLERS)

    assert paper.get(at())["status"]["phase"] == "Bound"


def test_a_claim_waits_for_its_first_consumer() -> None:
    paper = Paper()
    paper.create(standard(volumeBindingMode="WaitForFirstConsumer"))
    paper.create(claim(storageClassName="standard"))
    settle(paper, *CONTROLLERS)
    assert reasons(paper) == ["WaitForFirstConsumer"]

    used = {"name": "v", "persistentVolumeClaim": {"claimName": "c"}}
    paper.create(make(POD, "p", spec={"volumes": [used]}))
    settle(paper, *CONTROLLERS)
    assert phases(paper) == {"c": "Pending"}

    paper.patch(Ref("v1", "Pod", "default", "p"), {"spec": {"nodeName": "n"}})
    settle(paper, *CONTROLLERS)
    assert paper.get(at())["status"]["phase"] == "Bound"
    assert meta.annotations(paper.get(at()))["volume.kubernetes.io/selected-node"] == "n"


def test_a_claim_that_is_in_use_stays_until_it_is_not() -> None:
    paper = Paper()
    paper.create(volume("v"))
    paper.create(claim())
    used = {"name": "v", "persistentVolumeClaim": {"claimName": "c"}}
    paper.create(make(POD, "p", spec={"nodeName": "n", "volumes": [used]}))
    settle(paper, *CONTROLLERS)

    paper.delete(at())
    paper.delete(Ref("v1", "PersistentVolume", "", "v"))
    settle(paper, *CONTROLLERS)
    assert phases(paper) == {"c": "Bound", "v": "Bound"}

    paper.delete(Ref("v1", "Pod", "default", "p"), grace=0)
    settle(paper, *CONTROLLERS)
    assert phases(paper) == {}


def test_a_claim_that_asks_for_a_volume_by_name_gets_it_or_none() -> None:
    paper = Paper()
    paper.create(volume("v", "1Gi"))
    paper.create(claim("large", "2Gi", volumeName="v"))
    settle(paper, *CONTROLLERS)
    assert reasons(paper) == ["VolumeMismatch"]

    paper.create(claim("fits", volumeName="v"))
    settle(paper, *CONTROLLERS)

    assert phases(paper) == {"large": "Pending", "fits": "Bound", "v": "Bound"}
    assert meta.annotations(paper.get(at("fits"))) == {"pv.kubernetes.io/bind-completed": "yes"}
    assert "FailedBinding" in reasons(paper)


def test_a_claim_whose_volume_goes_is_lost() -> None:
    paper = Paper()
    paper.create({**volume("v"), "metadata": {"name": "v"}})
    paper.create(claim())
    settle(paper, *CONTROLLERS)

    paper.delete(Ref("v1", "PersistentVolume", "", "v"))
    settle(paper, *CONTROLLERS)

    assert phases(paper) == {"c": "Lost"}
    assert reasons(paper) == ["ClaimLost"]


def test_a_claim_that_a_pod_brings_is_made_for_it() -> None:
    paper = Paper()
    paper.create(standard())
    asked = {
        "accessModes": [ONCE],
        "resources": {"requests": {"storage": "1Gi"}},
        "storageClassName": "standard",
    }
    template = {"metadata": {"labels": {"x": "y"}}, "spec": asked}
    brought = {"name": "v", "ephemeral": {"volumeClaimTemplate": template}}
    pod = paper.create(make(POD, "p", spec={"nodeName": "n", "volumes": [brought]}))

    settle(paper, *CONTROLLERS, EPHEMERAL_CLAIMS)

    made = paper.get(at("p-v"))
    assert made["status"]["phase"] == "Bound"
    assert meta.labels(made) == {"x": "y"}
    assert meta.is_controlled_by(made, meta.uid(pod))


def test_a_claim_that_is_somebody_elses_is_left_alone() -> None:
    paper = Paper()
    paper.create(claim("p-v"))
    paper.create(make(POD, "p", spec={"volumes": [{"name": "v", "ephemeral": {"volumeClaimTemplate": {}}}]}))

    settle(paper, EPHEMERAL_CLAIMS)

    assert reasons(paper) == ["FailedBinding"]
    assert not meta.owner_refs(paper.get(at("p-v")))


@pytest.mark.parametrize("crash_after", range(8))
def test_whoever_dies_while_binding_is_followed_by_somebody_who_finishes(crash_after: int) -> None:
    paper = Paper()
    paper.create(standard())
    paper.create(claim(storageClassName="standard"))
    try:
        settle(paper, *CONTROLLERS, crash_after=crash_after)
    except Crashed:
        settle(paper, *CONTROLLERS)

    assert sorted(phases(paper).values()) == ["Bound", "Bound"]
    assert len(paper.listed(VOLUME)) == 1
