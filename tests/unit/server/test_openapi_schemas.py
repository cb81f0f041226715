"""The published schema of a CRD, in v3 and v2."""

from __future__ import annotations

from typing import Any

import pytest

from lamina.server.kinds.builtin.definitions import definition
from lamina.server.openapi.schemas import as_v2, custom_schemas, custom_schemas_v2
from tests.unit.server.served import crd, custom

META = "io.k8s.apimachinery.pkg.apis.meta.v1"
EITHER = [{"type": "integer"}, {"type": "string"}]
OPEN = "x-kubernetes-preserve-unknown-fields"
EMBEDDED = "x-kubernetes-embedded-resource"
INT_OR_STRING = "x-kubernetes-int-or-string"
NAME = "com.example.ex.v1.Widget"


def published(schema: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    (kind,) = custom(crd("ex.example.com", "Widget", {"v1": schema}))
    return dict(custom_schemas(kind)[NAME]), dict(custom_schemas_v2(kind)[NAME])


def field(schema: dict[str, Any], required: list[str] | None = None) -> tuple[Any, Any]:
    """Return the v3 and v2 form of a field with this schema."""
    whole: dict[str, Any] = {"type": "object", "properties": {"spec": schema}}
    if required:
        whole["required"] = required
    v3, v2 = published(whole)
    return v3["properties"]["spec"], v2["properties"]["spec"]


@pytest.mark.parametrize(
    ("schema", "v3", "v2"),
    [
        ({"type": "string", "default": "a"}, {"type": "string", "default": "a"}, {"type": "string"}),
        ({"type": "boolean", "default": False}, {"type": "boolean", "default": False}, {"type": "boolean"}),
        ({"type": "integer", "minimum": 0}, {"type": "integer", "minimum": 0}, {"type": "integer", "minimum": 0}),
        ({"type": "string", "nullable": False}, {"type": "string"}, {"type": "string"}),
        ({"type": "string", "nullable": True}, {"type": "string", "nullable": True}, {}),
        ({"type": "string", "example": "e", "externalDocs": {"url": "u"}}, {"type": "string"}, {"type": "string"}),
        ({INT_OR_STRING: True}, {INT_OR_STRING: True, "anyOf": EITHER}, {INT_OR_STRING: True}),
        ({INT_OR_STRING: True, "anyOf": EITHER}, {INT_OR_STRING: True, "anyOf": EITHER}, {INT_OR_STRING: True}),
        (
            {INT_OR_STRING: True, "anyOf": [{"minimum": 1}]},
            {INT_OR_STRING: True, "anyOf": [{"minimum": 1}], "allOf": [{"anyOf": EITHER}]},
            {INT_OR_STRING: True},
        ),
        ({OPEN: True}, {OPEN: True}, {OPEN: True}),
        ({"type": "object", OPEN: True}, {"type": "object", OPEN: True}, {OPEN: True}),
        (
            {"type": "object", OPEN: True, "properties": {"a": {"type": "string"}}},
            {"type": "object", OPEN: True, "properties": {"a": {"type": "string"}}},
            {OPEN: True},
        ),
        (
            {"type": "array", OPEN: True, "items": {"type": "string"}},
            {"type": "array", OPEN: True, "items": {"type": "string"}},
            {OPEN: True},
        ),
        (
            {"type": "array", "items": {"type": "object", OPEN: True}},
            {"type": "array", "items": {"type": "object", OPEN: True}},
            {"type": "array", "items": {OPEN: True}},
        ),
        ({"type": "object", "additionalProperties": True},) * 3,
        ({"type": "object", "additionalProperties": {"type": "string"}},) * 3,
        (
            {"type": "object", "properties": {"a": {"type": "string"}}, "oneOf": [{"required": ["a"]}]},
            {"type": "object", "properties": {"a": {"type": "string"}}, "oneOf": [{"required": ["a"]}]},
            {"type": "object", "properties": {"a": {"type": "string"}}},
        ),
        (
            {
                "type": "object",
                "required": ["a", "b"],
                "properties": {"a": {"type": "string", "nullable": True}, "b": {"type": "string"}},
            },
            {
                "type": "object",
                "required": ["a", "b"],
                "properties": {"a": {"type": "string", "nullable": True}, "b": {"type": "string"}},
            },
            {"type": "object", "required": ["b"], "properties": {"a": {}, "b": {"type": "string"}}},
        ),
    ],
)  # fmt: skip
def test_v3_says_it_all_and_v2_what_it_can(schema: Any, v3: Any, v2: Any) -> None:
    assert field(schema) == (v3, v2)


def test_a_root_that_keeps_unknown_fields_has_no_properties_in_v2() -> None:
    v3, v2 = published({"type": "object", OPEN: True, "properties": {"spec": {"type": "object"}}})

    assert v3["properties"].keys() == {"apiVersion", "kind", "metadata", "spec"}
    assert v2.keys() == {"type", "x-kubernetes-group-version-kind"}


def test_an_embedded_resource_has_what_every_resource_has() -> None:
    v3, v2 = field({"type": "object", EMBEDDED: True, "properties": {"spec": {"type": "object"}}})

    for shown in (v3, v2):
        assert shown["properties"].keys() == {"apiVersion", "kind", "metadata", "spec"}
        assert shown["required"] == ["kind", "apiVersion"]
    assert v3["properties"]["metadata"]["allOf"] == [{"$ref": f"#/components/schemas/{META}.ObjectMeta"}]
    assert v2["properties"]["metadata"]["$ref"] == f"#/definitions/{META}.ObjectMeta"


def test_an_embedded_resource_that_keeps_unknown_fields_says_nothing_in_v2() -> None:
    v3, v2 = field({"type": "object", EMBEDDED: True, OPEN: True})

    assert v3["required"] == ["kind", "apiVersion"]
    assert v2 == {EMBEDDED: True, OPEN: True}


def test_what_a_crd_says_of_metadata_is_replaced() -> None:
    limited = {"type": "object", "properties": {"name": {"type": "string", "maxLength": 3}}}
    v3, v2 = published({"type": "object", "properties": {"metadata": limited}})

    assert "properties" not in v3["properties"]["metadata"]
    assert "properties" not in v2["properties"]["metadata"]


def test_selectable_fields_are_named() -> None:
    definition_of = crd("ex.example.com", "Widget", {"v1": {"type": "object"}})
    definition_of["spec"]["versions"][0]["selectableFields"] = [{"jsonPath": ".spec.color"}]
    (kind,) = custom(definition_of)

    for schema in (*custom_schemas(kind).values(), *custom_schemas_v2(kind).values()):
        assert schema["x-kubernetes-selectable-fields"] == [{"fieldPath": "spec.color"}]


def test_publishing_leaves_the_document_alone() -> None:
    document = {"type": "object", "properties": {"spec": {"type": "object", EMBEDDED: True}}}
    before = repr(document)

    published(document)

    assert repr(document) == before


def test_a_built_in_definition_in_v2_has_no_defaults_and_plain_references() -> None:
    shown = as_v2(definition("io.k8s.api.core.v1.Container"))["properties"]

    assert shown["resources"]["$ref"] == "#/definitions/io.k8s.api.core.v1.ResourceRequirements"
    assert "default" not in shown["resources"]
    assert shown["ports"]["items"] == {"$ref": "#/definitions/io.k8s.api.core.v1.ContainerPort"}
    assert as_v2(definition("io.k8s.apimachinery.pkg.util.intstr.IntOrString"))["type"] == "string"


def test_a_property_called_default_is_no_default() -> None:
    shown = as_v2(definition("io.k8s.api.core.v1.LimitRangeItem"))["properties"]

    assert "default" in shown
