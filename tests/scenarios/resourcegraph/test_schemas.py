"""Definitions as they are stored, and the schema of the kind that each one generates."""

from copy import deepcopy
from typing import Any

import pytest

from lamina.core.crd.kinds import is_established
from lamina.errors import Invalid
from lamina.objects import meta
from lamina.objects.types import Made, Obj
from tests.bed.scenarios import check
from tests.scenarios.resourcegraph.stage import (
    CONFIG,
    DELETING_KINDS,
    Stage,
    config_map,
    is_active,
    message,
    node,
    status,
)

pytestmark = pytest.mark.asyncio(loop_scope="session")

NAMED = node("config", config_map("${schema.spec.name}-cm"))
"""A resource that needs a name alone."""


def schema_of(crd: Obj) -> Made:
    """Return the schema of the spec of a generated kind."""
    (version,) = crd["spec"]["versions"]
    found: Made = version["schema"]["openAPIV3Schema"]["properties"]["spec"]
    return found


async def generated(stage: Stage, spec: Obj, *resources: Obj, **more: Any) -> Made:
    """Define a kind with these fields, and return the schema of its spec."""
    await stage.given_definition(*(resources or (NAMED,)), spec={"name": "string", **spec}, **more)
    return schema_of(await stage.client.get(stage.crd_ref()))


@check("RG-1")
async def test_a_definition_generates_a_kind_with_its_labels_and_reports_every_condition(
    stage: Stage,
) -> None:
    async with stage.running():
        found = await stage.given_definition()
        crd = await stage.client.get(stage.crd_ref())

    assert meta.name(crd) == f"apps.{stage.group}"
    assert is_established(crd)
    (version,) = crd["spec"]["versions"]
    assert (version["name"], version["served"], version["storage"]) == ("v1alpha1", True, True)
    assert version["subresources"] == {"status": {}}
    assert [(one["name"], one["jsonPath"]) for one in version["additionalPrinterColumns"]] == [
        ("State", ".status.state"),
        ("Ready", '.status.conditions[?(@.type=="Ready")].status'),
        ("Age", ".metadata.creationTimestamp"),
    ]
    assert meta.labels(crd) == {
        "kro.run/owned": "true",
        "kro.run/kro-version": "v0.9.4",
        "kro.run/resource-graph-definition-id": meta.uid(found),
        "kro.run/resource-graph-definition-name": meta.name(found),
    }
    assert status(found)["state"] == "Active"
    assert status(found)["topologicalOrder"] == ["config"]
    conditions = {one["type"]: one["status"] for one in status(found)["conditions"]}
    assert set(conditions.values()) == {"True"}
    assert {"GraphAccepted", "GraphRevisionsResolved", "KindReady", "ControllerReady", "Ready"} <= set(
        conditions
    )


@check("RG-2")
@pytest.mark.parametrize(
    ("kind", "schema"),
    [
        ("test", {}),
        ("A_b", {}),
        ("9A", {}),
        ("A" * 64, {}),
        ("App", {"apiVersion": "1"}),
        ("App", {"shortNames": ["AP"]}),
        ("App", {"shortNames": ["ap", "ap"]}),
    ],
)
async def test_the_server_refuses_a_kind_with_such_names(stage: Stage, kind: str, schema: Made) -> None:
    with pytest.raises(Invalid):
        await stage.client.create(stage.definition(kind=kind, schema=schema))
    assert await stage.get(stage.definition_ref()) is None


@check("RG-3")
async def test_the_identity_of_the_kind_is_immutable(stage: Stage) -> None:
    made = await stage.client.create(stage.definition())
    for field, value in {
        "kind": "Other",
        "group": f"other.{stage.group}",
        "apiVersion": "v1",
        "scope": "Cluster",
    }.items():
        with pytest.raises(Invalid, match=f"{field} is immutable"):
            await stage.edit(meta.ref(made), {"spec": {"schema": {field: value}}})
    assert (await stage.definition_now())["spec"] == made["spec"]


