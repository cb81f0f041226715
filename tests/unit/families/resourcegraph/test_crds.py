"""The definitions as an API server serves them: what it accepts, what it refuses and with which message."""

import json
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from lamina.client.client import Client, PatchType
from lamina.control_plane.cluster import EmbeddedCluster
from lamina.control_plane.install import install
from lamina.core.crd.descriptions import undescribed
from lamina.errors import BadRequest, Invalid, SettingsError
from lamina.families.resourcegraph.crds import definitions
from lamina.families.resourcegraph.descriptions import DESCRIPTIONS
from lamina.families.resourcegraph.family import family
from lamina.families.resourcegraph.labels import (
    API_VERSION,
    DEFINITION,
    DEFINITION_REVISION,
    INPUT_REVISION,
)
from lamina.objects import meta
from lamina.objects.types import GroupKind, Made, Obj
from lamina.settings import Settings

TABLE = {"accept": "application/json;as=Table;v=v1;g=meta.k8s.io"}
CONFIG_MAP: Obj = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "${schema.spec.name}"}}
SCHEMA: Obj = {"kind": "App", "apiVersion": "v1alpha1", "spec": {"name": "string"}}
RESOURCE: Obj = {"id": "config", "template": CONFIG_MAP}


def definition(*resources: Obj, schema: Obj = SCHEMA, **fields: Any) -> Made:
    return {
        "apiVersion": API_VERSION, "kind": DEFINITION.kind, "metadata": {"name": "app"},
        "spec": {"schema": dict(schema), "resources": list(resources or (RESOURCE,)), **fields},
    }  # fmt: skip


def revision() -> Made:
    return {
        "apiVersion": API_VERSION, "kind": DEFINITION_REVISION.kind, "metadata": {"name": "app-rev-1"},
        "spec": {"revision": 1, "schema": dict(SCHEMA), "resources": [dict(RESOURCE)]},
    }  # fmt: skip


def input_revision() -> Made:
    spec = {
        "inputRevision": 1,
        "rgdRevision": 1,
        "rgdRevisionRef": {"name": "app-rev-1", "specHash": "0123"},
        "instanceSpec": {"a": {"b": 1}},
    }
    return {
        "apiVersion": API_VERSION, "kind": INPUT_REVISION.kind,
        "metadata": {"name": "a1-input-rev-1", "namespace": "default"}, "spec": spec,
    }  # fmt: skip


MADE = {DEFINITION: definition, DEFINITION_REVISION: revision, INPUT_REVISION: input_revision}


async def refusal(client: Client, obj: Obj, change: Obj) -> list[str]:
    """Return the messages with which a change is refused."""
    with pytest.raises(Invalid) as refused:
        await client.patch(meta.ref(obj), change, how=PatchType.MERGE)
    return [cause.message.removeprefix("Invalid value: ") for cause in refused.value.causes]


async def headings(client: Client, plural: str) -> list[tuple[str, int]]:
    table = json.loads(await client.request("GET", f"/apis/{API_VERSION}/{plural}", headers=TABLE))
    return [(one["name"], one["priority"]) for one in table["columnDefinitions"] if one["name"] != "Name"]


@pytest.fixture
async def client() -> AsyncIterator[Client]:
    """A client of a server that has the definitions, and no controller for them."""
    async with EmbeddedCluster(Settings(families="none")) as cluster:
        client = cluster.client()
        for one in definitions():
            await client.create(one)
        yield client


# The kinds


def test_every_field_is_described_and_no_description_is_left_over() -> None:
    schemas = [one["spec"]["versions"][0]["schema"]["openAPIV3Schema"] for one in definitions()]

    used = {text for schema in schemas for text in descriptions(schema)}

    assert [path for schema in schemas for path in undescribed(schema)] == []
    assert [end for end, text in DESCRIPTIONS.items() if text not in used] == []


