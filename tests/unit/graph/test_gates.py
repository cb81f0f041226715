"""propagateWhen: of a definition over its instances, and of a node over its objects."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina.graph.evaluate import Failed, Paced, Pending, propagates
from lamina.graph.gate import compile_gate, gate_open, population
from lamina.graph.graph import GraphError
from tests.unit.graph.graphs import bucket, compiled, config, scoped

DEFINITION = {"metadata": {"name": "apps", "labels": {"freeze": "no"}}, "status": {"currentRevision": 5}}


def instances(*updated: bool, ready: bool = True) -> list[Paced]:
    return [
        Paced({"metadata": {"name": f"a{index}"}, "spec": {"wave": index}}, one, ready)
        for index, one in enumerate(updated)
    ]


def opened(text: str, among: list[Paced], index: int) -> bool | Failed:
    gate = compile_gate([text], plural="apps", singular="app")
    return gate_open(gate, population(gate, among, DEFINITION), index)


@pytest.mark.parametrize(
    "text",
    [
        "exponentiallyUpdated(instances, each)",
        "${exponentiallyUpdated(each, apps)}",
        "exponentiallyReady(apps, app)",
    ],
)
@given(updated=st.integers(0, 20))
def test_waves_double(text: str, updated: int) -> None:
    among = instances(*(index < updated for index in range(20)))
    found = [opened(text, among, index) for index in range(20)]
    # 1, 1, 2, 4, 8: the next wave begins where the ones before it are complete.
    ends = [1, 2, 4, 8, 16, 20]
    open_until = next((end for end in ends if end > updated), 20)
    assert found == [index < open_until for index in range(20)]


@pytest.mark.parametrize("text", ["linearlyUpdated(instances, each, 3)", "${linearlyUpdated(app, apps, 3)}"])
@given(updated=st.integers(0, 7))
def test_waves_of_three(text: str, updated: int) -> None:
    among = instances(*(index < updated for index in range(7)))
    found = [opened(text, among, index) for index in range(7)]
    assert found == [index < updated // 3 * 3 + 3 for index in range(7)]


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("true", True),
        ("false", False),
        ("rgd.metadata.labels.freeze == 'no'", True),
        ("each.index == 1 && app.spec.wave == 1 && apps.size() == 3", True),
        ("instances[0].updated() && instances[0].ready()", True),
        ("instances.filter(i, i.updated() && !i.ready()).size() < 2", True),
        ("each.updated()", False),
        ("each.ready()", True),
        ("rgd.status.currentRevision > 5", False),
    ],
)
def test_a_gate_is_any_expression_over_instances_and_the_definition(text: str, answer: bool) -> None:
    assert opened(text, instances(True, False, False), 1) is answer
    assert opened(f"${{{text}}}", instances(True, False, False), 1) is answer


def test_all_conditions_of_a_gate_have_to_hold() -> None:
    gate = compile_gate(["true", "each.index == 0"])
    among = population(gate, instances(False, False), DEFINITION)
    assert [gate_open(gate, among, index) for index in range(2)] == [True, False]
    assert gate_open(compile_gate([]), among, 1) is True


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("instances[99].updated()", "index out of bounds: 99"),
        ("each.spec.nothing == 1", "no such key: nothing"),
        ("each.spec.wave", "did not return bool"),
        ("linearlyUpdated(instances, each, 0)", "a wave has at least one item"),
        ("linearlyUpdated(instances, rgd, 1)", "an item that knows its index"),
    ],
)
def test_a_gate_that_cannot_be_evaluated_is_closed(text: str, said: str) -> None:
    found = opened(text, instances(True), 0)
    assert isinstance(found, Failed)
    assert said in found.because


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("schema.spec.x == 1", "references unknown identifiers: [schema]"),
        ("other.size() == 1", "references unknown identifiers: [other]"),
        ("exponentialTarget(each.index)", "uses unknown functions: [exponentialTarget]"),
        ("instances.size()", 'must return bool or optional_type(bool), but returns "int"'),
        ("x-${true}", "only standalone expressions are allowed"),
        ("each.index <", "Syntax error"),
        ("omit()", "omit() can only be used in resource template expressions"),
    ],
)
def test_a_gate_that_cannot_be_right_is_refused(text: str, said: str) -> None:
    with pytest.raises(GraphError) as raised:
        compile_gate(["true", text], plural="apps", singular="app")
    assert said in str(raised.value)
    assert str(raised.value).startswith("spec.propagateWhen[1]: ")


def test_the_names_of_a_kind_do_not_hide_the_fixed_variables() -> None:
    gate = compile_gate(["instances.size() == 1 && each.index == 0"], plural="instances", singular="each")
    assert gate_open(gate, population(gate, instances(True), DEFINITION), 0) is True
    taken = compile_gate(
        ["rgd.metadata.name == 'apps' && each.index == 0"], plural="rgd", singular="instances"
    )
    assert gate_open(taken, population(taken, instances(True), DEFINITION), 0) is True
    same = compile_gate(["series.size() == 1"], plural="series", singular="series")
    assert gate_open(same, population(same, instances(True), DEFINITION), 0) is True


# Nodes.

LOOP = [{"name": "${schema.spec.names}"}]
SPEC = {"names": "[]string", "name": "string"}


def items_gate(text: str) -> Callable[..., list[Any]]:
    many = bucket("pods", metadata={"name": "${name}"}, forEach=LOOP, propagateWhen=[text])
    graph = compiled(many, spec=SPEC)

    def ask(*flags: tuple[bool, bool]) -> list[Any]:
        scope = scoped(graph, {"names": [f"p{index}" for index in range(len(flags))]})
        objects = [
            Paced({"metadata": {"name": f"p{n}"}, "spec": {"size": n}}, *one) for n, one in enumerate(flags)
        ]
        return [propagates(graph, graph.nodes["pods"], scope, objects, index) for index in range(len(flags))]

    return ask


UPDATED, STARTED, OLD = (True, True), (True, False), (False, True)


def test_items_are_updated_one_by_one_and_each_is_ready_first() -> None:
    ask = items_gate("linearlyUpdated(each, pods, 1)")
    assert ask(OLD, OLD, OLD) == [True, False, False]
    assert ask(STARTED, OLD, OLD) == [True, False, False]
    assert ask(UPDATED, OLD, OLD) == [True, True, False]
    assert ask(UPDATED, UPDATED, OLD) == [True, True, True]


def test_the_gate_of_an_item_sees_the_item_its_index_and_its_iterators() -> None:
    assert items_gate(
        "each.index == 1 && name == 'p1' && each.spec.size == 1 && pods[0].metadata.name == 'p0'"
    )(OLD, OLD) == [False, True]
    assert items_gate("pods[1].index == 1 && pods.all(p, p.index < 2)")(OLD, OLD) == [True, True]
    assert items_gate("schema.spec.names.size() == 2")(OLD, OLD) == [True, True]


def test_a_node_without_a_gate_propagates() -> None:
    graph = compiled(bucket("b"))
    assert propagates(graph, graph.nodes["b"], scoped(graph), []) is True


def test_the_gate_of_a_node_sees_its_dependencies_and_itself() -> None:
    gated = bucket("b", propagateWhen=['${gate.data.open == "true"}', "b.spec.size < 3"])
    graph = compiled(gated, config("gate"))
    assert graph.order == ("gate", "b")

    def ask(size: int = 1, **observed: Any) -> Any:
        objects = [Paced({"metadata": {"name": "x"}, "spec": {"size": size}}, False, True)]
        return propagates(graph, graph.nodes["b"], scoped(graph, None, observed), objects)

    assert ask(gate=[{"data": {"open": "true"}}]) is True
    assert ask(gate=[{"data": {"open": "false"}}]) is False
    assert ask(5, gate=[{"data": {"open": "true"}}]) is False
    found = ask(gate=[{}])
    assert isinstance(found, Pending)
    assert found.because == (
        'node "b": propagateWhen "gate.data.open == "true"" waits for data: no such key: data'
    )
    assert isinstance(ask(), Pending)


def test_a_gate_of_a_node_that_fails_is_an_error() -> None:
    graph = compiled(bucket("b", propagateWhen=["1 / 0 == 1"]))
    found = propagates(graph, graph.nodes["b"], scoped(graph), [Paced({})])
    assert isinstance(found, Failed)
    assert "division by zero" in found.because


def test_one_scope_serves_several_populations() -> None:
    many = bucket(
        "pods", metadata={"name": "${name}"}, forEach=LOOP, propagateWhen=["linearlyUpdated(each, pods, 1)"]
    )
    graph = compiled(many, spec=SPEC)
    scope, node = scoped(graph, {"names": ["a", "b"]}), graph.nodes["pods"]
    old = [Paced({"metadata": {"name": name}}) for name in "ab"]
    half = [Paced(old[0].obj, True, True), old[1]]
    assert [propagates(graph, node, scope, one, 1) for one in (old, half, old)] == [False, True, False]
