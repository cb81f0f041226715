"""Definitions of other installations."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina.core.crd.ownership import ForeignDefinition, foreign
from lamina.core.crd.version import marked
from lamina.families.manifestwork.crds.bundle import hub_definitions
from lamina.objects.types import Made, Obj


def definition(
    spec: Obj, status: Obj | None = None, *, version: str = "v1", by: str = "clusteradm", **rest: Any
) -> Made:
    properties = {"spec": {"type": "object", "properties": spec}}
    properties |= {"status": {"type": "object", "properties": status}} if status is not None else {}
    schema = {"openAPIV3Schema": {"type": "object", "properties": properties}}
    field = {"manager": by, "operation": rest.pop("operation", "Update")}
    return {
        "metadata": {"name": "things.example.com", "managedFields": [field]},
        "spec": {"versions": [{"name": version, "storage": True, "schema": schema}]},
    }


TEXT = {"type": "string"}
OURS = definition(
    {"a": TEXT, "b": {"type": "array", "items": {"type": "object", "properties": {"c": TEXT}}}}, {"d": TEXT}
)


@pytest.mark.parametrize(
    ("theirs", "lacks"),
    [
        (OURS, ()),
        (definition({"a": TEXT}, {"d": TEXT}), ("spec.b",)),
        (definition({"a": TEXT, "b": {"type": "array", "items": {"type": "object", "properties": {}}}}, {"d": TEXT}),
         ("spec.b[].c",)),
        (definition({"a": TEXT, "b": {"type": "array", "items": {"x-kubernetes-preserve-unknown-fields": True}}}), ("status",)),
        (definition({}, version="v2"), ("version v1",)),
    ],
    ids=["all of it", "a field", "a field in a list", "anything goes there", "another version"],
)  # fmt: skip
def test_what_a_foreign_definition_does_not_know_is_named(theirs: Obj, lacks: tuple[str, ...]) -> None:
    found = foreign(theirs, OURS, "lamina")

    assert found is not None
    assert (found.by, found.lacks) == ("clusteradm", lacks)


def test_what_was_stated_under_our_name_is_ours() -> None:
    assert foreign(definition({}, by="lamina", operation="Apply"), OURS, "lamina") is None
    assert foreign(marked(definition({})), OURS, "lamina") is None
    assert foreign(definition({}, by="lamina"), OURS, "lamina") is not None


def test_fields_that_are_needed_may_be_lost_with_what_is_around_them() -> None:
    found = foreign(definition({"a": TEXT, "b": OURS["spec"]}), OURS, "lamina")

    assert found is not None
    assert found.misses(("spec.a", "status.d", "status")) == ("status.d", "status")


def test_our_own_definitions_lack_nothing_of_themselves() -> None:
    for ours in hub_definitions():
        found = foreign(ours, ours, "lamina")
        assert found is not None and found.lacks == ()
        assert found.because == f"{found.name} is managed by another manager and is not updated"


# Any two schemas

SCHEMAS = st.recursive(
    st.sampled_from([{"type": "string"}, {"x-kubernetes-preserve-unknown-fields": True}]),
    lambda inner: st.one_of(
        st.dictionaries(st.sampled_from("abc"), inner, min_size=1, max_size=3).map(
            lambda fields: {"type": "object", "properties": fields}
        ),
        inner.map(lambda items: {"type": "array", "items": items}),
        inner.map(lambda values: {"type": "object", "additionalProperties": values}),
    ),
    max_leaves=8,
)


def of_schema(schema: Any, manager: str = "kubectl") -> Obj:
    version = {"name": "v1", "storage": True, "schema": {"openAPIV3Schema": schema}}
    fields = [{"manager": manager, "operation": "Apply"}]
    return {
        "metadata": {"name": "widgets.ex.com", "managedFields": fields},
        "spec": {"versions": [version]},
    }


@given(schema=SCHEMAS)
def test_a_definition_lacks_nothing_that_it_has(schema: Any) -> None:
    found = foreign(of_schema(schema), of_schema(schema), "lamina")

    assert found is not None
    assert found.lacks == ()
    assert found.misses(["a", "a.b", "b.c"]) == ()


@given(theirs=SCHEMAS, ours=SCHEMAS)
def test_fields_that_are_lacking_are_in_our_schema_and_not_in_theirs(theirs: Any, ours: Any) -> None:
    found = foreign(of_schema(theirs), of_schema(ours), "lamina")

    assert found is not None
    for path in found.lacks:
        assert has(ours, path)
        assert not has(theirs, path)


@given(theirs=SCHEMAS, ours=SCHEMAS)
def test_no_field_inside_a_lacking_one_is_named_as_well(theirs: Any, ours: Any) -> None:
    found = foreign(of_schema(theirs), of_schema(ours), "lamina")

    assert found is not None
    for path in found.lacks:
        assert not any(other != path and path.startswith(f"{other}.") for other in found.lacks)


def has(schema: Any, path: str) -> bool:
    """Say whether a schema has a field: `[]` stands for the items of a list, `*` for the values of a map."""
    for step in path.replace("[]", ".[]").replace("*", ".*").split("."):
        if not step:
            continue
        if step == "[]":
            schema = schema.get("items")
        elif step == "*":
            schema = schema.get("additionalProperties")
        else:
            schema = (schema.get("properties") or {}).get(step)
        if schema is None:
            return False
    return True


@pytest.mark.parametrize(
    ("lacks", "needed", "missed"),
    [
        (("status",), ("status.phase", "spec.size"), ("status.phase",)),
        (("status.phase",), ("status.phase",), ("status.phase",)),
        (("status.phase",), ("status.phases",), ()),
        (("status.phase",), ("status",), ()),
        ((), ("status.phase",), ()),
    ],
)
def test_a_needed_field_is_missed_with_what_is_around_it(
    lacks: tuple[str, ...], needed: tuple[str, ...], missed: tuple[str, ...]
) -> None:
    assert ForeignDefinition(name="w", by="kubectl", lacks=lacks).misses(needed) == missed