def descriptions(schema: Obj) -> Iterator[str]:
    for field in (schema.get("properties") or {}).values():
        yield field.get("description", "")
        yield from descriptions(field)
    for inner in ("items", "additionalProperties"):
        if isinstance(schema.get(inner), dict):
            yield from descriptions(schema[inner])


async def test_the_kinds_are_served_under_their_names(client: Client) -> None:
    kinds = await client.discover()

    found = {kind: kinds.find(API_VERSION, kind.kind) for kind in MADE}

    assert {kind.kind: (one.short, one.namespaced) for kind, one in found.items() if one} == {
        "ResourceGraphDefinition": (("rgd",), False),
        "ResourceGraphDefinitionRevision": (("rgdr",), False),
        "ResourceGraphInputRevision": (("rgir",), True),
    }
    assert all(one and "status" in one.subresources for one in found.values())


async def test_the_columns_of_a_definition_are_those_of_upstream_and_its_revision(client: Client) -> None:
    assert await headings(client, "resourcegraphdefinitions") == [
        ("APIVERSION", 0),
        ("KIND", 0),
        ("STATE", 0),
        ("READY", 0),
        ("TOPOLOGICALORDER", 1),
        ("REVISION", 1),
        ("AGE", 0),
    ]


async def test_the_column_of_a_revision_names_its_definition(client: Client) -> None:
    made = revision()
    made["metadata"]["labels"] = {"kro.run/rgd-name": "app"}
    await client.create(made)

    path = f"/apis/{API_VERSION}/resourcegraphdefinitionrevisions"
    table = json.loads(await client.request("GET", path, headers=TABLE))

    columns = [one["name"] for one in table["columnDefinitions"]]
    assert table["rows"][0]["cells"][columns.index("RGD")] == "app"


# What is accepted


@pytest.mark.parametrize("kind", MADE)
async def test_objects_pass_strict_validation(client: Client, kind: GroupKind) -> None:
    stored = await client.create(MADE[kind](), validation="Strict")

    assert meta.uid(stored)


async def test_group_and_scope_have_defaults(client: Client) -> None:
    stored = await client.create(definition())

    assert stored["spec"]["schema"] == {**SCHEMA, "group": "kro.run", "scope": "Namespaced"}


async def test_all_fields_of_a_definition_are_kept(client: Client) -> None:
    schema = {
        **SCHEMA,
        "group": "a.io",
        "scope": "Cluster",
        "types": {"Req": "string | required=true"},
        "status": {"conditions": ["${x}"], "deep": {"er": "${y}"}},
        "additionalPrinterColumns": [{"name": "A", "type": "string", "jsonPath": ".spec.a", "priority": 1}],
        "shortNames": ["ap"],
        "categories": ["all"],
        "metadata": {"labels": {"a": "b"}, "annotations": {"c": "d"}},
    }
    external = {"id": "ext", "externalRef": {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}}}
    selected = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"selector": {"matchLabels": {"a": "${b}"}}},
    }
    computed = {"apiVersion": "v1", "kind": "Secret", "metadata": {"selector": "${schema.spec.selector}"}}
    resources = [
        {
            **RESOURCE,
            "readyWhen": ["${a}"],
            "includeWhen": ["${b}"],
            "propagateWhen": ["${c}"],
            "forEach": [{"x": "${d}"}],
        },
        external,
        {"id": "many", "externalRef": selected},
        {"id": "computed", "externalRef": computed},
    ]
    fields = {
        "propagateWhen": ["${e}"],
        "revisionManagement": {"historyLimit": 0, "updatePolicy": {"type": "Manual"}},
    }

    stored = await client.create(definition(*resources, schema=schema, **fields), validation="Strict")

    assert stored["spec"] == {"schema": schema, "resources": resources, **fields}


async def test_a_definition_may_have_no_resources(client: Client) -> None:
    made = definition()
    del made["spec"]["resources"]

    assert (await client.create(made, validation="Strict"))["spec"]["schema"]["kind"] == "App"


