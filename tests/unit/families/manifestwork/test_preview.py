"""What an edited replica set would do to its clusters, before it is written."""

from typing import Any

import pytest

from lamina.core.model.queries import Answers
from lamina.core.rollout.preview import Preview
from lamina.families.manifestwork.family import family
from lamina.objects.types import Made, Obj
from tests.unit.families.manifestwork.fleet import APP, HUB, OK1, OK2, Fleet, all_at_once, progressive


def previewed(fleet: Fleet, owner: Obj) -> Preview:
    """Return the preview of an edit, with every query answered."""
    answers, world = Answers(), fleet.world(HUB)
    for _ in range(8):
        found = family().plan(world, owner, answers, fleet.now)
        if isinstance(found, Preview):
            return found
        assert found is not None
        answers = answers | {asked: fleet.answer(asked) for asked in found}
    raise AssertionError("it never stops asking")


def edited(fleet: Fleet, **spec: Any) -> Made:
    old = fleet.get(APP)
    return {**old, "spec": {**old["spec"], **spec}}


def rows(found: Preview) -> list[tuple[str, str, int]]:
    return [(one.target, str(one.kind), one.step) for one in found.changes]


def test_a_new_template_moves_the_clusters_at_the_pace_of_the_strategy() -> None:
    fleet = Fleet()
    fleet.start(clusters=5)
    fleet.roll()

    found = previewed(fleet, edited(fleet, manifestWorkTemplate=OK2))

    assert found.goal == 2
    assert rows(found) == [
        ("c1", "update", 1),
        ("c2", "update", 1),
        ("c3", "update", 2),
        ("c4", "update", 2),
        ("c5", "update", 3),
    ]
    assert {one.revision for one in found.changes} == {1}


def test_a_replica_set_that_is_not_there_yet_creates_a_work_for_each_cluster() -> None:
    fleet = Fleet()
    fleet.start(clusters=3, strategy=all_at_once())

    found = previewed(fleet, fleet.get(APP))

    assert rows(found) == [("c1", "create", 1), ("c2", "create", 1), ("c3", "create", 1)]


def test_clusters_that_are_no_longer_selected_lose_their_works() -> None:
    fleet = Fleet()
    fleet.start(clusters=3)
    fleet.place("other", {0: ["c3", "c4"]})
    fleet.roll()

    refs = [{"name": "other", "rolloutStrategy": all_at_once()}]
    found = previewed(fleet, edited(fleet, placementRefs=refs))

    assert sorted(rows(found)) == [
        ("c3", "create", 1),
        ("c4", "create", 1),
        ("place/c1", "delete", 0),
        ("place/c2", "delete", 0),
        ("place/c3", "delete", 0),
    ]


def test_an_edit_that_leaves_the_template_changes_nothing() -> None:
    fleet = Fleet()
    fleet.start()
    fleet.roll()

    assert previewed(fleet, edited(fleet, revisionHistoryLimit=3)).changes == ()


def test_mandatory_groups_go_first() -> None:
    fleet = Fleet()
    strategy = {
        "type": "ProgressivePerGroup",
        "progressivePerGroup": {"mandatoryDecisionGroups": [{"groupIndex": 1}]},
    }
    fleet.start(clusters=["a", "b", "c"], strategy=strategy)
    fleet.place("place", {0: ["a", "b"], 1: ["c"]})
    fleet.roll()

    found = previewed(fleet, edited(fleet, manifestWorkTemplate=OK2))

    assert rows(found) == [("c", "update", 1), ("a", "update", 2), ("b", "update", 2)]


@pytest.mark.parametrize("strategy", [progressive(), all_at_once()])
def test_what_a_preview_says_is_what_happens(strategy: Obj) -> None:
    fleet = Fleet()
    fleet.start(clusters=4, strategy=strategy)
    fleet.roll()
    found = previewed(fleet, edited(fleet, manifestWorkTemplate=OK2))
    expected = {one.target for one in found.changes}

    fleet.want(OK2)
    fleet.step()
    first = {cluster for cluster, rev in fleet.revs().items() if rev == "2"}
    fleet.roll()

    assert first == {one.target for one in found.changes if one.step == 1}
    assert {cluster for cluster, rev in fleet.revs().items() if rev == "2"} == expected


def test_a_preview_writes_nothing() -> None:
    fleet = Fleet()
    fleet.start()
    fleet.roll()
    before = fleet.version

    previewed(fleet, edited(fleet, manifestWorkTemplate=OK2))

    assert fleet.version == before
    assert set(fleet.revs().values()) == {OK1["workload"]["manifests"][0]["data"]["rev"]}


def test_an_object_of_another_kind_has_no_preview() -> None:
    fleet = Fleet()
    fleet.start()
    other = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "team"}}

    assert family().plan(fleet.world(HUB), other, Answers(), fleet.now) is None
