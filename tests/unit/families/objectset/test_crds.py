"""The definitions as an API server serves them: what it accepts, what it refuses and with which message."""

import json
from collections.abc import AsyncIterator, Iterator
from itertools import chain
from typing import Any

import pytest

from lamina.client.client import Client, PatchType
from lamina.control_plane.cluster import EmbeddedCluster
from lamina.core.crd.descriptions import undescribed
from lamina.errors import BadRequest, Invalid
from lamina.families.objectset.crds import definitions
from lamina.families.objectset.descriptions import DESCRIPTIONS
from lamina.families.objectset.labels import (
    API_VERSION,
    CLUSTER_DEPLOYMENT,
    DEPLOYMENT,
    DEPLOYMENTS,
    PHASE,
    PHASES,
    SET,
    SETS,
    SLICE,
    SLICES,
)
from lamina.objects import meta
from lamina.objects.types import GroupKind, Made, Obj
from lamina.settings import Settings

TABLE = {"accept": "application/json;as=Table;v=v1;g=meta.k8s.io"}
EVERY = tuple(chain(SLICES, PHASES, SETS, DEPLOYMENTS))
CLUSTER = {kinds[1] for kinds in (SLICES, PHASES, SETS, DEPLOYMENTS)}

CONFIG_MAP: Obj = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "web"}, "data": {"k": "v1"}}
OTHER: Obj = {**CONFIG_MAP, "data": {"k": "v2"}}
PROBES: Obj = {
    "selector": {"kind": {"group": "", "kind": "ConfigMap"}},
    "probes": [{"fieldsEqual": {"fieldA": ".metadata.name", "fieldB": ".metadata.annotations.name"}}],
}


def phases(manifest: Obj = CONFIG_MAP, **stated: Any) -> list[Obj]:
    return [{"name": "config", "objects": [{"object": manifest, **stated}]}]


SPECS: Obj = {
    "ObjectSet": {
        "previous": [{"name": "v0"}],
        "phases": phases(),
        "availabilityProbes": [PROBES],
        "successDelaySeconds": 3,
        "collisionProtection": "Prevent",
    },
    "ObjectDeployment": {
        "selector": {"matchLabels": {"app": "web"}},
        "template": {"metadata": {"labels": {"app": "web"}}, "spec": {"phases": phases()}},
    },
    "ObjectSetPhase": {
        "revision": 1,
        "previous": [{"name": "v0"}],
        "availabilityProbes": [PROBES],
        "objects": [{"object": CONFIG_MAP}],
    },
}


def made(kind: GroupKind, **changes: Any) -> Made:
    """Return an object of a kind, with some fields of its spec changed."""
    metadata = {"name": "web"} if kind in CLUSTER else {"name": "web", "namespace": "default"}
    named: Made = {"apiVersion": API_VERSION, "kind": kind.kind, "metadata": metadata}
    if kind in SLICES:
        return {**named, "objects": [{"object": CONFIG_MAP}], **changes}
    return {**named, "spec": {**SPECS[kind.kind.removeprefix("Cluster")], **changes}}


async def patch(client: Client, kind: GroupKind, change: Obj) -> Made:
    return await client.patch(meta.ref(made(kind)), change, how=PatchType.MERGE)


async def refusal(client: Client, kind: GroupKind, change: Obj) -> list[str]:
    """Return the messages with which a change is refused."""
    with pytest.raises(Invalid) as refused:
        await patch(client, kind, change)
    return [cause.message.removeprefix("Invalid value: ") for cause in refused.value.causes]


async def headings(client: Client, kind: GroupKind) -> list[tuple[str, int]]:
    """Return the columns of a kind with their priority, 1 for those of the wide output."""
    path = f"/apis/{API_VERSION}/{kind.kind.lower()}s"
    table = json.loads(await client.request("GET", path, headers=TABLE))
    return [(one["name"], one["priority"]) for one in table["columnDefinitions"] if one["name"] != "Name"]


@pytest.fixture
async def client() -> AsyncIterator[Client]:
    """A client of a server that has the definitions, and no controller for them."""
    async with EmbeddedCluster(Settings(families="none")) as cluster:
        client = cluster.client()
        for definition in definitions():
            await client.create(definition)
        yield client


# The kinds