async def test_the_status_of_a_definition_has_the_fields_of_upstream_and_of_revisions(client: Client) -> None:
    stored = await client.create(definition())
    status = {
        "state": "Active",
        "topologicalOrder": ["a", "b"],
        "resources": [{"id": "b", "dependencies": [{"id": "a"}]}],
        "conditions": [
            {"type": "Ready", "status": "True", "reason": "Ready", "message": "", "observedGeneration": 1,
             "lastTransitionTime": "2026-01-01T00:00:00Z"}
        ],
        "lastIssuedRevision": 3,
        "observedGeneration": 1,
        "currentRevision": 3,
        "currentRevisionName": "app-rev-3",
        "currentRevisionHash": "abc",
        "revisionHistory": [
            {"revision": 3, "createdAt": "2026-01-01T00:00:00Z", "current": True, "instanceCount": 2}
        ],
    }  # fmt: skip

    written = await client.update({**stored, "status": status}, subresource="status", validation="Strict")

    assert written["status"] == status


async def test_the_statuses_of_revisions_have_their_fields(client: Client) -> None:
    one, other = await client.create(revision()), await client.create(input_revision())
    status = {
        "specHash": "abc", "createdAt": "2026-01-01T00:00:00Z", "superseded": False, "instanceCount": 1,
        "topologicalOrder": ["a"], "admitted": ["uid-1"], "conditions": [{"type": "Ready", "status": "True"}],
    }  # fmt: skip
    input_status = {
        "specHash": "abc", "createdAt": "2026-01-01T00:00:00Z", "propagationStatus": "Completed",
        "resourcesAtRevision": 1, "totalResources": 1, "superseded": True,
    }  # fmt: skip

    for obj, wanted in ((one, status), (other, input_status)):
        written = await client.update({**obj, "status": wanted}, subresource="status", validation="Strict")
        assert written["status"] == wanted


# What is refused


@pytest.mark.check("RG-2")
@pytest.mark.parametrize(
    "change",
    [
        {"kind": "test"},
        {"kind": "A_b"},
        {"kind": "9A"},
        {"kind": "A" * 64},
        {"kind": None},
        {"apiVersion": "1"},
        {"apiVersion": "kro.run/v1"},
        {"apiVersion": None},
        {"scope": "Everywhere"},
        {"shortNames": ["App"]},
        {"shortNames": ["ap", "ap"]},
        {"shortNames": ["a" * 64]},
        {"shortNames": [f"a{number}" for number in range(33)]},
        {"categories": ["-a"]},
        {"additionalPrinterColumns": [{"name": "A", "type": "string"}]},
    ],
    ids=str,
)
async def test_a_schema_that_cannot_be_served_is_refused(client: Client, change: Obj) -> None:
    schema = {key: value for key, value in {**SCHEMA, **change}.items() if value is not None}

    with pytest.raises(Invalid):
        await client.create(definition(schema=schema))


@pytest.mark.check("RG-3")
@pytest.mark.parametrize(
    ("field", "value"), [("kind", "Other"), ("group", "b.io"), ("apiVersion", "v1"), ("scope", "Cluster")]
)
async def test_what_identifies_the_kind_is_immutable(client: Client, field: str, value: str) -> None:
    stored = await client.create(definition())

    assert await refusal(client, stored, {"spec": {"schema": {field: value}}}) == [
        f'"{value}": {field} is immutable'
    ]


@pytest.mark.check("RG-4")
@pytest.mark.parametrize("parts", [{"template": CONFIG_MAP, "externalRef": {}}, {}], ids=["both", "neither"])
async def test_a_resource_has_a_template_or_an_external_reference(client: Client, parts: Obj) -> None:
    external = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a"}}
    resource = {"id": "a", **({**parts, "externalRef": external} if parts else {})}

    with pytest.raises(Invalid, match="exactly one of template or externalRef must be provided"):
        await client.create(definition(resource))


