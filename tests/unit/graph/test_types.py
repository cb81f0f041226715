"""Which expressions compile in a template, and which types fit a field."""

from typing import Any

import pytest

from lamina.cel.schema import declare
from lamina.cel.types import (
    BOOL,
    BYTES,
    DOUBLE,
    DYN,
    INT,
    NULL,
    STRING,
    TIMESTAMP,
    Type,
    list_of,
    map_of,
    optional_of,
)
from lamina.graph.graph import GraphError
from lamina.graph.types import mismatch, type_at
from lamina.objects.paths import Path
from tests.unit.graph.graphs import TEXT, bucket, compiled, config, resource

SPEC = {
    "name": "string",
    "replicas": "integer",
    "ratio": "float",
    "public": "boolean",
    "zones": "[]string",
    "ports": "[]integer",
    "tags": "map[string]string",
    "free": "object",
    "rule": {"from": "string"},
}


def refused(*resources: Any, **stated: Any) -> str:
    with pytest.raises(GraphError) as raised:
        compiled(*resources, **{"spec": SPEC, **stated})
    return str(raised.value)


@pytest.mark.parametrize(
    "spec",
    [
        {"name": "${schema.spec.name}", "size": "${schema.spec.replicas}", "public": "${schema.spec.public}"},
        {"ratio": "${schema.spec.ratio}", "zones": "${schema.spec.zones}", "tags": "${schema.spec.tags}"},
        {"size": "${schema.spec.free}", "zones": "${schema.spec.free.zones}", "rules": "${schema.spec.free[0]}"},
        {"free": "${schema.spec.zones}", "limit": "${schema.spec.ratio}"},
        {"rules": ["${schema.spec.rule}"], "name": "${other.status.?arn}"},
        {"rules": [{"port": "${schema.spec.ports[0]}", "from": "a-${schema.spec.name}"}]},
        {"tags": {"x.y": "${schema.spec.name}"}, "zones": ["${schema.spec.name}", "b"]},
        {"rules": "${schema.spec.zones.map(z, {'from': z, 'port': 1})}", "tags": "${schema.spec.rule}"},
        {"free": {"a": [{"b": "${schema.spec.zones}"}]}, "keep-alive": "${other.spec.keep__dash__alive}"},
        {"name": "${schema.spec.name + string(schema.spec.replicas) + schema.metadata.namespace}"},
        {"name": "${schema.apiVersion + schema.kind + schema.metadata.labels['a']}"},
        {"name": "${other.metadata.ownerReferences[0].uid}", "zones": "${other.metadata.finalizers}"},
        {"name": "${other.status.endpoints[0].namespace + other.metadata.namespace}"},
        {"name": "${string(other.status.created)}", "size": "${other.status.created.getFullYear()}"},
        {"name": "${other.status.age > duration('1h') ? string(other.status.key) : 'x'}"},
    ],
)  # fmt: skip
def test_an_expression_may_have_the_type_of_its_field(spec: Any) -> None:
    assert compiled(bucket("a", spec=spec), bucket("other"), spec=SPEC).nodes


@pytest.mark.check("RG-19")
@pytest.mark.parametrize(
    ("path", "spec", "returns", "expected"),
    [
        ("spec.size", {"size": "${schema.spec.name}"}, "string", "int"),
        ("spec.name", {"name": "${schema.spec.replicas}"}, "int", "string"),
        ("spec.ratio", {"ratio": "${schema.spec.replicas}"}, "int", "double"),
        ("spec.public", {"public": "${schema.spec.name}"}, "string", "bool"),
        ("spec.zones", {"zones": "${schema.spec.name}"}, "string", "list(string)"),
        ("spec.zones", {"zones": "${schema.spec.ports}"}, "list(int)", "list(string)"),
        ("spec.zones[1]", {"zones": ["a", "${schema.spec.replicas}"]}, "int", "string"),
        ("spec.tags", {"tags": "${schema.spec.zones}"}, "list(string)", "map(string, string)"),
        ("spec.tags", {"tags": "${{'a': 1}}"}, "map(string, int)", "map(string, string)"),
        ('spec.tags["x.y"]', {"tags": {"x.y": "${schema.spec.replicas}"}}, "int", "string"),
        ("spec.rules[0].port", {"rules": [{"port": "${schema.spec.name}"}]}, "string", "int"),
        ("spec.rules[0]", {"rules": ["${schema.spec.name}"]}, "string", "Bucket.v1.aws.example.com.spec.rules.@idx"),
        ("metadata.labels", {}, "list(string)", "map(string, string)"),
    ],
)  # fmt: skip
def test_an_expression_of_another_type_is_refused(path: str, spec: Any, returns: str, expected: str) -> None:
    metadata = {"name": "x", **({} if spec else {"labels": "${schema.spec.zones}"})}
    message = refused(bucket("a", spec=spec, metadata=metadata))

    assert f'type mismatch in resource "a" at path "{path}": expression "' in message
    assert f'returns type "{returns}" but expected "{expected}": ' in message
    assert message.startswith(f"spec.resources[0].template.{path}: ")


