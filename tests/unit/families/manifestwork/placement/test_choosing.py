"""Which clusters a placement selects, and its conditions when it cannot."""

from datetime import timedelta

import pytest

from lamina.core.model.controller import decide
from lamina.core.model.plan import Patch, Plan
from lamina.core.model.queries import Answers
from lamina.families.manifestwork.labels import GROUP_INDEX, GROUP_NAME, PLACEMENT_LABEL
from lamina.families.manifestwork.placement.controller import PLACEMENTS
from lamina.objects import meta
from lamina.objects.times import stamp
from lamina.objects.types import Made, Ref
from lamina.simulation import planned
from lamina.simulation.cluster.kinds import make
from tests.unit.families.manifestwork.placement.land import (
    CLUSTER,
    DECISION,
    PLACEMENT,
    SCORE,
    Land,
    labelled,
    said,
)

UNREACHABLE = {"key": "unreachable", "effect": "NoSelect"}


@pytest.fixture
def land() -> Land:
    land = Land()
    land.bound()
    return land


def test_every_cluster_in_a_bound_set_is_chosen(land: Land) -> None:
    land.clusters("b", "a")
    land.clusters("stranger", member_of="other")

    placement = land.place()

    assert land.chosen() == [["a", "b"]]
    assert placement["status"]["numberOfSelectedClusters"] == 2
    assert said(placement, "PlacementSatisfied") == (
        "True",
        "AllDecisionsScheduled",
        "All cluster decisions scheduled",
    )
    (decision,) = land.listed(DECISION, "team")
    assert meta.labels(decision) == {PLACEMENT_LABEL: "place", GROUP_INDEX: "0", GROUP_NAME: ""}
    assert meta.is_controlled_by(decision, meta.uid(placement))


def test_a_scheduled_placement_is_left_alone(land: Land) -> None:
    land.clusters("a")
    placement = land.place()

    assert not planned(land, PLACEMENTS, meta.ref(placement)).stages


def test_no_cluster_is_chosen_where_no_set_is_bound() -> None:
    land = Land()
    land.clusters("a")

    placement = land.place()

    assert land.chosen() == [[]]
    assert said(placement, "PlacementSatisfied")[:2] == ("False", "NoManagedClusterSetBindings")
    assert placement["status"]["decisionGroups"] == [
        {
            "decisionGroupIndex": 0,
            "decisionGroupName": "",
            "decisions": ["place-decision-1"],
            "clusterCount": 0,
        }
    ]


def test_a_set_that_is_asked_for_has_to_be_bound(land: Land) -> None:
    land.clusters("a")

    placement = land.place(clusterSets=["others"])

    assert said(placement, "PlacementSatisfied")[1] == "NoIntersection"


def test_a_set_without_members_is_said_to_be_empty(land: Land) -> None:
    assert said(land.place(), "PlacementSatisfied")[1] == "AllManagedClusterSetsEmpty"


def test_a_set_may_select_its_members_by_label() -> None:
    land = Land()
    land.bound("global", selectorType="LabelSelector", labelSelector={})
    land.clusters("a", member_of="whatever")

    land.place()

    assert land.chosen() == [["a"]]


def test_one_of_several_predicates_is_enough_and_each_is_met_whole(land: Land) -> None:
    land.clusters("a", labels={"env": "dev", "zone": "1"})
    land.clusters("b", labels={"env": "prod"})
    land.clusters("c", labels={"env": "test"})

    land.place(predicates=[labelled(env="dev", zone="1"), labelled(env="prod")])

    assert land.chosen() == [["a", "b"]]


def test_a_cluster_is_chosen_by_what_it_claims(land: Land) -> None:
    land.clusters("a", status={"clusterClaims": [{"name": "region", "value": "west"}]})
    land.clusters("b", status={"clusterClaims": [{"name": "region", "value": "east"}]})

    claims = {"matchExpressions": [{"key": "region", "operator": "In", "values": ["east"]}]}
    land.place(predicates=[{"requiredClusterSelector": {"claimSelector": claims}}])

    assert land.chosen() == [["b"]]


@pytest.mark.parametrize(
    ("expression", "chosen"),
    [
        ("managedCluster.metadata.name == 'b'", ["b"]),
        ("managedCluster.status.version.kubernetes.versionIsGreaterThan('1.30.5')", ["b"]),
        ("managedCluster.status.version.kubernetes.versionIsLessThan('v1.30.5')", ["a"]),
        ("managedCluster.scores('load').exists(s, s.name == 'cpu' && s.value > 10)", ["a"]),
        ("managedCluster.metadata.labels['facts'].parseJSON().size() == 0", []),
        ("managedCluster.spec.nowhere == 1", []),
    ],
)
def test_a_cluster_is_chosen_by_an_expression(land: Land, expression: str, chosen: list[str]) -> None:
    land.clusters("a", status={"version": {"kubernetes": "v1.30.2"}})
    land.clusters("b", status={"version": {"kubernetes": "v1.31.0"}})
    land.create(make(SCORE, "load", "a", status={"scores": [{"name": "cpu", "value": 30}]}))

    land.place(predicates=[{"requiredClusterSelector": {"celSelector": {"celExpressions": [expression]}}}])

    assert land.chosen() == [chosen]


