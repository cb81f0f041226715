"""SimpleSchema: the schema of each type and marker, custom types, defaults, and every refusal."""

from typing import Any

import pytest

from lamina.errors import SpecError
from lamina.graph.language.simple_schema import build_schema
from lamina.objects.types import Made
from tests.bed.scenarios import check

OPEN = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


def field(text: Any, **types: Any) -> Made:
    """Return the schema of one field."""
    schema: Made = build_schema({"spec": {"f": text}, "types": types})["properties"]["f"]
    return schema


def refused(text: Any, **types: Any) -> str:
    with pytest.raises(SpecError) as found:
        build_schema({"spec": {"f": text}, "types": types})
    return str(found.value)


@pytest.mark.parametrize(
    ("text", "schema"),
    [
        ("string", {"type": "string"}),
        ("integer", {"type": "integer"}),
        ("boolean", {"type": "boolean"}),
        ("float", {"type": "number"}),
        ("object", OPEN),
        ("[]string", {"type": "array", "items": {"type": "string"}}),
        (" [] string ", {"type": "array", "items": {"type": "string"}}),
        ("map[string]integer", {"type": "object", "additionalProperties": {"type": "integer"}}),
        (
            "[]map[string]object",
            {"type": "array", "items": {"type": "object", "additionalProperties": OPEN}},
        ),
        ({}, {"type": "object"}),
        ({"a": "string"}, {"type": "object", "properties": {"a": {"type": "string"}}}),
    ],
)
def test_a_type_has_its_schema(text: Any, schema: Made) -> None:
    assert field(text) == schema


@pytest.mark.parametrize(
    ("text", "added"),
    [
        ("string | default=x", {"default": "x"}),
        ('string | default="1"', {"default": "1"}),
        ("string | default=1", {"default": "1"}),
        (r'string | default="\"x\""', {"default": '"x"'}),
        (r'string | default="a\nb"', {"default": "a\nb"}),
        (r'string | default="\d"', {"default": r"\d"}),
        (r'string | default="\ud800"', {"default": r"\ud800"}),
        ("string | default=true", {"default": "true"}),
        ("integer | default=007", {"default": 7}),
        ("integer | default=-5", {"default": -5}),
        ("integer | default=9223372036854775807", {"default": 2**63 - 1}),
        ("float | default=.5", {"default": 0.5}),
        ("float | default=1e3", {"default": 1000}),
        ("boolean | default=T", {"default": True}),
        ("boolean | default=0", {"default": False}),
        ('[]string | default=["a", "b"]', {"default": ["a", "b"]}),
        ('map[string]string | default={"a": "b c"}', {"default": {"a": "b c"}}),
        ('object | default={"a": [1, null]}', {"default": {"a": [1, None]}}),
        ("object | default=null", {}),
        ('string | description="a | b"', {"description": "a | b"}),
        ('string | enum="a, b"', {"enum": ["a", "b"]}),
        ('integer | enum="1,-2"', {"enum": [1, -2]}),
        ("integer | minimum=1 maximum=2.5", {"minimum": 1, "maximum": 2.5}),
        ("string | minimum=1", {"minimum": 1}),
        ("string | minLength=1 maxLength=3", {"minLength": 1, "maxLength": 3}),
        ("[]string | minItems=1 maxItems=3", {"minItems": 1, "maxItems": 3}),
        ("[]string | uniqueItems=true", {"x-kubernetes-list-type": "set"}),
        ("[]string | uniqueItems=true listType=set", {"x-kubernetes-list-type": "set"}),
        ("[]string | uniqueItems=false listType=atomic", {"x-kubernetes-list-type": "atomic"}),
        (
            "[]object | listMapKey=a listMapKey=b listType=map",
            {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["a", "b"]},
        ),
        ("string | immutable=false required=false", {}),
    ],
)
def test_a_marker_adds_to_the_schema(text: str, added: Made) -> None:
    plain = field(text.partition("|")[0])

    assert field(text) == {**plain, **added}


@check("RG-6")
def test_an_enum_with_a_default_has_both() -> None:
    assert field('string | enum="a,b" default="a"') == {"type": "string", "enum": ["a", "b"], "default": "a"}


@check("RG-13")
def test_a_pattern_is_kept_to_the_letter() -> None:
    assert field(r'string | pattern="^v\d+$"')["pattern"] == r"^v\d+$"


@check("RG-11")
def test_rules_are_in_the_order_of_their_markers() -> None:
    rules = field("string | validation=\"self != 'a'\" immutable=true validation=\"self != 'b'\"")

    assert rules["x-kubernetes-validations"] == [
        {"rule": "self != 'a'", "message": "validation failed"},
        {"rule": "self == oldSelf", "message": "field is immutable"},
        {"rule": "self != 'b'", "message": "validation failed"},
    ]


