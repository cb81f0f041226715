"""Manual changes to the records of a hub, and what must not follow from them."""

from datetime import timedelta

import pytest

from lamina.errors import RevisionNotFound
from lamina.families.manifestwork.hub.revision import stored_revision
from lamina.families.manifestwork.hub.rollback import rollback
from lamina.families.manifestwork.hub.view import gather
from lamina.families.manifestwork.labels import (
    GROUP_INDEX,
    GROUP_NAME,
    HASH,
    OWNER,
    PLACEMENT_LABEL,
    PLACEMENT_VERSION,
)
from lamina.objects import meta
from lamina.objects.types import Made, Obj, Ref
from lamina.simulation.cluster.kinds import CONTROLLER_REVISION, make
from tests.unit.families.manifestwork.fleet import (
    APP,
    BAD,
    DECISION,
    HUB,
    OK1,
    OK2,
    PLACEMENT,
    Fleet,
    all_at_once,
    progressive,
)


def revision_of(fleet: Fleet, rev: str) -> Made:
    return next(
        one
        for one in fleet.listed(CONTROLLER_REVISION)
        if rev == one["data"]["spec"]["manifestWorkTemplate"]["workload"]["manifests"][0]["data"]["rev"]
    )


def aborted() -> Fleet:
    fleet = Fleet()
    fleet.start(OK1)
    fleet.roll()
    fleet.want(BAD)
    fleet.roll()
    fleet.pass_time(6)
    fleet.roll()
    assert fleet.aborted and set(fleet.revs().values()) == {"1"}
    return fleet


def with_name(revision: Obj, name: str, tag: str, number: int) -> Made:
    labels = {**meta.labels(revision), HASH: tag}
    kept = {key: revision["metadata"][key] for key in ("namespace", "ownerReferences")}
    return {**revision, "metadata": {**kept, "name": name, "labels": labels}, "revision": number}


def test_an_abort_stands_when_its_revision_gets_another_mark() -> None:
    fleet = aborted()
    when = fleet.aborted

    fleet.create(with_name(revision_of(fleet, "bad"), "app-other", "other", 9))
    fleet.roll()

    assert (fleet.aborted, fleet.update) == (when, "other")
    assert set(fleet.revs().values()) == {"1"}


def test_a_copy_of_a_revision_under_the_same_mark_goes() -> None:
    fleet = Fleet()
    fleet.start(OK1)
    fleet.roll()
    fleet.create(with_name(revision_of(fleet, "1"), "app-copy", fleet.update, 1))

    fleet.roll()

    assert len(fleet.revisions()) == 1


def test_a_taken_name_is_left_alone_once() -> None:
    fleet = Fleet()
    fleet.start(OK1)
    fleet.roll()
    taken = revision_of(fleet, "1")
    fleet.delete(meta.ref(taken))
    fleet.create(make(CONTROLLER_REVISION, meta.name(taken), "team", data={"theirs": True}, revision=1))

    fleet.roll()

    assert fleet.status()["collisionCount"] == 1
    assert fleet.row()[3] == "T Complete"


@pytest.mark.parametrize(
    "data", ["x", {"spec": "x"}, {"spec": {"manifestWorkTemplate": [1]}}, None, {"n": 1}]
)
def test_a_revision_that_cannot_be_read_is_as_good_as_missing(data: object) -> None:
    obj = make(CONTROLLER_REVISION, "app-x", "team", labels={OWNER: "team.app"}, data=data, revision=3)

    assert stored_revision(obj).digest == ""


def test_no_cluster_returns_to_a_revision_that_cannot_be_read() -> None:
    fleet = Fleet()
    fleet.start(OK1)
    fleet.roll()
    broken = with_name(revision_of(fleet, "1"), "app-broken", "broken", 0)
    fleet.create({**broken, "data": {}})
    view = gather(fleet.world(HUB), APP)
    assert view is not None

    with pytest.raises(RevisionNotFound):
        rollback(view, None)


