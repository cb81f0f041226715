"""The parts of a definition, as families write them."""

from typing import Any

import pytest

from lamina.cel.declarations import Environment, Flags, Variable
from lamina.cel.library.standard import STANDARD
from lamina.cel.program import compile_expression
from lamina.cel.types import DYN
from lamina.core.crd import schema_dsl as dsl
from lamina.core.crd.descriptions import undescribed
from lamina.core.crd.kinds import kinds_of
from lamina.core.health.probe_schema import PROBES, described_as
from lamina.core.health.probe_spec import compile_probes
from lamina.objects.types import GroupKind, Made, Obj

THING = GroupKind("ex.com", "Thing")


@pytest.mark.parametrize(
    ("made", "schema"),
    [
        (dsl.text(), {"type": "string"}),
        (dsl.text(default="x", maxLength=3), {"type": "string", "default": "x", "maxLength": 3}),
        (dsl.choice("A", "B", default="A"), {"type": "string", "enum": ["A", "B"], "default": "A"}),
        (dsl.whole(), {"type": "integer", "format": "int32"}),
        (dsl.whole("int64", minimum=0), {"type": "integer", "format": "int64", "minimum": 0}),
        (dsl.yes_or_no(), {"type": "boolean"}),
        (dsl.moment(), {"type": "string", "format": "date-time"}),
        (dsl.several(dsl.text(), maxItems=2), {"type": "array", "items": {"type": "string"}, "maxItems": 2}),
        (dsl.map_of(dsl.text()), {"type": "object", "additionalProperties": {"type": "string"}}),
        (dsl.anything(), {"type": "object", "x-kubernetes-preserve-unknown-fields": True}),
        (dsl.embedded(),
         {"type": "object", "x-kubernetes-preserve-unknown-fields": True, "x-kubernetes-embedded-resource": True}),
        (dsl.fields({}), {"type": "object", "properties": {}}),
    ],
)  # fmt: skip
def test_a_field_has_the_schema_of_its_word(made: Obj, schema: Obj) -> None:
    assert made == schema


def test_an_amount_is_a_number_or_a_percentage() -> None:
    made = dsl.amount(default="25%")

    assert made["x-kubernetes-int-or-string"] is True
    assert [one["type"] for one in made["anyOf"]] == ["integer", "string"]
    assert made["default"] == "25%"


def test_fields_may_be_required_and_have_rules() -> None:
    made = dsl.fields({"a": dsl.text(), "b": dsl.text()}, "a", default={})

    assert made["required"] == ["a"]
    assert list(made["properties"]) == ["a", "b"]
    assert made["default"] == {}
    assert "required" not in dsl.fields({"a": dsl.text()})


def test_a_list_may_have_keys() -> None:
    made = dsl.by_key(dsl.fields({"type": dsl.text()}), "type")

    assert made["x-kubernetes-list-type"] == "map"
    assert made["x-kubernetes-list-map-keys"] == ["type"]
    assert dsl.conditions()["x-kubernetes-list-map-keys"] == ["type"]


def test_a_label_selector_is_that_of_kubernetes() -> None:
    made = dsl.label_selector()

    assert set(made["properties"]) == {"matchLabels", "matchExpressions"}
    assert made["x-kubernetes-map-type"] == "atomic"
    assert made["properties"]["matchExpressions"]["items"]["required"] == ["key", "operator"]


def test_a_condition_is_that_of_kubernetes() -> None:
    assert dsl.CONDITION["properties"]["status"]["enum"] == ["True", "False", "Unknown"]
    assert set(dsl.CONDITION["required"]) == {"lastTransitionTime", "message", "reason", "status", "type"}


# Immutable fields

ABSENT: Made = {}


def holds(rule: Obj, before: Obj, after: Obj) -> bool:
    """Evaluate a rule as a server does at an update."""
    flags = Flags(
        homogeneous_literals=True,
        cross_type_numeric_comparisons=False,
        optional_syntax=False,
        backtick_fields=False,
        kubernetes_costs=True,
    )
    environment = Environment(name="rule", flags=flags).extend(
        libraries=(STANDARD,), variables=(Variable("self", DYN), Variable("oldSelf", DYN))
    )
    program: Any = compile_expression(rule["rule"], environment)
    return bool(program.evaluate({"self": after, "oldSelf": before}))


@pytest.mark.parametrize(
    ("before", "after", "always", "once"),
    [
        (ABSENT, ABSENT, True, True),
        ({"a": 1}, {"a": 1}, True, True),
        ({"a": 1}, {"a": 2}, False, False),
        ({"a": 1}, ABSENT, False, False),
        (ABSENT, {"a": 1}, False, True),
    ],
)
def test_an_immutable_field_stays_as_it_is(before: Obj, after: Obj, always: bool, once: bool) -> None:
    assert holds(dsl.immutable("a"), before, after) == always
    assert holds(dsl.immutable_once_set("a"), before, after) == once


