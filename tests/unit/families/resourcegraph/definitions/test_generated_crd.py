"""The CRD of a generated kind."""

import copy
from typing import Any

import pytest

from lamina.families.resourcegraph.definitions.generated_crd import generated_crd, object_schema, shadowed
from lamina.graph.language.simple_schema import build_schema
from lamina.objects.types import Made
from tests.bed.scenarios import check
from tests.unit.graph.schemas.random_schemas import not_served

SPEC = build_schema({"spec": {"name": "string", "replicas": "integer | default=1"}})


def crd(status: Made | None = None, revision: int = 1, **schema: Any) -> Made:
    stated: Made = {"kind": "App", "apiVersion": "v1alpha1", **schema}
    definition: Made = {"metadata": {"name": "app", "uid": "u1"}, "spec": {"schema": stated}}
    return generated_crd(definition, SPEC, status or {}, revision)


def version(made: Made) -> Made:
    (only,) = made["spec"]["versions"]
    found: Made = only
    return found


def status_of(made: Made) -> Made:
    found: Made = version(made)["schema"]["openAPIV3Schema"]["properties"]["status"]
    return found


@check("RG-1")
def test_a_definition_has_its_crd() -> None:
    made = crd()

    assert made["metadata"] == {
        "name": "apps.kro.run",
        "labels": {
            "kro.run/owned": "true",
            "kro.run/kro-version": "v0.9.4",
            "kro.run/resource-graph-definition-id": "u1",
            "kro.run/resource-graph-definition-name": "app",
        },
        "annotations": {"kro.run/rgd-revision": "1"},
    }
    assert made["spec"]["group"] == "kro.run"
    assert made["spec"]["scope"] == "Namespaced"
    assert made["spec"]["names"] == {
        "kind": "App",
        "listKind": "AppList",
        "plural": "apps",
        "singular": "app",
    }
    only = version(made)
    assert (only["name"], only["served"], only["storage"]) == ("v1alpha1", True, True)
    assert only["subresources"] == {"status": {}}
    assert [(one["name"], one["type"], one["jsonPath"]) for one in only["additionalPrinterColumns"]] == [
        ("State", "string", ".status.state"),
        ("Ready", "string", '.status.conditions[?(@.type=="Ready")].status'),
        ("Age", "date", ".metadata.creationTimestamp"),
    ]
    properties = only["schema"]["openAPIV3Schema"]["properties"]
    assert properties["spec"] == SPEC
    assert properties["metadata"] == {"type": "object"}
    assert properties["apiVersion"] == properties["kind"] == {"type": "string"}


def test_the_api_server_accepts_the_crd() -> None:
    made = crd(
        status={"type": "object", "properties": {"url": {"type": "string"}}},
        group="example.com",
        scope="Cluster",
        shortNames=["ap"],
        categories=["all"],
    )

    assert not_served(made) == []


@check("RG-5")
@pytest.mark.parametrize(
    ("kind", "name"),
    [
        ("Policy", "policies.kro.run"),
        ("Gateway", "gateways.kro.run"),
        ("Index", "indices.kro.run"),
        ("Status", "statuses.kro.run"),
        ("Bus", "buses.kro.run"),
        ("Series", "series.kro.run"),
        ("WebApp", "webapps.kro.run"),
    ],
)
def test_the_name_is_the_plural(kind: str, name: str) -> None:
    made = crd(kind=kind)

    assert made["metadata"]["name"] == name
    assert f"{made['spec']['names']['plural']}.kro.run" == name


@check("RG-114")
def test_the_crd_names_its_revision() -> None:
    assert crd(revision=7)["metadata"]["annotations"] == {"kro.run/rgd-revision": "7"}


@check("RG-15")
def test_columns_of_the_author_replace_all_others() -> None:
    column = {"name": "Size", "type": "integer", "jsonPath": ".spec.size"}

    made = crd(additionalPrinterColumns=[{**column, "priority": 0, "description": ""}])

    assert version(made)["additionalPrinterColumns"] == [column]
    assert len(version(crd(additionalPrinterColumns=[]))["additionalPrinterColumns"]) == 3


