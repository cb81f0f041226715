"""Breaking changes: which there are, how they read, and that nothing else breaks a stored spec."""

import copy
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from lamina.families.resourcegraph.definitions.generated_crd import generated_crd
from lamina.graph.language.simple_schema import build_schema
from lamina.graph.schemas.compatibility import (
    breaking_changes,
    breaking_crd_changes,
    refusal,
)
from lamina.graph.schemas.projection import project, validate
from lamina.objects.types import Made
from tests.bed.scenarios import check
from tests.unit.graph.schemas.random_schemas import definitions, schemas, specs

DEFINITION: Made = {
    "metadata": {"name": "app", "uid": "u1"},
    "spec": {"schema": {"kind": "App", "apiVersion": "v1alpha1"}},
}


def field(text: Any) -> Made:
    return build_schema({"spec": {} if text is None else {"f": text}})


def changes(old: Any, new: Any) -> tuple[str, ...]:
    return breaking_changes(field(old), field(new), "spec")


@pytest.mark.parametrize(
    ("old", "new", "change"),
    [
        ("string", None, "Property f was removed (spec.f)"),
        ("string", "integer", "Type changed from string to integer (spec.f)"),
        ("string", "string | required=true", "Field f is newly required (spec.f)"),
        ("string | default=x", "string | required=true default=x", "Field f is newly required (spec.f)"),
        (None, "string | required=true", "Required property f was added (spec.f)"),
        (
            "string | required=true default=x",
            "string | required=true",
            "Default value removed from required field f (spec.f)",
        ),
        ('string | enum="a,b"', 'string | enum="a"', 'Enum value "b" was removed (spec.f)'),
        ('integer | enum="1,2"', 'integer | enum="1"', "Enum value 2 was removed (spec.f)"),
        ("string", "string | pattern=a", "Validation pattern a was added (spec.f)"),
        ("string | pattern=a", "string | pattern=b", "Validation pattern changed from a to b (spec.f)"),
        ("integer", "integer | minimum=1", "Minimum constraint 1 was added (spec.f)"),
        ("integer | minimum=1", "integer | minimum=2.5", "Minimum was increased from 1 to 2.5 (spec.f)"),
        ("integer", "integer | maximum=1", "Maximum constraint 1 was added (spec.f)"),
        ("integer | maximum=2", "integer | maximum=1", "Maximum was decreased from 2 to 1 (spec.f)"),
        ("string", "string | minLength=1", "MinLength constraint 1 was added (spec.f)"),
        ("string | minLength=1", "string | minLength=2", "MinLength was increased from 1 to 2 (spec.f)"),
        ("string", "string | maxLength=1", "MaxLength constraint 1 was added (spec.f)"),
        ("string | maxLength=2", "string | maxLength=1", "MaxLength was decreased from 2 to 1 (spec.f)"),
        ("[]string", "[]string | minItems=1", "MinItems constraint 1 was added (spec.f)"),
        ("[]string | minItems=1", "[]string | minItems=2", "MinItems was increased from 1 to 2 (spec.f)"),
        ("[]string", "[]string | maxItems=1", "MaxItems constraint 1 was added (spec.f)"),
        ("[]string | maxItems=2", "[]string | maxItems=1", "MaxItems was decreased from 2 to 1 (spec.f)"),
        ({"a.b": "string"}, {}, 'Property a.b was removed (spec.f["a.b"])'),
        ("[]string", "[]integer", "Type changed from string to integer (spec.f[])"),
        # What upstream does not look at.
        ("string", 'string | enum="a,b"', 'Enum "a", "b" was added (spec.f)'),
        ("map[string]string", "map[string]integer", "Type changed from string to integer (spec.f[*])"),
        ("map[string]string", {}, "Property additionalProperties was removed (spec.f[*])"),
        ("string", "string | validation=\"self != ''\"", "Validation rule self != '' was added (spec.f)"),
        ("string", "string | immutable=true", "Validation rule self == oldSelf was added (spec.f)"),
        ("[]string", "[]string | uniqueItems=true", "List type changed from atomic to set (spec.f)"),
        (
            "[]object | listType=map listMapKey=a",
            "[]object | listType=map listMapKey=b",
            "List type changed from map(a) to map(b) (spec.f)",
        ),
        ("object", {}, "Unknown fields are no longer preserved (spec.f)"),
        ("object", "map[string]string", "Unknown fields are no longer preserved (spec.f)"),
    ],
)
def test_a_tighter_schema_is_breaking(old: Any, new: Any, change: str) -> None:
    assert changes(old, new) == (change,)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (None, "string"),
        (None, "string | required=true default=x"),
        ("string | required=true", "string"),
        ("string | default=x", "string"),
        ("string | default=x", "string | default=y"),
        ("string", 'string | description="d" default=x'),
        ('string | enum="a"', 'string | enum="b,a"'),
        ('string | enum="a"', "string"),
        ("string | pattern=a", "string"),
        ("integer | minimum=2 maximum=3", "integer | minimum=1 maximum=4"),
        ("integer | minimum=2 maximum=3", "integer"),
        ("string | minLength=2 maxLength=3", "string | minLength=1 maxLength=4"),
        ("[]string | minItems=2 maxItems=3 uniqueItems=true", "[]string"),
        ("string | immutable=true", "string"),
        ("map[string]string", "object"),
        ({}, "map[string]string"),
        ({"a": "string"}, {"a": "string", "b": "string"}),
    ],
)
def test_a_wider_schema_is_not_breaking(old: Any, new: Any) -> None:
    assert changes(old, new) == ()


