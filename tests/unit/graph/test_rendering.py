"""What templates render to, and what they wait for."""

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina.graph.evaluate import Failed, Pending, render
from lamina.graph.evaluate import scope as scope_of
from lamina.graph.graph import Graph, GraphError
from lamina.objects.types import Obj
from tests.unit.graph.graphs import (
    bucket,
    compiled,
    config,
    rendered,
    resource,
    scoped,
)

SPEC = {
    "name": "string",
    "replicas": "integer",
    "zones": "[]string",
    "free": "object",
    "tags": "map[string]string",
}


def free_of(text: str, spec: Obj | None = None, *others: Any, omit: bool = False, **observed: Any) -> Any:
    """Return the value of an expression in a field of any type."""
    graph = compiled(bucket("a", spec={"free": text, "name": "n"}), *others, spec=SPEC, omit=omit)
    made = rendered(graph, "a", spec or {"name": "web", "replicas": 3}, observed)
    return made["spec"].get("free", "left out")


def unresolved(graph: Graph, id_: str, spec: Obj | None = None, **observed: Any) -> Pending | Failed:
    found = render(graph, graph.nodes[id_], scoped(graph, spec, observed))
    assert isinstance(found, Pending | Failed), found
    assert found.node == id_
    return found


@pytest.mark.check("RG-22")
def test_a_literal_dollar_brace_is_written_as_an_expression() -> None:
    graph = compiled(
        config("a", "x", {"cmd": 'echo ${"${HOME}"}', "alone": '${"${X}"}', "open": "echo ${HOME"})
    )
    assert rendered(graph, "a")["data"] == {"cmd": "echo ${HOME}", "alone": "${X}", "open": "echo ${HOME"}


@pytest.mark.check("RG-23")
def test_data_of_an_instance_are_never_read_as_expressions() -> None:
    graph = compiled(
        config("config"),
        config(
            "a", "x", {"token": "${schema.spec.name}", "more": "a-${schema.spec.name}-${config.data.token}"}
        ),
    )
    spec = {"name": "${config.data.token}", "replicas": 1}
    made = rendered(graph, "a", spec, {"config": [{"data": {"token": "${schema.spec.name}"}}]})
    assert made["data"] == {
        "token": "${config.data.token}",
        "more": "a-${config.data.token}-${schema.spec.name}",
    }


def test_keys_are_never_evaluated() -> None:
    graph = compiled(config("a", "x", {"${schema.spec.name}": "y"}))
    assert rendered(graph, "a")["data"] == {"${schema.spec.name}": "y"}


def test_a_standalone_expression_keeps_its_type_and_one_with_a_line_end_is_text() -> None:
    assert free_of("${schema.spec.replicas}") == 3
    assert free_of("${string(schema.spec.replicas)}\n") == "3\n"


def test_an_object_has_the_namespace_of_the_instance_unless_it_states_one() -> None:
    graph = compiled(
        config("a"),
        resource("b", "v1", "ConfigMap", metadata={"name": "y", "namespace": "${schema.spec.name}"}),
        resource("c", "v1", "Namespace", metadata={"name": "z"}),
        resource("d", "v1", "ConfigMap", metadata={"name": "y", "namespace": ""}),
    )
    found = [rendered(graph, id_)["metadata"] for id_ in "abcd"]
    assert found == [
        {"name": "x", "namespace": "ns1"},
        {"name": "y", "namespace": "web"},
        {"name": "z"},
        {"name": "y", "namespace": "ns1"},
    ]


def test_a_child_of_a_cluster_scoped_instance_needs_a_namespace_when_it_is_rendered() -> None:
    metadata = {"name": "x", "namespace": "${schema.spec.name}"}
    graph = compiled(bucket("a", metadata=metadata), scope="Cluster")
    scope = scoped(graph, {"name": ""}, namespaced=False)
    found = render(graph, graph.nodes["a"], scope)
    assert isinstance(found, Failed)
    assert "must resolve metadata.namespace when the instance is cluster-scoped" in found.because

    stray = scope_of(graph, {"metadata": {"name": "a1", "namespace": "stray"}}, {"name": ""}, {}, False)
    assert isinstance(render(graph, graph.nodes["a"], stray), Failed)
    assert "namespace" not in stray.variables["schema"]["metadata"]