async def test_the_kinds_are_served_under_their_names(client: Client) -> None:
    kinds = await client.discover()

    found = {kind: kinds.find(API_VERSION, kind.kind) for kind in EVERY}

    assert {kind.kind: one.short for kind, one in found.items() if one} == {
        "ObjectSlice": (),
        "ClusterObjectSlice": ("clobjslice", "cosl"),
        "ObjectSetPhase": ("objsetphase", "osp"),
        "ClusterObjectSetPhase": ("clobjsetphase", "cosp"),
        "ObjectSet": ("objset", "os"),
        "ClusterObjectSet": ("clobjset", "cos"),
        "ObjectDeployment": ("objdeploy", "od"),
        "ClusterObjectDeployment": ("clobjdeploy", "cod"),
    }
    for kind, one in found.items():
        assert one is not None
        assert one.plural == f"{kind.kind.lower()}s"
        assert one.namespaced is (kind not in CLUSTER)
        assert ("status" in one.subresources) is (kind not in SLICES)


def test_a_kind_and_its_cluster_kind_have_the_same_schema() -> None:
    schemas = {one["spec"]["names"]["kind"]: one["spec"]["versions"][0]["schema"] for one in definitions()}

    for namespaced, cluster in (SETS, DEPLOYMENTS, PHASES, SLICES):
        assert schemas[namespaced.kind] == schemas[cluster.kind]


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


@pytest.mark.parametrize("kind", SETS)
async def test_the_columns_of_a_set_are_those_of_upstream(client: Client, kind: GroupKind) -> None:
    assert await headings(client, kind) == [
        ("Available", 0),
        ("Paused", 0),
        ("Archived", 1),
        ("Succeeded", 1),
        ("InTransition", 1),
        ("Revision", 0),
        ("Age", 0),
    ]


async def test_the_columns_of_the_other_kinds_are_those_of_upstream(client: Client) -> None:
    shown = {kind: [name for name, _ in await headings(client, kind)] for kind in EVERY if kind not in SETS}

    assert shown.pop(DEPLOYMENT) == ["Available", "Progressing", "Paused", "Revision", "Age"]
    assert shown.pop(CLUSTER_DEPLOYMENT) == ["Available", "Revision", "Progressing", "Paused", "Age"]
    assert [shown.pop(kind) for kind in PHASES] == [["Available", "Paused", "Revision", "Age"]] * 2
    assert [shown.pop(kind) for kind in SLICES] == [["Age"]] * 2
    assert not shown


async def test_the_revision_of_a_set_is_shown_from_its_spec(client: Client) -> None:
    await client.create(made(SET, revision=7))

    table = json.loads(await client.request("GET", f"/apis/{API_VERSION}/objectsets", headers=TABLE))

    columns = [one["name"] for one in table["columnDefinitions"]]
    assert str(table["rows"][0]["cells"][columns.index("Revision")]) == "7"


# What is accepted


@pytest.mark.parametrize("kind", EVERY)
async def test_manifests_of_the_original_pass_strict_validation(client: Client, kind: GroupKind) -> None:
    stored = await client.create(made(kind), validation="Strict")

    assert meta.uid(stored)


@pytest.mark.parametrize("kind", SETS)
async def test_a_previous_revision_may_state_its_kind_and_group(client: Client, kind: GroupKind) -> None:
    previous = [{"name": "v0", "kind": kind.kind, "group": kind.group}]

    stored = await client.create(made(kind, previous=previous), validation="Strict")

    assert stored["spec"]["previous"] == previous


@pytest.mark.parametrize(
    ("kind", "spec"),
    [
        (SET, {"progressDeadlineSeconds": 600, "collisionProtection": "IfNoController"}),
        (
            DEPLOYMENT,
            {
                "progressDeadlineSeconds": 600,
                "template": {"metadata": {}, "spec": {"collisionProtection": "None"}},
            },
        ),
    ],
)
async def test_the_fields_that_upstream_lacks_are_kept(client: Client, kind: GroupKind, spec: Obj) -> None:
    stored = await client.create(made(kind, **spec), validation="Strict")

    assert {field: stored["spec"][field] for field in spec} == spec


async def test_a_manifest_is_kept_whole_and_gets_no_defaults(client: Client) -> None:
    manifest = {**CONFIG_MAP, "kind": "Widget", "spec": {"any": [1, {"nullable": None}]}}

    stored = await client.create(made(SET, phases=phases(manifest)), validation="Strict")

    assert stored["spec"]["phases"] == phases(manifest)