@check("RG-76")
def test_a_refusal_shows_three_changes_and_counts_the_others() -> None:
    found = breaking_changes(
        build_schema({"spec": dict.fromkeys("abcde", "string")}), build_schema({}), "spec"
    )

    assert refusal("apps.kro.run", found) == (
        "cannot update CRD apps.kro.run: breaking changes detected: Property a was removed (spec.a); "
        "Property b was removed (spec.b); Property c was removed (spec.c); and 2 more changes"
    )
    assert refusal("apps.kro.run", found[:3]).endswith("Property c was removed (spec.c)")


def test_crds_are_compared_with_their_version() -> None:
    def crd(spec: Made, **version: Any) -> Made:
        made = copy.deepcopy(generated_crd(DEFINITION, build_schema({"spec": spec}), {}, 1))
        made["spec"]["versions"][0] |= version
        return made

    old = crd({"a": "string"})
    assert breaking_crd_changes(old, crd({"a": "string", "b": "string"})) == ()
    assert breaking_crd_changes(old, crd({})) == ("Property a was removed (spec.a)",)
    assert breaking_crd_changes(old, crd({}, name="v2")) == ("Type changed from v1alpha1 to v2 (version)",)
    assert breaking_crd_changes(old, crd({"a": "string"}, served=False, subresources={})) == (
        "Type changed from true to false (version.served)",
        "Property status was removed (version.subresources.status)",
    )


@given(schemas)
def test_a_schema_is_compatible_with_itself(schema: Made) -> None:
    assert breaking_changes(schema, copy.deepcopy(schema)) == ()


@st.composite
def edits(draw: st.DrawFn) -> tuple[Made, Made]:
    """Return a schema and an edit of it, which often only adds fields and removes markers."""
    old, other = draw(definitions()), draw(definitions())
    spec = copy.deepcopy({**other["spec"], **old["spec"]})
    for name, stated in spec.items():
        if isinstance(stated, str) and draw(st.booleans()):
            kind, _, markers = stated.partition(" | ")
            # Quoted values have blanks, and two markers of a list by key go together.
            is_whole = '"' in markers or "listMapKey" in markers
            left = [] if is_whole else [one for one in markers.split(" ") if one and draw(st.booleans())]
            spec[name] = f"{kind} | {' '.join(left)}" if left else kind
    types = old["types"] if draw(st.booleans()) else other["types"]
    return build_schema(old), build_schema({"spec": spec, "types": types})


@given(edits(), specs)
def test_what_is_not_breaking_keeps_valid_specs_valid_and_whole(edit: tuple[Made, Made], spec: Made) -> None:
    old, new = edit
    stored = project(spec, old)
    assume(not validate(stored, old) and not breaking_changes(old, new))

    read = project(stored, new)

    assert validate(read, new) == ()
    assert project(read, old) == stored
