"""References of OpenAPI schemas are replaced by what they refer to."""

from typing import Any

import pytest

from lamina.objects.kinds import Kind
from lamina.objects.openapi import ANY_VALUE, Resolver, component_of, components_of, document_name
from lamina.objects.types import Obj

TEXT = {"type": "string", "description": "A text."}
PAIR = {"type": "object", "properties": {"left": {"$ref": "#/components/schemas/Text"}, "right": TEXT}}
COMPONENTS: dict[str, Any] = {
    "Text": TEXT,
    "Pair": PAIR,
    "Node": {"type": "object", "properties": {"next": {"$ref": "#/components/schemas/Node"}, "name": TEXT}},
    "Hen": {"properties": {"egg": {"allOf": [{"$ref": "#/components/schemas/Egg"}], "default": {}}}},
    "Egg": {"properties": {"hen": {"$ref": "#/components/schemas/Hen"}, "size": {"type": "integer"}}},
}


def to(name: str) -> Obj:
    return {"$ref": f"#/components/schemas/{name}"}


def resolved(schema: Obj) -> Obj:
    return Resolver(COMPONENTS.get).resolve(schema)


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        (to("Text"), TEXT),
        ({"allOf": [to("Text")]}, TEXT),
        ({**to("Text"), "description": "Mine."}, {"type": "string", "description": "Mine."}),
        (
            {"allOf": [to("Text")], "description": "Mine.", "default": ""},
            {"type": "string", "description": "Mine.", "default": ""},
        ),
        ({"allOf": [to("Text"), {"maxLength": 3}]}, {"allOf": [TEXT, {"maxLength": 3}]}),
        ({"oneOf": [to("Text"), {"type": "integer"}]}, {"oneOf": [TEXT, {"type": "integer"}]}),
        ({"anyOf": [to("Text")]}, {"anyOf": [TEXT]}),
        ({"not": to("Text")}, {"not": TEXT}),
        ({"type": "array", "items": to("Text")}, {"type": "array", "items": TEXT}),
        ({"additionalProperties": to("Text")}, {"additionalProperties": TEXT}),
        ({"additionalProperties": True}, {"additionalProperties": True}),
        ({"properties": {"a": to("Text"), "b": {}}}, {"properties": {"a": TEXT, "b": {}}}),
        (to("Pair"), {"type": "object", "properties": {"left": TEXT, "right": TEXT}}),
        (to("Missing"), ANY_VALUE),
        # A property may have the name of a keyword, and a default may look like a reference.
        (
            {"properties": {"$ref": {"type": "string"}, "items": to("Text")}},
            {"properties": {"$ref": {"type": "string"}, "items": TEXT}},
        ),
        ({"default": to("Text"), "enum": [to("Text")]}, {"default": to("Text"), "enum": [to("Text")]}),
    ],
)
def test_a_reference_becomes_the_component_and_what_stands_beside_it(schema: Obj, expected: Obj) -> None:
    assert resolved(schema) == expected


def test_a_component_that_contains_itself_is_cut_where_it_recurs() -> None:
    node = {"type": "object", "properties": {"next": ANY_VALUE, "name": TEXT}}

    assert resolved(to("Node")) == node
    assert resolved({"items": to("Node")}) == {"items": node}


def test_where_components_contain_each_other_the_outer_one_is_cut_whatever_was_resolved_before() -> None:
    hen = {
        "properties": {"egg": {"properties": {"hen": ANY_VALUE, "size": {"type": "integer"}}, "default": {}}}
    }
    egg = {
        "properties": {
            "hen": {"properties": {"egg": {**ANY_VALUE, "default": {}}}},
            "size": {"type": "integer"},
        }
    }
    resolver = Resolver(COMPONENTS.get)

    assert resolver.component("Hen") == hen
    assert resolver.component("Egg") == egg
    assert resolver.component("Hen") == hen


def test_schemas_share_the_values_of_common_components() -> None:
    resolver = Resolver(COMPONENTS.get)
    first, second = resolver.resolve({"items": to("Pair")}), resolver.component("Pair")

    assert first["items"] is second
    assert second["properties"]["left"] is second["properties"]["right"] is TEXT
    assert resolver.component("Text") is TEXT, "a schema without references is not copied"


@pytest.mark.parametrize("shape", [{}, {"components": None}, {"components": {"schemas": None}}])
def test_a_document_may_have_no_components(shape: Obj) -> None:
    assert components_of(shape) == {}


def test_the_component_of_a_kind_is_found_by_group_version_and_kind() -> None:
    def names(*kinds: tuple[str, str, str]) -> Obj:
        keys = ("group", "version", "kind")
        return {"x-kubernetes-group-version-kind": [dict(zip(keys, kind, strict=True)) for kind in kinds]}

    components = {
        "Spec": {"type": "object"},
        "DeleteOptions": names(("apps", "v1", "DeleteOptions"), ("", "v1", "DeleteOptions")),
        "com.example.v1.Deployment": names(("example.com", "v1", "Deployment")),
        "Deployment": names(("apps", "v1", "Deployment")),
        "ConfigMap": names(("", "v1", "ConfigMap")),
    }

    assert component_of(components, Kind("apps/v1", "Deployment", "deployments", True)) == "Deployment"
    assert component_of(components, Kind("v1", "ConfigMap", "configmaps", True)) == "ConfigMap"
    assert component_of(components, Kind("apps/v2", "Deployment", "deployments", True)) is None
    assert component_of(components, Kind("v1", "Spec", "specs", True)) is None


def test_the_core_group_has_its_own_name() -> None:
    assert [document_name(one) for one in ("v1", "apps/v1")] == ["api/v1", "apis/apps/v1"]
