"""What is included, and what is ready."""

from typing import Any

import pytest

from lamina.core.health.probe import ProbeStatus
from lamina.graph.evaluate import Failed, Pending, Readiness, included, ready
from tests.unit.graph.graphs import bucket, compiled, config, reference, scoped

SPEC = {"on": "boolean", "names": "[]string", "free": "object"}
LOOP = [{"name": "${schema.spec.names}"}]


def is_included(*conditions: str, spec: Any = None, **observed: Any) -> bool | Pending | Failed:
    other = bucket("b", readyWhen=["${b.status.ready}"])
    graph = compiled(config("a", includeWhen=list(conditions)), other, spec=SPEC)
    return included(graph, graph.nodes["a"], scoped(graph, spec or {"on": True}, observed))


def readiness(*conditions: str, objects: Any = ({},), **more: Any) -> Readiness:
    graph = compiled(bucket("b", readyWhen=list(conditions)), spec=SPEC)
    return ready(graph, graph.nodes["b"], scoped(graph, {}), objects, **more)


def test_a_node_is_included_where_all_of_its_conditions_hold() -> None:
    assert is_included() is True
    assert is_included("${schema.spec.on}", "${true}") is True
    assert is_included("${schema.spec.on}", "${false}") is False
    assert is_included("${schema.spec.on}", spec={"on": False}) is False


def test_an_empty_optional_does_not_hold() -> None:
    assert is_included("${schema.spec.?on}") is True
    assert is_included("${schema.spec.?on}", spec={"free": 1}) is False


def test_data_of_the_instance_that_are_missing_are_an_error() -> None:
    found = is_included("${schema.spec.on}", spec={"free": 1})
    assert isinstance(found, Failed)
    assert found.because == 'node "a": includeWhen "schema.spec.on" waits for data: no such key: on'
    assert isinstance(is_included("${1 / 0 == 1}"), Failed)


def test_a_condition_on_another_node_waits_until_that_is_ready() -> None:
    text = "${b.status.arn == 'x'}"
    assert is_included(text) == Pending("a", 'node "a": includeWhen waits for node "b"')
    found = is_included(text, b=[{"status": {"arn": "x", "ready": False}}])
    assert isinstance(found, Pending)
    assert found.because.startswith(
        'node "a": includeWhen waits for node "b": readyWhen condition evaluated to false'
    )
    assert isinstance(is_included(text, b=[{"status": {"arn": "x"}}]), Pending)
    assert isinstance(is_included(text, b=[{"status": {"ready": True}}]), Pending)
    assert is_included(text, b=[{"status": {"arn": "x", "ready": True}}]) is True
    assert is_included(text, b=[{"status": {"arn": "y", "ready": True}}]) is False


def test_a_condition_fails_with_the_readiness_that_it_depends_on() -> None:
    other = bucket("b", readyWhen=["${1 / 0 == 1}"])
    graph = compiled(config("a", includeWhen=["${b.status.ready}"]), other)
    assert isinstance(included(graph, graph.nodes["a"], scoped(graph, {}, {"b": [{}]})), Failed)


def test_what_the_instance_excludes_waits_for_nothing() -> None:
    assert is_included("${b.status.ready}", "${schema.spec.on}", spec={"on": False}) is False


def test_what_exists_is_ready_without_conditions() -> None:
    assert readiness().is_healthy
    assert readiness(objects=()) == Readiness(ProbeStatus.FALSE, "it does not exist yet")


def test_all_conditions_have_to_hold() -> None:
    there = ({"status": {"ready": True, "arn": "x"}},)
    assert readiness("${b.status.ready}", "${b.status.arn == 'x'}", objects=there).is_healthy
    found = readiness("${b.status.ready}", "${b.status.arn == 'y'}", objects=there)
    said = "readyWhen condition evaluated to false: \"b.status.arn == 'y'\""
    assert found == Readiness(ProbeStatus.FALSE, said)


def test_a_status_about_an_earlier_generation_is_no_answer() -> None:
    def there(generation: int, **status: object) -> dict[str, object]:
        return {"metadata": {"generation": generation}, "status": {"ready": True, **status}}

    said = "its controller hasn't observed latest spec"
    found = readiness("${b.status.ready}", objects=(there(2, observedGeneration=1),))
    assert found == Readiness(ProbeStatus.UNKNOWN, said)
    assert readiness("${b.status.ready}", objects=(there(2, observedGeneration=2),)).is_healthy
    assert readiness("${b.status.ready}", objects=(there(2),)).is_healthy, "not all kinds report a generation"
    assert readiness(objects=(there(2, observedGeneration=1),)).is_healthy, "it states no condition"


def test_missing_data_are_not_known_yet_and_an_error_is_an_error() -> None:
    found = readiness("${b.status.ready}")
    said = 'readyWhen "b.status.ready" waits for data: no such key: status'
    assert found == Readiness(ProbeStatus.UNKNOWN, said)
    found = readiness("${1 / 0 == 1}")
    assert (found.answer, found.failed) == (ProbeStatus.UNKNOWN, True)
    assert "division by zero" in found.because
    assert not readiness("${b.status.?ready}").failed


def test_a_value_of_any_type_is_a_bool_when_it_is_evaluated() -> None:
    graph = compiled(bucket("b", readyWhen=["${b.spec.free.on ? true : false}"]))
    found = ready(graph, graph.nodes["b"], scoped(graph), [{"spec": {"free": {"on": "yes"}}}])
    assert found.failed


def test_a_time_is_compared_with_null() -> None:
    graph = compiled(bucket("b", readyWhen=["${b.status.created != null}"]))
    node, scope = graph.nodes["b"], scoped(graph)
    assert ready(graph, node, scope, [{"status": {"created": "2024-01-02T03:04:05Z"}}]).is_healthy
    assert not ready(graph, node, scope, [{"status": {}}]).failed


@pytest.mark.check("RG-25")
def test_all_items_of_a_collection_have_to_be_there_and_to_pass() -> None:
    many = bucket("b", metadata={"name": "${name}"}, forEach=LOOP, readyWhen=["${each.status.ready}"])
    graph = compiled(many, spec=SPEC)

    def found(*flags: bool, desired: int | None = None) -> Readiness:
        objects = [{"metadata": {"name": f"i{n}"}, "status": {"ready": flag}} for n, flag in enumerate(flags)]
        return ready(graph, graph.nodes["b"], scoped(graph, {}), objects, desired=desired)

    assert found().is_healthy
    assert found(True, True, desired=2).is_healthy
    assert found(True, desired=2) == Readiness(ProbeStatus.FALSE, "1 of 2 items exist")
    said = 'item 1 (i1): readyWhen condition evaluated to false: "each.status.ready"'
    assert found(True, False, True) == Readiness(ProbeStatus.FALSE, said)


def test_an_external_collection_is_ready_by_its_list_or_by_its_items() -> None:
    ready_when = ["${all.size() == 2}", "${each.data.on == 'true'}", "${all.exists(x, x.data.on == 'true')}"]
    graph = compiled(reference("all", selector={}, readyWhen=ready_when))
    node, scope = graph.nodes["all"], scoped(graph)
    on, off = (
        {"metadata": {"name": "x"}, "data": {"on": "true"}},
        {"metadata": {"name": "y"}, "data": {"on": "no"}},
    )

    assert ready(graph, node, scope, [on, on]).is_healthy
    assert "all.size() == 2" in ready(graph, node, scope, [on]).because
    assert ready(graph, node, scope, [on, off]).because.startswith("item 1 (y): ")
    bare = compiled(reference("all", selector={}))
    assert ready(bare, bare.nodes["all"], scope, []).is_healthy
