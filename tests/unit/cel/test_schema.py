"""Types of OpenAPI schemas; `test_golden.py` has rules with them."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina.cel.cost.limits import REQUEST_BYTES
from lamina.cel.schema import declare, escape, unescape
from lamina.cel.types import DYN, ObjectType


@pytest.mark.parametrize(
    ("name", "identifier"),
    [
        ("name", "name"),
        ("a-b", "a__dash__b"),
        ("a.b/c", "a__dot__b__slash__c"),
        ("a__b", "a__underscores__b"),
        ("a_b", "a_b"),
        ("namespace", "__namespace__"),
        ("true", "__true__"),
        ("-", "__dash__"),
        ("1a", None),
        ("$ref", None),
        ("é", None),
        ("a b", None),
        ("", None),
    ],
)
def test_properties_are_named_by_identifiers(name: str, identifier: str | None) -> None:
    assert escape(name) == identifier
    if identifier is not None:
        assert unescape(identifier) == name


@given(st.text("ab_-./1", max_size=8))
def test_unescaping_gives_back_the_property(name: str) -> None:
    identifier = escape(name)
    if identifier is not None and "__" not in name.replace("__", "", 1):
        assert unescape(identifier) == name or "_" in name


@pytest.mark.parametrize(
    ("schema", "type_"),
    [
        ({"type": "string"}, "string"),
        ({"type": "string", "format": "byte"}, "bytes"),
        ({"type": "string", "format": "date-time"}, "timestamp"),
        ({"type": "string", "format": "date"}, "timestamp"),
        ({"type": "string", "format": "duration"}, "duration"),
        ({"type": "string", "format": "uuid"}, "string"),
        ({"type": "integer"}, "int"),
        ({"type": "number"}, "double"),
        ({"type": "boolean"}, "bool"),
        ({"x-kubernetes-int-or-string": True}, "dyn"),
        ({"type": "array", "items": {"type": "integer"}}, "list(int)"),
        ({"type": "object", "additionalProperties": {"type": "integer"}}, "map(string, int)"),
        ({"type": "object"}, "thing"),
        ({"type": "object", "x-kubernetes-preserve-unknown-fields": True}, "thing"),
        ({"type": "array"}, None),
        ({"type": "array", "items": {}}, None),
        ({"x-kubernetes-preserve-unknown-fields": True}, None),
        ({}, None),
    ],
)
def test_each_schema_has_a_type_or_none(schema: dict[str, Any], type_: str | None) -> None:
    declared = declare(schema, name="thing")
    assert (None if declared is None else str(declared.type)) == type_


def test_what_is_not_known_is_dyn_where_that_is_wanted() -> None:
    schema = {
        "type": "object",
        "properties": {
            "free": {"x-kubernetes-preserve-unknown-fields": True},
            "loose": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
            "half": {
                "type": "object",
                "x-kubernetes-preserve-unknown-fields": True,
                "properties": {"a": {"type": "string"}},
            },
        },
    }
    declared = declare(schema, unknown_is_dyn=True)
    assert declared is not None
    assert isinstance(declared.type, ObjectType)
    assert declared.type.fields["free"].type is DYN
    assert declared.type.fields["loose"].type is DYN
    half = declared.type.fields["half"].type
    assert isinstance(half, ObjectType)
    assert half.preserves_unknown


def test_a_resource_always_has_a_kind_and_a_name() -> None:
    declared = declare({"type": "object", "properties": {"metadata": {"type": "object"}}}, resource=True)
    assert declared is not None
    assert isinstance(declared.type, ObjectType)
    assert {"apiVersion", "kind", "metadata"} <= declared.type.fields.keys()
    metadata = declared.type.fields["metadata"].type
    assert isinstance(metadata, ObjectType)
    assert metadata.fields.keys() == {"name", "generateName"}


@pytest.mark.parametrize(
    ("schema", "most"),
    [
        ({"type": "string", "maxLength": 3}, 12),
        ({"type": "string"}, REQUEST_BYTES - 2),
        ({"type": "string", "enum": ["a", "béé"]}, 5),
        ({"type": "string", "format": "byte", "maxLength": 3}, 3),
        ({"type": "array", "maxItems": 4, "items": {"type": "string"}}, 4),
        ({"type": "array", "items": {"type": "string"}}, (REQUEST_BYTES - 2) // 3),
        ({"type": "object", "additionalProperties": {"type": "boolean"}}, (REQUEST_BYTES - 2) // 10),
        ({"type": "object", "maxProperties": -1, "additionalProperties": {"type": "boolean"}}, 0),
    ],
)
def test_sizes_come_from_limits_or_from_the_largest_request(schema: dict[str, Any], most: int) -> None:
    declared = declare(schema)
    assert declared is not None
    assert declared.most == most
