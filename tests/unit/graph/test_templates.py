"""The form of resources and the literals of templates, before any expression."""

from typing import Any

import pytest

from lamina.graph.fields import shown
from lamina.graph.graph import GraphError, NodeKind
from tests.unit.graph.graphs import (
    bucket,
    compiled,
    config,
    kind_schema,
    reference,
    resource,
)


def refused(*resources: Any, **stated: Any) -> str:
    with pytest.raises(GraphError) as raised:
        compiled(*resources, **stated)
    return str(raised.value)


TEMPLATE = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}}
REFERENCE = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}}


@pytest.mark.parametrize(
    ("stated", "said"),
    [
        ({}, "exactly one of template or externalRef must be provided"),
        ({"template": TEMPLATE, "externalRef": REFERENCE}, "exactly one of template or externalRef must be provided"),
        ({"externalRef": REFERENCE, "forEach": [{"i": "${schema.spec.names}"}]}, "cannot use externalRef with forEach"),
        ({"externalRef": {**REFERENCE, "metadata": {}}}, "exactly one of name or selector must be provided"),
        ({"externalRef": {**REFERENCE, "metadata": {"name": "x", "selector": {}}}}, "exactly one of name or selector"),
        ({"template": {"kind": "A", "metadata": {}}}, "resource a is not a valid Kubernetes object: apiVersion field not found"),
        ({"template": {"apiVersion": 1, "kind": "A", "metadata": {}}}, "apiVersion field is not a string"),
        ({"template": {"apiVersion": "v1", "metadata": {}}}, "kind field not found"),
        ({"template": {"apiVersion": "v1", "kind": "A"}}, "metadata field not found"),
        ({"template": {"apiVersion": "v1", "kind": "A", "metadata": "${schema.metadata}"}}, "metadata field is not a map"),
        ({"template": "${schema.spec.object}"}, "is not a valid Kubernetes object: it is not a map"),
        ({"template": {**TEMPLATE, "apiVersion": "a/b/c"}}, 'invalid apiVersion format "a/b/c"'),
        ({"template": {**TEMPLATE, "apiVersion": "apps/"}}, 'invalid apiVersion format "apps/"'),
        ({"template": {**TEMPLATE, "kind": "Config_Map"}}, 'invalid kind "Config_Map": a DNS-1035 label must'),
        ({"template": {**TEMPLATE, "kind": "${schema.spec.kind}"}}, "kind must be a literal, not an expression"),
        ({"template": {**TEMPLATE, "apiVersion": "${schema.apiVersion}"}}, "apiVersion must be a literal"),
        ({"template": {**TEMPLATE, "kind": "Nothing"}}, "failed to get schema for resource a: schema not found for v1, Kind=Nothing"),
    ],
)  # fmt: skip
def test_a_resource_is_one_object_of_a_known_kind(stated: dict[str, Any], said: str) -> None:
    assert said in refused({"id": "a", **stated})


def test_the_error_of_a_kind_that_is_not_served_names_it() -> None:
    with pytest.raises(GraphError) as raised:
        compiled(resource("a", "v1api20200601", "Nothing"))
    assert raised.value.missing == ("v1api20200601", "Nothing")


def test_versions_of_children_may_have_any_form() -> None:
    """Only the kind has to be served: `v1api20200601` is the version of a kind of Azure."""
    assert "schema not found for azure.com/v1api20200601" in refused(
        resource("a", "azure.com/v1api20200601", "Vault")
    )


