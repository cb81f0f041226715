"""The ControllerRevisions of stateful sets and daemon sets."""

from collections.abc import Mapping
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from lamina.actors.workloads import revisions
from lamina.actors.workloads.revisions import History, RevisionLookup
from lamina.actors.workloads.statefulset import STATEFUL_SETS
from lamina.objects import meta
from lamina.objects.types import Made, Obj
from lamina.simulation import SimulatedCluster
from lamina.simulation.cluster.kinds import CONTROLLER_REVISION, make
from tests.unit.actors.workloads.running import stateful_set, template


def owner(image: str = "web:1") -> Made:
    return {**stateful_set(image=image), "metadata": {"name": "web", "namespace": "default", "uid": "u"}}


def revision(name: str, number: int, image: str = "web:1", **metadata: Any) -> Made:
    data = revisions.snapshot(template("web", image))
    made = make(CONTROLLER_REVISION, name, revision=number, data=data)
    return {**made, "metadata": {**made["metadata"], "uid": name, "resourceVersion": "1", **metadata}}


LOOKUP = RevisionLookup(name="web-new", hash="new", collisions=0)


def look_up(*known: Obj, image: str = "web:1") -> History:
    return revisions.look_up(owner(image), known, LOOKUP, "hash")


def test_what_a_revision_holds_can_be_put_back() -> None:
    held = {"data": revisions.snapshot(template("web", "web:1"))}

    assert held["data"]["spec"]["template"]["$patch"] == "replace"
    assert revisions.template_in(held) == template("web", "web:1")


def test_the_first_revision_is_number_one() -> None:
    history = look_up()

    assert (meta.name(history.wanted), history.wanted["revision"]) == ("web-new", 1)
    assert meta.labels(history.wanted) == {"app": "web", "hash": "new"}
    [action] = history.record
    assert action.ref.name == "web-new"


def test_the_newest_revision_is_found_and_nothing_is_written() -> None:
    history = look_up(revision("a", 1, "web:0"), revision("b", 2))

    assert meta.name(history.wanted) == "b"
    assert history.record == ()


def test_an_older_equal_revision_is_numbered_anew() -> None:
    history = look_up(revision("a", 1), revision("b", 2, "web:2"))

    assert (meta.name(history.wanted), history.wanted["revision"]) == ("a", 3)
    [action] = history.record
    assert action.patch == {"revision": 3}  # type: ignore[union-attr]


def test_the_last_of_several_equal_ones_counts() -> None:
    history = look_up(revision("a", 1), revision("b", 2), revision("c", 3, "web:2"))

    assert meta.name(history.wanted) == "b"


def test_revisions_of_one_number_are_told_apart_by_age_and_then_by_name() -> None:
    known = [
        revision("c", 1, creationTimestamp="2026-01-01T00:00:00Z"),
        revision("b", 1, creationTimestamp="2026-01-02T00:00:00Z"),
        revision("a", 1, creationTimestamp="2026-01-02T00:00:00Z"),
    ]

    assert [meta.name(one) for one in look_up(*known).revisions] == ["c", "a", "b"]


def test_a_name_that_something_else_has_taken_is_counted_as_a_collision() -> None:
    cluster = SimulatedCluster()
    mine = cluster.create(stateful_set())
    world = cluster.world(STATEFUL_SETS)
    first = revisions.find_name(world, mine, 0)
    cluster.create(make(CONTROLLER_REVISION, first.name, revision=1, data={"other": True}))

    second = revisions.find_name(cluster.world(STATEFUL_SETS), mine, 0)

    assert first.collisions == 0 and second.collisions == 1
    assert second.name != first.name and second.there is None


def test_a_name_that_holds_the_same_is_no_collision() -> None:
    cluster = SimulatedCluster()
    mine = cluster.create(stateful_set())
    first = revisions.find_name(cluster.world(STATEFUL_SETS), mine, 0)
    cluster.create(revisions.make(mine, first, "hash", 1).obj)

    second = revisions.find_name(cluster.world(STATEFUL_SETS), mine, 0)

    assert (second.name, second.collisions) == (first.name, 0)
    assert second.there is not None


@given(
    numbers=st.sets(st.integers(1, 30), min_size=1).map(sorted),
    live=st.sets(st.integers(1, 30)),
    limit=st.integers(0, 10),
)
def test_the_oldest_idle_revisions_are_forgotten_and_no_others(
    numbers: list[int], live: set[int], limit: int
) -> None:
    known: Mapping[int, Obj] = {number: revision(f"r{number}", number) for number in numbers}
    history = History(revisions=tuple(known.values()), wanted=known[numbers[-1]])

    gone = revisions.too_old(history, limit, {f"r{number}" for number in live})

    forgotten = {int(action.ref.name[1:]) for action in gone}
    idle = set(numbers) - live - {numbers[-1]}
    assert forgotten <= idle
    assert len(idle - forgotten) == min(limit, len(idle))
    assert all(one < other for one in forgotten for other in idle - forgotten)