def test_the_last_copy_of_a_lost_revision_is_kept_before_it_is_overwritten() -> None:
    fleet = Fleet()
    fleet.start(OK1, strategy=all_at_once(progressDeadline="5s", failureStrategy="AbortAll"))
    fleet.roll()
    for one in fleet.listed(CONTROLLER_REVISION):
        fleet.delete(meta.ref(one))
    fleet.want(BAD)

    fleet.roll()
    fleet.pass_time(6)
    fleet.roll()

    assert set(fleet.revs().values()) == {"1"}
    assert [rev for _, rev in fleet.revisions()] == ["1", "bad"]


def _selecting(fleet: Fleet, groups: dict[int, list[str]]) -> None:
    """Write the decision groups to the status of the placement, as a scheduler does."""
    fleet.place("place", groups)
    ref = Ref(PLACEMENT_VERSION, PLACEMENT.kind, "team", "place")
    decided = [
        {"decisionGroupIndex": index, "decisions": [f"place-decision-{index + 1}"]} for index in groups
    ]
    many = sum(len(one) for one in groups.values())
    fleet.patch(
        ref,
        {"status": {"numberOfSelectedClusters": many, "decisionGroups": decided}},
        subresource="status",
    )


def test_works_stay_while_decisions_vanish_one_by_one() -> None:
    fleet = Fleet()
    fleet.start(OK1)
    _selecting(fleet, {0: ["c1", "c2"], 1: ["c3", "c4"]})
    fleet.roll()

    fleet.delete(Ref(PLACEMENT_VERSION, "PlacementDecision", "team", "place-decision-1"))
    fleet.roll()

    assert sorted(fleet.revs()) == ["c1", "c2", "c3", "c4"]
    assert fleet.row()[0] == "F PlacementDecisionNotFound"


def test_works_stay_though_a_placement_that_is_decided_by_hand_has_no_decision_left() -> None:
    """Its status has no number of clusters, and even a placement that selects none has a decision."""
    fleet = Fleet()
    fleet.start(OK1)
    fleet.roll()
    sent = fleet.generations()

    for one in fleet.listed(DECISION):
        fleet.delete(meta.ref(one))
    fleet.roll()
    assert fleet.said("PlacementVerified") == ("False", "PlacementDecisionNotFound")
    assert fleet.generations() == sent

    fleet.place("place", {0: ["c1", "c2", "c3", "c4"]})
    fleet.roll()
    assert fleet.said("PlacementVerified") == ("True", "AsExpected")
    assert fleet.generations() == sent

    fleet.place("place", {0: []})
    fleet.roll()
    assert fleet.said("PlacementVerified") == ("False", "PlacementDecisionEmpty")
    assert fleet.works() == []


def test_works_stay_while_a_placement_that_was_made_anew_makes_no_sense() -> None:
    """It selects no cluster because it is misconfigured, and not because none matches."""
    fleet = Fleet()
    fleet.start(OK1)
    _selecting(fleet, {0: ["c1", "c2", "c3", "c4"]})
    fleet.roll()
    sent = fleet.generations()

    _selecting(fleet, {0: []})
    wrong = {"type": "PlacementMisconfigured", "status": "True", "reason": "Misconfigured", "message": ""}
    ref = Ref(PLACEMENT_VERSION, PLACEMENT.kind, "team", "place")
    fleet.patch(ref, {"status": {"conditions": [wrong]}}, subresource="status")
    fleet.roll()
    assert fleet.generations() == sent
    assert fleet.said("PlacementVerified") == ("False", "PlacementDecisionNotFound")

    fleet.patch(ref, {"status": {"conditions": [{**wrong, "status": "False"}]}}, subresource="status")
    fleet.roll()
    assert fleet.works() == []


def test_what_a_placement_had_chosen_is_rolled_out_to_though_it_makes_no_sense_any_more() -> None:
    fleet = Fleet()
    fleet.start(OK1)
    _selecting(fleet, {0: ["c1", "c2", "c3", "c4"]})
    fleet.roll()

    wrong = {"type": "PlacementMisconfigured", "status": "True", "reason": "Misconfigured", "message": ""}
    ref = Ref(PLACEMENT_VERSION, PLACEMENT.kind, "team", "place")
    fleet.patch(ref, {"status": {"conditions": [wrong]}}, subresource="status")
    fleet.want(OK2)
    fleet.roll()

    assert set(fleet.revs().values()) == {"2"}