def test_the_instance_is_seen_without_its_status() -> None:
    graph = compiled(
        config("a", "x", {"id": "${schema.metadata.uid + schema.kind + schema.metadata.labels.team}"})
    )
    assert rendered(graph, "a")["data"] == {"id": "u1Appred"}
    assert "status" not in scoped(graph).variables["schema"]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("${1}", 1),
        ("${2u}", 2),
        ("${1.5}", 1.5),
        ("${2.0}", 2.0),
        ("${null}", None),
        ("${optional.none()}", None),
        ("${optional.of([1])}", [1]),
        ("${duration('90m')}", "1h30m0s"),
        ("${timestamp('2024-01-02T03:04:05Z')}", "2024-01-02T03:04:05Z"),
        ("${{'b': [1, {'c': null}], 'a': true}}", {"b": [1, {"c": None}], "a": True}),
        ("${schema.spec.?free.orValue('none')}", "none"),
        ("${json.unmarshal('{\"a\": 1}')}", {"a": 1}),
        # scenario 34
        ("${random.seededString(10, 'test-seed')}", "5czheg3o5c"),
        ("${random.seededInt(30000, 32768, 'my-service')}", 31247),
        ("${base64.encode(hash.fnv64a('hello world'))}", "d5pl5wI80uc="),
        ("${{'a': {'x': 1}}.deepMerge({'a': {'y': 2}})}", {"a": {"x": 1, "y": 2}}),
        ("${{'a': 1, 'b': 2}.transformMap(k, v, v * 10)}", {"a": 10, "b": 20}),
        ("${lists.insertAtIndex([1, 3], 1, 2)}", [1, 2, 3]),
    ],
)  # fmt: skip
@pytest.mark.check("RG-34")
def test_a_value_is_written_as_json(text: str, value: Any) -> None:
    assert free_of(text) == value


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("${b'abc'}", "bytes cannot be written as JSON: encode it explicitly"),
        ("${[b'abc']}", "encode it explicitly"),
        ("${18446744073709551615u}", "too large for an integer"),
        ("${{1: 2}}", "a map with a key of type int cannot be written as JSON"),
        ("${1 / 0}", "division by zero"),
        ("${int('x')}", "type conversion error"),
        ("${random.seededString(0, 'a')}", "length must be positive"),
        ("${lists.setAtIndex([1], 1, 2)}", "index 1 out of bounds [0, 1)"),
        ("${[0,1,2,3,4,5,6,7,8,9].map(a, lists.range(10000).map(b, lists.range(100).map(c, a + b + c)))}",
         "costs more than one evaluation may"),
    ],
)  # fmt: skip
def test_a_failure_names_the_node_the_path_and_the_expression(text: str, said: str) -> None:
    graph = compiled(bucket("a", spec={"free": {"x": text}}))
    found = unresolved(graph, "a")
    assert isinstance(found, Failed)
    assert said in found.because
    assert found.because.startswith('node "a": path "spec.free.x": expression "')


def test_the_cost_limit_names_the_field_the_position_and_what_to_do() -> None:
    text = "lists.range(10000).map(b, lists.range(1000).map(c, b + c))"
    graph = compiled(bucket("a", spec={"free": {"x": f"${{{text}}}"}}))
    found = unresolved(graph, "a")
    assert isinstance(found, Failed)
    said, line, caret, remedy = found.because.splitlines()
    assert "in spec.resources[0].template.spec.free.x costs more than one evaluation may" in said
    assert said.endswith("(line 1, column 23)")
    assert line == f" | {text}"
    assert text[caret.removeprefix(" | ").index("^") :].startswith("(b, ")
    assert remedy == "shorten the lists that it goes through"


