"""What becomes of the objects of an owner that is archived or deleted."""

from collections.abc import Iterable
from typing import Any

import pytest

from lamina.core.model.plan import Delete, Patch
from lamina.core.model.queries import Answers, Read
from lamina.core.ownership.owner_record import OwnerRecord
from lamina.core.phases.manifest import Manifest, reported
from lamina.core.phases.owner import PhaseOwner
from lamina.core.phases.teardown import Teardown, tear_down
from lamina.merge.patches import merge_patch
from lamina.objects import meta
from lamina.objects.types import Obj
from tests.unit.core.phases.objects import (
    CONVENTIONS,
    KINDS,
    MARK,
    REVISION,
    Server,
    by_key,
    key,
    live,
    manifest,
    owner,
    owner_object,
)


def torn(
    who: PhaseOwner,
    lives: Iterable[Obj],
    *,
    wanted: Iterable[Manifest] = (manifest("a"),),
    server: Server | None = None,
    **fields: Any,
) -> Teardown:
    """Return what is done about objects once everything that is asked has been answered."""

    def decide(answers: Answers) -> Teardown:
        return tear_down(who, [*wanted], by_key(*lives), answers, **fields)

    done = (server or Server(objects=[*lives])).answers(decide)
    assert isinstance(done, Teardown)
    return done


def left(found: Obj, done: Teardown) -> Obj:
    """Return an object as the only patch of a teardown leaves it."""
    [patch] = done.actions
    assert isinstance(patch, Patch)
    after: Obj = merge_patch(found, patch.patch)
    return after


def test_what_an_owner_controls_is_deleted_at_the_version_that_was_seen() -> None:
    done = torn(owner(), [live()])

    [action] = done.actions
    assert isinstance(action, Delete)
    assert (action.uid, action.version) == ("uid-of-a", "7")
    assert not done.is_over


def test_what_is_being_deleted_is_waited_for() -> None:
    assert torn(owner(), [live(deleting=True)]).waiting == ("ConfigMap team/a is being deleted",)
    assert torn(owner(), [live(deleting=True, finalizers=["x", "y"])]).waiting == (
        "ConfigMap team/a is being deleted, and waits for finalizers: x, y",
    )


def test_what_another_revision_is_to_take_over_is_waited_for() -> None:
    done = torn(owner(), [live()], protected={key("a")})

    assert done.waiting == ("ConfigMap team/a is kept for another revision, which contains it",)
    assert not done.actions


@pytest.mark.parametrize(
    ("found", "waits"),
    [
        pytest.param(
            live(controller=None, revision=5, owners=[4]), True, id="released by the garbage collector"
        ),
        pytest.param(live(controller=None, revision=3, owners=[4, 5]), True, id="that nothing controls"),
        pytest.param(live(controller=None, revision=5), False, id="that is no other revision's"),
        pytest.param(live(controller=None, revision=4, owners=[4]), False, id="that another revision wrote"),
        pytest.param(live(controller=6, owners=[5]), False, id="that another revision controls"),
    ],
)
def test_what_links_an_object_to_its_lineage_stays_until_another_revision_has_taken_it_over(
    found: Obj, waits: bool
) -> None:
    done = torn(owner(siblings=[4, 6], deleting=True), [found], protected={key("a")})

    assert bool(done.waiting) == waits


@pytest.mark.parametrize("found", [live(controller=6), live(controller="x"), live(controller=None)])
def test_what_another_owner_has_is_left_alone(found: Obj) -> None:
    done = torn(owner(siblings=[6]), [found])

    assert done.is_over


def test_a_reference_to_an_owner_that_does_not_control_is_removed_and_nothing_else() -> None:
    found = live(controller=6, owners=[5])

    after = left(found, torn(owner(siblings=[6]), [found]))

    assert [one["uid"] for one in meta.owner_refs(after)] == ["uid-6"]
    assert meta.labels(after) == meta.labels(found)
    assert meta.annotations(after) == meta.annotations(found)


# Orphans


@pytest.mark.parametrize("wanted", [manifest("a", is_orphaned=True), manifest("a")])
def test_an_orphan_keeps_no_trace_of_its_owner(wanted: Manifest) -> None:
    found = live()

    after = left(found, torn(owner(), [found], wanted=[wanted], orphans=not wanted.is_orphaned))

    assert not meta.owner_refs(after)
    assert MARK not in meta.labels(after)
    assert REVISION not in meta.annotations(after)


def test_an_orphan_of_another_cluster_loses_the_annotation() -> None:
    record = OwnerRecord("ex.com/owners")
    who = owner(record=record, cluster="east")
    found = record.taken(live(controller=None, revision=5), None, who.obj)

    done = torn(who, [found], orphans=True)

    assert meta.annotations(left(found, done)) == {}
    assert done.actions[0].ref.cluster == "east"


