"""The union of schemas: it accepts and keeps what any of them does, and reads as the current one."""

from typing import Any

import pytest
from hypothesis import assume, given

from lamina.errors import SpecError
from lamina.families.resourcegraph.definitions.generated_crd import generated_crd
from lamina.graph.language.simple_schema import build_schema
from lamina.graph.schemas.compatibility import breaking_changes
from lamina.graph.schemas.projection import project, validate
from lamina.graph.schemas.union import union
from lamina.objects.types import Made
from tests.bed.scenarios import check
from tests.unit.graph.schemas.random_schemas import (
    not_served,
    schemas,
    specs,
    without_defaults,
)

RULES = "x-kubernetes-validations"


def field(text: Any) -> Made:
    return build_schema({"spec": {} if text is None else {"f": text}, "types": TYPES})


TYPES: Made = {
    "Keyed": {"k": "string | required=true", "v": "string"},
    "Defaulted": {"k": "string | default=x", "v": "string"},
}


@pytest.mark.parametrize(
    ("current", "other", "united"),
    [
        ("string", None, "string"),
        (None, "string", "string"),
        ({"a": "string"}, {"b": "string"}, {"a": "string", "b": "string"}),
        ("string | required=true", "string", "string"),
        ("string | required=true", None, "string"),
        ("string | required=true", "string | required=true", "string | required=true"),
        ('string | enum="a,b"', 'string | enum="c,a"', 'string | enum="a,b,c"'),
        ('string | enum="a,b"', "string", "string"),
        ("integer | minimum=2 maximum=3", "integer | minimum=1 maximum=4", "integer | minimum=1 maximum=4"),
        ("integer | minimum=2", "integer | maximum=4", "integer"),
        ("string | minLength=2 maxLength=3", "string | minLength=1 maxLength=2", "string | minLength=1 maxLength=3"),
        ("[]string | minItems=2 maxItems=3", "[]string | minItems=1", "[]string | minItems=1"),
        ("string | pattern=a", "string | pattern=b", "string"),
        ("string | pattern=a", "string | pattern=a", "string | pattern=a"),
        ('string | description="new"', 'string | description="old"', 'string | description="new"'),
        # A default that not all have would be stored in instances of those that have another or none.
        ("string | default=new", "string", "string"),
        ("string | default=new", "string | default=new", "string | default=new"),
        ("string", "string | default=old", "string"),
        (None, "string | default=old", "string"),
        (None, {"a": "string | default=old required=true"}, {"a": "string"}),
        # What another revision fills in by itself may be absent.
        ("string | required=true", "string | required=true default=old", "string"),
        ("string | required=true default=a", "string | required=true", "string"),
        ("string | required=true default=a", "string | required=true default=a", "string | required=true default=a"),
        ('string | validation="self != \'\'"', 'string | validation="self != \'\'"', 'string | validation="self != \'\'"'),
        ('string | validation="self != \'\'"', "string", "string"),
        ("string", 'string | validation="self != \'\'"', "string"),
        ("string | immutable=true", "string", "string | immutable=true"),
        ("string", "string | immutable=true", "string"),
        ("[]string | uniqueItems=true", "[]string", "[]string"),
        ("[]string | uniqueItems=true", "[]string | uniqueItems=true maxItems=1", "[]string | uniqueItems=true"),
        ("object", {}, "object"),
        ({"a": "string"}, "object", "object"),
        ("map[string]string", "object", "object"),
        ({}, "map[string]string", "map[string]string"),
        ("[]Keyed | listType=map listMapKey=k", "[]Keyed | listType=map listMapKey=k maxItems=1", "[]Keyed | listType=map listMapKey=k"),
    ],
)  # fmt: skip
def test_two_schemas_are_united(current: Any, other: Any, united: Any) -> None:
    assert union(field(current), [field(other)]) == field(united)


@pytest.mark.parametrize(
    ("current", "others", "served"),
    [
        ("integer | default=2", ["integer | default=1"], False),
        ("integer | default=2", ["integer"], False),
        ("integer | default=2", ["integer | default=2", "integer | default=1"], False),
        ("integer | default=2", ["integer | default=2", None], True),
        ("integer | default=2 required=true", ["integer | default=1 required=true"], False),
        (None, ["integer | default=1"], False),
    ],
)
def test_a_default_is_served_where_all_that_have_the_field_agree_on_it(
    current: Any, others: list[Any], served: bool
) -> None:
    united = union(field(current), map(field, others))

    assert ("default" in united["properties"]["f"]) is served
    # Without a served default the field may be absent, also where each revision requires it.
    assert validate({}, united) == ()


def test_a_list_by_key_is_atomic_where_the_key_may_be_missing() -> None:
    marked = "[] | listType=map listMapKey=k"
    keyed, defaulted = (field(marked.replace("[]", f"[]{name}")) for name in ("Keyed", "Defaulted"))

    assert "x-kubernetes-list-type" not in union(keyed, [defaulted])["properties"]["f"]
    assert "x-kubernetes-list-type" not in union(defaulted, [keyed])["properties"]["f"]
    assert "x-kubernetes-list-type" not in union(field(None), [defaulted])["properties"]["f"]
    assert "x-kubernetes-list-type" in union(field(None), [keyed])["properties"]["f"]


