"""Whatever a definition says and whatever is observed, there is a result and no exception."""

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from lamina.graph.compile import compile_graph
from lamina.graph.evaluate import (
    ConditionsResult,
    Failed,
    Pending,
    Readiness,
    author_conditions,
    external,
    included,
    ready,
    render,
    status_fields,
)
from lamina.graph.graph import Graph, GraphError
from tests.unit.graph.graphs import schemas, scoped

EXPRESSIONS = (
    "${schema.spec.name}", "${schema.spec.count}", "${schema.spec.free}", "${schema.spec.free.x}", "${schema.spec.names}",
    "${a}", "${a.data}", "${a.data.x}", "${b.status}", "${b.status.zones}", "${b.status.zones[0]}", "${b.status.?arn}",
    "${c}", "${c[0].metadata.name}", "${c.map(x, x.data)}", "${each.data.x == 'y'}", "${a.data.x == 'y'}", "${b.status.ready}",
    "${i}", "x-${i}", "x-${schema.spec.name}", "x${", "${}", "${ }", "${a(${b})}", "${1 / 0}", "${true}", "${null}", "${omit()}",
    "${runtime.newCondition({type: 'A', status: a.data.x})}", "${runtime.condition(b, 'X')}", "${schema.spec.count > 1}",
    "${linearlyUpdated(each, c, 1)}", "${[1, 'a', {}]}", "${b'x'}", "${d}", "${dyn(schema.spec.free)}", "plain", "", "${'${x}'}",
)  # fmt: skip
TEXTS = st.sampled_from(EXPRESSIONS)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.just(1.5) | TEXTS,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(("x", "data", "name", "y.z", "")), inner, max_size=3),
    max_leaves=5,
)  # fmt: skip
NAMES = st.sampled_from(("a", "b", "c", "d", "schema", "A", ""))
KINDS = st.sampled_from(
    (("v1", "ConfigMap"), ("aws.example.com/v1", "Bucket"), ("v1", "Namespace"), ("apps/v1", "Deployment"), ("v1", "Nope"), (1, None))
)  # fmt: skip
METADATA = JSON | st.fixed_dictionaries(
    {"name": TEXTS}, optional={"namespace": TEXTS, "labels": JSON, "selector": JSON, "annotations": JSON}
)


@st.composite
def resources(draw: st.DrawFn) -> dict[str, Any]:
    api_version, kind = draw(KINDS)
    template: Any = {"apiVersion": api_version, "kind": kind, "metadata": draw(METADATA)}
    template |= draw(st.dictionaries(st.sampled_from(("data", "spec", "status")), JSON, max_size=2))
    where = draw(st.sampled_from(("template", "template", "externalRef")))
    made: dict[str, Any] = {"id": draw(NAMES), where: draw(st.just(template) | JSON)}
    for name in ("includeWhen", "readyWhen", "propagateWhen"):
        if draw(st.integers(0, 4)) == 0:
            made[name] = draw(st.lists(TEXTS, max_size=2))
    if draw(st.integers(0, 4)) == 0:
        made["forEach"] = draw(
            st.lists(st.dictionaries(st.sampled_from(("i", "j", "a")), TEXTS, max_size=2), max_size=2)
        )
    return made


SPEC = {"name": "string", "count": "integer", "names": "[]string", "free": "object"}
DEFINITIONS = st.fixed_dictionaries(
    {
        "schema": st.fixed_dictionaries(
            {"kind": st.just("App"), "spec": st.just(SPEC)},
            optional={
                "status": st.dictionaries(
                    st.sampled_from(("x", "conditions", "state", "y.z")), JSON, max_size=3
                ),
                "scope": st.sampled_from(("Namespaced", "Cluster")),
            },
        ),
        "resources": st.lists(resources(), max_size=4),
    }
)


@settings(max_examples=200, deadline=None)
@given(
    DEFINITIONS,
    st.booleans(),
    JSON,
    st.dictionaries(
        NAMES, st.lists(st.dictionaries(st.sampled_from(("data", "status", "metadata")), JSON), max_size=2)
    ),
)
def test_any_definition_compiles_or_says_why_not(
    definition: Any, omit: bool, free: Any, observed: Any
) -> None:
    try:
        graph = compile_graph(definition, schemas(definition), omit=omit)
    except GraphError as wrong:
        assert ": " in str(wrong)
        return
    spec = {"name": "n", "count": 2, "names": ["a", "b"], "free": free}
    _evaluate(graph, spec, {id_: objects for id_, objects in observed.items() if id_ in graph.nodes})


def _evaluate(graph: Graph, spec: Any, observed: Any) -> None:
    scope = scoped(graph, spec, observed, namespaced=graph.is_namespaced)
    for id_, node in graph.nodes.items():
        assert isinstance(included(graph, node, scope), bool | Pending | Failed)
        if node.kind.is_external:
            assert not isinstance(external(graph, node, scope), bool)
        else:
            assert isinstance(render(graph, node, scope), tuple | Pending | Failed)
        assert isinstance(ready(graph, node, scope, observed.get(id_, ())), Readiness)
    made, failures = status_fields(graph, scope)
    assert isinstance(made, dict) and isinstance(failures, tuple)
    assert isinstance(author_conditions(graph, scope, {}), ConditionsResult)
