"""Revisions are kept as long as they are current, needed, or within the limit."""

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina.core.model.effects import Ask
from lamina.core.model.plan import Delete, Propagation
from lamina.core.model.queries import Answer, Follow, Listed, Query
from lamina.core.model.reconcile import drive, planning
from lamina.families.resourcegraph.definitions.retention import is_kept
from lamina.families.resourcegraph.options import Options
from lamina.objects import meta
from lamina.objects.types import Made
from tests.unit.families.resourcegraph.definitions.clusters import (
    APP,
    INSTANCES,
    REVISION_KIND,
    Definitions,
    app,
    instance,
    resource,
)


@pytest.mark.parametrize(
    ("number", "current", "limit", "needed", "kept"),
    [
        (13, 13, 10, (), True),
        (3, 13, 10, (), True),
        (2, 13, 10, (), False),
        (2, 13, 10, (2,), True),
        (13, 13, 0, (), True),
        (12, 13, 0, (), False),
        (12, 13, 0, (12, 13), True),
        (8, 9, 1, (1, 9), True),
        (7, 9, 1, (1, 9), False),
    ],
)
def test_the_distance_to_the_current_revision_is_that_of_the_numbers(
    number: int, current: int, limit: int, needed: tuple[int, ...], kept: bool
) -> None:
    assert is_kept(number, current, limit, needed) is kept


@given(st.sets(st.integers(1, 30), min_size=1), st.integers(0, 12), st.sets(st.integers(1, 30)))
def test_what_is_kept_is_the_current_one_what_is_needed_and_the_newest(
    numbers: set[int], limit: int, needed: set[int]
) -> None:
    current = max(numbers)

    kept = {one for one in numbers if is_kept(one, current, limit, needed)}

    assert current in kept
    assert numbers & needed <= kept
    assert kept - needed == {one for one in numbers if current - one <= limit} - needed


def version(number: int, limit: int | None = None) -> Made:
    management: Made = {} if limit is None else {"revisionManagement": {"historyLimit": limit}}
    return app(resource(more=f"version {number}"), **management)


def publish(there: Definitions, *numbers: int, limit: int | None = None) -> None:
    for number in numbers:
        there.apply(version(number, limit), seconds=10)


@pytest.mark.check("RG-69")
def test_ten_revisions_before_the_current_one_are_kept_by_default_and_numbers_go_on() -> None:
    there = Definitions()

    publish(there, *range(1, 14))

    assert there.numbers == list(range(3, 14))
    assert [one["revision"] for one in there.status["revisionHistory"]] == list(range(13, 2, -1))
    assert there.events("RevisionPruned")[0].startswith("Deleted revision 1, app-rev-1")

    publish(there, 14)

    assert there.numbers == list(range(4, 15))


def test_the_default_limit_is_an_option() -> None:
    there = Definitions(options=Options(history_limit=2))

    publish(there, *range(1, 6))

    assert there.numbers == [3, 4, 5]


@pytest.mark.check("RG-70")
def test_a_revision_is_kept_as_long_as_an_instance_is_pinned_to_it() -> None:
    there = Definitions()
    publish(there, 1, limit=1)
    there.apply(instance("a1", annotations={"kro.run/rgd-revision": "1"}), instance("a2"))

    publish(there, *range(2, 10), limit=1)

    assert there.numbers == [1, 8, 9]

    there.annotate(meta.ref(there.instance("a1")), rgd_revision=None)

    assert there.on("a1") == 9
    assert there.numbers == [8, 9]


@pytest.mark.check("RG-71")
def test_without_a_history_only_the_current_revision_is_kept_and_those_in_use() -> None:
    there = Definitions()
    publish(there, 1, limit=0)
    there.apply(instance("a1", annotations={"kro.run/update-policy": "Manual"}), instance("a2"))

    publish(there, 2, 3, limit=0)

    assert there.numbers == [1, 3]


def test_a_lower_limit_prunes_at_once() -> None:
    there = Definitions()
    publish(there, 1, 2, 3, 4)

    publish(there, 4, limit=1)

    assert there.numbers == [3, 4]


def test_nothing_is_pruned_while_an_instance_has_not_completed_the_newer_revision() -> None:
    there = Definitions()
    publish(there, 1, limit=0)
    there.apply(instance("a1", sick=2))

    publish(there, 2, limit=0)

    assert there.on("a1") == 2
    assert there.numbers == [1, 2]


def test_a_revision_is_kept_that_only_the_newest_input_revision_of_an_instance_names() -> None:
    there = Definitions()
    publish(there, 1, limit=0)
    there.apply(instance("a1", annotations={"kro.run/update-policy": "Manual"}, refused=2))
    publish(there, 2, limit=0)
    accepted = meta.ref(there.instance("a1"))
    there.annotate(accepted, update_policy=None)
    there.annotate(accepted, update_policy="Manual")

    publish(there, 3, 4, limit=0)

    assert there.on("a1") == 1
    assert there.numbers == [1, 2, 4]

    there.annotate(accepted, update_policy=None)

    assert there.on("a1") == 4
    assert there.numbers == [4]


def test_a_revision_is_not_deleted_where_only_the_cache_lacks_the_instance_that_needs_it() -> None:
    there = Definitions()
    publish(there, 1, limit=5)
    there.apply(instance("a1", annotations={"kro.run/update-policy": "Manual"}))
    publish(there, 2, limit=5)
    there.cluster.patch(APP, {"spec": {"revisionManagement": {"historyLimit": 0}}})

    assert not deletions(there, stale=True)
    there.cluster.delete(meta.ref(there.instance("a1")))
    assert deletions(there, stale=True) == ["app-rev-1"]


