"""A cluster that registers, renews its lease, and stops renewing it."""

from datetime import timedelta

from lamina.core.model.controller import decide
from lamina.core.model.plan import Plan
from lamina.core.model.queries import Answers
from lamina.families.manifestwork.placement.clusterset import BINDINGS, DEFAULT_SETS, SETS
from lamina.families.manifestwork.placement.managedcluster import (
    CLUSTERS,
    LEASE_NAME,
    UNAVAILABLE,
    UNREACHABLE,
)
from lamina.objects import meta
from lamina.objects.times import micro_stamp, stamp
from lamina.objects.types import Obj, Ref
from lamina.simulation import planned, settle
from lamina.simulation.cluster.kinds import NAMESPACE, make
from tests.unit.families.manifestwork.placement.land import BINDING, CLUSTER, LEASE, SET, Land, said

EAST = CLUSTER.ref("", "east")
MINUTES = timedelta(minutes=1)


def accepted() -> Land:
    land = Land()
    land.clusters("east", spec={"hubAcceptsClient": True, "leaseDurationSeconds": 60})
    settle(land, CLUSTERS)
    return land


def report_available(land: Land, status: str = "True") -> None:
    """Have the agent of the cluster renew its lease and say how it is."""
    lease = LEASE.ref("east", LEASE_NAME)
    land.patch(lease, {"spec": {"renewTime": micro_stamp(land.now)}})
    condition = {
        "type": "ManagedClusterConditionAvailable",
        "status": status,
        "lastTransitionTime": stamp(land.now),
    }
    others = [
        one
        for one in (land.get(EAST).get("status") or {}).get("conditions") or ()
        if one["type"] != condition["type"]
    ]
    land.patch(EAST, {"status": {"conditions": [*others, condition]}}, subresource="status")
    settle(land, CLUSTERS)


def taints(land: Land) -> list[str]:
    return [one["key"] for one in (land.get(EAST).get("spec") or {}).get("taints") or ()]


def test_a_cluster_that_is_not_accepted_gets_nothing() -> None:
    land = Land()
    land.clusters("east", spec={"hubAcceptsClient": False})

    settle(land, CLUSTERS)

    assert land.journal == []


def test_an_accepted_cluster_has_a_namespace_and_a_lease() -> None:
    land = accepted()

    assert [meta.name(one) for one in land.listed(NAMESPACE)] == ["east"]
    assert [meta.name(one) for one in land.listed(LEASE, "east")] == [LEASE_NAME]
    assert said(land.get(EAST), "HubAcceptedManagedCluster")[:2] == ("True", "HubClusterAdminAccepted")
    assert taints(land) == []
    assert not planned(land, CLUSTERS, EAST).stages


def test_one_that_is_denied_later_is_told_so() -> None:
    land = accepted()

    land.patch(EAST, {"spec": {"hubAcceptsClient": False}})
    settle(land, CLUSTERS)

    assert said(land.get(EAST), "HubAcceptedManagedCluster")[:2] == ("False", "HubClusterAdminDenied")


def test_a_cluster_that_falls_silent_is_unknown_after_five_times_its_lease() -> None:
    land = accepted()
    report_available(land)
    assert planned(land, CLUSTERS, EAST).requeue_after == 5 * MINUTES

    land.now += 5 * MINUTES - timedelta(seconds=1)
    settle(land, CLUSTERS)
    assert said(land.get(EAST), "ManagedClusterConditionAvailable")[0] == "True"

    land.now += timedelta(seconds=1)
    settle(land, CLUSTERS)
    assert said(land.get(EAST), "ManagedClusterConditionAvailable")[:2] == (
        "Unknown",
        "ManagedClusterLeaseUpdateStopped",
    )
    assert taints(land) == [UNREACHABLE]

    report_available(land)
    assert taints(land) == []


def test_a_lease_that_was_renewed_unobserved_has_not_run_out() -> None:
    """A hub with a stale view reads live before it taints a cluster: the works of a tainted cluster are deleted."""
    land = accepted()
    report_available(land)
    seen = land.copy()
    land.now += 6 * MINUTES
    land.patch(LEASE.ref("east", LEASE_NAME), {"spec": {"renewTime": micro_stamp(land.now)}})

    view = CLUSTERS.gather(seen.world(CLUSTERS), EAST)
    assert view is not None
    asked = decide(CLUSTERS, view, Answers(), land.now)
    assert isinstance(asked, tuple)
    plan = decide(CLUSTERS, view, Answers({one: land.answer(one) for one in asked}), land.now)

    assert isinstance(plan, Plan)
    assert plan.actions == ()
    assert plan.requeue_after == 5 * MINUTES


def test_one_that_is_not_well_is_unavailable_and_keeps_the_taints_of_others() -> None:
    land = accepted()
    land.patch(EAST, {"spec": {"taints": [{"key": "mine", "effect": "NoSelect"}]}})

    report_available(land, "False")

    assert taints(land) == ["mine", UNAVAILABLE]
    report_available(land)
    assert taints(land) == ["mine"]


def test_a_namespace_that_was_deleted_comes_back() -> None:
    land = accepted()

    land.delete(Ref("v1", "Namespace", "", "east"))
    settle(land, CLUSTERS)

    assert [meta.name(one) for one in land.listed(NAMESPACE)] == ["east"]


def _status(land: Land, ref: Ref) -> Obj:
    settle(land, SETS, BINDINGS)
    return land.get(ref)


def test_a_set_says_how_many_are_in_it_and_a_binding_whether_its_set_is_there() -> None:
    land = Land()
    land.bound()
    fleet, binding = SET.ref("", "fleet"), BINDING.ref("team", "fleet")
    assert said(_status(land, fleet), "ClusterSetEmpty")[:2] == ("True", "NoClusterMatched")

    land.clusters("east", "west")

    assert said(_status(land, fleet), "ClusterSetEmpty") == (
        "False",
        "ClustersSelected",
        "2 ManagedClusters selected",
    )
    assert said(_status(land, binding), "Bound")[:2] == ("True", "ClusterSetBound")

    land.delete(fleet)
    assert said(_status(land, binding), "Bound")[:2] == ("False", "ClusterSetNotFound")

    land.create(make(BINDING, "wrong", "team", spec={"clusterSet": "fleet"}))
    assert said(_status(land, BINDING.ref("team", "wrong")), "Bound")[1] == "ClusterSetNotBound"


def hub() -> Land:
    """A hub on which nothing was created yet."""
    land = Land()
    land.create(make(NAMESPACE, "default"))
    settle(land, DEFAULT_SETS)
    return land


def selectors(land: Land) -> dict[str, Obj]:
    return {meta.name(one): one["spec"]["clusterSelector"] for one in land.listed(SET)}


def test_every_hub_has_a_default_and_a_global_set() -> None:
    land = hub()

    assert selectors(land) == {
        "default": {"selectorType": "ExclusiveClusterSetLabel"},
        "global": {"selectorType": "LabelSelector", "labelSelector": {}},
    }
    before = land.version
    settle(land, DEFAULT_SETS)
    assert land.version == before


def test_a_default_set_that_was_edited_stays_so_and_one_that_was_deleted_is_created_anew() -> None:
    land = hub()
    own = {"selectorType": "LabelSelector", "labelSelector": {"matchLabels": {"a": "b"}}}
    land.patch(SET.ref("", "global"), {"spec": {"clusterSelector": own}})
    land.delete(SET.ref("", "default"))
    settle(land, DEFAULT_SETS)

    assert selectors(land) == {"default": {"selectorType": "ExclusiveClusterSetLabel"}, "global": own}