@pytest.mark.check("RG-31")
@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ({"zones": "a"}, "expected array type for path spec.zones, got string"),
        ({"zones": {"a": "b"}}, "expected array type for path spec.zones, got object"),
        ({"zones": [1]}, "expected string type for path spec.zones[0], got integer"),
        ({"name": 1}, "expected string type for path spec.name, got integer"),
        ({"name": True}, "expected string type for path spec.name, got boolean"),
        ({"name": ["a"]}, "expected string type for path spec.name, got array"),
        ({"size": "3"}, "expected integer type for path spec.size, got string"),
        ({"size": 1.5}, "expected integer type for path spec.size, got number"),
        ({"size": True}, "expected integer type for path spec.size, got boolean"),
        ({"size": "${schema.spec.name}-x"}, "expected integer type for path spec.size, got string"),
        ({"public": 0}, "expected boolean type for path spec.public, got integer"),
        ({"public": "yes"}, "expected boolean type for path spec.public, got string"),
        ({"tags": ["a"]}, "expected object type for path spec.tags, got array"),
        ({"tags": {"a.b": 1}}, 'expected string type for path spec.tags["a.b"], got integer'),
        ({"limit": True}, "expected string or integer type for path spec.limit, got boolean"),
        ({"rules": [{"port": "x"}]}, "expected integer type for path spec.rules[0].port, got string"),
        ({"nme": "x"}, "schema not found for field nme"),
        ({"rules": [{"form": "x"}]}, "error getting field schema for path spec.rules[0].form: schema not found for field form"),
    ],
)  # fmt: skip
def test_a_literal_has_the_type_of_its_field(spec: Any, said: str) -> None:
    message = refused(bucket("a", spec=spec))

    assert said in message
    assert message.startswith("spec.resources[0].template.spec.")


@pytest.mark.check("RG-31")
def test_an_unknown_field_is_refused_with_the_known_ones() -> None:
    lines = refused(bucket("a", spec={"nme": "x"})).splitlines()

    assert lines[1].startswith("known here: free, keep-alive, limit, mixed, name")


@pytest.mark.parametrize(
    "spec",
    [
        {"name": None, "zones": None},
        {"name": "", "size": 3, "ratio": 3, "public": False, "zones": [], "tags": {}},
        {"ratio": 1.5, "limit": "10%", "free": {"any": [{"thing": 1}]}, "keep-alive": "x"},
        {"size": 3.0, "ratio": 2.0},
        {"limit": 3, "tags": {"a.b/c": "d"}, "rules": [{}]},
        {"free": [], "mixed": {"a": 1, "b": [{}]}},
    ],
)  # fmt: skip
def test_what_else_a_value_has_to_be_is_left_to_the_server(spec: Any) -> None:
    assert compiled(bucket("a", spec=spec)).nodes


def test_the_metadata_of_every_kind_is_that_of_kubernetes() -> None:
    assert "schema not found for field lables" in refused(bucket("a", metadata={"name": "x", "lables": {}}))
    assert compiled(bucket("a", metadata={"name": "x", "finalizers": ["a/b"], "ownerReferences": []})).nodes


def test_a_quantity_is_a_text_or_a_number() -> None:
    requests: dict[str, dict[str, Any]] = {"requests": {"cpu": 1, "memory": "1Gi"}}
    spec = {"containers": [{"name": "c", "resources": requests}]}
    assert compiled(resource("pod", "v1", "Pod", spec=spec)).nodes
    requests["requests"]["cpu"] = True
    said = "expected string or number type for path spec.containers[0].resources.requests.cpu, got boolean"
    assert said in refused(resource("pod", "v1", "Pod", spec=spec))


@pytest.mark.check("RG-30")
def test_a_definition_of_a_kind_has_expressions_in_its_metadata_only() -> None:
    api, kind = "apiextensions.k8s.io/v1", "CustomResourceDefinition"
    crd = resource("crd", api, kind, metadata={"name": "${schema.spec.name}.x.io"}, spec={"group": "x.io"})
    assert compiled(crd).nodes["crd"].target.namespaced is False

    bad = resource("crd", api, kind, spec={"names": {"kind": "${schema.spec.name}"}})
    said = 'CEL expressions in CRDs are only supported for metadata fields, found in path "spec.names.kind", resource crd'
    assert said in refused(bad)


