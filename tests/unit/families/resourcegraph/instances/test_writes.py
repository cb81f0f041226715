"""How many writes an instance takes, Events left out: five chained ConfigMaps, as in the comparison with upstream."""

from lamina.core.model.queries import ReadAll
from lamina.objects.types import Made
from tests.unit.families.resourcegraph.instances.world import (
    World,
    app,
    chain,
    cm,
    config_map,
    described,
    instance,
    node,
)

FIVE = chain("a", "b", "c", "d", "e")


def settled() -> World:
    world = World()
    world.publish(*FIVE)
    world.create(instance())
    return world


def test_five_chained_children_take_nine_writes_from_nothing() -> None:
    world = World()
    world.publish(*FIVE)

    writes = described(world.writes(lambda: world.create(instance())))

    assert writes == [
        "apply App a1",
        "create ResourceGraphInputRevision a1-input-rev-1",
        *(f"apply ConfigMap a1-{id}" for id in "abcde"),
        "patch ResourceGraphInputRevision a1-input-rev-1 status",
        "patch App a1 status",
    ]


def test_an_edit_takes_its_children_and_four_writes() -> None:
    world = settled()

    assert len(world.writes(lambda: world.edit(app(), replicas=2))) == 9


def test_an_edit_beyond_the_history_takes_one_more() -> None:
    world = World()
    world.publish(*FIVE, limit=0)
    world.create(instance())

    assert len(world.writes(lambda: world.edit(app(), replicas=2))) <= 10


def test_a_new_revision_takes_its_children_and_four_writes() -> None:
    world = settled()
    changed = [
        {**one, "template": {**one["template"], "data": {**one["template"]["data"], "new": "x"}}}
        for one in FIVE
    ]

    assert len(world.writes(lambda: world.publish(*changed))) == 9


def test_a_child_that_flickers_takes_no_write() -> None:
    world = settled()

    def flicker() -> None:
        for number in range(100):
            world.patch(cm("a1-c"), {"data": {"other": str(number)}}, seconds=0.1)

    assert world.writes(flicker) == []


def test_what_is_unrelated_takes_no_write() -> None:
    world = settled()

    def change() -> None:
        world.create(config_map("other", namespace="ns1"))
        world.patch(app(), {"metadata": {"annotations": {"note": "x"}}})
        world.run(7200)

    assert world.writes(change) == []


def test_a_settled_instance_asks_nothing() -> None:
    world = settled()
    asked: list[object] = []
    answer = world.cluster.answer

    def note(query: object) -> object:
        asked.append(query)
        return answer(query)  # type: ignore[arg-type]

    world.cluster.answer = note  # type: ignore[method-assign, assignment]
    world.patch(cm("a1-c"), {"data": {"other": "x"}})
    world.run(7200)

    assert asked == []


def test_a_deletion_lists_each_kind_once_a_wave() -> None:
    world = settled()
    asked: list[object] = []
    answer = world.cluster.answer

    def note(query: object) -> object:
        asked.append(query)
        return answer(query)  # type: ignore[arg-type]

    world.cluster.answer = note  # type: ignore[method-assign, assignment]
    writes = world.writes(lambda: world.delete(app()))

    assert len([one for one in asked if isinstance(one, ReadAll)]) <= 6
    # The status, the finalizer, and the input revision by the garbage collector.
    assert len(writes) == 5 + 3


def test_a_hundred_instances_take_nine_writes_each() -> None:
    world = World()
    world.publish(*FIVE)
    those: list[Made] = [instance(f"i{number}") for number in range(100)]

    assert len(world.writes(lambda: world.create(*those))) == 900


def test_a_branch_beside_a_chain_takes_no_more_passes_and_writes() -> None:
    world = World()
    world.publish(*FIVE, node("f", config_map("${schema.spec.name}-f", of="${a.metadata.name}")))

    assert len(world.writes(lambda: world.create(instance()))) == 10
