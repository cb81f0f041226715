"""The order of nodes, cycles, and deletion waves."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina.graph.graph import GraphError
from lamina.graph.order import (
    cycle_in,
    deletion_waves,
    dependents_of,
    topological_order,
)
from tests.unit.graph.graphs import compiled, config


@st.composite
def acyclic(draw: st.DrawFn) -> dict[str, tuple[str, ...]]:
    """Dependencies without a cycle, listed in any order."""
    size = draw(st.integers(0, 8))
    ids = [f"n{number}" for number in range(size)]
    needs = {
        one: tuple(draw(st.lists(st.sampled_from(ids[:index]), unique=True))) if index else ()
        for index, one in enumerate(ids)
    }
    return {one: needs[one] for one in draw(st.permutations(ids))}


@given(acyclic())
def test_the_order_has_dependencies_first_and_then_follows_the_list(
    needs: dict[str, tuple[str, ...]],
) -> None:
    order = topological_order(needs)

    assert sorted(order) == sorted(needs)
    listed = list(needs)
    for index, one in enumerate(order):
        before = set(order[:index])
        assert before >= set(needs[one])
        possible = [other for other in listed if other not in before and before >= set(needs[other])]
        assert one == possible[0]


@given(acyclic())
def test_a_wave_is_deleted_after_all_its_dependents(needs: dict[str, tuple[str, ...]]) -> None:
    waves = deletion_waves(needs)

    assert waves.keys() == needs.keys()
    assert not waves or set(waves.values()) == set(range(1, max(waves.values()) + 1))
    for one, others in needs.items():
        for other in others:
            assert waves[other] < waves[one]
    last = max(waves.values(), default=0)
    dependents = dependents_of(needs)
    # Each node is deleted as early as its dependents allow.
    for one, wave in waves.items():
        assert wave == min((waves[other] - 1 for other in dependents[one]), default=last)


@given(acyclic())
def test_what_has_no_cycle_has_none(needs: dict[str, tuple[str, ...]]) -> None:
    assert cycle_in(needs) == ()


@given(acyclic(), st.data())
def test_a_cycle_is_named_from_a_node_to_itself(
    needs: dict[str, tuple[str, ...]], data: st.DataObject
) -> None:
    edges = [(one, other) for one, others in needs.items() for other in others]
    if not edges:
        return
    one, other = data.draw(st.sampled_from(edges))
    turned = {**needs, other: (*needs[other], one)}

    cycle = cycle_in(turned)

    assert cycle[0] == cycle[-1]
    assert len(set(cycle)) == len(cycle) - 1 > 0
    for first, second in pairwise(cycle):
        assert second in turned[first]


@pytest.mark.check("RG-27")
def test_without_references_the_order_is_that_of_the_list() -> None:
    assert compiled(config("c"), config("b"), config("a")).order == ("c", "b", "a")


@pytest.mark.check("RG-27")
def test_a_node_comes_after_its_dependencies_and_as_early_as_its_place_allows() -> None:
    graph = compiled(config("c", "${a.metadata.name}"), config("b"), config("a"))

    assert graph.order == ("b", "a", "c")
    assert list(graph.nodes) == ["b", "a", "c"]
    assert [graph.nodes[id_].position for id_ in graph.order] == [1, 2, 0]
    assert {id_: node.wave for id_, node in graph.nodes.items()} == {"c": 2, "b": 2, "a": 1}


@pytest.mark.check("RG-26")
def test_a_cycle_is_refused_and_named() -> None:
    with pytest.raises(GraphError) as raised:
        compiled(config("a", "${b.metadata.name}"), config("x"), config("b", "${a.metadata.name}"))
    assert str(raised.value) == (
        "spec.resources[0].template.metadata.name: graph contains a cycle: a -> b -> a (line 1, column 1)\n"
        " | b.metadata.name\n"
        " | ^\n"
        "remove one of the references; a cannot wait for itself"
    )


@pytest.mark.parametrize(
    "resources",
    [
        [config("a", includeWhen=['${b.data.x == "1"}']), config("b", "${a.metadata.name}")],
        [config("a", includeWhen=['${b.data.x == "1"}']), config("b", includeWhen=['${a.data.x == "1"}'])],
        [config("a", propagateWhen=['${b.data.x == "1"}']), config("b", "${a.metadata.name}")],
        [config("a", "${i}", forEach=[{"i": "${b.data.x.split(',')}"}]), config("b", "${a[0].metadata.name}")],
    ],
)  # fmt: skip
def test_conditions_and_loops_make_cycles_too(resources: list[dict[str, object]]) -> None:
    with pytest.raises(GraphError, match="graph contains a cycle: a -> b -> a"):
        compiled(*resources)


def test_a_node_does_not_refer_to_itself() -> None:
    for resource in (config("a", "${a.metadata.name}"), config("a", includeWhen=['${a.data.x == "1"}'])):
        with pytest.raises(GraphError, match="self references are not allowed"):
            compiled(resource)


def test_dependencies_are_those_of_templates_loops_and_conditions_but_not_of_readiness_or_status() -> None:
    graph = compiled(
        config("tpl"),
        config("lists"),
        config("cond"),
        config("gate"),
        config(
            "it",
            "${i}-${tpl.metadata.name}",
            {"x": "${tpl.data.y}", "z": "${[1, 2].map(n, string(n)).join('') + tpl.data.z}"},
            forEach=[{"i": "${lists.data.names.split(',')}"}],
            includeWhen=['${cond.data.on == "true"}'],
            propagateWhen=['${gate.data.open == "true"}'],
            readyWhen=["${each.data.x != ''}"],
        ),
        status={"x": "${it.map(one, one.metadata.name)}"},
    )
    assert graph.nodes["it"].dependencies == ("tpl", "lists", "cond", "gate")
    assert all(not graph.nodes[id_].dependencies for id_ in ("tpl", "lists", "cond", "gate"))
    node = graph.nodes["it"]
    assert (node.has_include_when, node.has_propagate_when) == (True, True)
    assert node.iterators == ("i",)
