"""What a set depends on of the other sets of its namespace, and when it is asked for."""

from collections.abc import Collection
from typing import Any

import pytest

from lamina.core.model.world import Change
from lamina.families.objectset.siblings import gather
from lamina.families.objectset.watches import shared_facts
from lamina.objects import meta
from lamina.objects.types import GroupKind, Made, Obj
from tests.unit.families.objectset.revisions import object_set
from tests.unit.families.objectset.stories import A1, cluster, p1, set_ref, spec, turns
from tests.unit.families.objectset.test_old_views import SETS, settled


class CountingWorld:
    """A world that counts how often all objects of a kind are asked for."""

    def __init__(self, world: Any) -> None:
        self.world, self.counted = world, 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self.world, name)

    def every(self, kind: GroupKind, namespace: str | None = None) -> Collection[Obj]:
        self.counted += 1
        found: Collection[Obj] = self.world.every(kind, namespace)
        return found


def test_the_sets_of_a_namespace_are_gone_through_only_where_something_is_to_be_protected() -> None:
    there = settled(object_set("v1", spec(p1(A1))), object_set("other", spec()))
    turns("v1", "Archived")(there)
    world: Any = CountingWorld(there.world(SETS))

    found = gather(world, there.get(set_ref("v1")))

    assert world.counted == 0
    assert found.unrelated() == {meta.uid(there.get(set_ref("other")))}
    assert world.counted == 1


def test_a_set_that_the_cache_gets_after_the_view_was_gathered_is_not_taken_for_an_unrelated_one() -> None:
    there = settled(object_set("v1", spec(p1(A1))))
    turns("v1", "Archived")(there)
    world: Any = CountingWorld(there.world(SETS))
    found = gather(world, there.get(set_ref("v1")))

    there.create(object_set("v2", spec(p1(A1)), previous=["v1"]))
    there.create(object_set("other", spec()))
    world.world = there.world(SETS)

    assert found.unrelated() == {meta.uid(there.get(set_ref("other")))}


def reporting(**conditions: int) -> Made:
    """Return a set of the second generation whose conditions were observed in these."""
    made = object_set("v1", spec(p1(A1)))
    made["metadata"] |= {"uid": "u", "generation": 2}
    made["status"] = {
        "conditions": [
            {"type": name, "status": "True", "observedGeneration": observed}
            for name, observed in conditions.items()
        ]
    }
    return made


@pytest.mark.parametrize(
    ("before", "after", "same"),
    [
        ({"Succeeded": 1}, {"Succeeded": 1, "Available": 2}, False),
        ({"Succeeded": 1, "Available": 1}, {"Succeeded": 1, "Available": 2}, False),
        ({"Succeeded": 1, "Available": 1}, {"Succeeded": 1}, False),
        ({"Available": 2}, {"Available": 2, "Succeeded": 2}, False),
        ({"Succeeded": 1, "Available": 2}, {"Succeeded": 2, "Available": 2}, True),
    ],
)
def test_siblings_are_enqueued_by_each_report_that_they_depend_on(
    before: dict[str, int], after: dict[str, int], same: bool
) -> None:
    kind = cluster().kinds.preferred(meta.group_kind(reporting()))
    assert kind is not None

    assert Change(kind, reporting(**before), reporting(**after)).preserves(shared_facts) == same