def test_the_transition_rules_of_the_current_schema_stay() -> None:
    current = field("string | immutable=true validation=\"self != 'a'\" validation=\"self != 'b'\"")
    other = field("string | validation=\"self != 'b'\"")

    rules = union(current, [other])["properties"]["f"][RULES]

    assert [rule["rule"] for rule in rules] == ["self == oldSelf", "self != 'b'"]


def test_a_value_of_any_type_has_no_conflict_with_another() -> None:
    anything = {"x-kubernetes-preserve-unknown-fields": True}

    assert union(anything, [{"type": "string"}]) == anything
    assert union({"type": "string", "description": "d"}, [anything]) == {**anything, "description": "d"}


@check("RG-83")
@pytest.mark.parametrize(
    ("current", "other", "message"),
    [
        ("string", "integer", "spec.f: type conflict: string in one revision and integer in another"),
        ("[]string", "[]integer", "spec.f[]: type conflict: string"),
        ("map[string]string", "map[string]integer", "spec.f[*]: type conflict: string"),
        ("map[string]string", {"a": "string"}, "spec.f: type conflict: map in one revision and structure"),
        ({"a": "string"}, "map[string]string", "spec.f: type conflict: structure in one revision and map"),
        ({"a.b": "string"}, {"a.b": "integer"}, 'spec.f["a.b"]: type conflict'),
    ],
)
def test_a_field_of_different_types_is_a_conflict(current: Any, other: Any, message: str) -> None:
    with pytest.raises(SpecError) as refused:
        union(field(current), [field(other)])
    assert str(refused.value).startswith(message)


@pytest.mark.parametrize(
    ("current", "other"),
    [("string", "integer"), ("[]string", "[]integer"), ("map[string]string", {"a": "string"})],
)
def test_a_conflict_is_resolved_by_the_current_type_and_everything_else_is_united(
    current: Any, other: Any
) -> None:
    mine, yours = ({"f": one, name: "string"} for one, name in ((current, "mine"), (other, "yours")))
    nested = [build_schema({"spec": {"in": one, "name": "string"}}) for one in (mine, yours)]

    united = union(nested[0], nested[1:], resolves=True)["properties"]["in"]["properties"]

    assert united["f"] == field(current)["properties"]["f"]
    assert set(united) == {"f", "mine", "yours"}


def test_a_default_goes_with_a_conflict_since_no_other_revision_has_it() -> None:
    current, other = (build_schema({"spec": {"f": one}}) for one in ('string | default="x"', "integer"))

    assert union(current, [other], resolves=True)["properties"]["f"] == {"type": "string"}


@check("RG-82")
def test_a_field_that_a_rollback_removes_is_served_while_an_instance_needs_it() -> None:
    second = build_schema({"spec": {"name": "string"}})
    third = build_schema({"spec": {"name": "string", "size": "integer | minimum=1"}})

    assert breaking_changes(third, second, "spec") == ("Property size was removed (spec.size)",)
    assert union(second, [third]) == third
    assert union(second, []) == second


@given(schemas)
def test_the_union_of_a_schema_with_itself_is_that_schema(schema: Made) -> None:
    assert union(schema, []) == schema
    assert union(schema, [schema, schema]) == schema


@given(schemas, schemas, schemas, specs)
def test_a_union_accepts_what_any_of_its_schemas_accepts(
    first: Made, second: Made, third: Made, spec: Made
) -> None:
    united = union(first, [second, third])
    accepting = [one for one in (first, second, third) if not validate(project(spec, one), one)]
    assume(accepting)

    for schema in accepting:
        stated = project(spec, without_defaults(schema))
        for stored in (stated, project(spec, schema)):
            assert validate(project(stored, united), united) == ()


@given(schemas, schemas, schemas, specs)
def test_a_union_keeps_the_fields_of_all_of_its_schemas(
    first: Made, second: Made, third: Made, spec: Made
) -> None:
    united = union(first, [second, third])
    stored = project(spec, without_defaults(united))

    for schema in (first, second, third):
        known = without_defaults(schema)
        assert project(stored, known) == project(spec, known)


@given(schemas, schemas, schemas, specs)
def test_a_spec_that_is_stored_by_a_union_reads_as_by_each_of_its_schemas(
    first: Made, second: Made, third: Made, spec: Made
) -> None:
    stored = project(spec, union(first, [second, third]))

    for schema in (first, second, third):
        assert project(stored, schema) == project(spec, schema)


@given(schemas, schemas)
def test_a_union_breaks_nothing_but_fields_where_all_are_preserved(current: Made, other: Made) -> None:
    united = union(current, [other])

    for member in (current, other):
        for change in breaking_changes(member, united):
            assert "was removed (nested" in change or (member is other and "oldSelf" in change)


@given(schemas, schemas)
def test_a_union_can_be_served(current: Made, other: Made) -> None:
    definition: Made = {
        "metadata": {"name": "app", "uid": "u1"},
        "spec": {"schema": {"kind": "App", "apiVersion": "v1alpha1"}},
    }
    crd = generated_crd(definition, union(current, [other]), {}, 1)

    assert not_served(crd) == []