def test_nothing_is_complete_while_the_placement_is_not_there() -> None:
    fleet = Fleet()
    fleet.start(OK1)
    fleet.delete(PLACEMENT.ref("team", "place"))
    for one in fleet.listed(DECISION):
        fleet.delete(meta.ref(one))
    fleet.roll()

    assert fleet.row() == (
        "F PlacementDecisionNotFound",
        "F NotAsExpected",
        "T NewRevisionCreated",
        "F Progressing",
    )
    assert fleet.message() == "placement place not found"
    assert fleet.current == ""


def test_a_placement_that_is_made_anew_costs_no_cluster_its_work() -> None:
    """Its decisions are deleted with it, and new ones exist before they list their clusters."""
    fleet = Fleet()
    fleet.start(OK1)
    fleet.roll()
    sent, placement = fleet.generations(), PLACEMENT.ref("team", "place")
    fleet.delete(placement)
    for one in fleet.listed(DECISION):
        fleet.delete(meta.ref(one))
    fleet.roll()

    fleet.create(make(PLACEMENT, "place", "team", spec={}))
    fleet.roll()
    assert fleet.generations() == sent
    labels = {PLACEMENT_LABEL: "place", GROUP_INDEX: "0", GROUP_NAME: ""}
    fleet.create(make(DECISION, "place-decision-1", "team", labels=labels))
    fleet.roll()
    assert fleet.generations() == sent

    said = {"decisions": [{"clusterName": name, "reason": ""} for name in ("c1", "c2", "c3")]}
    fleet.patch(DECISION.ref("team", "place-decision-1"), {"status": said}, subresource="status")
    fleet.roll()
    assert fleet.generations() == {name: sent[name] for name in ("c1", "c2", "c3")}


def test_a_rollout_is_not_done_while_its_clusters_are_unknown() -> None:
    fleet = Fleet()
    fleet.start(OK1, strategy=progressive(maxConcurrency=1, failureStrategy=""))
    _selecting(fleet, {0: ["c1", "c2", "c3"]})
    fleet.step()
    fleet.report("c1")
    fleet.delete(Ref(PLACEMENT_VERSION, "PlacementDecision", "team", "place-decision-1"))

    fleet.roll()

    assert (fleet.current, fleet.row()[3]) == ("", "F Progressing")


def test_failures_that_are_tolerated_are_so_while_decisions_are_away() -> None:
    fleet = Fleet()
    first = [{"groupIndex": 0}]
    fleet.start(OK1, strategy=progressive(maxFailures=2, maxConcurrency=4, mandatoryDecisionGroups=first))
    _selecting(fleet, {0: ["c1"], 1: ["c2", "c3", "c4"]})
    fleet.roll()
    fleet.away = {"c4"}
    fleet.want(OK2)
    fleet.roll()
    fleet.pass_time(6)
    fleet.roll()
    assert not fleet.aborted

    for number in (1, 2):
        fleet.delete(Ref(PLACEMENT_VERSION, "PlacementDecision", "team", f"place-decision-{number}"))
    fleet.now += timedelta(seconds=6)
    fleet.roll()

    assert not fleet.aborted


def test_a_mandatory_group_is_not_done_while_its_old_work_is_on_its_way_out() -> None:
    fleet = Fleet()
    fleet.start(OK1, strategy=progressive(maxConcurrency=4, mandatoryDecisionGroups=[{"groupIndex": 0}]))
    _selecting(fleet, {0: ["c1"], 1: ["c2", "c3"]})
    fleet.roll()
    (canary,) = [one for one in fleet.works() if meta.namespace(one) == "c1"]
    fleet.patch(meta.ref(canary), {"metadata": {"finalizers": ["agent/cleanup"]}})
    fleet.delete(meta.ref(canary))

    fleet.want(BAD)
    fleet.roll()

    assert {name: rev for name, rev in fleet.revs().items() if name != "c1"} == {"c2": "1", "c3": "1"}