@pytest.mark.parametrize(
    ("text", "observed", "said"),
    [
        ("${b.status.arn}", {}, "no such attribute(s): b"),
        ("${b.status.arn}", {"b": []}, "no such attribute(s): b"),
        ("${b.status.arn}", {"b": [{}]}, "no such key: status"),
        ("${b.status.arn}", {"b": [{"status": {}}]}, "no such key: arn"),
        ("${b.status.zones[1]}", {"b": [{"status": {"zones": ["a"]}}]}, "index out of bounds: 1"),
        ("x-${b.status.arn}", {"b": [{"status": {}}]}, "no such key: arn"),
        ("${schema.spec.zones}", {}, "no such key: zones"),
    ],
)  # fmt: skip
def test_missing_data_are_waited_for(text: str, observed: Any, said: str) -> None:
    graph = compiled(bucket("a", spec={"free": text}), bucket("b"), spec=SPEC)
    found = unresolved(graph, "a", {"name": "web"}, **observed)
    assert isinstance(found, Pending)
    assert found.because.startswith('node "a": path "spec.free": expression "')
    assert found.because.endswith(f'" waits for data: {said}')


@pytest.mark.check("RG-32")
def test_an_optional_chain_has_a_value_until_the_data_are_there() -> None:
    text = '${svc.status.?loadBalancer.?ingress[?0].?hostname.orValue("none")}'
    graph = compiled(config("a", "x", {"host": text}), resource("svc", "v1", "Service"))
    assert rendered(graph, "a", None, {"svc": [{"status": {}}]})["data"] == {"host": "none"}
    there = {"status": {"loadBalancer": {"ingress": [{"hostname": "h"}]}}}
    assert rendered(graph, "a", None, {"svc": [there]})["data"] == {"host": "h"}


def test_values_have_the_types_of_their_schemas() -> None:
    status = {"created": "2024-01-02T03:04:05Z", "age": "90m", "key": "aGVsbG8=", "ratio": 3}
    observed: Any = {"b": [{"metadata": {"creationTimestamp": "2024-01-01T00:00:00Z"}, "status": status}]}
    for text, value in [
        ("${b.status.created - b.metadata.creationTimestamp > duration('24h')}", True),
        ("${string(b.status.key)}", "hello"),
        ("${b.status.ratio / 2.0}", 1.5),
        ("${b.status.age}", "1h30m0s"),
        ("${b.status.created}", "2024-01-02T03:04:05Z"),
        ("${b.status}", status),
    ]:
        assert free_of(text, None, bucket("b"), **observed) == value


def test_the_data_of_a_secret_are_copied_as_they_are() -> None:
    graph = compiled(
        resource(
            "copy",
            "v1",
            "Secret",
            data="${secret.data}",
            stringData={"plain": "${string(secret.data.token)}"},
        ),
        resource("secret", "v1", "Secret"),
    )
    made = rendered(graph, "copy", None, {"secret": [{"data": {"token": "aGVsbG8="}}]})
    assert (made["data"], made["stringData"]) == ({"token": "aGVsbG8="}, {"plain": "hello"})


@pytest.mark.check("RG-35")
def test_omit_needs_its_gate() -> None:
    with pytest.raises(GraphError, match=r"omit\(\) requires the CELOmitFunction feature gate"):
        free_of("${omit()}")
    with pytest.raises(GraphError, match="CELOmitFunction"):
        free_of("${schema.spec.replicas > 3 ? 1 : omit()}")


@pytest.mark.check("RG-35")
def test_what_is_omitted_is_absent() -> None:
    text = "${schema.spec.replicas > 3 ? dyn(schema.spec.replicas) : omit()}"
    assert free_of(text, {"replicas": 4}, omit=True) == 4
    assert free_of(text, {"replicas": 3}, omit=True) == "left out"
    assert free_of("${[1, omit(), {'a': omit(), 'b': null}]}", omit=True) == [1, {"b": None}]
    graph = compiled(
        bucket("a", spec={"zones": ["a", "${omit()}", "b"], "tags": {"x": "${omit()}"}}), omit=True
    )
    assert rendered(graph, "a")["spec"] == {"zones": ["a", "b"], "tags": {}}