@pytest.mark.check("RG-21")
def test_an_expression_among_text_is_a_string() -> None:
    said = 'type mismatch in resource "a" at path "spec.name": expression "schema.spec.replicas" returns type "int"'
    message = refused(bucket("a", spec={"name": "${schema.spec.name}-${schema.spec.replicas}"}))
    assert f'{said} but expected "string"' in message
    assert message.endswith("convert it with string()")

    assert compiled(
        bucket("a", spec={"name": "${schema.spec.name}-${string(schema.spec.replicas)}"}), spec=SPEC
    )
    assert compiled(bucket("a", spec={"name": "${schema.spec.name}${schema.spec.free.x}"}), spec=SPEC)


def test_text_is_no_encoded_bytes() -> None:
    secret = resource("a", "v1", "Secret", data={"token": "x-${schema.spec.name}"})
    assert 'returns type "string" but expected "bytes"' in refused(secret)


def test_two_numbers_side_by_side_are_not_added() -> None:
    assert 'but expected "string"' in refused(bucket("a", spec={"name": "${1}${2}"}))


def test_an_optional_among_text_has_to_be_unwrapped() -> None:
    message = refused(bucket("a", spec={"name": "a-${other.status.?arn}"}), bucket("other"))
    assert "an optional among text has to be unwrapped" in message
    assert message.endswith("give it a value where it has none, with .orValue()")


@pytest.mark.check("RG-20")
@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("missing.x", "references unknown identifiers: [missing]"),
        ("missing.x + other.y + schema.spec.name", "references unknown identifiers: [missing, other]"),
        ("each.x", "references unknown identifiers: [each]"),
        ("schema.spec.zones.map(z, missing + z)[0]", "references unknown identifiers: [missing]"),
        ("foo(1)", "uses unknown functions: [foo]"),
        ("schema.spec.name.foo()", "uses unknown functions: [foo]"),
        ("math.greatest(1, 2)", "references unknown identifiers: [math]"),
        ("sets.contains([1], [1])", "references unknown identifiers: [sets]"),
        ("linearlyUpdated(schema, [1], 1)", "uses unknown functions: [linearlyUpdated]"),
        ("schema.spec.nme", "undefined field 'nme'"),
        ("schema.status.x", "undefined field 'status'"),
        ("schema.metadata.nme", "undefined field 'nme'"),
        ("schema.spec.name.x", "type 'string' does not support field selection"),
        ("schema.spec.name + 1", "found no matching overload for '_+_' applied to '(string, int)'"),
        ("schema.spec.name +", "Syntax error"),
        ("runtime.condition(schema, 'Ready').status", "runtime is only available in status.conditions expressions"),
        ("runtime.newCondition({type: 'A', status: 'True'})", "runtime is only available in status.conditions"),
        ("a(${b})", "nested expressions are not allowed unless inside string literals"),
    ],
)  # fmt: skip
def test_an_expression_that_cannot_be_right_is_refused(text: str, said: str) -> None:
    message = refused(bucket("a", spec={"name": f"${{{text}}}"}))
    assert said in message
    assert message.startswith("spec.resources[0].template.spec.name: ")


