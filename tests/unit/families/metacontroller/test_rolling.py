"""Rolling children from one revision of their parent to the next, in simulation."""

from datetime import timedelta

import pytest

from lamina.errors import HookError, RevisionNotFound
from lamina.families.metacontroller.rollback import rollback
from lamina.objects import meta
from tests.unit.families.metacontroller.catset import PARENT, POD, Cats, planned, touched
from tests.unit.families.undoing import seen

WAYS = ("RollingRecreate", "RollingInPlace")


def settled(replicas: int = 3) -> Cats:
    cats = Cats()
    cats.start(replicas)
    cats.roll()
    cats.journal.clear()
    return cats


def test_the_first_children_are_made_at_once_and_belong_to_the_first_revision() -> None:
    cats = settled()

    assert cats.pods() == {"nginx-0": "one", "nginx-1": "one", "nginx-2": "one"}
    (revision,) = cats.revisions()
    assert revision["children"] == [
        {"apiGroup": "", "kind": "Pod", "names": ["nginx-0", "nginx-1", "nginx-2"]}
    ]
    assert revision["parentPatch"] == {"spec": {"template": {"image": "one"}}}
    assert cats.condition() == {
        "type": "Updated",
        "status": "True",
        "reason": "OnLatestRevision",
        "message": f"latest ControllerRevision: {meta.name(revision)}",
    }


def test_a_settled_parent_gives_an_empty_plan() -> None:
    cats = settled()

    assert planned(cats, cats.controller(), PARENT).actions == ()


def test_one_child_at_a_time_is_replaced_in_the_hooks_order_and_the_next_when_it_is_ready() -> None:
    cats = Cats(order=(2, 0, 1))
    cats.start()
    cats.roll()
    cats.journal.clear()
    cats.want(template={"image": "two"})

    cats.settle()
    assert cats.pods() == {"nginx-0": "one", "nginx-1": "one", "nginx-2": "two"}
    assert cats.condition()["reason"] == "RolloutWaiting"
    assert cats.condition()["message"] == (
        'child Pod nginx-2 failed status check: required condition type missing: "Ready"'
    )
    assert len(cats.revisions()) == 2
    cats.roll()

    assert cats.pods() == {"nginx-0": "two", "nginx-1": "two", "nginx-2": "two"}
    assert touched(cats) == [
        ("nginx-2", "deleted"), ("nginx-2", "two"), ("nginx-0", "deleted"), ("nginx-0", "two"),
        ("nginx-1", "deleted"), ("nginx-1", "two"),
    ]  # fmt: skip
    assert len(cats.revisions()) == 1
    assert cats.condition()["status"] == "True"


def test_a_child_that_never_becomes_ready_holds_the_roll_at_one() -> None:
    cats = settled()
    cats.want(template={"image": "bad"})

    for _ in range(5):
        cats.settle()
        cats.now += timedelta(hours=1)

    assert list(cats.pods().values()).count("bad") == 1
    assert cats.condition()["reason"] == "RolloutWaiting"


def test_a_roll_that_takes_too_long_says_that_it_has_stalled() -> None:
    cats = settled()
    cats.want(template={"image": "bad"})
    cats.settle(progressDeadlineSeconds=600)

    cats.now += timedelta(seconds=599)
    cats.settle(progressDeadlineSeconds=600)
    assert cats.condition()["reason"] == "RolloutWaiting"
    cats.now += timedelta(seconds=2)
    cats.settle(progressDeadlineSeconds=600)

    assert cats.condition()["reason"] == "RolloutStalled"
    assert "1 failed, 0 tolerated: Pod nginx-0" in cats.condition()["message"]


def test_several_move_at_once_where_the_strategy_says_so() -> None:
    cats = settled(5)
    cats.want(template={"image": "two"})

    cats.settle(maxUnavailable="40%")

    assert list(cats.pods().values()).count("two") == 2


def test_a_paused_roll_moves_no_child_and_goes_on_when_it_may() -> None:
    cats = settled()
    cats.want(template={"image": "two"})

    cats.settle(paused=True)
    assert set(cats.pods().values()) == {"one"}
    assert cats.condition()["reason"] == "RolloutPaused"
    cats.roll()

    assert set(cats.pods().values()) == {"two"}


def test_the_last_few_are_kept_back_by_partition() -> None:
    cats = settled(4)
    cats.want(template={"image": "two"})

    cats.roll(partition=1)

    assert cats.pods() == {"nginx-0": "two", "nginx-1": "two", "nginx-2": "two", "nginx-3": "one"}
    assert cats.condition()["reason"] == "RolloutPaused"


