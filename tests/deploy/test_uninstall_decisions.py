"""What `lamina uninstall` decides: which Leases are ours and held, which finalizers go, and what is left."""

from datetime import UTC, datetime, timedelta

import pytest

from lamina.deploy.uninstall import (
    Installed,
    Reading,
    Release,
    agents_alive,
    held,
    holders,
    is_finalizer,
    patch_of,
    releases,
    remainder,
    versions,
)
from lamina.families.registry import chosen
from lamina.objects.times import micro_stamp
from lamina.objects.types import Made, Ref

NOW = datetime(2026, 1, 1, tzinfo=UTC)
OURS = Installed(namespace="ops", lease_name="lamina")


def lease(name: str = "lamina", holder: str = "a", *, ago: int = 0, seconds: int | None = 15) -> Made:
    spec: Made = {"holderIdentity": holder, "renewTime": micro_stamp(NOW - timedelta(seconds=ago))}
    spec |= {"leaseDurationSeconds": seconds} if seconds else {}
    metadata = {"name": name, "namespace": "ops"}
    return {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": metadata, "spec": spec}


@pytest.mark.parametrize(
    ("name", "is_ours"),
    [
        ("lamina", True),
        ("lamina-0", True),
        ("lamina-12", True),
        ("lamina-edge-phase-class", True),
        ("lamina-edge-phase-class-1", True),
        ("lamina-two", False),
        ("lamina2", False),
        ("my-lamina", False),
        ("metacontroller", False),
    ],
)  # fmt: skip
def test_a_lease_of_another_installation_is_not_ours(name: str, is_ours: bool) -> None:
    assert OURS.is_lease(name) is is_ours


@pytest.mark.parametrize(
    ("found", "is_held"),
    [
        (lease(), True),
        (lease(ago=14), True),
        (lease(ago=15), False),
        (lease(ago=59, seconds=None), True),
        (lease(holder=""), False),
        (lease("other"), False),
        ({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "lamina"}}, False),
    ],
    ids=["renewed", "nearly expired", "expired", "without a duration", "released", "another's", "never held"],
)
def test_a_lease_that_is_released_or_expired_is_not_held(found: Made, is_held: bool) -> None:
    assert bool(list(holders([found], OURS, NOW))) is is_held


def at(version: str, found: Made) -> Made:
    return {**found, "metadata": {**found["metadata"], "resourceVersion": version}}


def test_a_lease_that_looks_expired_is_held_if_it_was_renewed_since_it_was_read() -> None:
    def read(version: str) -> Reading:
        cluster: Made = {"metadata": {"name": "east"}}
        return Reading(
            controllers=[at(version, lease(ago=500)), at(version, lease("other", ago=500))],
            originals=[
                at(version, lease("kro", ago=500)),
                at(version, lease("mine", OURS.identity, ago=500)),
            ],
            agents=[(cluster, at(version, lease("east", ago=500)))],
        )

    before = versions(read("7"), OURS)

    assert sorted(ref.name for ref in before) == ["east", "kro", "lamina"]
    assert held(read("7"), OURS, NOW, {}) == held(read("7"), OURS, NOW, before) == []
    assert len(held(read("8"), OURS, NOW, before)) == 3


@pytest.mark.parametrize(("ago", "is_alive"), [(119, True), (120, False)])
def test_the_lease_of_an_agent_lasts_as_long_as_its_cluster_says(ago: int, is_alive: bool) -> None:
    cluster = {"metadata": {"name": "east"}, "spec": {"leaseDurationSeconds": 120}}

    assert bool(list(agents_alive([(cluster, lease(ago=ago, seconds=None))], NOW))) is is_alive


def test_only_finalizers_of_families_are_removed() -> None:
    every = is_finalizer(chosen("all"))
    ours = [
        "metacontroller.io/compositecontroller-web",
        "metacontroller.io/decoratorcontroller-web",
        "metacontroller.io/release-parents",
        "work.open-cluster-management.io/manifest-work-cleanup",
        "cluster.open-cluster-management.io/manifest-work-cleanup",
        "cluster.open-cluster-management.io/applied-manifest-work-cleanup",
        "package-operator.run/cached",
        "package-operator.run/metrics",
        "kro.run/finalizer",
    ]
    theirs = ["kubernetes.io/pvc-protection", "foregroundDeletion", "orphan", "metacontroller.io/other"]
    metadata = {"name": "a", "resourceVersion": "7", "finalizers": [theirs[0], *ours, *theirs[1:]]}
    obj: Made = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}

    assert list(releases([obj], every)) == [Release(Ref("v1", "ConfigMap", "", "a"), tuple(ours))]
    assert patch_of(obj, ours) == {"metadata": {"finalizers": theirs, "resourceVersion": "7"}}
    assert patch_of(obj, ["gone.example.com"]) is None
    assert not any(map(is_finalizer(chosen("resourcegraph")), ours[:-1]))


def test_what_is_left_is_counted_by_definition() -> None:
    objects = [
        {"apiVersion": "package-operator.run/v1alpha1", "kind": "ObjectSet", "metadata": {"name": "a"}},
        {"apiVersion": "package-operator.run/v1alpha1", "kind": "ObjectSet", "metadata": {"name": "b"}},
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}},
    ]

    assert remainder(objects, chosen("all")) == ["2 objectsets.package-operator.run"]
    assert remainder(objects, chosen("metacontroller")) == []