def test_an_orphan_that_another_owner_controls_keeps_the_marks_of_that_one() -> None:
    found = live(controller=6, owners=[5])

    after = left(found, torn(owner(siblings=[6]), [found], orphans=True))

    assert [one["uid"] for one in meta.owner_refs(after)] == ["uid-6"]
    assert meta.labels(after)[MARK] == "True"


@pytest.mark.parametrize("siblings", [[4], []], ids=["a known one", "one that is not known"])
def test_an_orphan_that_another_revision_had_before_keeps_its_marks(siblings: list[int]) -> None:
    found = live(owners=[4])

    after = left(found, torn(owner(siblings=siblings), [found], orphans=True))

    assert [one["uid"] for one in meta.owner_refs(after)] == ["uid-4"]
    assert meta.labels(after)[MARK] == "True"
    assert meta.annotations(after)[REVISION] == "5"


def test_an_orphan_is_released_though_another_revision_contains_it() -> None:
    assert torn(owner(), [live()], protected={key("a")}, orphans=True).actions


@pytest.mark.parametrize(
    ("deleting", "revision", "released"),
    [(True, 5, True), (True, 4, True), (False, 5, False), (False, 4, False)],
)
def test_what_the_garbage_collector_released_first_loses_the_marks(
    deleting: bool, revision: int, released: bool
) -> None:
    """The number may be that of a revision that was orphaned before, and left the marks to this one."""
    found = live(controller=None, revision=revision)

    done = torn(owner(deleting=deleting), [found])

    assert bool(done.actions) == released
    assert done.is_over != released


@pytest.mark.parametrize("orphans", [True, False], ids=["orphaned", "deleted"])
@pytest.mark.parametrize("revision", [5, 4, 6])
def test_what_the_garbage_collector_released_first_keeps_the_marks_for_another_owner(
    orphans: bool, revision: int
) -> None:
    found = live(controller=None, revision=revision, owners=[4])

    assert torn(owner(siblings=[4], deleting=True), [found], orphans=orphans).is_over


@pytest.mark.parametrize("owners", [[5], [4, 5]], ids=["the last owner", "one of two owners"])
def test_the_last_owner_of_what_nothing_controls_removes_the_marks(owners: list[int]) -> None:
    found = live(controller=None, revision=6, owners=owners)

    after = left(found, torn(owner(siblings=[4]), [found]))

    assert [one["uid"] for one in meta.owner_refs(after)] == [f"uid-{one}" for one in owners if one != 5]
    assert (MARK in meta.labels(after)) == (REVISION in meta.annotations(after)) == (owners != [5])


def test_an_owner_of_another_cluster_keeps_the_marks_of_what_it_controls_here() -> None:
    """Both clusters may be the same one."""
    elsewhere = OwnerRecord(CONVENTIONS.owners)
    found = elsewhere.taken(live(controller=None, revision=6, owners=[5]), None, owner_object(6))

    after = left(found, torn(owner(), [found]))

    assert not meta.owner_refs(after)
    assert MARK in meta.labels(after)


# What a cache does not show


def test_an_object_that_is_not_cached_is_read_before_it_counts_as_gone() -> None:
    server = Server()

    done = torn(owner(), [], server=server)

    assert server.asked == [Read(manifest("a").ref(""))]
    assert done.is_over


@pytest.mark.parametrize("cached", [[], [live(controller=None)]], ids=["missing", "without its owner"])
def test_an_object_that_a_live_read_shows_with_its_owner_is_waited_for(cached: list[Obj]) -> None:
    done = torn(owner(), cached, server=Server(objects=[live()]))

    assert done.waiting == ("ConfigMap team/a is not in the cache yet as it is",)


def test_what_a_newer_revision_has_is_not_read_again() -> None:
    server = Server()

    torn(owner(siblings=[6]), [live(controller=6)], server=server)

    assert not server.asked


def test_what_is_not_served_or_has_no_name_does_not_exist() -> None:
    wanted = [
        reported(key("a")._replace(kind="Gone"), KINDS),
        manifest(obj={"apiVersion": "v1", "kind": "ConfigMap"}),
    ]

    assert torn(owner(), [], wanted=wanted, server=Server()).is_over


def test_each_object_of_a_phase_is_decided_about() -> None:
    lives = [live("a"), live("b", deleting=True), live("c", controller="x")]

    done = torn(owner(), lives, wanted=[manifest(name) for name in "abc"])

    assert [one.ref.name for one in done.actions] == ["a"]
    assert len(done.waiting) == 1
