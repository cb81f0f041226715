"""Specs as one revision reads them: the same as the API server would with that revision's schema alone."""

from typing import Any

import pytest
from hypothesis import given

from lamina.graph.language.simple_schema import build_schema
from lamina.graph.schemas.projection import project, validate
from lamina.objects.types import Made
from tests.bed.scenarios import check
from tests.unit.graph.schemas.random_schemas import is_accepted, schemas, served, specs

RULE = "string | validation=\"self != 'b'\""


def schema_of(spec: Made, **types: Any) -> Made:
    return build_schema({"spec": spec, "types": types})


@pytest.mark.parametrize(
    ("fields", "spec", "projected"),
    [
        ({"a": "string"}, {"a": "x", "b": 1}, {"a": "x"}),
        ({"a": "string | default=x"}, {}, {"a": "x"}),
        ({"a": "string | default=x"}, {"a": None}, {"a": "x"}),
        ({"a": "string"}, {"a": None}, {}),
        ({"s": {"a": "string | default=x", "b": "string"}}, {}, {"s": {"a": "x"}}),
        ({"s": {"a": "string | default=x", "b": "string | required=true"}}, {}, {}),
        ({"s": {"a": "string | default=x"}}, {"s": {"q": 1}}, {"s": {"a": "x"}}),
        ({"l": "[]T"}, {"l": [{"q": 1}, None]}, {"l": [{"n": 1}, {"n": 1}]}),
        ({"m": "map[string]T"}, {"m": {"k": {"q": 1}}}, {"m": {"k": {"n": 1}}}),
        ({"o": "object"}, {"o": {"deep": [{"q": None}]}}, {"o": {"deep": [{"q": None}]}}),
        ({"l": "[]string"}, {"l": [None]}, {"l": [None]}),
        ({"a": "string"}, {"a": {"b": 1}}, {"a": {}}),
    ],
)
def test_a_projected_spec_has_known_fields_and_defaults(fields: Made, spec: Made, projected: Made) -> None:
    assert project(spec, schema_of(fields, T={"n": "integer | default=1"})) == projected


def test_a_projection_leaves_the_spec_and_the_schema_as_they_are() -> None:
    schema = schema_of({"s": {"a": "string | default=x"}, "m": 'map[string]string | default={"k": "v"}'})
    spec: Made = {"q": 1}

    made = project(spec, schema)
    made["s"]["a"] = made["m"]["k"] = "changed"

    assert spec == {"q": 1}
    assert project(spec, schema) == {"s": {"a": "x"}, "m": {"k": "v"}}


