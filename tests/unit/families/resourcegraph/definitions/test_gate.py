"""Instances move to a new revision as propagateWhen says, and the sentence says why none moves."""

from collections.abc import Mapping
from typing import Any

import pytest

from lamina.core.model.effects import Ask
from lamina.core.model.memo import Memo
from lamina.core.model.plan import Plan
from lamina.core.model.queries import Answer, Follow, Listed, Query, ReadAll
from lamina.core.model.reconcile import drive, planning
from lamina.families.resourcegraph.definitions.admission import admitted, is_gated
from lamina.families.resourcegraph.definitions.instance_facts import all_facts, population
from lamina.objects import meta
from lamina.objects.types import Made, Obj
from tests.unit.families.resourcegraph.definitions.clusters import (
    APP,
    Definitions,
    app,
    instance,
    resource,
)

EXPONENTIALLY = ["${exponentiallyUpdated(instances, each)}"]


def rolled_out(count: int, gate: list[str], **fields: Any) -> Definitions:
    """A definition with a gate and that many instances at revision 1."""
    made = Definitions()
    made.apply(app(propagateWhen=gate))
    for number in range(count):
        made.apply(instance(f"a{number}", **fields), seconds=1)
    made.run(10)
    return made


def edit(there: Definitions, gate: list[str], more: str = "two", seconds: float = 0) -> None:
    there.apply(app(resource(more=more), propagateWhen=gate), seconds=seconds)


def waves(there: Definitions, count: int, revision: int, seconds: int = 60) -> list[int]:
    """How many instances are on a revision or on their way to it, each time that there are more."""
    found = [0]
    for _ in range(seconds * 4):
        there.run(0.25)
        moved = sum(there.on(f"a{number}") == revision for number in range(count))
        if moved != found[-1]:
            found.append(moved)
    return found[1:]


@pytest.mark.check("RG-95")
def test_waves_double() -> None:
    there = rolled_out(8, EXPONENTIALLY)
    edit(there, EXPONENTIALLY)

    assert waves(there, 8, 2) == [1, 2, 4, 8]
    assert there.condition("Propagated") == ("True", "AllInstancesUpdated", "8/8 instances on revision 2")
    assert there.events("PropagationCompleted") == ["8/8 instances on revision 2"]
    assert admitted(there.revision(2)) == ()


@pytest.mark.check("RG-96")
def test_linear_waves_have_one_size() -> None:
    gate = ["${linearlyUpdated(instances, each, 3)}"]
    there = rolled_out(7, gate)
    edit(there, gate)

    assert waves(there, 7, 2) == [3, 6, 7]


@pytest.mark.check("RG-97")
def test_an_instance_that_never_becomes_ready_stops_the_waves_and_is_named() -> None:
    there = Definitions()
    there.apply(app(propagateWhen=EXPONENTIALLY))
    there.apply(instance("a0", sick=2), seconds=2)
    there.apply(*(instance(f"a{number}") for number in range(1, 4)))

    edit(there, EXPONENTIALLY, seconds=300)

    assert [there.on(f"a{number}") for number in range(4)] == [2, 1, 1, 1]
    status, reason, message = there.condition("Propagated")
    assert (status, reason) == ("False", "PropagationInProgress")
    assert message.startswith("0/4 instances on revision 2; waiting for ns1/a0 (awaiting resource readiness")
    assert there.status["state"] == "Active"


@pytest.mark.check("RG-98")
@pytest.mark.parametrize(
    "annotations",
    [
        {"kro.run/rgd-revision": "1"},
        {"kro.run/update-policy": "Manual"},
        {"kro.run/update-policy": "Paused"},
        {"kro.run/update-policy": "unknown"},
        {"kro.run/reconcile": "Suspended"},
    ],
)
def test_an_instance_that_does_not_follow_does_not_hold_back_others(annotations: Obj) -> None:
    there = Definitions()
    there.apply(app(propagateWhen=EXPONENTIALLY))
    there.apply(instance("held", annotations=annotations), seconds=2)
    there.apply(*(instance(f"a{number}") for number in range(3)))

    edit(there, EXPONENTIALLY, seconds=60)

    assert [there.on(f"a{number}") for number in range(3)] == [2, 2, 2]
    assert there.condition("Propagated")[0] == "True"


@pytest.mark.check("RG-99")
def test_a_new_instance_starts_on_the_current_revision_while_others_wait() -> None:
    there = rolled_out(2, ["${false}"])
    edit(there, ["${false}"], seconds=5)

    there.apply(instance("new"))

    assert (there.on("a0"), there.on("new")) == (1, 2)


@pytest.mark.check("RG-100")
def test_a_newer_revision_takes_over_in_the_middle() -> None:
    there = rolled_out(8, EXPONENTIALLY)
    edit(there, EXPONENTIALLY, seconds=5)
    assert 2 <= sum(there.on(f"a{number}") == 2 for number in range(8)) < 8

    edit(there, EXPONENTIALLY, more="three")
    seen: set[tuple[str, int]] = set()
    for _ in range(240):
        there.run(0.25)
        seen |= {(name, there.on(name)) for name in (f"a{number}" for number in range(8))}

    assert {there.on(f"a{number}") for number in range(8)} == {3}
    assert admitted(there.revision(2)) == ()
    assert there.condition("Propagated")[2] == "8/8 instances on revision 3"
    assert ("a7", 2) not in seen