def test_a_cluster_scoped_instance_has_no_namespace() -> None:
    metadata = {"name": "x", "namespace": "${schema.metadata.namespace}"}
    assert "undefined field 'namespace'" in refused(bucket("a", metadata=metadata), scope="Cluster")
    assert compiled(bucket("a", metadata=metadata))


def test_the_variables_of_loops_are_no_references() -> None:
    graph = compiled(
        bucket("a", spec={"zones": "${schema.spec.zones.filter(b, b != '').map(b, cel.bind(c, b, c + b))}"}),
        bucket("b"),
        spec=SPEC,
    )
    assert graph.nodes["a"].dependencies == ()


@pytest.mark.check("RG-32")
def test_optional_chains_reach_into_a_status_that_is_not_there_yet() -> None:
    text = '${svc.status.?loadBalancer.?ingress[?0].?hostname.orValue("none")}'
    service = resource("svc", "v1", "Service", spec={"ports": [{"port": 80}]})
    assert compiled(config("a", "x", {"host": text}), service).order == ("svc", "a")


@pytest.mark.check("RG-33")
def test_a_struct_with_a_field_that_the_target_does_not_have_is_refused() -> None:
    types = {"Part": {"name": "string", "image": "string", "colour": "string"}}
    pod = resource("pod", "v1", "Pod", spec={"containers": "${schema.spec.parts}"})
    message = refused(pod, spec={"parts": "[]Part"}, types=types)
    assert 'field "colour" exists in output but not in expected type' in message

    fitting = {"Part": {"name": "string", "image": "string"}}
    assert compiled(pod, spec={"parts": "[]Part"}, types=fitting)
    wrong = {"Part": {"name": "integer"}}
    message = refused(pod, spec={"parts": "[]Part"}, types=wrong)
    assert 'list element type incompatible: field "name" has incompatible type: type kind mismatch' in message


@pytest.mark.parametrize(
    "part",
    [
        {"env": "${schema.spec.zones.map(z, {'name': z, 'value': z})}"},
        {"resources": "${{'limits': {'cpu': '1'}}}"},
        {"ports": "${schema.spec.ports.map(p, {'containerPort': p, 'name': string(p)})}"},
    ],
)
def test_a_map_that_is_written_out_may_be_an_object_with_other_fields_too(part: dict[str, Any]) -> None:
    pod = resource("pod", "v1", "Pod", spec={"containers": [{"name": "c", **part}]})
    assert compiled(pod, spec=SPEC)


def test_nodes_of_one_kind_have_one_type() -> None:
    containers = [{"name": "c", "image": "x"}]
    one = resource("one", "v1", "Pod", spec={"containers": containers})
    two = resource(
        "two", "v1", "Pod", spec="${one.spec}", metadata={"name": "y", "labels": "${one.metadata.labels}"}
    )
    assert compiled(one, two).nodes["two"].dependencies == ("one",)


def test_keywords_of_the_language_are_names_of_fields_too() -> None:
    graph = compiled(
        config("a", "x", {"n": "${b.metadata.namespace + b.status.endpoints[0].namespace}"}), bucket("b")
    )
    assert graph.nodes["a"].dependencies == ("b",)


def test_a_wrong_schema_of_the_spec_is_a_compile_error() -> None:
    message = refused(spec={"a": "Strng"})
    assert "failed to build OpenAPI schema for instance" in message
    assert "Strng" in message


# Types by themselves.


def declared(properties: dict[str, Any], *, name: str = "thing", **more: Any) -> Type:
    found = declare({"type": "object", "properties": properties, **more}, name=name, unknown_is_dyn=True)
    assert found is not None
    return found.type


A = declared({"a": TEXT}, name="A")
AB = declared({"a": TEXT, "b": {"type": "integer"}}, name="AB")
A_NUMBER = declared({"a": {"type": "integer"}}, name="AN")
NESTED = declared({"text": TEXT, "object": {"type": "object", "properties": {"a": TEXT}}}, name="nested")
OBJECTS = declared({"object": {"type": "object", "properties": {"a": TEXT}}}, name="objects")
MAPS = declared(
    {
        "map": {"type": "object", "additionalProperties": TEXT},
        "list": {"type": "array", "items": {"type": "object", "properties": {"a": TEXT}}},
    },
    name="maps",
)
OPEN = declared({"a": TEXT}, name="open", **{"x-kubernetes-preserve-unknown-fields": True})