@check("RG-10")
def test_a_list_of_unique_items_is_a_set() -> None:
    assert field("[]string | uniqueItems=true minItems=1") == {
        "type": "array",
        "items": {"type": "string"},
        "x-kubernetes-list-type": "set",
        "minItems": 1,
    }


@check("RG-14")
def test_a_field_of_type_object_preserves_unknown_fields() -> None:
    assert field("object") == OPEN


def test_required_fields_are_sorted_and_stated_once() -> None:
    schema = build_schema({"spec": {"b": "string | required=true required=true", "a": "string | required=1"}})

    assert schema["required"] == ["a", "b"]


@check("RG-8")
@pytest.mark.parametrize(
    ("spec", "default"),
    [
        ({"a": "string | default=x", "b": "string"}, {}),
        ({"a": "string | default=x", "b": "string | required=true"}, None),
        ({"a": "string"}, None),
        ({"a": {"b": "string | default=x"}}, {}),
        # A required field keeps only its own level from having a default.
        ({"a": {"b": "string | default=x", "c": "string | required=true"}, "d": "integer | default=1"}, {}),
        ({"a": {"b": "string | default=x", "c": "string | required=true"}, "d": "integer"}, None),
        ({}, None),
    ],
)
def test_a_structure_has_a_default_if_a_child_has_one_and_none_is_required(spec: Made, default: Any) -> None:
    assert build_schema({"spec": spec}).get("default") == default
    assert field(spec).get("default") == default


def test_the_spec_of_a_definition_may_be_absent() -> None:
    assert build_schema({"kind": "App"}) == {"type": "object"}
    assert build_schema({"spec": None, "types": None}) == {"type": "object"}


# Custom types


def test_custom_types_are_inlined() -> None:
    address = {"street": "string", "zip": "Zip | default=00000"}

    assert field("[]Address", Address=address, Zip="string | maxLength=5") == {
        "type": "array",
        "items": {
            "type": "object",
            "properties": {
                "street": {"type": "string"},
                "zip": {"type": "string", "maxLength": 5, "default": "00000"},
            },
            "default": {},
        },
    }


def test_the_markers_of_one_field_do_not_change_the_type_of_others() -> None:
    schema = build_schema(
        {
            "spec": {"a": "T | validation=\"self != 'b'\" default=x", "b": "T"},
            "types": {"T": "string | validation=\"self != 'a'\""},
        }
    )

    assert [rule["rule"] for rule in schema["properties"]["a"]["x-kubernetes-validations"]] == [
        "self != 'a'",
        "self != 'b'",
    ]
    assert [rule["rule"] for rule in schema["properties"]["b"]["x-kubernetes-validations"]] == ["self != 'a'"]
    assert "default" not in schema["properties"]["b"]


@check("RG-9")
def test_a_required_alias_requires_fields_but_not_the_items_of_lists() -> None:
    schema = build_schema(
        {
            "spec": {
                "a": "Req",
                "b": "[]Req",
                "c": "map[string]Req",
                "d": "Again",
                "e": "Req | required=false",
            },
            "types": {"Req": "string | required=true", "Again": "Req"},
        }
    )

    assert schema["required"] == ["a", "d", "e"]
    assert schema["properties"]["b"] == {"type": "array", "items": {"type": "string"}}


@check("RG-12")
@pytest.mark.parametrize(
    ("types", "fragment"),
    [
        (
            {"A": {"x": "B"}, "B": "[]A"},
            "cyclic dependency in type A: A -> B -> A",
        ),
        ({"A": "B", "B": {"x": "C"}, "C": "[]A"}, "A -> B -> C -> A"),
        ({"A": "A"}, "cyclic dependency in type A: A -> A"),
        ({"A": {"x": {"y": "map[string]A"}}}, "cyclic dependency in type A: A -> A"),
        ({"Unused": {"x": "[]Nothing"}}, "spec.schema.types.Unused.x: unknown type: Nothing"),
        ({"Unused": 5}, "spec.schema.types.Unused: unexpected type: integer"),
        ({"Unused": "string | foo=1"}, "spec.schema.types.Unused: invalid marker key"),
    ],
)
def test_custom_types_that_cannot_be_built_are_refused_even_if_unused(types: Made, fragment: str) -> None:
    assert fragment in refused("string", **types)


# Refusals


