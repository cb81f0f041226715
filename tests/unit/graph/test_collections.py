"""Collections: their items, order, size and identities."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina.graph.evaluate import Failed, Pending, render
from lamina.graph.graph import Graph, NodeKind
from lamina.objects import meta
from tests.unit.graph.graphs import bucket, compiled, config, resource, scoped

SPEC = {"names": "[]string", "zones": "[]string", "parts": "[]Part", "free": "object"}
TYPES = {"Part": {"name": "string", "size": "integer"}}
LOOPS = [{"name": "${schema.spec.names}"}, {"zone": "${schema.spec.zones}"}]


def items(graph: Graph, id_: str, spec: Any, *, most: int = 1000, **observed: Any) -> Any:
    return render(graph, graph.nodes[id_], scoped(graph, spec, observed), most_items=most)


def many(name: str = "${name}-${zone}", loops: Any = LOOPS, **more: Any) -> Graph:
    return compiled(config("many", name, **more, forEach=loops), spec=SPEC, types=TYPES)


def test_the_first_dimension_is_the_outer_loop() -> None:
    graph = many(data={"x": "${zone}-${name}"})
    made = items(graph, "many", {"names": ["a", "b"], "zones": ["1", "2"]})

    assert [meta.name(one) for one in made] == ["a-1", "a-2", "b-1", "b-2"]
    assert [one["data"]["x"] for one in made] == ["1-a", "2-a", "1-b", "2-b"]
    assert graph.nodes["many"].kind is NodeKind.COLLECTION
    # What the controller adds is not there: it knows the index.
    assert all(one["metadata"].keys() == {"name", "namespace"} for one in made)


@given(st.lists(st.lists(st.integers(0, 50), max_size=4, unique=True), min_size=2, max_size=2))
def test_the_items_are_the_product_of_the_lists(lists: list[list[int]]) -> None:
    names, zones = ([str(number) for number in one] for one in lists)
    made = items(_MANY, "many", {"names": names, "zones": zones})

    assert [meta.name(one) for one in made] == [f"{name}-{zone}" for name in names for zone in zones]


_MANY = many()


def test_an_empty_list_makes_no_items() -> None:
    assert items(many(), "many", {"names": [], "zones": ["1"]}) == ()
    assert items(many(), "many", {"names": ["a"], "zones": []}) == ()


@pytest.mark.check("RG-47")
def test_a_collection_of_more_than_a_thousand_items_is_not_rendered() -> None:
    spec = {"names": [str(number) for number in range(34)], "zones": [str(number) for number in range(34)]}
    found = items(many(), "many", spec)
    said = "collection size of 1156 is over the maximum collection size of 1000"
    assert found == Failed("many", f'node "many": {said}')
    assert len(items(many(), "many", spec, most=1156)) == 1156


def test_the_size_of_a_product_is_known_before_it_is_made() -> None:
    loops = [{f"i{number}": "${lists.range(1000)}"} for number in range(10)]
    name = "-".join(f"${{string(i{number})}}" for number in range(10))
    found = items(many(name, loops), "many", {})
    assert isinstance(found, Failed)
    assert f"collection size of {1000**10} is over the maximum" in found.because


@pytest.mark.check("RG-49")
def test_two_items_with_one_identity_are_refused() -> None:
    found = items(many(), "many", {"names": ["a", "a-1"], "zones": ["1-1", "1"]})
    said = "identity collision: duplicate identity: v1/ConfigMap/ns1/a-1-1"
    assert found == Failed("many", f'node "many": {said}')


@pytest.mark.check("RG-49")
def test_a_namespace_that_is_left_out_is_the_one_of_the_instance() -> None:
    metadata = {"name": "x", "namespace": "${name}"}
    graph = compiled(bucket("many", metadata=metadata, forEach=LOOPS[:1]), spec=SPEC, types=TYPES)
    assert len(items(graph, "many", {"names": ["ns1", "ns2"]})) == 2
    assert (
        "duplicate identity: aws.example.com/v1/Bucket/ns1/x"
        in items(graph, "many", {"names": ["ns1", ""]}).because
    )


def test_items_of_any_type_are_iterated() -> None:
    graph = many("${part.name}-${string(part.size * 2)}", [{"part": "${schema.spec.parts}"}])
    made = items(graph, "many", {"parts": [{"name": "a", "size": 2}, {"name": "b", "size": 3}]})
    assert [meta.name(one) for one in made] == ["a-4", "b-6"]

    graph = many("x-${string(number)}", [{"number": "${lists.range(3)}"}])
    assert [meta.name(one) for one in items(graph, "many", {})] == ["x-0", "x-1", "x-2"]


def test_a_loop_waits_for_its_data_and_fails_like_any_expression() -> None:
    loops = [{"zone": "${bucket.status.zones}"}]
    graph = compiled(config("many", "${zone}", forEach=loops), bucket("bucket"), spec=SPEC, types=TYPES)
    found = items(graph, "many", {}, bucket=[{"status": {}}])
    said = 'forEach "zone" "bucket.status.zones" waits for data: no such key: zones'
    assert found == Pending("many", f'node "many": {said}')
    assert [meta.name(one) for one in items(graph, "many", {}, bucket=[{"status": {"zones": ["z"]}}])] == [
        "z"
    ]

    graph = many("${name}", [{"name": "${[string(1 / 0)]}"}])
    found = items(graph, "many", {})
    assert isinstance(found, Failed)
    assert 'forEach "name"' in found.because and "division by zero" in found.because

    found = items(many("${name}", [{"name": "${schema.spec.names}"}]), "many", {"names": None})
    assert found == Failed("many", 'node "many": forEach "name" did not return a list')


def test_a_collection_iterates_over_the_observed_items_of_another_in_their_order() -> None:
    pods = resource("pods", "v1", "Pod", metadata={"name": "${name}"}, forEach=LOOPS[:1])
    configs = config(
        "configs", "${pod.metadata.name}-cm", {"ip": "${pod.status.podIP}"}, forEach=[{"pod": "${pods}"}]
    )
    graph = compiled(configs, pods, spec=SPEC, types=TYPES)
    assert graph.order == ("pods", "configs")

    observed = [{"metadata": {"name": name}, "status": {"podIP": name}} for name in ("b", "a")]
    assert [meta.name(one) for one in items(graph, "configs", {}, pods=observed)] == ["b-cm", "a-cm"]
    assert items(graph, "configs", {}, pods=[]) == ()
    assert isinstance(items(graph, "configs", {}), Pending)
