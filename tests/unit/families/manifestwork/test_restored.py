"""An aborted rollout counts as rolled back where agents confirm it, and nowhere else."""

from contextlib import suppress
from datetime import datetime

import pytest

from lamina.core.model.queries import Answers
from lamina.core.model.refused_reads import Refusals
from lamina.core.model.state import State
from lamina.core.rollout.owner_status import OwnerStatus
from lamina.core.rollout.readable_status import readable_status
from lamina.errors import Forbidden
from lamina.families.manifestwork.family import family
from lamina.families.manifestwork.hub.work import Work
from lamina.objects import conditions, meta
from lamina.objects.types import Made, Obj
from lamina.runtime.cache.indexer import DeletedUids, Indexer
from lamina.runtime.cache.lister import Lister
from lamina.simulation.cluster.kinds import EVENT
from lamina.simulation.process.record import Crashed
from tests.unit.families.manifestwork.fleet import APP, BAD, HUB, OK1, SLOW, Fleet, all_at_once, progressive


def owner_status(fleet: Fleet) -> OwnerStatus:
    told = family().owner_status(fleet.world(HUB), APP)
    assert told is not None
    return told


def shown(fleet: Fleet) -> tuple[State, dict[str, State]]:
    told = owner_status(fleet)
    return told.state, {name: one.state for name, one in told.targets.items()}


def aborted(*silent: str, clusters: int = 4) -> Fleet:
    """Return a fleet whose rollout was aborted, after the agents of some clusters had fallen silent."""
    fleet = Fleet()
    fleet.start(OK1, clusters)
    fleet.roll()
    fleet.want(SLOW)
    fleet.roll()
    fleet.away = set(silent)
    fleet.pass_time(6)
    fleet.roll()
    assert fleet.said("Progressing") == ("False", "RolloutAborted")
    return fleet


def messages(fleet: Fleet) -> list[str]:
    return [one["message"] for one in fleet.listed(EVENT)]


def refused(work: Obj, message: str, at: datetime) -> Made:
    """Return the status of a work whose agent could not apply it."""
    reported = conditions.with_condition(
        work["status"]["conditions"],
        "Applied",
        "False",
        now=at,
        reason="Said",
        message=message,
        generation=meta.generation(work),
    )
    return {"status": {"conditions": list(reported)}}


def test_a_cluster_whose_agent_is_silent_is_not_restored_and_is_named() -> None:
    fleet = aborted("c2")

    assert set(fleet.revs().values()) == {"1"}
    assert fleet.said("PlacementRolledOut") == ("False", "RolloutDegraded")
    assert fleet.message() == (
        f"rollout of app-{fleet.update} aborted, 1 of 2 clusters restored to app-{fleet.current}; "
        "not restored yet: c2 (not applied by its agent yet)"
    )
    assert shown(fleet) == (
        State.ABORTING,
        {"c1": State.HEALTHY, "c2": State.ABORTING, "c3": State.HEALTHY, "c4": State.HEALTHY},
    )

    fleet.away = set()
    fleet.roll()

    assert fleet.message() == (
        f"rollout of app-{fleet.update} aborted, 2 of 2 clusters restored to app-{fleet.current}"
    )
    assert shown(fleet)[0] is State.ABORTED


def test_an_abort_is_complete_once_its_message_says_so_too() -> None:
    fleet = aborted("c2")

    fleet.away = set()
    fleet.report("c2")
    before = owner_status(fleet)
    fleet.step()

    # The works say so first, and the condition with the next pass.
    assert before.targets["c2"].state is not State.ABORTING
    assert ("not restored yet: c2" in before.message, before.state) == (True, State.ABORTING)
    assert ("2 of 2 clusters restored" in owner_status(fleet).message, shown(fleet)[0]) == (
        True,
        State.ABORTED,
    )


