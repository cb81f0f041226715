"""The preview of an instance: what an edit would write, and in which order."""

from lamina.core.model.queries import Answers
from lamina.core.rollout.preview import Preview
from lamina.families.resourcegraph.compiled_graphs import Graphs
from lamina.families.resourcegraph.family import family
from lamina.families.resourcegraph.instances.controller import instances
from lamina.families.resourcegraph.instances.preview import preview_instance
from lamina.families.resourcegraph.instances.setups import setups
from lamina.families.resourcegraph.options import Options
from lamina.objects import meta
from lamina.objects.types import Made, Obj
from tests.unit.families.resourcegraph.instances.world import World, app, chain, instance


def preview(world: World, obj: Obj) -> Preview:
    cluster, options = world.cluster, Options()
    [setup] = setups(cluster.world(family().controllers[0]), options, Graphs())
    seen, answers = cluster.world(instances(setup)), Answers()
    while isinstance(found := preview_instance(setup, seen, obj, answers, cluster.now), tuple):
        answers = answers | {query: cluster.answer(query) for query in found}
    assert found is not None
    return found


def changes(found: Preview) -> list[tuple[str, str, int, str]]:
    return [(one.target, str(one.kind), one.step, one.message) for one in found.changes]


def published() -> World:
    world = World()
    world.publish(*chain("a", "b", "c"))
    return world


def test_what_depends_on_what_is_not_there_yet_is_listed_behind_it() -> None:
    found = preview(published(), instance())

    assert found.goal == 1
    assert changes(found) == [
        ("ConfigMap/a1-a", "create", 1, ""),
        ("ConfigMap of b", "create", 2, "after a"),
        ("ConfigMap of c", "create", 3, "after b"),
    ]


def test_an_edit_updates_the_resources_that_are_there_in_their_order() -> None:
    world = published()
    world.create(instance())
    edited: Made = {**world.get(app()), "spec": {"name": "a1", "replicas": 2}}

    found = preview(world, meta.with_metadata(edited, generation=2))

    assert found.goal == 2
    assert [one[:3] for one in changes(found)] == [
        ("ConfigMap/a1-a", "update", 1),
        ("ConfigMap/a1-b", "update", 2),
        ("ConfigMap/a1-c", "update", 3),
    ]
    assert {one.revision for one in found.changes} == {1}


def test_an_instance_that_is_as_it_is_to_be_keeps_its_revision() -> None:
    world = published()
    world.create(instance())

    found = preview(world, world.get(app()))

    assert (found.goal, found.changes) == (1, ())
