"""External references: what they refer to, and which forms are refused."""

from typing import Any

import pytest

from lamina.graph.evaluate import (
    ExternalSelector,
    ExternalTarget,
    Failed,
    Pending,
    external,
)
from lamina.graph.graph import GraphError, NodeKind
from lamina.objects.selectors import EVERYTHING, from_object
from tests.unit.graph.graphs import compiled, config, reference, rendered, scoped

SPEC = {
    "name": "string",
    "count": "integer",
    "labels": "map[string]string",
    "free": "object",
    "selector": {"matchLabels": "map[string]string"},
    "values": "[]string",
}


def target(
    spec: Any = None, *, scope: str = "Namespaced", observed: Any = None, omit: bool = False, **stated: Any
) -> Any:
    graph = compiled(reference("ref", **stated), config("other") if scope == "Namespaced" else reference("node", kind="Node", name="n"),
                     spec=SPEC, scope=scope, omit=omit)  # fmt: skip
    return external(
        graph, graph.nodes["ref"], scoped(graph, spec or {}, observed, namespaced=scope == "Namespaced")
    )


def test_one_object_is_named_and_its_namespace_is_that_of_the_instance() -> None:
    assert target(name="settings") == ExternalTarget("ns1", "settings")
    assert target(name="settings", namespace="shared") == ExternalTarget("shared", "settings")
    assert target({"name": "web"}, name="${schema.spec.name}-settings", namespace="${schema.spec.name}") == (
        ExternalTarget("web", "web-settings")
    )
    assert target(kind="Node", name="n1") == ExternalTarget("", "n1")


def test_a_reference_depends_on_what_it_names() -> None:
    graph = compiled(reference("ref", name="${other.data.ref}"), config("other"))
    assert graph.nodes["ref"].kind is NodeKind.EXTERNAL
    assert graph.nodes["ref"].dependencies == ("other",)
    found = external(graph, graph.nodes["ref"], scoped(graph))
    assert isinstance(found, Pending)
    assert found.because.startswith(
        'node "ref": path "metadata.name": expression "other.data.ref" waits for data'
    )


@pytest.mark.parametrize(
    ("selector", "spec", "wanted"),
    [
        ({}, {}, {}),
        ({"matchLabels": {"a": "b"}}, {}, {"matchLabels": {"a": "b"}}),
        ({"matchLabels": {"a": "${schema.spec.name}"}}, {"name": "x"}, {"matchLabels": {"a": "x"}}),
        ({"matchLabels": {"a": "x-${schema.spec.name}"}}, {"name": "y"}, {"matchLabels": {"a": "x-y"}}),
        ({"matchLabels": "${schema.spec.labels}"}, {"labels": {"k": "v"}}, {"matchLabels": {"k": "v"}}),
        ("${schema.spec.selector}", {"selector": {"matchLabels": {"k": "v"}}}, {"matchLabels": {"k": "v"}}),
        ("${schema.spec.?free}", {}, {}),
        ("${schema.spec.free}", {"free": {"matchExpressions": [{"key": "k", "operator": "Exists"}]}},
         {"matchExpressions": [{"key": "k", "operator": "Exists"}]}),
        ({"matchExpressions": [{"key": "k", "operator": "In", "values": "${schema.spec.values}"}]}, {"values": ["a"]},
         {"matchExpressions": [{"key": "k", "operator": "In", "values": ["a"]}]}),
    ],
)  # fmt: skip
def test_a_collection_is_selected_by_labels(selector: Any, spec: Any, wanted: Any) -> None:
    assert target(spec, selector=selector) == ExternalSelector(None, from_object(wanted))


def test_a_map_of_texts_may_be_a_selector_until_it_is_evaluated() -> None:
    """As for upstream, which does not look into the type of a whole selector."""
    found = target({"labels": {"a": "b"}}, selector="${schema.spec.labels}")
    assert isinstance(found, Failed)
    assert "unknown a" in found.because


