"""Descriptions are put into schemas, and no field of a kind that is served lacks one."""

import re
from collections.abc import Iterator
from typing import Any

import pytest

from lamina.core.crd.descriptions import COMMON, described, undescribed
from lamina.families.manifestwork.crds.descriptions import DESCRIPTIONS as OCM
from lamina.families.metacontroller.descriptions import DESCRIPTIONS as METACONTROLLER
from lamina.families.registry import chosen
from lamina.objects.types import Made, Obj

VERSIONS = [
    pytest.param(version["schema"]["openAPIV3Schema"], id=f"{one['spec']['names']['kind']} {version['name']}")
    for family in chosen("all")
    for one in family.definitions()
    for version in one["spec"]["versions"]
]


def obj(**properties: Any) -> Made:
    return {"type": "object", "properties": properties}


def descriptions(schema: Obj) -> Iterator[tuple[str, str]]:
    if "description" in schema:
        yield "the kind", schema["description"]
    yield from fields(schema)


def fields(schema: Obj) -> Iterator[tuple[str, str]]:
    for name, field in (schema.get("properties") or {}).items():
        if "description" in field:
            yield name, field["description"]
        yield from fields(field)
    for inner in ("items", "additionalProperties"):
        if isinstance(schema.get(inner), dict):
            yield from fields(schema[inner])


# Every kind


@pytest.mark.parametrize("schema", VERSIONS)
def test_every_kind_and_every_field_has_a_description(schema: Obj) -> None:
    assert list(undescribed(schema)) == []


@pytest.mark.parametrize("schema", VERSIONS)
def test_every_description_is_one_sentence(schema: Obj) -> None:
    for name, text in descriptions(schema):
        assert re.fullmatch(r"[A-Z*].*[^.]\.", text), name
        assert ". " not in text, name


@pytest.mark.parametrize("table", [OCM, METACONTROLLER], ids=["manifestwork", "metacontroller"])
def test_no_description_of_a_field_is_left_over(table: dict[str, str]) -> None:
    used = {text for schema in VERSIONS for _, text in descriptions(schema.values[0])}  # type: ignore[arg-type]

    assert [end for end, text in table.items() if text not in used] == []


# The function


def test_the_longest_known_end_of_a_path_is_used() -> None:
    schema = obj(a=obj(name={}), b=obj(name={}), name={})

    made = described(schema, {"a": "A.", "b": "B.", "name": "Any name.", "a.name": "The name of a."})

    assert made["properties"]["a"]["properties"]["name"]["description"] == "The name of a."
    assert made["properties"]["b"]["properties"]["name"]["description"] == "Any name."
    assert made["properties"]["name"]["description"] == "Any name."


@pytest.mark.parametrize(
    ("field", "inner"),
    [
        ({"type": "array", "items": obj(name={})}, "items"),
        ({"type": "object", "additionalProperties": obj(name={})}, "additionalProperties"),
    ],
)
def test_fields_of_items_and_of_values_are_described_by_the_path_of_their_list(
    field: Obj, inner: str
) -> None:
    made = described(obj(parts=field), {"parts": "Parts.", "parts.name": "The name of a part."})

    assert made["properties"]["parts"][inner]["properties"]["name"]["description"] == "The name of a part."


def test_a_field_without_a_description_is_an_error_that_names_it() -> None:
    with pytest.raises(KeyError, match="a.unheard"):
        described(obj(a=obj(unheard={})), {"a": "A."})


def test_a_description_of_a_family_replaces_the_common_one() -> None:
    made = described(obj(spec={}, status={}), {"status": "Ours."})

    assert made["properties"]["spec"]["description"] == COMMON["spec"]
    assert made["properties"]["status"]["description"] == "Ours."


def test_the_rest_of_a_schema_stays_as_it_was() -> None:
    schema = {**obj(spec={"type": "string", "enum": ["a"]}), "required": ["spec"]}
    before = repr(schema)

    made = described(schema, {})

    assert made["required"] == ["spec"]
    assert made["properties"]["spec"]["enum"] == ["a"]
    assert repr(schema) == before


def test_metadata_of_a_kind_is_left_to_the_server_and_that_of_a_template_is_not() -> None:
    made = described(
        obj(metadata={"type": "object"}, spec=obj(metadata={})), {"spec.metadata": "Its metadata."}
    )

    assert made["properties"]["metadata"] == {"type": "object"}
    assert made["properties"]["spec"]["properties"]["metadata"]["description"] == "Its metadata."
    assert list(undescribed(made)) == [""]


def test_the_description_of_a_kind_comes_first_and_its_fields_have_their_own() -> None:
    made = described(obj(spec={}), {}, kind="Does something.")

    assert next(iter(made.items())) == ("description", "Does something.")
    assert made["properties"]["spec"]["description"] == COMMON["spec"]
    assert list(undescribed(made)) == []


def test_a_kind_without_a_description_is_named_by_an_empty_path() -> None:
    assert list(undescribed(described(obj(spec={}), {}))) == [""]


@pytest.mark.parametrize("blank", [None, "", "  "])
def test_a_blank_description_is_none(blank: str | None) -> None:
    field = {} if blank is None else {"description": blank}

    schema = {**obj(a={**obj(b=field), "description": "A."}), "description": "A kind."}

    assert list(undescribed(schema)) == ["a.b"]