@check("RG-7")
@pytest.mark.parametrize(
    ("text", "fragment"),
    [
        ('string | enum="a,b" | default="a"', "|default"),
        ("string | optional", "marker key 'optional' without a value"),
        ('string | default = "x"', "marker key '\"x\"' without a value"),
        ("[]", "empty slice element type"),
        ("[][] ", "empty slice element type"),
        ("map[integer]string", "map key must be string"),
        ("map[string]", "map value type is required"),
        ("Foo", "unknown type: Foo"),
        ("int", "unknown type: int: did you mean integer?"),
        ("string integer", "unknown type: string integer"),
        ("", "empty type"),
        (" | default=1", "empty type"),
        ("[]" * 17 + "string", "type nesting too deep"),
        (5, "unexpected type: integer"),
        (1.5, "unexpected type: float"),
        (True, "unexpected type: boolean"),
        (None, "unexpected type: null"),
        (["string"], "unexpected type: list"),
        ("string |", "marker key '' without a value"),
    ],
)
def test_a_field_that_cannot_be_read_is_refused(text: Any, fragment: str) -> None:
    message = refused(text)

    assert message.startswith("spec.schema.spec.f: ")
    assert fragment in message


@pytest.mark.parametrize(
    ("text", "fragment"),
    [
        ("string | required=yes", "failed to parse required marker value"),
        ("integer | default=3.14", "default value must be a valid integer, got: 3.14"),
        ("integer | default=yes", "default value must be a valid integer, got: yes"),
        ("integer | default=1_000", "default value must be a valid integer, got: 1_000"),
        ("integer | default=9223372036854775808", "default value must be a valid integer"),
        ("integer | default=" + "1" * 5000, "default value must be a valid integer"),
        ("float | default=x", "default value must be a valid number, got: x"),
        ("float | default=inf", "default value must be a valid number, got: inf"),
        ("float | default=1e999", "default value must be a valid number"),
        ("boolean | default=yes", "default value must be a valid boolean, got: yes"),
        ("[]string | default=a", "default value must be valid JSON, got: a"),
        ("object | default=NaN", "default value must be valid JSON, got: NaN"),
        ('string | enum="a,,b"', "empty enum values are not allowed"),
        ('boolean | enum="true"', "enum values only supported for string and integer types"),
        ('integer | enum="1,x"', "failed to parse integer enum value 'x'"),
        ("integer | minimum=x", "failed to parse minimum value"),
        ("integer | minLength=1", "minLength marker is only valid for string types"),
        ("string | maxLength=x", "failed to parse maxLength value"),
        ("integer | maxLength=1", "only valid for string types"),
        ("string | minItems=1", "only valid for array types"),
        ("map[string]string | maxItems=1", "only valid for array types"),
        ("integer | pattern=a", "only valid for string types"),
        ('string | pattern="("', "invalid pattern regex"),
        ('string | pattern="(?=a)"', "invalid pattern regex"),
        ("string | pattern=", "pattern marker value cannot be empty"),
        ("string | uniqueItems=true", "only valid for array types"),
        ("[]string | uniqueItems=maybe", "failed to parse uniqueItems marker value"),
        ("[]object | listType=map uniqueItems=true", "uniqueItems=true contradicts the listType map"),
        ("[]object | uniqueItems=true listType=map", "listType=map contradicts the listType set"),
        ("[]string | listType=bag", "unsupported value for listType 'bag'"),
        ("[]object | listMapKey=a", "listMapKey set while listType is unset"),
        ("[]object | listMapKey=a listType=set", "listMapKey set while listType is set to set"),
        ("[]object | listType=map listMapKey=a listMapKey=a", "duplicate listMapKey marker, value a"),
        ("string | immutable=x", "failed to parse immutable marker value"),
        ('string | validation="  "', "validation failed"),
    ],
)
def test_a_marker_that_cannot_be_applied_is_refused(text: str, fragment: str) -> None:
    message = refused(text)

    assert message.startswith("spec.schema.spec.f: ")
    assert fragment in message


def test_sixteen_levels_of_lists_are_allowed() -> None:
    assert field("[]" * 16 + "string")["type"] == "array"


def test_an_error_names_the_path_of_a_nested_field() -> None:
    with pytest.raises(
        SpecError, match=r"^spec\.schema\.spec\.image\.pullPolicy: unknown type: str: did you mean"
    ):
        build_schema({"spec": {"image": {"pullPolicy": "str"}}})


def test_custom_types_that_grow_exponentially_are_refused() -> None:
    types: Made = {"T0": "string"}
    for level in range(1, 40):
        types[f"T{level}"] = {"a": f"T{level - 1}", "b": f"T{level - 1}"}

    assert "the schema is too large" in refused("T39", **types)


def test_structures_that_are_nested_too_deeply_are_refused() -> None:
    types: Made = {"T0": "string"} | {f"T{level}": {"a": f"T{level - 1}"} for level in range(1, 900)}
    assert "nested too deeply" in refused("T899", **types)

    nested: Any = "string"
    for _ in range(3000):
        nested = {"a": nested}
    assert "nested too deeply" in refused(nested)
