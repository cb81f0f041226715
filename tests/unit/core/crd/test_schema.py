"""Structural schemas from types."""

from typing import Annotated, Any, Literal

import pytest
from msgspec import Meta, Struct

from lamina.core.crd.schema import structural


class Port(Struct, kw_only=True):
    number: int
    name: str = ""


class Spec(Struct, rename="camel", kw_only=True):
    replicas: Annotated[int, Meta(ge=0)] = 1
    ports: tuple[Port, ...] = ()
    main_port: Port | None = None
    labels: dict[str, str] = {}
    named: dict[str, Port] = {}
    anything: dict[str, Any] = {}
    mode: Literal["Fast", "Slow"] = "Fast"
    maybe: Literal["A"] | Literal["B"] | None = None
    share: Annotated[int | str, Meta(extra_json_schema={"x-kubernetes-int-or-string": True})] = 1
    whatever: Any = None


SCHEMA = structural(Spec)
FIELDS = SCHEMA["properties"]


def walk(schema: Any) -> Any:
    if isinstance(schema, dict):
        yield schema
        for value in schema.values():
            yield from walk(value)
    elif isinstance(schema, list):
        for value in schema:
            yield from walk(value)


def test_no_reference_and_no_union_is_left() -> None:
    for part in walk(SCHEMA):
        assert not {"$ref", "anyOf", "allOf", "oneOf"} & part.keys()


def test_no_default_is_left_which_the_parser_fills_in() -> None:
    assert not any("default" in part for part in walk(SCHEMA))


@pytest.mark.parametrize(
    ("field", "expected"),
    [
        ("replicas", {"type": "integer", "minimum": 0}),
        ("labels", {"type": "object", "additionalProperties": {"type": "string"}}),
        ("mode", {"type": "string", "enum": ["Fast", "Slow"]}),
        ("share", {"x-kubernetes-int-or-string": True}),
        ("whatever", {"x-kubernetes-preserve-unknown-fields": True}),
        ("anything", {"type": "object", "x-kubernetes-preserve-unknown-fields": True}),
    ],
)
def test_a_field_has_the_schema_of_its_type(field: str, expected: dict[str, Any]) -> None:
    assert FIELDS[field] == expected


def test_a_field_has_the_name_that_it_is_parsed_by() -> None:
    assert "mainPort" in FIELDS and "main_port" not in FIELDS


def test_an_optional_field_has_the_schema_of_its_only_type() -> None:
    port = FIELDS["mainPort"]

    assert port["type"] == "object"
    assert port["properties"] == {"number": {"type": "integer"}, "name": {"type": "string"}}
    assert port["required"] == ["number"]


def test_several_sets_of_values_are_one_enum() -> None:
    assert FIELDS["maybe"]["type"] == "string"
    assert sorted(FIELDS["maybe"]["enum"]) == ["A", "B"]


def test_items_and_values_are_put_in_place_of_their_references() -> None:
    assert FIELDS["ports"]["items"]["properties"]["number"] == {"type": "integer"}
    assert FIELDS["named"]["additionalProperties"]["properties"]["number"] == {"type": "integer"}


def test_required_fields_are_those_without_a_default() -> None:
    assert "required" not in SCHEMA
    assert structural(Port)["required"] == ["number"]