def test_names_labels_and_annotations_of_the_author_are_copied() -> None:
    made = crd(
        group="example.com",
        scope="Cluster",
        shortNames=["ap"],
        categories=["all"],
        metadata={
            "labels": {"team": "a", "kro.run/owned": "false"},
            "annotations": {"note": "b", "kro.run/rgd-revision": "9"},
        },
    )

    assert made["metadata"]["name"] == "apps.example.com"
    assert made["spec"]["scope"] == "Cluster"
    assert made["spec"]["names"]["shortNames"] == ["ap"]
    assert made["spec"]["names"]["categories"] == ["all"]
    assert made["metadata"]["labels"]["team"] == "a"
    assert made["metadata"]["labels"]["kro.run/owned"] == "true"
    assert made["metadata"]["annotations"] == {"note": "b", "kro.run/rgd-revision": "1"}


def test_the_schema_of_a_revision_counts_and_not_an_edit_of_the_definition() -> None:
    edited: Made = {
        "metadata": {"name": "app", "uid": "u1"},
        "spec": {"schema": {"kind": "App", "apiVersion": "v1alpha1", "shortNames": ["edited"]}},
    }

    made = generated_crd(edited, SPEC, {}, 1, schema={"kind": "App", "apiVersion": "v1alpha1"})

    assert "shortNames" not in made["spec"]["names"]


@check("RG-75")
def test_a_long_name_of_a_definition_is_shortened_in_the_label() -> None:
    definition: Made = {
        "metadata": {"name": "a" * 250, "uid": "u1"},
        "spec": {"schema": {"kind": "App", "apiVersion": "v1"}},
    }

    label = generated_crd(definition, SPEC, {}, 1)["metadata"]["labels"][
        "kro.run/resource-graph-definition-name"
    ]

    assert len(label) == 63
    assert label.startswith("a" * 54 + "-")


def test_the_status_has_the_fields_of_the_controller() -> None:
    fields = status_of(crd())["properties"]

    assert fields["state"] == {"type": "string"}
    assert {name: one["type"] for name, one in fields["conditions"]["items"]["properties"].items()} == {
        "type": "string",
        "status": "string",
        "reason": "string",
        "message": "string",
        "lastTransitionTime": "string",
        "observedGeneration": "integer",
    }
    for name in (
        "currentInputRevision",
        "currentRGDRevision",
        "observedInputRevision",
        "observedRGDRevision",
    ):
        assert fields[name] == {"type": "integer"}
    assert set(fields["propagation"]["properties"]) == {
        "status",
        "targetInputRevision",
        "resourcesAtTarget",
        "totalResources",
        "lastTransitionTime",
        "pendingRGDRevision",
        "message",
    }
    assert set(fields["inputRevisionHistory"]["items"]["properties"]) == {
        "revision",
        "rgdRevision",
        "createdAt",
        "status",
        "specHash",
        "rgdSpecHash",
        "instanceSpec",
    }
    assert fields["managedResources"]["description"]
    assert set(fields["managedResources"]["items"]["properties"]) == {
        "id",
        "apiVersion",
        "kind",
        "namespace",
        "name",
        "state",
        "inputRevision",
        "ready",
    }


@check("RG-106")
def test_a_status_field_of_the_author_wins_except_state_and_conditions() -> None:
    author = {"propagation": {"type": "boolean"}, "state": {"type": "integer"}, "url": {"type": "string"}}
    status = {"type": "object", "properties": author}

    fields = status_of(crd(status))["properties"]

    assert fields["propagation"] == {"type": "boolean"}
    assert fields["url"] == {"type": "string"}
    assert fields["state"] == {"type": "string"}
    assert fields["conditions"]["type"] == "array"
    assert shadowed(status) == ("propagation",)
    assert shadowed({}) == ()


def test_the_schemas_that_are_given_stay_as_they_are() -> None:
    spec, status = copy.deepcopy(SPEC), {"type": "object", "properties": {"url": {"type": "string"}}}
    before = copy.deepcopy((spec, status))

    object_schema(spec, status)

    assert (spec, status) == before
