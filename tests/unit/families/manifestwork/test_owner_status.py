"""The account of a replica set that cannot proceed, and the reason."""

from lamina.cli.commands.revisions import described
from lamina.core.model.state import State
from lamina.core.rollout.owner_status import OwnerStatus
from lamina.errors import Forbidden
from lamina.families.manifestwork.family import family
from lamina.objects import meta
from lamina.objects.types import Ref
from lamina.simulation.cluster.kinds import make
from tests.unit.families.manifestwork.fleet import APP, BAD, HUB, OK1, SET, Fleet, progressive


def owner_status(fleet: Fleet, ref: Ref = APP) -> OwnerStatus:
    told = family().owner_status(fleet.world(HUB), ref)
    assert told is not None
    return told


def test_a_name_that_is_too_long_is_reported() -> None:
    fleet, refs = Fleet(), [{"name": "place", "rolloutStrategy": progressive()}]
    fleet.place("place", {0: ["c1"]})
    long = make(SET, "a" * 63, "team", spec={"placementRefs": refs, "manifestWorkTemplate": OK1})
    fleet.create(long)
    fleet.step()

    told = owner_status(fleet, meta.ref(long))

    assert told.state is State.DEGRADED
    assert "63" in told.message
    assert told.has_ended


def test_the_fault_of_a_placement_is_reported_with_the_rest() -> None:
    fleet = Fleet()
    fleet.start(clusters=2)
    fleet.roll()
    assert owner_status(fleet).message.count(";") == 0

    fleet.set(placementRefs=[{"name": "nowhere", "rolloutStrategy": progressive()}])
    fleet.step()

    assert "nowhere" in owner_status(fleet).message


def test_a_failure_that_may_lead_to_an_abort_leaves_no_reason_that_comes_back() -> None:
    fleet = Fleet()
    fleet.start(OK1)
    fleet.roll()
    fleet.want(BAD)
    fleet.roll()

    assert fleet.row() == (
        "T AsExpected",
        "F NotAsExpected",
        "T NewRevisionCreated",
        "F Progressing",
    )
    told = owner_status(fleet)
    assert (told.state, told.targets["c1"].state) == (State.DEGRADED, State.DEGRADED)
    assert told.message.startswith("2 of 4 clusters failed, 0 tolerated: c1 (degraded)")
    assert not told.has_ended, "each of them has until its deadline"


def test_the_revision_that_an_abort_returns_to_is_stable_before_there_is_one() -> None:
    fleet = Fleet()
    fleet.start(OK1)
    fleet.roll()
    fleet.want(BAD)
    fleet.roll()

    told = owner_status(fleet)

    assert (told.goal, told.stable) == (2, 1)
    rows = [described(told, one) for one in told.history.revisions]
    assert [(row["revision"], row["role"]) for row in rows] == [(1, "stable"), (2, "wanted")]


def test_a_failure_that_cannot_lead_to_an_abort_degrades_the_rollout_at_once() -> None:
    for strategy in (progressive(failureStrategy=""), progressive(progressDeadline="None")):
        fleet = Fleet()
        fleet.start(OK1, strategy=strategy)
        fleet.roll()
        fleet.want(BAD)
        fleet.roll()

        assert fleet.said("PlacementRolledOut") == ("False", "RolloutDegraded")

    first = Fleet()
    first.start(BAD)
    first.roll()
    assert first.said("PlacementRolledOut") == ("False", "RolloutDegraded")


def complain(fleet: Fleet, why: str) -> None:
    """Have the hub report that its last pass failed."""
    assert HUB.complain is not None
    for action in HUB.complain(fleet.world(HUB), APP, Forbidden(why), fleet.now).actions:
        fleet.perform(action)


def test_an_error_of_the_very_first_pass_is_on_the_object() -> None:
    fleet = Fleet()
    fleet.start(OK1)
    complain(fleet, "may not create controllerrevisions")

    assert fleet.said("ManifestworkApplied") == ("False", "NotAsExpected")
    told = owner_status(fleet)
    assert told.state is State.DEGRADED
    assert told.message == "no rollout was started; refused: may not create controllerrevisions"
    assert not told.has_ended, "the right may be granted"

    complain(fleet, "may not create manifestworks")
    assert owner_status(fleet).message == "no rollout was started; refused: may not create manifestworks"

    fleet.roll()
    assert owner_status(fleet).state is State.HEALTHY
    assert "refused" not in "".join(fleet.message(name) for name in ("ManifestworkApplied", "Progressing"))


def test_an_error_is_shown_while_the_latest_spec_is_not_observed() -> None:
    fleet = Fleet()
    fleet.start(OK1)
    fleet.roll()
    fleet.want(BAD)
    complain(fleet, "may not create controllerrevisions")

    told = owner_status(fleet)
    assert told.state is State.PENDING
    assert told.message == (
        "its hub controller has not observed the latest spec yet; refused: may not create controllerrevisions"
    )
