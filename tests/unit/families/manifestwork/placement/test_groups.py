"""In which groups clusters go out, and in which objects that is written."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina.core.model.plan import Create, Patch
from lamina.families.manifestwork.labels import GROUP_INDEX, GROUP_NAME
from lamina.families.manifestwork.placement.controller import PLACEMENTS
from lamina.objects import meta
from lamina.simulation import planned
from tests.unit.families.manifestwork.placement.land import CLUSTER, DECISION, Land, labelled


def bound_clusters(*names: str) -> Land:
    land = Land()
    land.bound()
    land.clusters(*names)
    return land


def in_groups(**strategy: Any) -> dict[str, Any]:
    return {"decisionStrategy": {"groupStrategy": strategy}}


def test_clusters_are_cut_into_groups_by_name() -> None:
    land = bound_clusters("c10", "c2", "c1", "c3", "c4")

    placement = land.place(**in_groups(clustersPerDecisionGroup=2))

    assert land.chosen() == [["c1", "c10"], ["c2", "c3"], ["c4"]]
    assert [one["clusterCount"] for one in placement["status"]["decisionGroups"]] == [2, 2, 1]


def test_a_share_of_them_is_rounded_up() -> None:
    land = bound_clusters(*(f"c{n}" for n in range(5)))

    land.place(**in_groups(clustersPerDecisionGroup="30%"))

    assert [len(one) for one in land.chosen()] == [2, 2, 1]


def test_named_groups_come_first_and_take_the_clusters_they_match() -> None:
    land = bound_clusters("z1", "z2")
    land.clusters("a1", "a2", "a3", labels={"env": "canary"})

    canary = {
        "groupName": "canary",
        "groupClusterSelector": {"labelSelector": {"matchLabels": {"env": "canary"}}},
    }
    placement = land.place(**in_groups(decisionGroups=[canary], clustersPerDecisionGroup=2))

    assert land.chosen() == [["a1", "a2"], ["a3"], ["z1", "z2"]]
    decisions = sorted(land.listed(DECISION, "team"), key=meta.name)
    labels = [(meta.labels(one)[GROUP_INDEX], meta.labels(one)[GROUP_NAME]) for one in decisions]
    assert labels == [("0", "canary"), ("1", "canary"), ("2", "")]
    named = [one["decisionGroupName"] for one in placement["status"]["decisionGroups"]]
    assert named == ["canary", "canary", ""]


def test_a_hundred_fit_into_one_object() -> None:
    land = bound_clusters(*(f"c{n:03}" for n in range(101)))

    placement = land.place()

    assert [len(one) for one in land.chosen()] == [100, 1]
    assert placement["status"]["decisionGroups"][0]["decisions"] == ["place-decision-1", "place-decision-2"]


def test_a_cluster_that_joins_moves_no_other() -> None:
    land = bound_clusters(*(f"c{n:03}" for n in range(150)))
    placement = land.place()
    before = land.chosen()

    land.clusters("a")
    plan = planned(land, PLACEMENTS, meta.ref(placement))
    land.scheduled()

    assert land.chosen() == [before[0], sorted([*before[1], "a"])]
    assert len([one for one in plan.actions if isinstance(one, Patch)]) == 2


def test_no_cluster_is_missed_while_groups_are_cut_anew() -> None:
    """A cluster that moves from one object to another is in both for a while, and never in none."""
    land = bound_clusters(*(f"c{n}" for n in range(6)))
    placement = land.place(**in_groups(clustersPerDecisionGroup=3))
    stays = {name for names in land.chosen() for name in names}

    old = land.get(meta.ref(placement))
    land.replace({**old, "spec": in_groups(clustersPerDecisionGroup=2)}, "")
    seen: list[set[str]] = []
    land.listeners.append(lambda *_: seen.append({name for names in _held(land) for name in names}))
    land.scheduled()

    assert land.chosen() == [["c0", "c1"], ["c2", "c3"], ["c4", "c5"]]
    assert seen and all(names == stays for names in seen)


@pytest.mark.parametrize("many", [200, 250])
def test_no_cluster_is_missed_while_full_objects_shift(many: int) -> None:
    """A cluster that comes first in groups of a hundred moves one out of each of them."""
    land = bound_clusters(*(f"c{number:03}" for number in range(many)))
    land.place(**in_groups(clustersPerDecisionGroup=100))
    stays = {name for names in land.chosen() for name in names}

    land.clusters("a")
    missed: list[set[str]] = []
    land.listeners.append(lambda *_: missed.append(stays - {name for names in _held(land) for name in names}))
    fullest: list[int] = []
    land.listeners.append(lambda *_: fullest.append(max(map(len, _held(land)))))
    land.scheduled()

    assert not any(missed)
    assert max(fullest) == 100
    assert land.chosen()[0][0] == "a"
    assert sorted(name for names in land.chosen() for name in names) == sorted({*stays, "a"})


def _held(land: Land) -> list[list[str]]:
    return [
        [own["clusterName"] for own in (one.get("status") or {}).get("decisions") or ()]
        for one in land.listed(DECISION, "team")
    ]


@given(st.lists(st.sets(st.integers(0, 12), max_size=12), min_size=1, max_size=4), st.integers(1, 5))
def test_every_cluster_is_in_one_group_however_they_come_and_go(rounds: list[set[int]], size: int) -> None:
    land = bound_clusters()
    for there in rounds:
        names = {f"c{number}" for number in there}
        for cluster in list(land.listed(CLUSTER)):
            if meta.name(cluster) not in names:
                land.delete(meta.ref(cluster))
        known = {meta.name(one) for one in land.listed(CLUSTER)}
        land.clusters(*sorted(names - known))
        placement = land.place(**in_groups(clustersPerDecisionGroup=size))

        listed = [name for one in land.chosen() for name in one]
        assert sorted(listed) == sorted(names)
        indexes = [one["decisionGroupIndex"] for one in placement["status"]["decisionGroups"]]
        assert indexes == list(range(len(indexes)))
        assert not planned(land, PLACEMENTS, meta.ref(placement)).stages


def test_when_all_clusters_have_left_the_first_object_says_so() -> None:
    """It was the object of a named group and is now without a cluster: its index does not grow."""
    land = bound_clusters()
    land.clusters("a1", "a2", "a3", labels={"env": "canary"})
    canary = {
        "groupName": "canary",
        "groupClusterSelector": {"labelSelector": {"matchLabels": {"env": "canary"}}},
    }
    strategy = in_groups(decisionGroups=[canary], clustersPerDecisionGroup=2)
    land.place(**strategy)

    for cluster in list(land.listed(CLUSTER)):
        land.delete(meta.ref(cluster))
    placement = land.scheduled()

    (decision,) = land.listed(DECISION, "team")
    assert meta.name(decision) == "place-decision-1"
    assert (meta.labels(decision)[GROUP_INDEX], meta.labels(decision)[GROUP_NAME]) == ("0", "")
    assert land.chosen() == [[]]
    assert [one["decisions"] for one in placement["status"]["decisionGroups"]] == [["place-decision-1"]]
    assert not planned(land, PLACEMENTS, meta.ref(placement)).stages


def test_decisions_are_made_before_they_are_spoken_of() -> None:
    land = bound_clusters("a")
    land.create({**PLACE})

    plan = planned(land, PLACEMENTS, meta.ref(PLACE))

    assert isinstance(plan.stages[0].actions[0], Create)
    assert [stage.name for stage in plan.stages] == ["create decisions", "report"]


PLACE = {
    "apiVersion": "cluster.open-cluster-management.io/v1beta1",
    "kind": "Placement",
    "metadata": {"name": "place", "namespace": "team"},
    "spec": {"predicates": [labelled()]},
}
