"""Schemas of named definitions."""

from typing import Any

from lamina.merge.schema import Schemas, compile_schema
from lamina.merge.schema_node import node_of


def _ref(name: str, **beside: Any) -> dict[str, Any]:
    return {"allOf": [{"$ref": f"#/components/schemas/{name}"}], **beside}


def test_a_definition_that_holds_itself_differently_is_whole() -> None:
    tree = {
        "type": "object",
        "properties": {
            "left": _ref("Tree", **{"x-kubernetes-map-type": "atomic"}),
            "leaf": {"type": "string"},
        },
    }

    schema = Schemas({"Tree": tree}.__getitem__).named("Tree")
    left = schema.properties["left"]

    assert left.map_atomic
    assert not schema.map_atomic
    assert set(left.properties) == {"left", "leaf"}
    assert left.properties["left"].map_atomic


def test_what_one_place_knows_about_a_definition_is_not_known_in_another() -> None:
    definitions = {
        "Inner": {"type": "object", "properties": {"a": {"type": "string"}}},
        "One": {"type": "object", "properties": {"x": _ref("Inner")}},
        "Two": {"type": "object", "properties": {"x": _ref("Inner", **{"x-kubernetes-map-type": "atomic"})}},
    }
    schemas = Schemas(definitions.__getitem__)

    assert not node_of(schemas.named("One").properties["x"]).atomic
    assert node_of(schemas.named("Two").properties["x"]).atomic


def test_unknown_fields_are_kept_all_the_way_down_but_not_in_what_has_a_name() -> None:
    opened = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    closed = {"type": "object", "properties": {"x": {"type": "integer"}}}
    node = node_of(compile_schema({**opened, "properties": {"k": closed}}))
    named = node_of(
        Schemas({"Named": closed}.__getitem__).compile({**opened, "properties": {"k": _ref("Named")}})
    )

    assert node.fields["k"].child("unknown") is not None
    assert named.fields["k"].child("unknown") is None


def test_equal_is_taken_at_its_word_only_where_no_number_can_be_a_boolean() -> None:
    def exact(document: dict[str, Any]) -> bool:
        return node_of(compile_schema(document)).exact

    assert exact(
        {
            "type": "object",
            "properties": {"a": {"type": "boolean"}, "b": {"x-kubernetes-int-or-string": True}},
        }
    )
    assert not exact({"type": "object", "properties": {"a": {"x-kubernetes-preserve-unknown-fields": True}}})
    assert not exact({"type": "object"})
