"""What is told of a replica set that did not get anywhere, and why."""

from lamina.core.family import Account
from lamina.families.manifestwork.family import family
from lamina.objects import meta
from lamina.objects.types import Ref
from lamina.paper.kinds import make
from tests.unit.families.manifestwork.fleet import APP, HUB, OK1, SET, Fleet, progressive


def account(fleet: Fleet, ref: Ref = APP) -> Account:
    told = family().account(fleet.world(HUB), ref)
    assert told is not None
    return told


def test_a_name_that_is_too_long_is_said_to_be_what_is_wrong() -> None:
    fleet, refs = Fleet(), [{"name": "place", "rolloutStrategy": progressive()}]
    fleet.place("place", {0: ["c1"]})
    long = make(SET, "a" * 63, "team", spec={"placementRefs": refs, "manifestWorkTemplate": OK1})
    fleet.create(long)
    fleet.step()

    told = account(fleet, meta.ref(long))

    assert told.state == "failed"
    assert "63" in told.because


def test_what_is_wrong_with_a_placement_is_told_with_the_rest() -> None:
    fleet = Fleet()
    fleet.start(clusters=2)
    fleet.roll()
    assert account(fleet).because.count(";") == 0

    fleet.set(placementRefs=[{"name": "nowhere", "rolloutStrategy": progressive()}])
    fleet.step()

    assert "nowhere" in account(fleet).because