@pytest.mark.parametrize(
    ("spec", "says"),
    [
        (
            {"predicates": [{"requiredClusterSelector": {"celSelector": {"celExpressions": ["1 +"]}}}]},
            "spec.predicates[0].requiredClusterSelector.celSelector.celExpressions[0]: ",
        ),
        (
            {"predicates": [{"requiredClusterSelector": {"celSelector": {"celExpressions": ["'x'"]}}}]},
            "must evaluate to bool but got string",
        ),
        (
            {"predicates": [labelled(**{"not a key": "x"})]},
            "spec.predicates[0].requiredClusterSelector.labelSelector: ",
        ),
        ({"tolerations": [{"operator": "Equal"}]}, "spec.tolerations[0].operator: "),
        (
            {"tolerations": [{"key": "a", "operator": "Exists", "value": "b"}]},
            "spec.tolerations[0].value: ",
        ),
        (
            {"prioritizerPolicy": {"configurations": [{"scoreCoordinate": {"builtIn": "Luck"}}]}},
            "spec.prioritizerPolicy.configurations[0].scoreCoordinate.builtIn: Luck is none of",
        ),
    ],
)
def test_a_placement_that_makes_no_sense_says_where_and_keeps_its_decisions(
    land: Land, spec: Made, says: str
) -> None:
    land.clusters("a")
    land.place()

    placement = land.place(**spec)

    status, reason, message = said(placement, "PlacementMisconfigured")
    assert (status, reason) == ("True", "Misconfigured")
    assert says in message
    assert land.chosen() == [["a"]]


def test_one_that_is_not_valid_yet_has_chosen_no_cluster(land: Land) -> None:
    """Its decisions exist for consumers that wait for them, and are empty."""
    land.clusters("a")

    placement = land.place(tolerations=[{"key": "a", "operator": "Exists", "value": "b"}])

    assert said(placement, "PlacementMisconfigured")[0] == "True"
    assert said(placement, "PlacementSatisfied")[:2] == ("False", "Misconfigured")
    assert land.chosen() == [[]]
    assert placement["status"]["numberOfSelectedClusters"] == 0
    assert not planned(land, PLACEMENTS, meta.ref(placement)).stages

    placement = land.place()

    assert said(placement, "PlacementMisconfigured")[0] == "False"
    assert land.chosen() == [["a"]]


NONSENSE: Made = {"tolerations": [{"key": "a", "operator": "Exists", "value": "b"}]}


def test_one_that_was_valid_keeps_its_choice_though_its_decisions_were_deleted(land: Land) -> None:
    """Its status is all that tells the owner of works there that clusters were chosen."""
    land.clusters("a", "b")
    land.place()
    land.place(**NONSENSE)
    land.delete(DECISION.ref("team", "place-decision-1"))

    placement = land.scheduled()

    assert land.chosen() == []
    assert placement["status"]["numberOfSelectedClusters"] == 2


def test_one_that_made_sense_leaves_decisions_alone_that_were_put_back_without_a_status(land: Land) -> None:
    land.clusters("a", "b")
    land.place()
    land.place(**NONSENSE)
    ref = DECISION.ref("team", "place-decision-1")
    land.patch(ref, {"status": None}, subresource="status")

    placement = land.scheduled()

    assert not (land.get(ref).get("status") or {})
    assert placement["status"]["numberOfSelectedClusters"] == 2


def test_a_decision_that_names_a_cluster_by_now_is_not_emptied(land: Land) -> None:
    """Its condition is written first, and the decision is emptied only at the version that was read."""
    land.clusters("a")
    placement = make(PLACEMENT, "place", "team", spec=NONSENSE)
    land.create(placement)
    land.create(make(DECISION, "place-decision-1", "team", labels={PLACEMENT_LABEL: "place"}))
    ref = DECISION.ref("team", "place-decision-1")
    seen = land.get(ref)

    plan = planned(land, PLACEMENTS, PLACEMENT.ref("team", "place"))

    assert plan.stages[0].name == "report"
    patches = [one for one in plan.actions if isinstance(one, Patch)]
    (emptied,) = (one for one in patches if one.ref == ref and one.subresource == "status")
    assert emptied.version == meta.resource_version(seen)


def test_a_tainted_cluster_is_not_chosen_unless_that_is_tolerated(land: Land) -> None:
    land.clusters("a", spec={"taints": [UNREACHABLE]})
    land.clusters("b")

    land.place()
    assert land.chosen() == [["b"]]

    land.place(tolerations=[{"key": "unreachable", "operator": "Exists"}])
    assert land.chosen() == [["a", "b"]]


