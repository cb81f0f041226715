"""The metrics of sets and ObjectSetPhases: when a set was created and succeeded, and what is cached for an owner."""

from collections.abc import Iterable

from lamina.core.model.controller import AnyController
from lamina.core.model.plan import Gauge
from lamina.objects import meta
from lamina.objects.types import Made, Ref
from lamina.simulation import SimulatedCluster
from tests.unit.families.objectset.revisions import config_map, object_set, phase
from tests.unit.families.objectset.stories import HELD, ref_of, set_ref, spec, turns, widget
from tests.unit.families.objectset.test_old_views import PHASES, SETS, go_on, planned_from, settled

CREATED, SUCCEEDED, INFORMERS, OBJECTS = (
    f"package_operator_{one}"
    for one in (
        "object_set_created_timestamp_seconds",
        "object_set_succeeded_timestamp_seconds",
        "managed_cache_informers_total",
        "managed_cache_objects_total",
    )
)


def gauges(world: SimulatedCluster, controller: AnyController, ref: Ref) -> tuple[Gauge, ...]:
    return planned_from(world, world, controller, ref).gauges


def counted(those: Iterable[Gauge]) -> dict[str, float]:
    """Return what is cached, by kind; the number of kinds has no name."""
    return {dict(one.labels).get("gvk", ""): one.value for one in those if one.name in (INFORMERS, OBJECTS)}


def names(those: Iterable[Gauge]) -> set[str]:
    return {one.name for one in those}


def two_phases(**fields: str) -> Made:
    return spec(phase("p1", widget("a"), widget("b"), **fields), phase("p2", config_map("c"), **fields))


def test_a_set_counts_the_kinds_that_it_follows_and_its_objects_of_each() -> None:
    world = settled(object_set("v1", two_phases()), object_set("other", spec(phase("p1", widget("x")))))

    found = gauges(world, SETS, set_ref("v1"))

    assert counted(found) == {"": 2, "ex.example.com/v1, Kind=Widget": 2, "/v1, Kind=ConfigMap": 1}
    uid = meta.uid(world.get(set_ref("v1")))
    assert {dict(one.labels)["owner"] for one in found if one.name in (INFORMERS, OBJECTS)} == {uid}


def test_a_phase_counts_its_own_objects_and_its_set_does_not() -> None:
    world = settled(object_set("v1", two_phases(**{"class": "default"})))
    of_phase = set_ref("v1")._replace(kind="ObjectSetPhase", name="v1-p1")

    assert counted(gauges(world, PHASES, of_phase)) == {"": 1, "ex.example.com/v1, Kind=Widget": 2}
    assert names(gauges(world, SETS, set_ref("v1"))) == {CREATED, SUCCEEDED}


def test_what_a_set_still_has_to_delete_is_counted_until_it_is_archived() -> None:
    world = settled(object_set("v1", two_phases()))
    world.patch(ref_of("a"), HELD)
    turns("v1", "Archived")(world)
    go_on(world)

    assert counted(gauges(world, SETS, set_ref("v1"))) == {
        "": 2, "ex.example.com/v1, Kind=Widget": 1, "/v1, Kind=ConfigMap": 0,
    }  # fmt: skip

    world.patch(ref_of("a"), {"metadata": {"finalizers": None}})
    go_on(world)

    assert gauges(world, SETS, set_ref("v1")) == ()
