"""What of a status can wait: how far a rollout has come, and not what it has come to."""

from datetime import timedelta

from lamina.core.model.plan import Plan
from lamina.core.model.world import Change
from lamina.families.manifestwork.hub.controller import on_change, on_status_change
from lamina.objects import conditions, meta
from lamina.objects.types import Made
from tests.unit.families.manifestwork.fleet import APP, HUB, OK1, OK2, SET, Fleet, all_at_once, progressive


def min_intervals(plan: Plan) -> list[timedelta]:
    """How long each status that a plan writes can wait."""
    return [stage.min_interval for stage in plan.stages if stage.name == "update status"]


def out(clusters: int) -> Fleet:
    fleet = Fleet()
    fleet.start(OK1, clusters, all_at_once())
    fleet.roll()
    return fleet


def test_how_many_clusters_have_come_how_far_can_wait_the_longer_the_more_there_are() -> None:
    for clusters, longest in ((4, 0.04), (100, 1.0), (300, 2.0)):
        fleet = out(clusters)
        fleet.want(OK2)
        fleet.step()

        fleet.report("c1")

        assert min_intervals(fleet.plan()) == [timedelta(seconds=longest)]


def test_that_another_revision_goes_out_and_that_all_clusters_have_it_cannot_wait() -> None:
    fleet = out(4)
    fleet.want(OK2)
    assert min_intervals(fleet.plan()) == [timedelta(0)]

    fleet.step()
    fleet.report()

    assert min_intervals(fleet.plan()) == [timedelta(0)]


def degraded(strategy: Made, *names: str) -> str:
    """Return the message after clusters of a complete rollout were degraded for longer than the deadline."""
    fleet = Fleet()
    fleet.start(OK1, 3, strategy)
    fleet.roll()
    fleet.away = set(names)
    for work in fleet.works():
        if meta.namespace(work) in names:
            reported = conditions.with_condition(
                work["status"]["conditions"], "Degraded", "True", now=fleet.now, reason="Said", generation=1
            )
            fleet.patch(meta.ref(work), {"status": {"conditions": list(reported)}}, subresource="status")
    fleet.pass_time(6)
    fleet.roll()
    assert fleet.said("Progressing") == ("False", "NewManifestWorkAvailable")
    return fleet.message()


def test_failures_are_called_tolerated_only_where_they_are() -> None:
    assert degraded(progressive(), "c1") == "1 of 3 not healthy: c1 (degraded)"
    assert degraded(all_at_once(progressDeadline="5s"), "c1") == "1 of 3 not healthy: c1 (degraded)"
    assert degraded(progressive(maxFailures=1), "c1").startswith("finished, 1 tolerated failures; ")
    assert degraded(progressive(maxFailures=1), "c1", "c2") == (
        "2 of 3 not healthy: c1 (degraded), c2 (degraded)"
    )


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
        assert tuple(on_change(world, change)) == ((APP,) if at_once else ())
        assert tuple(on_status_change(world, change)) == (() if at_once else (APP,))
