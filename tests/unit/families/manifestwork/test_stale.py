"""A hub that sees an old picture: what it does about that is refused, and nothing is done twice."""

import pytest

from lamina.core.model.plan import Action, Create
from lamina.errors import AlreadyExists, Conflict
from lamina.objects import meta
from lamina.simulation import planned
from tests.unit.families.manifestwork.fleet import APP, BAD, HUB, OK2, Fleet, all_at_once, sent


def aborting() -> tuple[Fleet, Fleet]:
    """Return a fleet whose rollout was aborted, and what it looked like just before."""
    fleet = Fleet()
    fleet.start(strategy=all_at_once(progressDeadline="5s", failureStrategy="AbortAll"))
    fleet.roll()
    fleet.want(BAD)
    fleet.roll()
    before = fleet.copy()
    fleet.pass_time(6)
    fleet.roll()
    assert fleet.aborted
    return fleet, before


def refused(fleet: Fleet, actions: tuple[Action, ...]) -> int:
    """Try what an old plan says, and return how much of it the server does not take."""
    count = 0
    for action in actions:
        try:
            fleet.perform(action)
        except (AlreadyExists, Conflict):
            count += 1
    return count


def test_a_planner_that_has_not_seen_its_works_makes_none_a_second_time() -> None:
    fleet = Fleet()
    fleet.start(strategy=all_at_once())
    fleet.roll()
    unseen = [meta.ref(work) for work in fleet.works()]

    plan = planned(fleet, HUB, APP, unseen=unseen)

    made = tuple(one for one in plan.actions if isinstance(one, Create) and one.ref.kind == "ManifestWork")
    assert len(made) == 4
    assert refused(fleet, made) == 4


def test_a_planner_that_has_not_seen_its_revision_takes_none_a_second_time() -> None:
    fleet = Fleet()
    fleet.start(strategy=all_at_once())
    fleet.roll()
    kept = [ref for ref in fleet.objects if ref.kind == "ControllerRevision"]

    plan = planned(fleet, HUB, APP, unseen=kept)

    with pytest.raises(AlreadyExists):
        fleet.perform(plan.stages[0].actions[0])


def test_a_planner_that_has_not_seen_the_abort_cannot_send_the_broken_revision_to_a_recovered_cluster() -> (
    None
):
    fleet, before = aborting()
    before.want(OK2)
    # The process has a stale view, in which there are works left to send.
    old = planned(before, HUB, APP)
    assert len(sent(old.actions)) == 4

    works = tuple(one for one in old.actions if sent([one]))
    assert refused(fleet, works) == 4
    assert set(fleet.revs().values()) == {"1"}


def test_an_abort_decided_on_an_old_picture_is_decided_anew() -> None:
    """The template has changed in the meantime: the revision to abort is no longer wanted."""
    fleet = Fleet()
    fleet.start(strategy=all_at_once(progressDeadline="5s", failureStrategy="AbortAll"))
    fleet.roll()
    fleet.want(BAD)
    fleet.roll()
    fleet.pass_time(6)
    old = fleet.plan()
    assert old.stages[0].name == "update status"

    fleet.want(OK2)
    with pytest.raises(Conflict):
        fleet.perform(old.stages[0].actions[0])
    fleet.roll()

    assert fleet.aborted == ""
    assert set(fleet.revs().values()) == {"2"}