@check("RG-4")
async def test_a_resource_is_a_template_or_a_reference_by_name_or_by_selector(stage: Stage) -> None:
    template = config_map("x")
    by_both: Made = {"name": "x", "selector": {"matchLabels": {"a": "b"}}}
    reference: Made = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}}
    for more in ({"template": template, "externalRef": reference}, {}):
        with pytest.raises(Invalid, match="exactly one of template or externalRef must be provided"):
            await stage.client.create(stage.definition({"id": "a", **more}))
    async with stage.running():
        for kind, metadata in {"Both": by_both, "Neither": dict[str, Any]()}.items():
            external = {"id": "a", "externalRef": {**reference, "metadata": metadata}}
            text = await stage.refused_definition(external, name=kind.lower(), kind=kind)
            assert (
                "spec.resources[0].externalRef.metadata: exactly one of name or selector must be provided"
                in text
            )
            assert await stage.get(stage.crd_ref(kind)) is None


@check("RG-5")
async def test_a_kind_has_the_plural_that_upstream_gives_it(stage: Stage) -> None:
    plurals = {
        "Policy": "policies",
        "Gateway": "gateways",
        "Index": "indices",
        "Status": "statuses",
        "Bus": "buses",
        "Series": "series",
    }
    async with stage.running():
        for kind in plurals:
            await stage.client.create(stage.definition(name=kind.lower(), kind=kind))
        for kind, plural in plurals.items():
            await stage.until_definition(name=kind.lower())
            crd = await stage.client.get(stage.crd_ref(kind))
            assert meta.name(crd) == f"{plural}.{stage.group}"
            names = crd["spec"]["names"]
            assert (names["kind"], names["plural"], names["singular"]) == (kind, plural, kind.lower())


@check("RG-6")
async def test_an_enum_with_a_default_is_validated_and_defaulted(stage: Stage) -> None:
    async with stage.running():
        found = await generated(stage, {"mode": 'string | enum="a,b" default="a"'})
        assert found["properties"]["mode"] == {"type": "string", "enum": ["a", "b"], "default": "a"}

        with pytest.raises(Invalid, match="mode"):
            await stage.client.create(stage.instance("a1", mode="c"))
        assert (await stage.given_instance("a2"))["spec"]["mode"] == "a"


@check("RG-7")
async def test_a_field_that_is_no_simple_schema_is_refused_and_generates_no_kind(stage: Stage) -> None:
    fields = {
        "Pipes": ('string | enum="a,b" | default="a"', "|default"),
        "Bare": ("string | optional", "marker key 'optional' without a value"),
        # The blank ends the marker: what comes after it is another one.
        "Blank": ('string | default = "x"', "marker key '\"x\"' without a value"),
        "Empty": ("[]", "empty slice element type"),
        "Keys": ("map[integer]string", "map key must be string"),
        "Unknown": ("Foo", "unknown type: Foo"),
    }
    async with stage.running():
        for kind, (field, said) in fields.items():
            text = await stage.refused_definition(name=kind.lower(), kind=kind, spec={"field": field})
            assert said in text, text
            assert "spec.field" in text, text
            assert await stage.get(stage.crd_ref(kind)) is None
            found = await stage.definition_now(kind.lower())
            assert status(found)["state"] == "Inactive"
            assert not await stage.revisions(kind.lower())


@check("RG-8")
async def test_a_structure_of_defaults_is_defaulted_unless_a_child_is_required(stage: Stage) -> None:
    async with stage.running():
        found = await generated(
            stage,
            {
                "free": {
                    "level": 'string | default="info"',
                    "size": "integer | default=3",
                    "other": "string",
                },
                "bound": {"level": 'string | default="info"', "name": "string | required=true"},
            },
        )
        assert found["properties"]["free"]["default"] == {}
        assert "default" not in found["properties"]["bound"]
        assert found["properties"]["bound"]["required"] == ["name"]

        spec = (await stage.given_instance("a1"))["spec"]
        assert spec["free"] == {"level": "info", "size": 3}
        assert "bound" not in spec


@check("RG-9")
async def test_an_alias_that_is_required_makes_its_fields_required_and_no_items(stage: Stage) -> None:
    async with stage.running():
        found = await generated(
            stage,
            {"one": "Req", "many": "[]Req"},
            schema={"types": {"Req": "string | required=true"}},
        )
        assert found["required"] == ["one"]
        assert found["properties"]["one"] == {"type": "string"}
        assert found["properties"]["many"] == {"type": "array", "items": {"type": "string"}}

        with pytest.raises(Invalid, match="one"):
            await stage.client.create(stage.instance("a1"))
        await stage.given_instance("a2", one="x")