@pytest.mark.check("RG-29")
@pytest.mark.parametrize("what", ["label", "annotation"])
@pytest.mark.parametrize("prefix", ["kro.run/", "internal.kro.run/", "applyset.kubernetes.io/"])
def test_labels_and_annotations_of_the_controller_are_reserved(what: str, prefix: str) -> None:
    metadata = {"name": "x", f"{what}s": {f"{prefix}x": "y"}}
    said = f'invalid {what} for resource "a". {what}s with prefix "{prefix}" are reserved for internal use'
    assert said in refused(bucket("a", metadata=metadata))
    allowed = {"name": "x", f"{what}s": {"example.com/x": "y", "akro.run/x": "z"}}
    assert compiled(bucket("a", metadata=allowed)).nodes


@pytest.mark.parametrize("name", ["kro.run/update-policy", "kro.run/reconcile", "kro.run/rgd-revision"])
def test_a_template_of_a_generated_kind_may_steer_its_instance(name: str) -> None:
    metadata = {"name": "x", "annotations": {name: "Paused"}}
    graph = compiled(resource("db", "kro.run/v1alpha1", "Database", metadata=metadata))
    assert graph.nodes["db"].is_generated

    labels = {"name": "x", "labels": {name: "Paused"}}
    assert "are reserved for internal use" in refused(
        resource("db", "kro.run/v1alpha1", "Database", metadata=labels)
    )
    assert "are reserved for internal use" in refused(bucket("a", metadata=metadata))


def test_a_cluster_scoped_child_has_no_namespace() -> None:
    said = 'resource "ns" is cluster-scoped and must not set metadata.namespace'
    assert said in refused(resource("ns", "v1", "Namespace", metadata={"name": "x", "namespace": "y"}))
    assert said in refused(reference("ns", kind="Namespace", name="x", namespace="y"))


def test_children_of_a_cluster_scoped_instance_state_their_namespace() -> None:
    said = (
        'resource "a" is namespaced and must set metadata.namespace when the instance CRD is cluster-scoped'
    )
    assert said in refused(config("a"), scope="Cluster")
    assert said in refused(bucket("a", metadata={"name": "x", "namespace": " "}), scope="Cluster")
    assert said in refused(reference("a", name="x"), scope="Cluster")

    graph = compiled(
        bucket("a", metadata={"name": "x", "namespace": "${schema.spec.name}"}),
        reference("all", selector={"matchLabels": {"a": "b"}}),
        reference("node", kind="Node", name="x"),
        scope="Cluster",
    )
    assert [node.kind for node in graph.nodes.values()] == [
        NodeKind.OBJECT, NodeKind.EXTERNAL_COLLECTION, NodeKind.EXTERNAL,
    ]  # fmt: skip
    assert not graph.is_namespaced


@pytest.mark.parametrize(
    ("path", "text"),
    [
        (("a", "b", 0, "dotted.key"), 'a.b[0]["dotted.key"]'),
        (("a", ""), 'a[""]'),
        (("a", 1, 2, "b-c"), "a[1][2].b-c"),
        (("x.y", "z"), '["x.y"].z'),
    ],
)  # fmt: skip
def test_a_path_is_written_as_upstream_does(path: tuple[str | int, ...], text: str) -> None:
    assert shown(path) == text


def test_the_schemas_of_these_tests_exist() -> None:
    assert kind_schema("apps/v1", "Deployment") is not None


@pytest.mark.parametrize("version", ["v1alpha1", "v1"])
def test_a_definition_is_no_resource_of_itself(version: str) -> None:
    own = resource("me", f"kro.run/{version}", "App", metadata={"name": "${schema.metadata.name}-x"})

    assert refused(config("a"), own) == (
        'spec.resources[1].template.kind: resource "me": a definition cannot be a resource of itself: '
        "each App would make another App\n"
        "use a template of another kind, or an externalRef to read an instance that exists"
    )


def test_a_kind_of_the_same_name_in_another_group_is_another_kind() -> None:
    assert "schema not found" in refused(resource("a", "example.com/v1", "App"))
    assert compiled(bucket("a"), kind="Bucket").nodes


def test_an_external_reference_may_be_of_the_generated_kind() -> None:
    """It only reads what is there."""
    said = refused(reference("a", api_version="kro.run/v1alpha1", kind="App", name="x"))
    assert "schema not found" in said