async def test_an_unknown_collision_protection_is_stored_for_the_preflight_to_report(client: Client) -> None:
    stored = await client.create(made(SET, phases=phases(collisionProtection="Sometimes")))

    assert stored["spec"]["phases"] == phases(collisionProtection="Sometimes")


async def test_a_set_without_phases_is_valid_and_active(client: Client) -> None:
    bare = {field: value for field, value in made(SET).items() if field != "spec"}

    stored = await client.create(bare, validation="Strict")

    assert stored["spec"] == {"lifecycleState": "Active"}


async def test_a_deployment_keeps_ten_revisions_by_default(client: Client) -> None:
    stored = await client.create(made(DEPLOYMENT))

    assert stored["spec"]["revisionHistoryLimit"] == 10


async def test_a_condition_probe_expects_true_by_default(client: Client) -> None:
    probes = [{**PROBES, "probes": [{"condition": {"type": "Ready"}}]}]

    stored = await client.create(made(SET, availabilityProbes=probes))

    assert stored["spec"]["availabilityProbes"][0]["probes"] == [
        {"condition": {"type": "Ready", "status": "True"}}
    ]


async def test_the_status_of_a_set_is_a_subresource_with_all_that_upstream_writes(client: Client) -> None:
    status = {
        "conditions": [
            {
                "type": "my.org/Ready",
                "status": "True",
                "reason": "Ready",
                "message": "",
                "lastTransitionTime": "2026-01-01T00:00:00Z",
                "observedGeneration": 1,
            }
        ],
        "revision": 1,
        "remotePhases": [{"name": "web-config", "uid": "1"}],
        "controllerOf": [{"kind": "ConfigMap", "group": "", "name": "web", "namespace": "a", "version": ""}],
    }
    stored = await client.create({**made(SET), "status": status})
    assert "status" not in stored

    written = await client.update({**stored, "status": status}, subresource="status", validation="Strict")

    assert written["status"] == status


# What is refused


@pytest.mark.parametrize(
    ("kind", "spec", "field"),
    [
        (SET, {"lifecycleState": "Stopped"}, "spec.lifecycleState"),
        (SET, {"progressDeadlineSeconds": 0}, "spec.progressDeadlineSeconds"),
        (SET, {"previous": [{"kind": "ObjectSet"}]}, "spec.previous[0].name"),
        (SET, {"phases": [{"objects": []}]}, "spec.phases[0].name"),
        (SET, {"phases": [{"name": "p", "objects": [{}]}]}, "spec.phases[0].objects[0].object"),
        (SET, {"phases": phases({"metadata": {}})}, "spec.phases[0].objects[0].object.kind"),
        (
            SET,
            {"phases": phases(conditionMappings=[{"sourceType": "Ready", "destinationType": "Ready"}])},
            "spec.phases[0].objects[0].conditionMappings[0].destinationType",
        ),
        (
            SET,
            {"availabilityProbes": [{"selector": {}, "probes": []}]},
            "spec.availabilityProbes[0].selector.kind",
        ),
        (DEPLOYMENT, {"selector": None}, "spec.selector"),
        (DEPLOYMENT, {"template": {"spec": {}}}, "spec.template.metadata"),
        (DEPLOYMENT, {"progressDeadlineSeconds": -1}, "spec.progressDeadlineSeconds"),
        (PHASE, {"revision": None}, "spec.revision"),
        (PHASE, {"objects": None}, "spec.objects"),
        (SLICE, {"objects": None}, "objects"),
    ],
)
async def test_what_the_schema_forbids_is_refused_by_field(
    client: Client, kind: GroupKind, spec: Obj, field: str
) -> None:
    with pytest.raises(Invalid) as refused:
        await client.create(made(kind, **spec))

    assert field in {cause.field for cause in refused.value.causes}


async def test_a_misspelled_field_is_refused_by_strict_validation(client: Client) -> None:
    with pytest.raises(BadRequest, match="spec.succesDelaySeconds"):
        await client.create(made(SET, succesDelaySeconds=1), validation="Strict")


async def test_an_entry_of_controller_of_needs_a_version_though_it_is_empty(client: Client) -> None:
    stored = await client.create(made(SET))
    entry = {"kind": "ConfigMap", "group": "", "name": "web"}

    with pytest.raises(Invalid, match=r"status.controllerOf\[0\].version"):
        await client.update({**stored, "status": {"controllerOf": [entry]}}, subresource="status")


# Immutability

FROZEN: dict[str, Any] = {
    "previous": [{"name": "v1"}],
    "phases": phases(OTHER),
    "availabilityProbes": [],
    "successDelaySeconds": 60,
    "collisionProtection": "None",
}