def deletions(there: Definitions, *, stale: bool) -> list[str]:
    """Which revisions the next plan deletes, where the cache has no instances if it is `stale`."""
    view = there.controller.gather(there.cluster.world(there.controller), APP)
    assert view is not None

    def answer(ask: Ask) -> Mapping[Query, Answer]:
        return {
            one: Listed(()) if stale and isinstance(one, Follow) else there.cluster.answer(one)
            for one in ask.queries
        }

    plan = drive(planning(there.controller, view, lambda: there.cluster.now), answer)
    return [one.ref.name for one in plan.actions if isinstance(one, Delete)]


# Deleted by hand


@pytest.mark.check("RG-74")
def test_a_needed_revision_that_is_deleted_by_hand_stays_until_it_is_not_needed() -> None:
    there = Definitions()
    publish(there, 1)
    there.apply(instance("a1", annotations={"kro.run/rgd-revision": "1"}))
    publish(there, 2)

    there.delete(REVISION_KIND.ref("", "app-rev-1"))

    assert meta.is_deleting(there.revision(1))
    assert there.on("a1") == 1
    assert there.condition("GraphVerified", meta.ref(there.revision(1)))[0] == "True"

    there.annotate(meta.ref(there.instance("a1")), rgd_revision=None)

    assert there.numbers == [2]


def test_a_revision_that_is_not_needed_can_be_deleted_by_hand() -> None:
    there = Definitions()
    publish(there, 1, 2)

    there.delete(REVISION_KIND.ref("", "app-rev-1"))

    assert there.numbers == [2]


def test_the_current_revision_stays_when_it_is_deleted_and_goes_when_it_is_replaced() -> None:
    there = Definitions()
    publish(there, 1)
    there.delete(REVISION_KIND.ref("", "app-rev-1"))
    assert there.status["state"] == "Active"
    assert there.numbers == [1]

    publish(there, 2)

    assert there.numbers == [2]


# Deletion and recreation


@pytest.mark.check("RG-73")
def test_a_definition_that_is_recreated_adopts_orphaned_revisions_and_continues_their_numbers() -> None:
    there = Definitions()
    publish(there, 1, 2)
    there.delete(APP, Propagation.ORPHAN)
    assert there.numbers == [1, 2]
    assert all(not meta.finalizers(there.revision(n)) for n in (1, 2))

    there.apply(version(3))

    assert there.numbers == [1, 2, 3]
    for number in there.numbers:
        assert meta.is_controlled_by(there.revision(number), meta.uid(there.app))
        assert meta.finalizers(there.revision(number)) == ["kro.run/finalizer"]
    assert there.status["lastIssuedRevision"] == 3


@pytest.mark.check("RG-73")
def test_a_recreated_definition_whose_orphans_have_its_content_resumes_at_the_newest() -> None:
    there = Definitions()
    publish(there, 1, 2)
    there.delete(APP, Propagation.ORPHAN)

    there.apply(version(2))

    assert there.numbers == [1, 2]
    assert there.status["currentRevision"] == 2


@pytest.mark.check("RG-73")
@pytest.mark.parametrize("seconds", [0, 30])
def test_a_definition_that_is_recreated_without_orphans_begins_at_one(seconds: int) -> None:
    there = Definitions()
    publish(there, 1, 2)
    there.delete(APP, seconds=seconds)
    there.run(1)

    there.apply(version(3))

    assert there.numbers == [1]
    assert there.status["currentRevision"] == 1


def test_revisions_that_are_to_be_collected_are_waited_for() -> None:
    there = Definitions(INSTANCES)
    publish(there, 1)
    there.cluster.patch(APP, {"metadata": {"finalizers": None}})
    there.delete(APP)
    assert there.numbers == [1], "there is no garbage collector"

    there.apply(version(2))

    assert there.condition("GraphRevisionsResolved")[:2] == ("Unknown", "WaitingForGraphRevisionSettlement")
    assert there.numbers == [1]

    there.delete(REVISION_KIND.ref("", "app-rev-1"))

    assert there.status["state"] == "Active"
    assert there.numbers == [1]
    assert there.revision(1)["spec"]["resources"] == version(2)["spec"]["resources"]


def test_revisions_of_a_definition_that_is_gone_are_released() -> None:
    there = Definitions()
    publish(there, 1, 2)
    there.cluster.patch(APP, {"metadata": {"finalizers": None}})

    there.delete(APP)

    assert there.numbers == []


@pytest.mark.parametrize("deletes", [False, True])
def test_the_crd_is_deleted_with_its_definition_only_if_that_is_allowed(deletes: bool) -> None:
    there = Definitions(options=Options(deletes_definitions=deletes))
    publish(there, 1)

    there.delete(APP)

    assert there.cluster.at(APP) is None
    assert there.numbers == []
    crds = [ref.name for ref in there.cluster.objects if ref.kind == "CustomResourceDefinition"]
    assert crds == ([] if deletes else ["apps.kro.run"])


def test_the_finalizer_is_set_before_anything_is_made() -> None:
    there = Definitions()
    held: list[bool] = []

    def after(key: object, action: object) -> None:
        held.append("kro.run/finalizer" in meta.finalizers(there.app))

    there.process.after_write = after
    there.apply(app())

    assert held and all(held)