@pytest.mark.check("RG-101")
@pytest.mark.parametrize(
    "broken", ["${instances[99].updated()}", "${each.spec.missing == 'x'}", "${nothing > 1}", "${1 + 1}"]
)
def test_an_error_lets_nothing_through_until_it_is_mended(broken: str) -> None:
    there = rolled_out(3, [broken])

    edit(there, [broken], seconds=30)

    assert [there.on(f"a{number}") for number in range(3)] == [1, 1, 1]
    status, reason, message = there.condition("Propagated")
    assert (status, reason) == ("Unknown", "PropagateWhenError")
    assert message
    assert there.events("PropagationBlocked")

    edit(there, EXPONENTIALLY, seconds=60)

    assert {there.on(f"a{number}") for number in range(3)} == {2}
    assert there.numbers == [1, 2]


@pytest.mark.check("RG-104")
def test_a_restart_in_the_middle_goes_on() -> None:
    there = rolled_out(8, EXPONENTIALLY)
    edit(there, EXPONENTIALLY, seconds=3)
    there.start()

    assert waves(there, 8, 2)[-1] == 8


def test_without_a_gate_all_move_at_once_and_nothing_is_recorded() -> None:
    there = rolled_out(4, [])

    edit(there, [], seconds=1)

    assert [there.on(f"a{number}") for number in range(4)] == [2] * 4
    assert "admitted" not in there.revision(2)["status"]


def test_the_gate_of_one_instance_may_depend_on_what_it_is() -> None:
    gate = ["${each.metadata.name != 'a1'}"]
    there = rolled_out(3, gate)

    edit(there, gate, seconds=30)

    assert [there.on(f"a{number}") for number in range(3)] == [2, 1, 2]
    assert there.condition("Propagated")[2] == "2/3 instances on revision 2; propagateWhen holds back ns1/a1"


def test_a_gate_that_opens_by_itself_is_looked_at_every_thirty_seconds() -> None:
    there = rolled_out(1, ["${false}"])
    edit(there, ["${false}"])
    there.run(1)

    plan = the_plan(there)

    assert plan.requeue_after is not None
    assert plan.requeue_after.total_seconds() == 30


def test_instances_are_not_let_through_by_the_cache_alone() -> None:
    """The cache has the first one as updated, the server has not."""
    there = rolled_out(2, EXPONENTIALLY)
    edit(there, EXPONENTIALLY, seconds=1)
    assert [there.on("a0"), there.on("a1")] == [2, 1]
    ahead = [
        {**there.instance(name), "status": {**there.instance(name)["status"], "observedRGDRevision": number}}
        for name, number in (("a0", 2), ("a1", 1))
    ]

    plan = the_plan(there, cached=ahead)

    changed = [one for one in plan.actions if "admitted" in str(one)]
    assert not any(meta.uid(there.instance("a1")) in str(one) for one in changed)


def test_no_list_is_sent_where_nothing_can_be_let_through() -> None:
    there = rolled_out(3, EXPONENTIALLY)
    edit(there, EXPONENTIALLY, seconds=1)
    asked: list[Query] = []

    the_plan(there, asked=asked)

    assert not any(isinstance(one, ReadAll) for one in asked)


def the_plan(
    there: Definitions, *, cached: list[Made] | None = None, asked: list[Query] | None = None
) -> Plan:
    view = there.controller.gather(there.cluster.world(there.controller), APP)
    assert view is not None

    def answer(ask: Ask) -> Mapping[Query, Answer]:
        if asked is not None:
            asked.extend(ask.queries)
        return {
            one: Listed(tuple(cached)) if cached and isinstance(one, Follow) else there.cluster.answer(one)
            for one in ask.queries
        }

    return drive(planning(there.controller, view, lambda: there.cluster.now), answer)


# Who takes part


def test_the_population_is_ordered_by_age_namespace_and_name() -> None:
    def made(name: str, created: str, namespace: str = "ns1", **annotations: str) -> Made:
        one = instance(
            name, namespace, annotations={f"kro.run/{key}": value for key, value in annotations.items()}
        )
        one["metadata"] |= {"creationTimestamp": created, "uid": f"{namespace}-{name}"}
        return one

    objects = [
        made("c", "2026-01-02T00:00:00Z"),
        made("b", "2026-01-01T00:00:00Z", "ns2"),
        made("b", "2026-01-01T00:00:00Z", "ns1"),
        made("a", "2026-01-01T00:00:00Z", "ns2"),
        made("paused", "2026-01-01T00:00:00Z", reconcile="disabled"),
    ]

    assert [one.key for one in population(all_facts(Memo(), objects))] == ["ns1/b", "ns2/a", "ns2/b", "ns1/c"]


@pytest.mark.parametrize(
    ("gate", "annotations", "gated"),
    [
        ([], {}, False),
        (["${true}"], {}, True),
        (["${true}"], {"kro.run/content-from-revision": "1"}, False),
        (["${true}"], {"kro.run/content-from-revision": "1", "kro.run/rollback-mode": "Immediate"}, False),
        (["${true}"], {"kro.run/content-from-revision": "1", "kro.run/rollback-mode": "Gated"}, True),
    ],
)
def test_a_rollback_passes_the_gate_unless_it_is_gated(
    gate: list[str], annotations: Obj, gated: bool
) -> None:
    revision = {"metadata": {"annotations": annotations}}

    assert is_gated(app(propagateWhen=gate), revision) is gated