@check("RG-10")
async def test_unique_items_are_a_set(stage: Stage) -> None:
    async with stage.running():
        found = await generated(stage, {"tags": "[]string | uniqueItems=true minItems=1"})
        tags = found["properties"]["tags"]
        assert (tags["x-kubernetes-list-type"], tags["minItems"]) == ("set", 1)

        for wrong in (["x", "x"], []):
            with pytest.raises(Invalid, match="tags"):
                await stage.client.create(stage.instance("a1", tags=wrong))
        await stage.given_instance("a2", tags=["x", "y"])


@check("RG-11")
async def test_an_immutable_field_is_not_updated(stage: Stage) -> None:
    async with stage.running():
        await generated(stage, {"id": "string | immutable=true"})
        made = await stage.given_instance("a1", id="x")
        with pytest.raises(Invalid, match="field is immutable"):
            await stage.edit_spec("a1", id="y")
        assert (await stage.edit_spec("a1", id="x"))["spec"] == made["spec"]


@check("RG-12")
async def test_types_that_refer_to_each_other_or_to_nothing_are_refused(stage: Stage) -> None:
    async with stage.running():
        cycle = {"A": {"b": "B"}, "B": {"a": "A"}}
        text = await stage.refused_definition(
            name="cycle", kind="Cycle", spec={"a": "A"}, schema={"types": cycle}
        )
        assert "cyclic dependency" in text
        unused = {"Used": {"x": "string"}, "Unused": {"y": "T"}}
        text = await stage.refused_definition(
            name="unused", kind="Unused", spec={"a": "Used"}, schema={"types": unused}
        )
        assert "T" in text and "unknown type" in text, text


@check("RG-13")
async def test_a_pattern_keeps_its_backslashes(stage: Stage) -> None:
    async with stage.running():
        found = await generated(stage, {"version": r'string | pattern="^v\d+$"'})
        assert found["properties"]["version"]["pattern"] == r"^v\d+$"
        with pytest.raises(Invalid, match="version"):
            await stage.client.create(stage.instance("a1", version="1"))
        await stage.given_instance("a2", version="v12")


@check("RG-14")
async def test_a_free_object_keeps_its_fields_and_expressions_see_them(stage: Stage) -> None:
    level = node("config", config_map("${schema.spec.name}-cm", level="${schema.spec.settings.log.level}"))
    async with stage.running():
        await generated(stage, {"settings": "object"}, level)
        settings: Made = {"log": {"level": "debug", "to": ["a", {"b": 1}]}, "other": True}
        found = await stage.given_instance("a1", settings=deepcopy(settings))
        assert found["spec"]["settings"] == settings
        assert (await stage.until_object("a1-cm"))["data"] == {"level": "debug"}


@check("RG-15")
async def test_a_change_of_columns_alone_is_a_revision_that_only_restamps(stage: Stage) -> None:
    columns = [{"name": "Replicas", "type": "integer", "jsonPath": ".spec.replicas"}]
    async with stage.running():
        await stage.given_definition()
        await stage.given_instance("a1")
        before = await stage.until_object("a1-cm")
        await stage.settled()
        stage.journal.requests.clear()

        await stage.redefine(schema={"additionalPrinterColumns": columns})
        await stage.until_published(2)
        after = await stage.until_object(
            "a1-cm", lambda obj: meta.annotations(obj)["kro.run/rgd-revision"] == "2"
        )
        await stage.settled()

        (version,) = (await stage.client.get(stage.crd_ref()))["spec"]["versions"]
        assert version["additionalPrinterColumns"] == columns
        assert [one["spec"]["schema"].get("additionalPrinterColumns") for one in await stage.revisions()] == [
            None,
            columns,
        ]
        stamps = {"kro.run/rgd-revision": "2", "kro.run/input-revision": "2"}
        assert meta.annotations(after) == {**meta.annotations(before), **stamps}
        assert (after["data"], meta.labels(after), meta.uid(after)) == (
            before["data"],
            meta.labels(before),
            meta.uid(before),
        )
        assert len(stage.journal.written("ConfigMap")) == 1
        assert is_active(await stage.instance_now("a1"))


