"""Definitions that somebody else made."""

from typing import Any

import pytest

from lamina.core.foreign import foreign
from lamina.core.installing import marked
from lamina.families.manifestwork.crds import hub_definitions
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
def test_what_somebody_elses_definition_does_not_know_is_named(theirs: Obj, lacks: tuple[str, ...]) -> None:
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
        assert found.because == f"{found.name} was made by somebody else and is left alone"