@pytest.mark.parametrize("kind", SETS)
@pytest.mark.parametrize("field", FROZEN)
async def test_what_a_set_rolls_out_is_immutable(client: Client, kind: GroupKind, field: str) -> None:
    await client.create(made(kind))

    assert await refusal(client, kind, {"spec": {field: FROZEN[field]}}) == [f"{field} is immutable"]
    assert await refusal(client, kind, {"spec": {field: None}}) == [f"{field} is immutable"]


@pytest.mark.parametrize("field", FROZEN)
async def test_what_a_set_does_not_state_cannot_be_added(client: Client, field: str) -> None:
    bare = made(SET)
    del bare["spec"][field]
    await client.create(bare)

    assert await refusal(client, SET, {"spec": {field: FROZEN[field]}}) == [f"{field} is immutable"]


@pytest.mark.parametrize("kind", SETS)
async def test_a_revision_is_set_once(client: Client, kind: GroupKind) -> None:
    await client.create(made(kind))

    await patch(client, kind, {"spec": {"revision": 3}})

    assert await refusal(client, kind, {"spec": {"revision": 4}}) == ["revision is immutable"]
    assert await refusal(client, kind, {"spec": {"revision": None}}) == ["revision is immutable"]


@pytest.mark.parametrize("kind", SETS)
async def test_lifecycle_state_and_progress_deadline_are_mutable(client: Client, kind: GroupKind) -> None:
    await client.create(made(kind))

    for change in (
        {"lifecycleState": "Paused"},
        {"lifecycleState": "Archived"},
        {"lifecycleState": "Active"},
    ):
        assert (await patch(client, kind, {"spec": change}))["spec"]["lifecycleState"] in change.values()
    for seconds in (60, 120):
        stored = await patch(client, kind, {"spec": {"progressDeadlineSeconds": seconds}})
        assert stored["spec"]["progressDeadlineSeconds"] == seconds
    assert (
        "progressDeadlineSeconds"
        not in (await patch(client, kind, {"spec": {"progressDeadlineSeconds": None}}))["spec"]
    )


async def test_the_whole_spec_of_a_set_cannot_be_removed(client: Client) -> None:
    await client.create(made(SET))

    assert set(await refusal(client, SET, {"spec": None})) == {f"{field} is immutable" for field in FROZEN}


@pytest.mark.parametrize("kind", PHASES)
async def test_only_paused_of_a_phase_is_mutable(client: Client, kind: GroupKind) -> None:
    await client.create(made(kind))
    changes = {
        "revision": 2,
        "previous": [],
        "availabilityProbes": None,
        "objects": [{"object": OTHER}],
    }

    for field, value in changes.items():
        assert await refusal(client, kind, {"spec": {field: value}}) == [f"{field} is immutable"]
    assert (await patch(client, kind, {"spec": {"paused": True}}))["spec"]["paused"] is True


@pytest.mark.parametrize("kind", SLICES)
async def test_the_objects_of_a_slice_are_immutable(client: Client, kind: GroupKind) -> None:
    await client.create(made(kind))

    assert await refusal(client, kind, {"objects": [{"object": OTHER}]}) == ["objects is immutable"]
    labelled = await patch(client, kind, {"metadata": {"labels": {"a": "b"}}})
    assert meta.labels(labelled) == {"a": "b"}


@pytest.mark.parametrize("kind", DEPLOYMENTS)
async def test_a_deployment_is_mutable(client: Client, kind: GroupKind) -> None:
    await client.create(made(kind))
    change = {
        "paused": True,
        "revisionHistoryLimit": 0,
        "progressDeadlineSeconds": 60,
        "template": {"spec": {"phases": phases(OTHER), "collisionProtection": "None"}},
    }

    stored = await patch(client, kind, {"spec": change})

    assert stored["spec"]["template"]["spec"]["phases"] == phases(OTHER)


async def test_a_set_with_a_thousand_objects_can_be_written(client: Client) -> None:
    objects = [
        {"object": {**CONFIG_MAP, "metadata": {"name": f"web-{number}"}, "data": {"k": "v" * 500}}}
        for number in range(1000)
    ]
    await client.create(made(SET, phases=[{"name": "config", "objects": objects}]))

    stored = await patch(client, SET, {"spec": {"lifecycleState": "Paused"}})

    assert stored["spec"]["lifecycleState"] == "Paused"
