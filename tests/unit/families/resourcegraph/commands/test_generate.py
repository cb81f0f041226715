"""What is generated from a definition that is in a file."""

from typing import Any

import pytest

from lamina.core.model.queries import Answers
from lamina.errors import SpecError
from lamina.families.resourcegraph.commands.generate import crd, diagram, example, instance
from lamina.families.resourcegraph.labels import API_VERSION
from lamina.objects.types import Made
from lamina.simulation.admission_adapter import builtin
from lamina.simulation.cluster.apiserver import SimulatedCluster


def definition(*resources: Made, **schema: Any) -> Made:
    return {
        "apiVersion": API_VERSION,
        "kind": "ResourceGraphDefinition",
        "metadata": {"name": "my-app"},
        "spec": {
            "schema": {"kind": "App", "apiVersion": "v1alpha1", **schema},
            "resources": list(resources),
        },
    }


def config_map(id_: str, name: str, **resource: Any) -> Made:
    template = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}}
    return {"id": id_, "template": template, **resource}


def made(what: Any, obj: Made) -> Any:
    """Answer the queries by a cluster that has the built-in kinds only."""
    cluster, answers = SimulatedCluster(kinds=builtin()), Answers()
    while isinstance(found := what(obj, cluster.kinds, answers), tuple):
        answers = answers | {query: cluster.answer(query) for query in found}
    return found


CHAIN = definition(
    config_map("second", "${first.metadata.name}-x"),
    config_map("first", "${schema.spec.name}"),
    {"id": "many", **config_map("many", "${x}-${second.metadata.name}"), "forEach": [{"x": '${["a"]}'}]},
    {"id": "given", "externalRef": {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "g"}}},
    spec={"name": "string", "replicas": "integer | default=3"},
)


def test_the_crd_has_the_schema_and_the_names_of_the_generated_kind() -> None:
    found = made(crd, CHAIN)

    assert found["metadata"]["name"] == "apps.kro.run"
    version = found["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]
    assert version["spec"]["properties"]["replicas"] == {"type": "integer", "default": 3}


def test_an_instance_has_every_field() -> None:
    assert made(instance, CHAIN) == {
        "apiVersion": "kro.run/v1alpha1",
        "kind": "App",
        "metadata": {"name": "my-app", "namespace": "default"},
        "spec": {"name": "name", "replicas": 3},
    }


def test_a_cluster_scoped_instance_has_no_namespace() -> None:
    assert made(instance, definition(scope="Cluster"))["metadata"] == {"name": "my-app"}


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"type": "string"}, "field"),
        ({"type": "string", "minLength": 8}, "fieldxxx"),
        ({"type": "string", "maxLength": 2}, "fi"),
        ({"type": "string", "enum": ["a", "b"]}, "a"),
        ({"type": "string", "enum": ["a", "b"], "default": "b"}, "b"),
        ({"type": "integer"}, 0),
        ({"type": "integer", "minimum": 2}, 2),
        ({"type": "integer", "maximum": -2}, -2),
        ({"type": "number", "default": 0.5}, 0.5),
        ({"type": "boolean"}, False),
        ({"type": "array", "items": {"type": "integer"}}, [0]),
        ({"type": "object", "additionalProperties": {"type": "boolean"}}, {"key": False}),
        ({"type": "object", "x-kubernetes-preserve-unknown-fields": True}, {}),
        ({"type": "object", "properties": {"a": {"type": "string"}}, "default": {}}, {"a": "a"}),
    ],
)
def test_an_example_is_the_default_or_the_plainest_value_of_its_type(schema: Made, value: Any) -> None:
    assert example("field", schema) == value


def test_a_diagram_has_a_node_for_each_resource_and_an_arrow_for_each_dependency() -> None:
    lines = made(diagram, CHAIN).splitlines()

    assert lines[:4] == ["---", 'title: "Resource Graph: my-app"', "---", "flowchart TD"]
    places = {
        line.split('"')[1].split(" ")[0]: line.split("[")[0].split("(")[0].strip() for line in lines[4:8]
    }
    assert set(places) == {"first", "second", "many", "given"}
    arrows = {f"{places['first']} --> {places['second']}", f"{places['second']} --> {places['many']}"}
    assert {line.strip() for line in lines[8:]} == arrows


def test_a_definition_that_does_not_compile_is_refused_with_the_place() -> None:
    with pytest.raises(SpecError, match=r"spec\.resources\[0\].*undefined field 'nam'"):
        made(crd, definition(config_map("a", "${schema.spec.nam}"), spec={"name": "string"}))
    with pytest.raises(SpecError, match="apiVersion"):
        made(crd, {**CHAIN, "spec": {"schema": {"kind": "App"}}})
