"""What an edited parent would do to its children, before it is written."""

from typing import Any

import pytest

from lamina.core.model.queries import Answers
from lamina.core.model.world import World
from lamina.core.rollout.preview import Preview
from lamina.families.metacontroller.family import family
from lamina.objects.types import Made, Obj
from lamina.simulation.cluster.kinds import POD
from tests.unit.families.metacontroller.catset import PARENT, Cats


class Story(Cats):
    """Cats whose CompositeController is on the cluster while an edit is previewed."""

    def previewed(self, owner: Obj) -> Preview:
        """Return the preview of an edit, with every query answered."""
        answers, world = Answers(), self.seen()
        for _ in range(8):
            found = family().plan(world, owner, answers, self.now)
            if isinstance(found, Preview):
                return found
            assert found is not None
            answers = answers | {asked: self.answer(asked) for asked in found}
        raise AssertionError("it never stops asking")

    def seen(self) -> World:
        """Return the world that the controllers of the family and those that it brings see."""
        copy = self.copy()
        copy.load([self.composite(**self.settings)])
        (source,) = family().sources
        (found, _) = source.controllers(copy.world(family().controllers[0]))
        return copy.world(found)

    def start_with(self, method: str, **settings: Any) -> None:
        self.settings = {"method": method, **settings}
        self.start(replicas=3)

    def rolled(self) -> None:
        self.roll(**self.settings)


def started(method: str, **settings: Any) -> Story:
    cats = Story()
    cats.start_with(method, **settings)
    return cats


def edited(cats: Cats, **spec: Any) -> Made:
    old = cats.get(PARENT)
    return {**old, "spec": {**old["spec"], **spec}}


def rows(found: Preview) -> list[tuple[str, str, int]]:
    return [(one.target, str(one.kind), one.step) for one in found.changes]


def test_a_parent_that_is_not_there_yet_gets_all_its_children() -> None:
    cats = started("RollingInPlace")

    found = cats.previewed(cats.get(PARENT))

    assert [(one.target, str(one.kind)) for one in found.changes] == [
        ("Pod nginx-0", "create"),
        ("Pod nginx-1", "create"),
        ("Pod nginx-2", "create"),
    ]


@pytest.mark.parametrize("method", ["RollingInPlace", "RollingRecreate"])
def test_children_that_roll_are_listed_in_the_order_in_which_they_move(method: str) -> None:
    cats = started(method)
    cats.rolled()

    found = cats.previewed(edited(cats, template={"image": "two"}))

    assert rows(found) == [
        ("Pod nginx-0", "update", 1),
        ("Pod nginx-1", "update", 2),
        ("Pod nginx-2", "update", 3),
    ]
    assert found.goal == 2


def test_two_move_together_where_two_may_be_unavailable() -> None:
    cats = started("RollingInPlace", maxUnavailable=2)
    cats.rolled()

    found = cats.previewed(edited(cats, template={"image": "two"}))

    assert [one.step for one in found.changes] == [1, 1, 2]


def test_children_that_a_partition_keeps_back_have_no_step() -> None:
    cats = started("RollingInPlace", partition=2)
    cats.rolled()

    found = cats.previewed(edited(cats, template={"image": "two"}))

    assert [one.step for one in found.changes] == [1, 0, 0]


def test_children_that_the_hook_no_longer_wants_are_deleted() -> None:
    cats = started("RollingInPlace")
    cats.rolled()

    found = cats.previewed(edited(cats, replicas=1))

    assert [(one.target, str(one.kind)) for one in found.changes] == [
        ("Pod nginx-1", "delete"),
        ("Pod nginx-2", "delete"),
    ]


def test_an_orphan_that_its_selector_matches_is_adopted() -> None:
    cats = started("RollingInPlace")
    orphan = cats.pod(7, "one")
    cats.create({**orphan, "metadata": {**orphan["metadata"], "namespace": "default"}})

    found = cats.previewed(cats.get(PARENT))

    assert ("Pod nginx-7", "adopt") in [(one.target, str(one.kind)) for one in found.changes]


@pytest.mark.parametrize(
    ("method", "kind"), [("InPlace", "update"), ("Recreate", "delete"), ("OnDelete", "")]
)
def test_children_that_do_not_roll_change_at_once(method: str, kind: str) -> None:
    cats = started(method)
    cats.settle(**cats.settings)

    found = cats.previewed(edited(cats, template={"image": "two"}))

    assert {str(one.kind) for one in found.changes} == ({kind} if kind else set())
    assert {one.step for one in found.changes} <= {0}


def test_a_parent_with_a_finalize_hook_is_held_before_its_children_are_made() -> None:
    cats = started("RollingInPlace", finalizes=True)

    found = cats.previewed(cats.get(PARENT))

    assert len(found.changes) == 3
    assert found.owner["metadata"]["finalizers"]


def test_a_preview_writes_nothing() -> None:
    cats = started("RollingInPlace")
    cats.rolled()
    before = cats.version

    cats.previewed(edited(cats, template={"image": "two"}))

    assert cats.version == before
    assert {pod["spec"]["image"] for pod in cats.listed(POD)} == {"one"}


def test_an_object_that_is_no_parent_has_no_preview() -> None:
    cats = started("RollingInPlace")
    other = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "default"}}

    assert family().plan(cats.seen(), other, Answers(), cats.now) is None