def test_a_taint_may_be_tolerated_for_a_while(land: Land) -> None:
    land.clusters("a", spec={"taints": [{**UNREACHABLE, "timeAdded": stamp(land.now)}]})
    placement = land.place(
        tolerations=[{"key": "unreachable", "operator": "Exists", "tolerationSeconds": 60}]
    )
    assert land.chosen() == [["a"]]
    assert planned(land, PLACEMENTS, meta.ref(placement)).requeue_after == timedelta(seconds=60)

    land.now += timedelta(seconds=60)
    land.scheduled()

    assert land.chosen() == [[]]


def test_a_taint_that_was_removed_unobserved_costs_no_cluster_its_place(land: Land) -> None:
    """A hub with a stale view reads live before it drops a cluster: the works there are deleted."""
    land.clusters("a", spec={"taints": [{**UNREACHABLE, "timeAdded": stamp(land.now)}]})
    placement = land.place(
        tolerations=[{"key": "unreachable", "operator": "Exists", "tolerationSeconds": 60}]
    )
    seen = land.copy()
    land.now += timedelta(minutes=2)
    land.patch(CLUSTER.ref("", "a"), {"spec": {"taints": []}})

    view = PLACEMENTS.gather(seen.world(PLACEMENTS), meta.ref(placement))
    assert view is not None
    asked = decide(PLACEMENTS, view, Answers(), land.now)
    assert isinstance(asked, tuple)
    plan = decide(PLACEMENTS, view, Answers({one: land.answer(one) for one in asked}), land.now)

    assert isinstance(plan, Plan)
    assert plan.actions == ()


def test_a_taint_against_new_ones_lets_old_ones_stay(land: Land) -> None:
    land.clusters("a")
    land.place()
    taint = {"key": "full", "effect": "NoSelectIfNew"}
    old = land.get(Ref("cluster.open-cluster-management.io/v1", "ManagedCluster", "", "a"))
    land.replace({**old, "spec": {"taints": [taint]}}, "")
    land.clusters("b", spec={"taints": [taint]})

    land.scheduled()

    assert land.chosen() == [["a"]]


def test_too_few_are_better_than_none(land: Land) -> None:
    land.clusters("a")

    placement = land.place(numberOfClusters=3)

    assert land.chosen() == [["a"]]
    assert said(placement, "PlacementSatisfied") == (
        "False",
        "NotAllDecisionsScheduled",
        "2 cluster decisions unscheduled",
    )


def test_a_chosen_cluster_stays_when_a_better_one_comes(land: Land) -> None:
    land.clusters("m", "n")
    land.place(numberOfClusters=1)
    assert land.chosen() == [["m"]]

    land.clusters("a")
    land.scheduled()

    assert land.chosen() == [["m"]]


def test_those_that_others_use_less_come_first(land: Land) -> None:
    land.clusters("a", "b")
    land.place(
        "other",
        predicates=[labelled(**{"cluster.open-cluster-management.io/clusterset": "fleet"})],
        numberOfClusters=1,
    )
    assert land.chosen("other") == [["a"]]

    land.place(numberOfClusters=1)

    assert land.chosen() == [["b"]]


def test_an_add_on_may_say_who_comes_first(land: Land) -> None:
    land.clusters("a", "b", "c")
    for name, value in (("a", 10), ("b", 50), ("c", 90)):
        ends = {"validUntil": stamp(land.now)} if name == "c" else {}
        land.create(make(SCORE, "load", name, status={"scores": [{"name": "free", "value": value}], **ends}))

    coordinate = {"type": "AddOn", "addOn": {"resourceName": "load", "scoreName": "free"}}
    land.place(
        numberOfClusters=1,
        prioritizerPolicy={"mode": "Exact", "configurations": [{"scoreCoordinate": coordinate, "weight": 2}]},
    )

    # What was said of c is no longer true.
    assert land.chosen() == [["b"]]


def test_a_larger_cluster_comes_first_where_that_is_asked_for(land: Land) -> None:
    for name, cpu in (("a", "500m"), ("b", "4"), ("c", "2")):
        land.clusters(name, status={"allocatable": {"cpu": cpu}})

    by_size = [{"scoreCoordinate": {"builtIn": "ResourceAllocatableCPU"}, "weight": 3}]
    land.place(numberOfClusters=2, prioritizerPolicy={"configurations": by_size})

    assert land.chosen() == [["b", "c"]]


def test_a_placement_that_others_schedule_is_left_alone(land: Land) -> None:
    land.clusters("a")
    off = {"cluster.open-cluster-management.io/experimental-scheduling-disable": "true"}
    land.create(make(PLACEMENT, "place", "team", annotations=off, spec={}))

    land.scheduled()

    assert land.chosen() == []