@pytest.mark.check("RG-35")
def test_a_name_is_never_omitted() -> None:
    for name in ("${omit()}", "${schema.spec.name == '' ? omit() : dyn('x')}", "a-${omit()}"):
        with pytest.raises(GraphError, match=r'omit\(\) cannot be used at path "metadata.name"'):
            compiled(config("a", name), omit=True)
    namespaced = {"name": "x", "namespace": "${omit()}"}
    assert (
        rendered(compiled(bucket("a", metadata=namespaced), omit=True), "a")["metadata"]["namespace"] == "ns1"
    )
    with pytest.raises(GraphError, match=r'omit\(\) cannot be used at path "metadata.namespace"'):
        compiled(bucket("a", metadata=namespaced), omit=True, scope="Cluster")


def test_an_omitted_value_is_no_text() -> None:
    graph = compiled(bucket("a", spec={"name": "a-${omit()}"}), omit=True)
    found = unresolved(graph, "a")
    assert isinstance(found, Failed)
    assert "must be a string among text" in found.because


def test_a_dyn_value_among_text_is_a_string_when_it_is_evaluated() -> None:
    graph = compiled(bucket("a", spec={"name": "a-${schema.spec.free.x}"}), spec=SPEC)
    assert rendered(graph, "a", {"free": {"x": "y"}})["spec"]["name"] == "a-y"
    found = unresolved(graph, "a", {"free": {"x": 1}})
    assert isinstance(found, Failed)
    assert found.because.endswith("must be a string among text, not int: use string()")


def test_an_object_without_a_name_is_not_rendered() -> None:
    for name in ("${schema.spec.name}", "${schema.spec.?name}"):
        graph = compiled(config("a", name))
        found = unresolved(graph, "a", {"name": ""})
        assert found == Failed("a", 'node "a": path "metadata.name" has no value')


@pytest.mark.parametrize(
    ("metadata", "said"),
    [
        ({"name": "x", "namespace": "${schema.spec.free}"}, 'path "metadata.namespace" is no string'),
        ({"name": "x", "labels": "${schema.spec.free}"}, 'path "metadata.labels" is no map'),
        ({"name": "x", "annotations": "${schema.spec.free}"}, 'path "metadata.annotations" is no map'),
        ({"name": "${schema.spec.free}"}, 'path "metadata.name" has no value'),
    ],
)
def test_metadata_of_another_form_are_not_rendered(metadata: Obj, said: str) -> None:
    graph = compiled(bucket("a", metadata=metadata), spec=SPEC)
    assert unresolved(graph, "a", {"free": ["x"]}) == Failed("a", f'node "a": {said}')
    assert rendered(graph, "a", {"free": "text" if "space" in said or "name" in said else {"k": "v"}})


def test_what_is_rendered_can_be_changed_without_a_trace() -> None:
    """The caller adds labels to it: neither the template nor what was observed may be touched."""
    graph = compiled(
        config("a", "x", {"k": "v"}),
        bucket("b", spec={"tags": "${a.data}"}, metadata={"name": "x", "labels": {"a": "b"}}),
    )
    observed: Any = {"a": [{"data": {"k": "v"}}]}
    before = copy.deepcopy((graph.snapshot, observed))
    for id_ in ("a", "b"):
        made = rendered(graph, id_, None, observed)
        made["metadata"].setdefault("labels", {})["mine"] = "x"
        made.get("data", made.get("spec", {}).get("tags"))["k"] = "changed"
    assert (graph.snapshot, observed) == before


VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(VALUES)
def test_any_json_of_an_instance_arrives_unchanged(value: Any) -> None:
    graph = _FREE
    made = rendered(graph, "a", {"free": value, "name": "web"})
    assert made["spec"] == {"free": value, "rules": [value, "n"], "name": "web"}
    assert made == rendered(graph, "a", {"free": value, "name": "web"})


_FREE = compiled(
    bucket(
        "a",
        spec={"free": "${schema.spec.free}", "rules": ["${schema.spec.free}", "${dyn('n')}"], "name": "web"},
    ),
    spec=SPEC,
)


@given(VALUES)
def test_any_literal_of_a_template_arrives_unchanged(value: Any) -> None:
    if "${" in str(value):
        return
    graph = compiled(bucket("a", spec={"free": {"x": value}}))
    assert rendered(graph, "a")["spec"] == {"free": {"x": value}}