def _foreign_crd(stage: Stage) -> Made:
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"apps.{stage.group}", "labels": {"team": "blue"}},
        "spec": {
            "group": stage.group,
            "scope": "Namespaced",
            "names": {"kind": "App", "plural": "apps", "singular": "app", "listKind": "AppList"},
            "versions": [
                {
                    "name": "v1alpha1",
                    "served": True,
                    "storage": True,
                    "schema": {"openAPIV3Schema": schema},
                }
            ],
        },
    }


@check("RG-16")
async def test_the_kind_of_another_owner_is_neither_overwritten_nor_deleted(stage: Stage) -> None:
    theirs = await stage.client.create(_foreign_crd(stage))
    async with stage.running(DELETING_KINDS):
        made = await stage.client.create(stage.definition(CONFIG))
        text = await stage.until_refused("KindReady")
        assert "not owned by KRO" in text
        found = await stage.until_definition(lambda obj: status(obj).get("state") == "Inactive")
        assert not is_active(found)
        await stage.settled()

        await stage.client.delete(meta.ref(made))
        await stage.until_gone(meta.ref(made))
        await stage.settled()
        kept = await stage.client.get(stage.crd_ref())
        assert (kept["spec"], meta.labels(kept)) == (theirs["spec"], meta.labels(theirs))
        assert not meta.is_deleting(kept)
        assert not stage.journal.written("CustomResourceDefinition")


@check("RG-17")
async def test_a_second_definition_of_a_kind_is_inactive_and_leaves_the_first_alone(stage: Stage) -> None:
    async with stage.running(DELETING_KINDS):
        first = await stage.given_definition()
        before = await stage.client.get(stage.crd_ref())
        second = await stage.client.create(stage.definition(NAMED, name="other", spec={"name": "string"}))
        text = await stage.until_refused("KindReady", "other")
        assert f"owned by another ResourceGraphDefinition {meta.name(first)}" in text
        assert status(await stage.definition_now("other"))["state"] == "Inactive"

        await stage.client.delete(meta.ref(second))
        await stage.until_gone(meta.ref(second))
        after = await stage.client.get(stage.crd_ref())
        assert (after["spec"], meta.labels(after)) == (before["spec"], meta.labels(before))
        await stage.given_instance("a1")
        assert await stage.until_object("a1-cm")
        assert is_active(await stage.definition_now())


@check("RG-18")
async def test_a_kind_that_is_edited_by_hand_is_restored(stage: Stage) -> None:
    async with stage.running():
        made = await stage.given_definition()
        before = await stage.client.get(stage.crd_ref())
        (version,) = deepcopy(before["spec"]["versions"])
        version["additionalPrinterColumns"] = []
        version["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]["mine"] = {"type": "string"}
        await stage.edit(
            stage.crd_ref(),
            {
                "metadata": {"labels": {"kro.run/resource-graph-definition-id": "x"}},
                "spec": {"versions": [version]},
            },
        )
        after = await stage.until(
            stage.crd_ref(),
            lambda obj: obj["spec"] == before["spec"] and meta.labels(obj) == meta.labels(before),
        )
        assert meta.uid(after) == meta.uid(before)
        found = await stage.until_definition()
        assert meta.generation(found) == meta.generation(made)
        assert await stage.numbers() == [1]


@check("RG-18")
async def test_a_kind_that_is_deleted_by_hand_is_created_again(stage: Stage) -> None:
    async with stage.running():
        await stage.given_definition()
        before = await stage.client.get(stage.crd_ref())
        await stage.delete_crd()
        await stage.until(
            stage.crd_ref(),
            lambda obj: meta.uid(obj) != meta.uid(before) and is_established(obj),
        )
        found = await stage.until_definition()
        assert message(found, "KindReady") == "kind App has been accepted and ready"
        await stage.given_instance("a1")
        assert await stage.until_object("a1-cm")
        assert await stage.numbers() == [1]
