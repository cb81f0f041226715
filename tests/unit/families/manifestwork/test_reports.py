"""What of a status can wait: how far a rollout has come, and not what it has come to."""

from datetime import timedelta

from lamina.core.plan import Plan
from lamina.core.world import Change
from lamina.families.manifestwork.view import itself_at_once, itself_later
from lamina.objects import meta
from lamina.objects.types import Made
from tests.unit.families.manifestwork.fleet import APP, HUB, OK1, OK2, SET, Fleet, everybody


def patience(plan: Plan) -> list[timedelta]:
    """How long each status that a plan writes can wait."""
    return [stage.patience for stage in plan.stages if stage.name == "say so"]


def out(clusters: int) -> Fleet:
    fleet = Fleet()
    fleet.start(OK1, clusters, everybody())
    fleet.roll()
    return fleet


def test_how_many_clusters_have_come_how_far_can_wait_the_longer_the_more_there_are() -> None:
    for clusters, longest in ((4, 0.04), (100, 1.0), (300, 2.0)):
        fleet = out(clusters)
        fleet.want(OK2)
        fleet.step()

        fleet.report("c1")

        assert patience(fleet.plan()) == [timedelta(seconds=longest)]


def test_that_another_revision_goes_out_and_that_everybody_has_it_cannot_wait() -> None:
    fleet = out(4)
    fleet.want(OK2)
    assert patience(fleet.plan()) == [timedelta(0)]

    fleet.step()
    fleet.report()

    assert patience(fleet.plan()) == [timedelta(0)]


def changed(before: Made, **fields: object) -> Change:
    after = {**before, **fields}
    after["metadata"] = {**after["metadata"], "resourceVersion": "999"}
    return Change(SET, before, after)


def test_a_change_of_its_status_alone_waits_for_company_and_any_other_does_not() -> None:
    fleet = out(1)
    old, world = fleet.get(APP), fleet.world(HUB)
    status = changed(old, status={})
    marked = changed(old, metadata={**meta.metadata(old), "labels": {"a": "b"}})
    wished = changed(old, metadata={**meta.metadata(old), "generation": 7}, spec={})

    for change, at_once in (
        (status, False),
        (marked, True),
        (wished, True),
        (Change(SET, None, old), True),
        (Change(SET, old, None), True),
    ):
        assert tuple(itself_at_once(world, change)) == ((APP,) if at_once else ())
        assert tuple(itself_later(world, change)) == (() if at_once else (APP,))