def test_with_all_agents_silent_nothing_says_that_a_cluster_is_restored() -> None:
    fleet = aborted("c1", "c2")

    assert "0 of 2 clusters restored" in fleet.message()
    assert owner_status(fleet).state is State.ABORTING
    assert not [one for one in messages(fleet) if "2 of 2" in one]


def test_a_refusal_on_the_stable_revision_is_no_confirmation() -> None:
    fleet = aborted("c2")
    (work,) = [one for one in fleet.works() if one["metadata"]["namespace"] == "c2"]
    fleet.patch(meta.ref(work), refused(work, "no space is left", fleet.now), subresource="status")
    fleet.step()

    assert "1 of 2 clusters restored" in fleet.message()
    assert "c2 (not applied: no space is left)" in fleet.message()
    assert owner_status(fleet).state is State.ABORTING


def test_a_cluster_that_joins_an_aborted_rollout_had_not_left_the_stable_revision() -> None:
    fleet = aborted()
    fleet.away = {"c5"}
    fleet.place("place", {0: ["c1", "c2", "c3", "c4", "c5"]})
    fleet.roll()

    assert fleet.revs()["c5"] == "1"
    assert "2 of 2 clusters restored" in fleet.message()
    assert owner_status(fleet).state is State.ABORTED


def test_clusters_that_left_the_placement_are_not_counted() -> None:
    fleet = aborted("c1", "c2")
    fleet.place("place", {0: ["c3", "c4"]})
    fleet.roll()

    assert f"aborted, all clusters are on app-{fleet.current}" in fleet.message()


@pytest.mark.parametrize("strategy", [progressive(maxConcurrency=4), all_at_once(progressDeadline="5s")])
def test_a_hub_with_a_slow_clock_moves_works_back_after_the_abort(strategy: dict[str, object]) -> None:
    """The process that moves works back may have another clock than the one that recorded the abort."""
    fleet = Fleet()
    fleet.start(OK1, 2, {**strategy, "failureStrategy": "AbortAll"})
    fleet.roll()
    fleet.want(SLOW)
    fleet.roll()
    fleet.pass_time(6)
    fleet.away = {"c1"}
    with suppress(Crashed):
        fleet.step(crash_after=1)
    assert fleet.aborted
    fleet.pass_time(-3)
    fleet.roll()

    assert owner_status(fleet).state is State.ABORTING
    assert "1 of 2 clusters restored" in fleet.message()


def without_works(fleet: Fleet) -> OwnerStatus:
    """Return the status as it is shown to a user who may not list ManifestWorks."""
    whole, world = fleet.world(HUB), Lister(DeletedUids())
    indexers = {kind.group_kind: Indexer(kind) for kind in whole.kinds}
    for name, indexer in indexers.items():
        for obj in whole.every(name) if name != Work.kind else ():
            indexer.put(obj)
    indexers[Work.kind].refused = Forbidden("cannot list manifestworks")
    world.set_indexers(whole.kinds, indexers)
    told = readable_status(family(), world, APP, Answers(), Refusals())
    assert isinstance(told, OwnerStatus)
    return told


def test_a_state_that_the_works_decide_is_unknown_where_they_may_not_be_listed() -> None:
    """With the works, the first is Aborted, the second Degraded, the third Healthy, the fourth Aborting."""
    restored, failed, healthy, silent = aborted(), Fleet(), Fleet(), aborted("c2")
    for fleet, content in ((failed, BAD), (healthy, OK1)):
        fleet.start(OK1)
        fleet.roll()
        fleet.want(content)
        fleet.roll()
    fleets = (restored, failed, healthy, silent)

    known, shown = [owner_status(one) for one in fleets], [without_works(one) for one in fleets]

    assert [one.state for one in known] == [State.ABORTED, State.DEGRADED, State.HEALTHY, State.ABORTING]
    assert [one.state for one in shown] == [State.UNKNOWN, State.UNKNOWN, State.HEALTHY, State.ABORTING]
    assert [one.has_ended for one in shown] == [True, False, False, True]
    assert {one.message for one in shown[:2]} == {"cannot list manifestworks"}
