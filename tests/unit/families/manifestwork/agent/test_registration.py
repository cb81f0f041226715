"""A cluster makes itself known to its hub."""

from datetime import timedelta
from typing import Any

from lamina.families.manifestwork.agent.controller import agent
from lamina.families.manifestwork.agent.labels import HUB
from lamina.families.manifestwork.placement.managedcluster import LEASE_NAME
from lamina.objects import conditions
from lamina.objects.times import micro_stamp, moment
from lamina.objects.types import Made
from lamina.simulation import settle
from lamina.simulation.cluster.kinds import NODE, make
from tests.unit.families.manifestwork.agent.story import CLAIM, CLUSTER, LEASE, Spoke

REF = CLUSTER.ref("", "c1")


def accepted(**spec: Any) -> Spoke:
    """A cluster that the hub has accepted, and given a lease."""
    spoke = Spoke()
    spoke.hub.create(make(CLUSTER, "c1", spec={"hubAcceptsClient": True, "leaseDurationSeconds": 60, **spec}))
    lease = {"holderIdentity": LEASE_NAME, "renewTime": micro_stamp(spoke.hub.now)}
    spoke.hub.create(make(LEASE, LEASE_NAME, "c1", spec=lease))
    return spoke


def status(spoke: Spoke) -> Made:
    return spoke.hub.get(REF).get("status") or {}


def node(name: str, cpu: str, memory: str, **spec: Any) -> Made:
    amounts = {"cpu": cpu, "memory": memory}
    info = {"kubeletVersion": "v1.35.4"}
    return make(NODE, name, spec=spec, status={"allocatable": amounts, "capacity": amounts, "nodeInfo": info})


def test_a_cluster_that_is_not_accepted_says_nothing() -> None:
    spoke = accepted(hubAcceptsClient=False)
    spoke.run()
    assert spoke.hub.journal == []


def test_an_accepted_cluster_says_that_it_is_there_and_what_it_is_like() -> None:
    spoke = accepted()
    spoke.home.create(node("a", "2", "4Gi"))
    spoke.home.create(node("b", "1500m", "4Gi"))
    spoke.home.create(node("c", "1", "1Gi", unschedulable=True))
    spoke.home.create(make(CLAIM, "region", spec={"value": "eu"}))
    spoke.run()

    said = status(spoke)
    assert conditions.is_true(said["conditions"], "ManagedClusterJoined")
    assert conditions.is_true(said["conditions"], "ManagedClusterConditionAvailable")
    assert said["allocatable"] == {"cpu": "3500m", "memory": str(8 * 1024**3)}
    assert said["capacity"] == {"cpu": "4500m", "memory": str(9 * 1024**3)}
    assert said["clusterClaims"] == [{"name": "region", "value": "eu"}]
    assert said["version"] == {"kubernetes": "v1.35.4"}
    before = len(spoke.hub.journal)
    spoke.run()
    assert len(spoke.hub.journal) == before


def test_the_version_is_the_one_the_server_says_it_has() -> None:
    spoke = accepted()
    settle(spoke.home, *agent("c1", "hash", version="v1.36.0"), others={HUB: spoke.hub})
    assert status(spoke)["version"] == {"kubernetes": "v1.36.0"}


def test_the_lease_is_renewed_as_often_as_it_was_promised() -> None:
    spoke = accepted()
    play = spoke.play()
    play.settle()
    began = spoke.home.now
    play.pass_time(timedelta(seconds=200))

    lease = spoke.hub.get(LEASE.ref("c1", LEASE_NAME))
    assert moment(lease["spec"]["renewTime"]) == began + timedelta(seconds=180)
    renewals = [one for one in spoke.hub.journal if one.ref.kind == "Lease"]
    assert len(renewals) == 3


def test_one_that_was_given_up_is_available_again_when_it_comes_back() -> None:
    spoke = accepted()
    spoke.run()
    lost = conditions.with_condition(
        status(spoke)["conditions"], "ManagedClusterConditionAvailable", "Unknown", now=spoke.hub.now
    )
    spoke.hub.patch(REF, {"status": {"conditions": lost}}, subresource="status")
    spoke.pass_time(600)
    spoke.run()

    assert conditions.is_true(status(spoke)["conditions"], "ManagedClusterConditionAvailable")
    kinds = [one.ref.kind for one in spoke.hub.journal[-2:]]
    assert kinds == ["Lease", "ManagedCluster"], "the lease first, or the hub would take it back"