def test_a_child_that_dies_before_its_turn_comes_back_as_it_was_and_one_after_it_as_it_should_be() -> None:
    cats = settled()
    cats.want(template={"image": "two"})
    cats.settle()

    cats.delete(next(meta.ref(pod) for pod in cats.listed(POD) if meta.name(pod) == "nginx-2"))
    cats.delete(next(meta.ref(pod) for pod in cats.listed(POD) if meta.name(pod) == "nginx-0"))
    cats.settle()

    assert cats.pods() == {"nginx-0": "two", "nginx-1": "one", "nginx-2": "one"}


@pytest.mark.parametrize("replicas", [1, 2, 5])
def test_a_field_outside_the_snapshot_counts_at_once_and_wedges_nothing(replicas: int) -> None:
    cats = settled()
    cats.want(template={"image": "two"})
    cats.settle()

    cats.want(replicas=replicas)
    cats.settle()
    assert len(cats.pods()) == replicas
    cats.roll()

    assert set(cats.pods().values()) == {"two"}
    assert cats.condition()["status"] == "True"


def test_going_back_in_the_middle_is_a_roll_the_other_way() -> None:
    cats = settled()
    cats.want(template={"image": "two"})
    cats.settle()
    cats.ready("nginx-0")
    cats.settle()
    cats.journal.clear()

    cats.want(template={"image": "one"})
    cats.roll()

    assert set(cats.pods().values()) == {"one"}
    assert [name for name, what in touched(cats) if what == "deleted"] == ["nginx-0", "nginx-1"]
    (left,) = cats.revisions()
    assert left["parentPatch"] == {"spec": {"template": {"image": "one"}}}


def test_another_change_in_the_middle_makes_three_and_only_the_newest_is_rolled_to() -> None:
    cats = settled()
    cats.want(template={"image": "two"})
    cats.settle()
    cats.ready()
    cats.settle()
    cats.ready()
    cats.want(template={"image": "three"})

    cats.settle()
    assert len(cats.revisions()) == 3
    cats.roll()

    assert set(cats.pods().values()) == {"three"}
    assert len(cats.revisions()) == 1


def test_revisions_lost_in_the_middle_do_not_have_everything_replaced() -> None:
    cats = settled(4)
    cats.want(template={"image": "two"})
    cats.settle()
    for revision in cats.revisions():
        cats.delete(meta.ref(revision))

    cats.settle()
    assert list(cats.pods().values()).count("one") == 3
    cats.roll()

    assert set(cats.pods().values()) == {"two"}


def test_a_hook_that_fails_for_one_revision_has_nothing_written() -> None:
    cats = settled()
    cats.want(template={"image": "two"})
    cats.busy = {"two"}
    before = cats.version

    with pytest.raises(HookError):
        cats.settle()

    assert cats.version == before


def test_children_that_already_are_as_they_should_be_move_for_nothing() -> None:
    cats = settled()
    for pod in cats.listed(POD):
        cats.patch(meta.ref(pod), {"spec": {"image": "two"}})
    cats.journal.clear()
    cats.want(template={"image": "two"})

    cats.settle(method="RollingInPlace")

    assert cats.condition()["reason"] in ("OnLatestRevision", "RolloutWaiting")


def test_numbers_only_grow_and_what_is_wanted_again_gets_a_new_one() -> None:
    cats = settled()
    numbers = []
    for image in ("two", "one", "two"):
        cats.want(template={"image": image})
        cats.roll()
        (kept,) = cats.revisions()
        numbers.append(int(meta.annotations(kept)["metacontroller.k8s.io/revision-number"]))

    assert numbers == [2, 3, 4]


@pytest.mark.parametrize(("to", "asked"), [(None, "no earlier revision to go back to"), (7, "no revision 7")])
def test_a_rollback_without_history_names_the_field_that_keeps_revisions(to: int | None, asked: str) -> None:
    cats = settled()
    cats.want(template={"image": "two"})
    cats.roll()

    with pytest.raises(RevisionNotFound) as refused:
        rollback(seen(cats, cats.controller(), PARENT), to)

    assert str(refused.value) == (
        f"catset default/nginx has {asked}: the current revision, 2, is the only one kept"
    )
    assert refused.value.hint == (
        "set spec.parentResource.revisionHistory.limit of compositecontroller catset, and older revisions are kept"
    )


def test_a_rollback_past_the_history_that_is_kept_names_the_revisions_there_are() -> None:
    cats = settled()
    for image in ("two", "three"):
        cats.want(template={"image": image})
        cats.roll(kept=1)

    with pytest.raises(RevisionNotFound, match="has no revision 1: the available revisions are 2, 3"):
        rollback(seen(cats, cats.controller(kept=1), PARENT), 1)