@pytest.mark.parametrize(
    ("output", "expected", "said"),
    [
        (STRING, STRING, ""),
        (DYN, INT, ""),
        (INT, DYN, ""),
        (optional_of(STRING), STRING, ""),
        (optional_of(INT), STRING, 'type kind mismatch: got "int", expected "string"'),
        (STRING, BYTES, 'type kind mismatch: got "string", expected "bytes"'),
        (INT, DOUBLE, 'type kind mismatch: got "int", expected "double"'),
        (list_of(DYN), list_of(STRING), ""),
        (list_of(list_of(INT)), list_of(list_of(STRING)), "list element type incompatible: list element type incompatible: "),
        (STRING, list_of(STRING), "type kind mismatch"),
        (map_of(STRING, INT), map_of(STRING, DYN), ""),
        (map_of(INT, INT), map_of(STRING, INT), "map key type incompatible"),
        (map_of(STRING, INT), map_of(STRING, BOOL), "map value type incompatible"),
        (A, AB, ""),
        (AB, A, 'field "b" exists in output but not in expected type'),
        (A_NUMBER, A, 'field "a" has incompatible type: type kind mismatch'),
        (AB, OPEN, ""),
        (map_of(STRING, INT), OPEN, ""),
        (STRING, A, "type kind mismatch"),
        (NULL, A, ""),
        (NULL, STRING, "type kind mismatch"),
        (map_of(STRING, STRING), A, ""),
        (map_of(STRING, DYN), AB, ""),
        (map_of(STRING, INT), A, 'map value incompatible with struct field "a": type kind mismatch'),
        (map_of(STRING, STRING), NESTED, ""),
        (map_of(STRING, list_of(STRING)), NESTED, 'map value incompatible with struct field "text"'),
        (map_of(STRING, map_of(STRING, STRING)), NESTED, 'map value incompatible with struct field "text"'),
        (map_of(STRING, map_of(STRING, STRING)), MAPS, ""),
        (map_of(STRING, A_NUMBER), OBJECTS, 'map value incompatible with struct field "object": field "a" has'),
        (map_of(STRING, A), OBJECTS, ""),
        (map_of(INT, STRING), A, "map keys must be strings to assign to struct"),
        (A, map_of(STRING, STRING), ""),
        (AB, map_of(STRING, STRING), 'struct field "b" incompatible with map value type: type kind mismatch'),
        (A, map_of(INT, STRING), "map key type must be string"),
        (A, TIMESTAMP, "type kind mismatch"),
    ],
    ids=str,
)  # fmt: skip
def test_a_type_fits_another(output: Type, expected: Type, said: str) -> None:
    found = mismatch(output, expected)
    assert found.startswith(said)
    assert bool(found) is bool(said)


def test_fields_are_named_as_in_the_data() -> None:
    dashed, plain = (
        declared({"keep-alive": TEXT, "namespace": TEXT}, name="dashed"),
        declared({"namespace": TEXT}),
    )
    assert mismatch(dashed, plain) == 'field "keep-alive" exists in output but not in expected type'


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ((), "thing"),
        (("list", 3), "int"),
        (("map", "any key"), "bool"),
        (("a-b",), "string"),
        (("namespace",), "string"),
        (("list", "x"), "dyn"),
        (("nothing",), "dyn"),
        (("open", "deep", 1), "dyn"),
    ],
)  # fmt: skip
def test_the_type_of_a_field_is_found_by_its_path(path: Path, expected: str) -> None:
    thing = declared(
        {
            "list": {"type": "array", "items": {"type": "integer"}},
            "map": {"type": "object", "additionalProperties": {"type": "boolean"}},
            "a-b": TEXT,
            "namespace": TEXT,
            "open": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
        }
    )
    assert str(type_at(thing, path)) == expected