@pytest.mark.parametrize(
    ("text", "value", "errors"),
    [
        ("string", 1, ("spec.f: must be of type string, not integer",)),
        ("string", None, ("spec.f: must be of type string, not null",)),
        ("integer", True, ("spec.f: must be of type integer, not boolean",)),
        ("integer", 1.5, ("spec.f: must be of type integer, not number",)),
        ("integer", 2**63, ("spec.f: must be of type integer, not number",)),
        ("integer", 2.0, ()),
        ("integer", 1e300, ("spec.f: must be of type integer, not number",)),
        ("integer | minimum=1.5", 1, ()),
        ("float | minimum=1.5", 1.25, ("spec.f: 1.25 is less than the minimum 1.5",)),
        ("float", 2, ()),
        ("boolean", "true", ("spec.f: must be of type boolean, not string",)),
        ("object", [], ("spec.f: must be of type object, not array",)),
        ("string | minLength=2", "é", ("spec.f: must have at least 2 characters, not 1",)),
        ("string | maxLength=1", "ab", ("spec.f: must have at most 1 characters, not 2",)),
        (r'string | pattern="^v\d+$"', "v1x", (r'spec.f: "v1x" does not match ^v\d+$',)),
        (r'string | pattern="\d"', "v1x", ()),
        ("integer | minimum=1", 0, ("spec.f: 0 is less than the minimum 1",)),
        ("integer | maximum=2.5", 3, ("spec.f: 3 is more than the maximum 2.5",)),
        ('string | enum="a,b"', "c", ('spec.f: "c" is not one of "a", "b"',)),
        ('integer | enum="1,2"', 3, ("spec.f: 3 is not one of 1, 2",)),
        ("[]string | minItems=1", [], ("spec.f: must have at least 1 items, not 0",)),
        ("[]string | maxItems=1", ["a", "b"], ("spec.f: must have at most 1 items, not 2",)),
        ("[]string", ["a", 1], ("spec.f[1]: must be of type string, not integer",)),
        (
            "[]string | uniqueItems=true",
            ["a", "b", "a"],
            ('spec.f[2]: "a" is in the list already, at spec.f[0]',),
        ),
        (
            "[]T | listType=map listMapKey=n",
            [{"n": 1, "x": "a"}, {"n": 1, "x": "b"}],
            ('spec.f[1]: {"n":1} is in the list already, at spec.f[0]',),
        ),
        ("map[string]integer", {"a.b": "x"}, ('spec.f["a.b"]: must be of type integer, not string',)),
        ("T", {"x": 1}, ("spec.f.n: is required", "spec.f.x: must be of type string, not integer")),
        ('integer | validation="self > 3"', 3, ("spec.f: validation failed: self > 3 is false",)),
        ('integer | validation="self > 3"', 4, ()),
        ("[]T | listType=map listMapKey=n", [{}], ("spec.f[0].n: is required",)),
        ("[]Rule", ["a", "b"], ("spec.f[1]: validation failed: self != 'b' is false",)),
        ("map[string]Rule", {"k": "b"}, ("spec.f.k: validation failed: self != 'b' is false",)),
        # Sets are equal in any order.
        ("[]string | uniqueItems=true validation=\"self == ['b', 'a']\"", ["a", "b"], ()),
        # Only the API server knows the old value.
        ("string | immutable=true", "x", ()),
        (
            'object | validation="self.a > 1"',
            {},
            (),
        ),
        (
            '[]integer | validation="self[0] > 1"',
            [],
            ("spec.f: validation failed: self[0] > 1 cannot be evaluated: index out of bounds: 0",),
        ),
    ],
)
def test_errors_name_the_field_and_the_value(text: str, value: Any, errors: tuple[str, ...]) -> None:
    schema = schema_of({"f": text}, T={"n": "integer | required=true", "x": "string"}, Rule=RULE)

    assert validate({"f": value}, schema) == errors


@check("RG-6")
def test_a_value_outside_of_its_enum_is_invalid_and_an_absent_one_is_the_default() -> None:
    schema = schema_of({"size": 'string | enum="a,b" default="a"'})

    assert project({}, schema) == {"size": "a"}
    assert validate({"size": "c"}, schema) == ('spec.size: "c" is not one of "a", "b"',)


@check("RG-10")
def test_duplicates_in_a_list_of_unique_items_are_invalid() -> None:
    schema = schema_of({"tags": "[]string | uniqueItems=true minItems=1"})

    assert validate({"tags": ["a", "a"]}, schema)
    assert validate({"tags": []}, schema)
    assert not validate({"tags": ["a", "b"]}, schema)


@check("RG-91")
def test_a_removed_field_is_kept_for_the_revision_that_has_it_and_ignored_by_the_other() -> None:
    stored = {"name": "a", "size": 3}

    assert project(stored, schema_of({"name": "string", "size": "integer"})) == stored
    assert project(stored, schema_of({"name": "string"})) == {"name": "a"}


@given(schemas, specs)
def test_a_projection_is_what_the_api_server_would_store(schema: Made, spec: Made) -> None:
    assert project(spec, schema) == served(spec, schema)


@given(schemas, specs)
def test_projecting_twice_changes_nothing(schema: Made, spec: Made) -> None:
    projected = project(spec, schema)

    assert project(projected, schema) == projected


@given(schemas, specs)
def test_a_projected_spec_is_valid_if_the_api_server_accepts_it(schema: Made, spec: Made) -> None:
    projected = project(spec, schema)

    assert (not validate(projected, schema)) is is_accepted(projected, schema)