def test_an_external_collection_is_in_one_namespace_or_in_all() -> None:
    assert target(selector={}) == ExternalSelector(None, EVERYTHING)
    assert target(selector={}, namespace="shared") == ExternalSelector("shared", EVERYTHING)
    assert target({"name": ""}, selector={}, namespace="${schema.spec.name}") == ExternalSelector(
        None, EVERYTHING
    )
    assert target(selector={}, scope="Cluster") == ExternalSelector(None, EVERYTHING)
    assert target(kind="Node", selector={}) == ExternalSelector(None, EVERYTHING)
    odd = target({"free": ["x"]}, selector={}, namespace="${schema.spec.free}")
    assert odd == Failed("ref", 'node "ref": path "metadata.namespace" is no string')
    omitted = target(selector={"matchLabels": "${omit()}"}, namespace="${omit()}", omit=True)
    assert omitted == ExternalSelector(None, EVERYTHING)


@pytest.mark.parametrize(
    ("selector", "said"),
    [
        ("a=b", "selector must be a Kubernetes LabelSelector object or a CEL expression that resolves to one"),
        ("x-${schema.spec.name}", "selector must be a Kubernetes LabelSelector object or a CEL expression"),
        ([], "selector must be a Kubernetes LabelSelector object"),
        (1, "selector must be a Kubernetes LabelSelector object"),
        ({"matchLabel": {}}, "schema not found for field matchLabel"),
        ({"matchLabels": {"a": 1}}, 'expected string type for path metadata.selector.matchLabels.a, got integer'),
        ({"matchExpressions": [{"key": "a", "operator": "Is"}]}, 'invalid label selector: "Is" is not a valid label selector operator'),
        ({"matchExpressions": [{"key": "a", "operator": "In"}]}, "invalid label selector: "),
        ("${schema.spec.name}", 'type mismatch in resource "ref" at path "metadata.selector"'),
        ({"matchLabels": "${schema.spec.name}"}, 'type mismatch in resource "ref" at path "metadata.selector.matchLabels"'),
        ({"matchLabels": {"app": "${schema.spec.count}"}}, 'type mismatch in resource "ref" at path "metadata.selector.matchLabels.app"'),
        ({"matchExpressions": "${schema.spec.name}"}, 'type mismatch in resource "ref" at path "metadata.selector.matchExpressions"'),
    ],
)  # fmt: skip
def test_a_selector_of_another_form_is_refused(selector: Any, said: str) -> None:
    with pytest.raises(GraphError) as raised:
        compiled(reference("ref", selector=selector), spec=SPEC)
    assert said in str(raised.value)
    assert str(raised.value).startswith("spec.resources[0].externalRef.metadata.selector")


def test_a_name_is_a_string() -> None:
    with pytest.raises(GraphError, match='type mismatch in resource "ref" at path "metadata.name"'):
        compiled(reference("ref", name="${schema.spec.count}"), spec=SPEC)
    with pytest.raises(GraphError, match="schema not found for field labels"):
        compiled(
            {
                "id": "ref",
                "externalRef": {
                    "apiVersion": "v1",
                    "kind": "ConfigMap",
                    "metadata": {"name": "x", "labels": {}},
                },
            }
        )


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ({"matchLabel": {"a": "b"}}, "unknown matchLabel"),
        ({"a": "b"}, "unknown a"),
        (["a"], "unknown list"),
        ({"matchExpressions": [{"key": "k", "operator": "Is"}]}, "is not a valid label selector operator"),
        ({"matchLabels": {"a": 1}}, "no label selector"),
        ({"matchLabels": ["a"]}, "no label selector"),
        ({"matchExpressions": [1]}, "no label selector"),
    ],
)  # fmt: skip
def test_a_value_that_is_no_selector_selects_nothing(value: Any, said: str) -> None:
    """A misspelled field that is ignored would select everything."""
    found = target({"free": value}, selector="${schema.spec.free}")
    assert isinstance(found, Failed)
    assert said in found.because


def test_others_see_the_object_or_the_list() -> None:
    graph = compiled(
        config("a", "x", {"one": "${ref.data.k}", "all": "${all.map(x, x.metadata.name).join()}"}),
        reference("ref", name="x"),
        reference("all", selector={}),
    )
    observed = {
        "ref": [{"data": {"k": "v"}}],
        "all": [{"metadata": {"name": "p"}}, {"metadata": {"name": "q"}}],
    }
    assert rendered(graph, "a", None, observed)["data"] == {"one": "v", "all": "pq"}
    assert graph.nodes["ref"].kind.is_external and not graph.nodes["ref"].kind.is_many
    assert graph.nodes["all"].kind.is_external and graph.nodes["all"].kind.is_many