async def test_an_external_reference_with_a_name_and_a_selector_is_stored_for_the_graph_to_refuse(
    client: Client,
) -> None:
    both = {"name": "a", "selector": {"matchLabels": {"a": "b"}}}
    external = {"apiVersion": "v1", "kind": "Secret", "metadata": both}

    stored = await client.create(definition({"id": "a", "externalRef": external}))

    assert stored["spec"]["resources"][0]["externalRef"]["metadata"] == both


@pytest.mark.parametrize(
    "fields",
    [
        {"revisionManagement": {"historyLimit": -1}},
        {"revisionManagement": {"updatePolicy": {"type": "Sometimes"}}},
        {"resources": [{"template": CONFIG_MAP}]},
        {"resources": [{**RESOURCE, "forEach": [{"a": "${x}", "b": "${y}"}]}]},
        {"resources": [{**RESOURCE, "forEach": [{}]}]},
    ],
    ids=str,
)
async def test_what_the_schema_forbids_is_refused(client: Client, fields: Obj) -> None:
    with pytest.raises(Invalid):
        await client.create({**definition(), "spec": {**definition()["spec"], **fields}})


async def test_a_misspelled_field_is_refused_by_strict_validation(client: Client) -> None:
    with pytest.raises(BadRequest, match="propagatesWhen"):
        await client.create(definition(propagatesWhen=[]), validation="Strict")


@pytest.mark.check("RG-68")
@pytest.mark.parametrize(
    "change",
    [
        {"revision": 2},
        {"schema": {"kind": "Other"}},
        {"schema": {"spec": {"name": "integer"}}},
        {"schema": {"spec": {"more": "string"}}},
        {"resources": []},
        {"resources": [{"id": "other", "template": CONFIG_MAP}]},
    ],
    ids=str,
)
async def test_a_revision_of_a_definition_is_immutable(client: Client, change: Obj) -> None:
    stored = await client.create(revision())

    assert await refusal(client, stored, {"spec": change}) == ["spec is immutable"]


@pytest.mark.check("RG-109")
@pytest.mark.parametrize("change", [{"rgdRevision": 2}, {"instanceSpec": {"a": {"b": 2}}}], ids=str)
async def test_a_revision_of_an_input_is_immutable(client: Client, change: Obj) -> None:
    stored = await client.create(input_revision())

    assert await refusal(client, stored, {"spec": change}) == ["spec is immutable"]


@pytest.mark.parametrize("made", [revision, input_revision])
async def test_metadata_of_a_revision_may_change(client: Client, made: Any) -> None:
    stored = await client.create(made())

    labelled = await client.patch(meta.ref(stored), {"metadata": {"labels": {"a": "b"}}}, how=PatchType.MERGE)

    assert meta.labels(labelled) == {"a": "b"}


async def test_controllers_do_not_run_where_the_current_revision_would_be_pruned() -> None:
    """Upstream's definition does not declare it, and instances follow it."""
    theirs, *_ = definitions()
    [version] = theirs["spec"]["versions"]
    schema = version["schema"]["openAPIV3Schema"]
    status = schema["properties"]["status"]
    kept = {name: one for name, one in status["properties"].items() if name != "currentRevision"}
    properties = {**schema["properties"], "status": {**status, "properties": kept}}
    lacking = {**version, "schema": {"openAPIV3Schema": {**schema, "properties": properties}}}
    async with EmbeddedCluster(Settings(families="none")) as cluster:
        client = cluster.client()
        crd = {**theirs, "spec": {**theirs["spec"], "versions": [lacking]}}
        await client.create(crd, manager="helm")
        with pytest.raises(
            SettingsError, match="was created by helm and lacks status.currentRevision"
        ) as wrong:
            await install(client, [family()])
        assert "lamina crds" in (wrong.value.hint or "")

        await client.apply(theirs, manager="kubectl", force=True)
        await install(client, [family()])