def test_a_rule_says_which_field_is_immutable() -> None:
    for rule in (
        dsl.immutable("spec"),
        dsl.immutable_once_set("spec"),
        dsl.immutable("spec", "self == oldSelf"),
    ):
        assert rule["message"] == "spec is immutable"
    assert dsl.validated(dsl.immutable("a", "self == oldSelf")) == {
        "x-kubernetes-validations": [{"rule": "self == oldSelf", "message": "a is immutable"}]
    }


# Definitions


def definition(shape: Obj, **fields: Any) -> Made:
    descriptions = {"size": "How large it is."}
    return dsl.definition(
        THING,
        "things",
        shape,
        descriptions=descriptions,
        description="A thing.",
        **{"versions": ("v1",), **fields},
    )


SIZED = dsl.fields({"spec": dsl.fields({"size": dsl.whole()})})
WITH_STATUS = dsl.fields({"spec": dsl.fields({}), "status": dsl.fields({})})


def test_a_definition_has_the_names_of_its_kind() -> None:
    made = definition(SIZED, short=("th",))

    assert made["metadata"]["name"] == "things.ex.com"
    assert made["spec"]["names"] == {
        "kind": "Thing",
        "listKind": "ThingList",
        "plural": "things",
        "singular": "thing",
        "shortNames": ["th"],
    }
    assert "shortNames" not in definition(SIZED)["spec"]["names"]


def test_a_definition_describes_its_kind_and_all_fields() -> None:
    [version] = definition(SIZED)["spec"]["versions"]
    schema = version["schema"]["openAPIV3Schema"]

    assert schema["description"] == "A thing."
    assert schema["properties"]["spec"]["properties"]["size"]["description"] == "How large it is."
    assert list(undescribed(schema)) == []


def test_the_first_version_is_stored_and_all_are_served() -> None:
    made = definition(SIZED, versions=("v2", "v1"))

    assert [(one["name"], one["served"], one["storage"]) for one in made["spec"]["versions"]] == [
        ("v2", True, True),
        ("v1", True, False),
    ]
    assert [one.api_version for one in kinds_of(made)] == ["ex.com/v2", "ex.com/v1"]


@pytest.mark.parametrize(("namespaced", "scope"), [(True, "Namespaced"), (False, "Cluster")])
def test_a_definition_has_a_scope(namespaced: bool, scope: str) -> None:
    assert definition(SIZED, namespaced=namespaced)["spec"]["scope"] == scope


def test_a_kind_with_a_status_has_its_subresource() -> None:
    [without], [with_status] = (definition(one)["spec"]["versions"] for one in (SIZED, WITH_STATUS))

    assert "subresources" not in without
    assert with_status["subresources"] == {"status": {}}


def test_columns_are_printed_from_fields_and_conditions() -> None:
    ready = dsl.column("Ready", dsl.condition_path("Ready", "status"), priority=1)
    [version] = definition(SIZED, columns=(ready, dsl.AGE))["spec"]["versions"]

    assert version["additionalPrinterColumns"] == [
        {
            "name": "Ready",
            "type": "string",
            "jsonPath": '.status.conditions[?(@.type=="Ready")].status',
            "priority": 1,
        },
        {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
    ]


# The schema of probes


def test_the_schema_of_probes_has_the_fields_that_are_read() -> None:
    probes = PROBES["items"]["properties"]["probes"]["items"]["properties"]
    every = {
        "condition": {"type": "Ready", "status": "True"},
        "fieldsEqual": {"fieldA": ".a", "fieldB": ".b"},
        "cel": {"rule": "true", "message": "no"},
    }

    assert {name: set(one["properties"]) for name, one in probes.items()} == {
        name: set(one) for name, one in every.items()
    }
    selector = {"kind": {"group": "", "kind": "Pod"}, "selector": {"matchLabels": {"a": "b"}}}
    assert set(PROBES["items"]["properties"]["selector"]["properties"]) == set(selector)
    assert compile_probes([{"selector": selector, "probes": [{k: v} for k, v in every.items()]}], "x").entries


def test_every_field_of_a_probe_is_described() -> None:
    described: Made = dict(described_as("checks"))
    shape = dsl.fields({"checks": PROBES})

    made = dsl.definition(
        THING,
        "things",
        shape,
        versions=("v1",),
        descriptions={**described, "checks": "What is probed."},
        description="A thing.",
    )

    [version] = made["spec"]["versions"]
    assert list(undescribed(version["schema"]["openAPIV3Schema"])) == []
