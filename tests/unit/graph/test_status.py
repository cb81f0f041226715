"""The author's status fields: their schema, and their values as far as there are data."""

from typing import Any

import pytest

from lamina.graph.evaluate import Failed, status_fields
from lamina.graph.graph import Graph, GraphError
from lamina.objects.types import Made
from tests.unit.graph.graphs import bucket, compiled, scoped

SPEC = {"name": "string", "names": "[]string", "free": "object"}
ANYTHING = {"x-kubernetes-preserve-unknown-fields": True}


def of(status: Any) -> Graph:
    many = bucket("many", metadata={"name": "${n}"}, forEach=[{"n": "${schema.spec.names}"}])
    return compiled(bucket("b"), many, spec=SPEC, status=status)


def fields(status: Any, spec: Any = None, **observed: Any) -> Made:
    graph = of(status)
    made, failures = status_fields(graph, scoped(graph, spec or {"name": "web"}, observed))
    assert failures == ()
    return made


@pytest.mark.parametrize(
    ("text", "schema"),
    [
        ("${b.spec.size}", {"type": "integer"}),
        ("${uint(b.spec.size)}", {"type": "integer"}),
        ("${b.status.ratio}", {"type": "number"}),
        ("${b.status.ready}", {"type": "boolean"}),
        ("${b.status.arn}", {"type": "string"}),
        ("x-${b.status.arn}", {"type": "string"}),
        ("${b.status.key}", {"type": "string", "format": "byte"}),
        ("${b.status.created}", {"type": "string", "format": "date-time"}),
        ("${b.status.age}", ANYTHING),
        ("${b.status.zones}", {"type": "array", "items": {"type": "string"}}),
        ("${b.spec.tags}", {"type": "object", "additionalProperties": {"type": "string"}}),
        ("${b.status.endpoints}",
         {"type": "array", "items": {"type": "object", "properties": {"host": {"type": "string"}, "namespace": {"type": "string"}}}}),
        ("${b.spec.free}", ANYTHING),
        ("${b.spec.limit}", ANYTHING),
        ("${b.status.?arn}", ANYTHING),
        ("${b.spec.mixed}", {"type": "object", "properties": {"a": {"type": "string"}}, **ANYTHING}),
        ("${many.map(m, m.status.arn)}", {"type": "array", "items": {"type": "string"}}),
        ("${many.map(m, m.spec.free)}", {"type": "array", "items": ANYTHING}),
        ("${{'a': b.spec.size}}", {"type": "object", "additionalProperties": {"type": "integer"}}),
        ("${schema.spec.free.x}", ANYTHING),
        ("${schema.metadata.name}", {"type": "string"}),
    ],
)  # fmt: skip
def test_the_type_of_an_expression_is_the_schema_of_its_field(text: str, schema: Any) -> None:
    graph = of({"field": text})
    assert graph.status_schema == {"type": "object", "properties": {"field": schema}}
    assert not graph.hides_conditions


def test_a_timestamp_in_an_object_may_be_anything_as_in_the_kinds_that_upstream_generated() -> None:
    schema = of({"field": "${b.metadata}"}).status_schema["properties"]["field"]
    assert schema["properties"]["creationTimestamp"] == ANYTHING


def test_names_of_fields_in_a_schema_are_those_of_the_data() -> None:
    schema = of({"x": "${b.spec}"}).status_schema["properties"]["x"]
    assert "keep-alive" in schema["properties"]
    metadata = of({"x": "${b.metadata}"}).status_schema["properties"]["x"]
    assert {"namespace", "ownerReferences"} <= metadata["properties"].keys()
    assert "__namespace__" not in str(metadata)


def test_times_inside_objects_may_be_anything() -> None:
    """As in the kinds that upstream has generated, which a narrower schema would break."""
    graph = of({"whole": "${b.status}", "list": "${[b.status.created]}"})
    found = graph.status_schema["properties"]
    assert found["whole"]["properties"]["created"] == ANYTHING
    assert found["list"] == {"type": "array", "items": {"type": "string", "format": "date-time"}}


def test_structures_are_objects_and_arrays_stay_arrays() -> None:
    graph = of({"a": {"b": "${b.status.arn}", "c.d": {"e": "${b.spec.size}"}}, "empty": {"x": [{}, []]}})
    assert graph.status_schema["properties"] == {
        "a": {
            "type": "object",
            "properties": {
                "b": {"type": "string"},
                "c.d": {"type": "object", "properties": {"e": {"type": "integer"}}},
            },
        },
    }


@pytest.mark.check("RG-37")
def test_an_array_of_two_expressions_is_an_array() -> None:
    status = {"both": ["${b.status.arn}", "${schema.spec.name}"]}
    text = {"type": "string"}
    assert of(status).status_schema["properties"] == {"both": {"type": "array", "items": text}}
    assert fields(status, b=[{"status": {"arn": "x"}}]) == {"both": ["x", "web"]}

    mixed = of({"both": ["${b.status.arn}", "${b.spec.size}"]})
    assert mixed.status_schema["properties"] == {"both": {"type": "array", "items": ANYTHING}}
    objects = of({"all": [{"a": "${b.status.arn}"}, {"b": "${b.spec.size}", "a": "${b.status.arn}"}]})
    items = {"type": "object", "properties": {"a": text, "b": {"type": "integer"}}}
    assert objects.status_schema["properties"] == {"all": {"type": "array", "items": items}}


@pytest.mark.check("RG-36")
@pytest.mark.parametrize(
    ("status", "said"),
    [
        ({"a": "literal"}, "status fields without expressions are not supported: [a]"),
        ({"a": {"b": 1}, "c": [True, "${b.status.arn}"], "d": None},
         "status fields without expressions are not supported: [a.b, c[0], d]"),
        ({"x.y": "z"}, 'status fields without expressions are not supported: [["x.y"]]'),
        ({"a": "${true}"}, "instance status field must refer to a resource or schema: status.a"),
        ({"a": "x-${'y'}"}, "instance status field must refer to a resource or schema: status.a"),
        ({"a": {"b": ["${1 + 1}"]}}, "instance status field must refer to a resource or schema: status.a.b[0]"),
        ({"a": "${missing.x}"}, 'status field "a": references unknown identifiers: [missing]'),
        ({"a": "${each.x}"}, "references unknown identifiers: [each]"),
        ({"a": "${runtime.condition(schema, 'Ready').status}"}, "references unknown identifiers: [runtime]"),
        ({"a": "${runtime.newCondition({type: 'A', status: 'True'})}"}, "references unknown identifiers: [runtime] "),
        ({"a": "${foo(b)}"}, 'status field "a": uses unknown functions: [foo]'),
        ({"a": "${b.status.nothing}"}, "undefined field 'nothing'"),
        ({"a": "${schema.status.x}"}, "undefined field 'status'"),
        ({"a": "x-${b.spec.size}"}, 'returns type "int" but expected "string"'),
        ({"a": "x-${b.status.?arn}"}, 'but expected "string"'),
        ({"a": "${omit()}"}, "omit() can only be used in resource template expressions"),
        ({"a": "${b(${c})}"}, "nested expressions are not allowed"),
    ],
)  # fmt: skip
def test_a_status_field_is_computed_from_the_instance_or_its_nodes(status: Any, said: str) -> None:
    with pytest.raises(GraphError) as raised:
        of(status)
    assert said in str(raised.value)
    assert str(raised.value).startswith("spec.schema.status")


def test_fields_without_data_are_absent() -> None:
    status: dict[str, Any] = {
        "arn": "${b.status.arn}",
        "text": "arn ${b.status.arn}",
        "deep": {"arn": "${b.status.arn}", "name": "${schema.spec.name}"},
        "gone": {"arn": {"value": "${b.status.arn}"}},
        "list": ["${schema.spec.name}", "${b.status.arn}", "${schema.spec.name}"],
        "late": ["${b.status.arn}", "${schema.spec.name}"],
        "chain": "${b.?status.?arn}",
        "empty": {},
    }
    known = {"deep": {"name": "web"}, "list": ["web"]}
    assert fields(status, b=[{"metadata": {}}]) == {**known, "chain": None}
    assert fields(status) == known
    there = fields(status, b=[{"status": {"arn": "x"}}])
    assert there == {
        "arn": "x",
        "text": "arn x",
        "deep": {"arn": "x", "name": "web"},
        "gone": {"arn": {"value": "x"}},
        "list": ["web", "x", "web"],
        "late": ["x", "web"],
        "chain": "x",
    }


def test_a_failure_is_reported_and_the_other_fields_are_there() -> None:
    graph = of({"bad": "${1 / b.spec.size}", "good": "${schema.spec.name}", "key": "${b.status.key}"})
    observed = {"b": [{"spec": {"size": 0}, "status": {"key": "aGk="}}]}
    made, failures = status_fields(graph, scoped(graph, {"name": "web"}, observed))
    assert made == {"good": "web"}
    assert [one.because for one in failures] == [
        'status: path "bad": expression "1 / b.spec.size" failed: division by zero',
        'status: path "key": expression "b.status.key" failed: bytes cannot be written as JSON: encode it explicitly',
    ]
    assert all(isinstance(one, Failed) for one in failures)


def test_a_field_named_state_is_checked_and_then_left_to_the_controller() -> None:
    graph = of({"state": "${b.status.arn}", "nested": {"state": "${schema.spec.name}"}})
    assert graph.status_schema["properties"].keys() == {"nested"}
    made, _ = status_fields(graph, scoped(graph, None, {"b": [{"status": {"arn": "x"}}]}))
    assert made == {"nested": {"state": "web"}}
    with pytest.raises(GraphError, match="status fields without expressions"):
        of({"state": "ACTIVE"})


def test_a_definition_without_status_has_no_fields() -> None:
    cases: list[Any] = [None, {}, {"empty": {}}]
    for stated in cases:
        graph = of(stated)
        assert graph.status_schema == {"type": "object", "properties": {}}
        assert status_fields(graph, scoped(graph)) == ({}, ())


def test_a_list_of_all_items_is_in_their_order() -> None:
    observed = [{"metadata": {"name": name}} for name in "ba"]
    assert fields({"names": "${many.map(m, m.metadata.name)}"}, many=observed) == {"names": ["b", "a"]}
    assert fields({"names": "${many.map(m, m.metadata.name)}"}, many=[]) == {"names": []}
    assert fields({"names": "${many.map(m, m.metadata.name)}"}) == {}
