"""Kinds defined by users: C32 to C40."""

import json
import re
from typing import Any

import pytest

from lamina.testing.waiting import eventually_sync
from tests.bed.kubectl import Kubectl
from tests.bed.scenarios import check
from tests.bed.wire import Api
from tests.conformance.checks.objects import CRDS, GROUP, config_map, definition, widget

TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
METADATA = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"
METADATA_LIST = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"


@check("C32")
def test_unknown_fields_are_pruned_and_absent_ones_defaulted(api: Api, widgets: str) -> None:
    anything = {"any": {"x": [1, None, 1.5]}}
    made = api.post(widgets, widget("pr", size=1, drop=1, opaque=anything)).json

    assert made["spec"] == {"color": "red", "opaque": anything, "replicas": 1, "size": 1}


@check("C33")
@pytest.mark.parametrize(
    ("spec", "causes"),
    [
        ({"size": 99},                     {("spec.size", "FieldValueInvalid")}),
        ({"size": 1, "color": "pink"},     {("spec.color", "FieldValueNotSupported")}),
        ({"size": "9"},                    {("spec.size", "FieldValueTypeInvalid")}),
        ({"size": 1, "tags": ["a", "a"]},  {("spec.tags[1]", "FieldValueDuplicate")}),
        ({"size": 1, "ports": [{"name": "x"}, {"name": "x"}]}, {("spec.ports[1]", "FieldValueDuplicate")}),
        ({"size": 99, "color": "pink"},    {("spec.size", "FieldValueInvalid"),
                                            ("spec.color", "FieldValueNotSupported")}),
        ({},                               {("spec.size", "FieldValueRequired")}),
    ],
)  # fmt: skip
def test_what_the_schema_forbids_is_named_field_by_field(
    api: Api, widgets: str, spec: dict[str, Any], causes: set[tuple[str, str]]
) -> None:
    refused = api.post(widgets, widget("bad", **spec)).json
    details = refused["details"]

    assert (refused["code"], refused["reason"]) == (422, "Invalid")
    assert (details["kind"], details["group"]) == ("Widget", GROUP)
    assert causes <= {(one["field"], one["reason"]) for one in details["causes"]}


@check("C34")
def test_rules_and_transition_rules_are_evaluated(api: Api, widgets: str) -> None:
    crossed = api.post(widgets, widget("cel", size=1, low=5, high=1)).json
    api.post(widgets, widget("cel", size=1, fixed="a"))
    changed = api.patch(f"{widgets}/cel", {"spec": {"fixed": "b"}}).json

    assert crossed["code"] == 422
    [cause] = crossed["details"]["causes"]
    assert (cause["reason"], cause["field"]) == ("FieldValueInvalid", "spec.low")
    assert re.fullmatch(r"Invalid value: .*low must not exceed high", cause["message"])
    assert changed["code"] == 422
    assert (
        changed["message"] == f'Widget.{GROUP} "cel" is invalid: spec.fixed: Invalid value: "b": is immutable'
    )


@check("C35")
def test_bad_definitions_are_refused(api: Api, request: pytest.FixtureRequest) -> None:
    # A server that wrongly accepts one must not influence the next test.
    request.addfinalizer(lambda: api.delete(f"{CRDS}/foos.{GROUP}"))

    def refused(schema: dict[str, Any] | None, name: str = "foos") -> list[str]:
        answer = api.post(CRDS, definition("foos", "Foo", schema, name=name)).json
        assert answer["code"] == 422
        return [cause["field"] for cause in answer["details"]["causes"]]

    root = "spec.versions[0].schema.openAPIV3Schema"
    untyped = {"properties": {"a": {"type": "string"}}}
    ruled = {"type": "object", "x-kubernetes-validations": [{"rule": "self.nope > 1"}]}

    assert refused(None) == [root]
    assert refused({"type": "object"}, name="wrong") == ["metadata.name"]
    [field] = refused({"type": "object", "properties": {"spec": untyped}})
    assert re.fullmatch(r"spec.*openAPIV3Schema\.properties\[spec\]\.type", field)
    [field] = refused({"type": "object", "properties": {"spec": ruled}})
    assert re.fullmatch(
        r"spec.*openAPIV3Schema\.properties\[spec\]\.x-kubernetes-validations\[0\]\.rule", field
    )


@check("C36")
def test_objects_are_selected_by_the_fields_the_definition_names(
    api: Api, kubectl: Kubectl, widgets: str, configmaps: str
) -> None:
    for color in ("green", "blue"):
        api.post(widgets, widget(color, size=1, color=color))
    api.post(configmaps, config_map("one"))

    assert (
        kubectl("get", "wd", "--field-selector", "spec.color=green", "-o", "name")
        == f"widget.{GROUP}/green\n"
    )
    unnamed = api.get(f"{widgets}?fieldSelector=spec.size%3D3").json
    assert (unnamed["code"], unnamed["reason"]) == (400, "BadRequest")
    assert unnamed["message"] == "field label not supported: spec.size"
    built_in = api.get(f"{configmaps}?fieldSelector=data.x%3D1").json
    assert (built_in["code"], built_in["reason"]) == (400, "BadRequest")
    found = api.get(f"{configmaps}?fieldSelector=metadata.name%3Done,").json
    assert [one["metadata"]["name"] for one in found["items"]] == ["one"]


@check("C37")
def test_kubectl_prints_the_columns_of_the_definition(
    api: Api, kubectl: Kubectl, widgets: str, configmaps: str
) -> None:
    api.post(widgets, widget("st", size=2))
    api.patch(f"{widgets}/st/status", {"status": {"conditions": [{"type": "Ready", "status": "True"}]}})
    api.post(configmaps, config_map("empty"))

    assert re.match(r"NAME +SIZE +READY +AGE\nst +2 +True +\d+", kubectl("get", "wd", "st"))
    wide = kubectl("get", "wd", "st", "-o", "wide")
    assert re.match(r"NAME +SIZE +READY +COLOR +AGE\nst +2 +True +red +\d+", wide)
    assert re.match(r"NAME +DATA +AGE\nempty +0 +\d+", kubectl("get", "cm", "empty"))


@check("C38")
def test_tables_and_metadata_are_had_for_the_asking(api: Api, widgets: str) -> None:
    for name in ("one", "two"):
        api.post(widgets, widget(name, size=1))

    table = api.get(f"{widgets}?limit=1", headers={"Accept": f"{TABLE},application/json"}).json
    assert (table["kind"], table["apiVersion"]) == ("Table", "meta.k8s.io/v1")
    assert [one["name"] for one in table["columnDefinitions"]] == ["Name", "Size", "Ready", "Color", "Age"]
    assert table["columnDefinitions"][0]["format"] == "name"
    assert table["rows"][0]["object"]["kind"] == "PartialObjectMetadata"
    assert "continue" in table["metadata"]

    bare = api.get(f"{widgets}?includeObject=None&limit=1", headers={"Accept": TABLE}).json
    assert bare["rows"][0].get("object") is None

    several = api.get(widgets, headers={"Accept": METADATA_LIST}).json
    assert (several["kind"], several["items"][0]["kind"]) == (
        "PartialObjectMetadataList",
        "PartialObjectMetadata",
    )
    assert "spec" not in several["items"][0]

    single = api.get(f"{widgets}/one", headers={"Accept": METADATA}).json
    assert (single["kind"], sorted(single)) == ("PartialObjectMetadata", ["apiVersion", "kind", "metadata"])


@check("C38")
@pytest.mark.parametrize(
    ("accept", "code"),
    [
        ("application/json;as=Table;v=v9;g=meta.k8s.io",           406),
        ("text/html",                                              406),
        ("application/vnd.kubernetes.protobuf,application/json",   200),
        ("*/*",                                                    200),
    ],
)  # fmt: skip
def test_what_cannot_be_had_is_not_acceptable(api: Api, widgets: str, accept: str, code: int) -> None:
    assert api.get(widgets, headers={"Accept": accept}).code == code


@check("C39")
def test_deleting_a_definition_deletes_its_objects_and_its_endpoint(
    api: Api, kubectl: Kubectl, namespace: str
) -> None:
    name, path = f"mores.{GROUP}", f"/apis/{GROUP}/v1/namespaces/{namespace}/mores"
    anything = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    more = {"apiVersion": f"{GROUP}/v1", "kind": "More", "anything": {"goes": 1}}
    held = more | {"metadata": {"name": "held", "finalizers": [f"{GROUP}/hold"]}}

    def ending() -> tuple[list[str], list[str]]:
        found = api.get(f"{CRDS}/{name}").json
        conditions = found.get("status", {}).get("conditions") or []
        terminating = [one["status"] for one in conditions if one["type"] == "Terminating"]
        return found["metadata"].get("finalizers", []), terminating

    kubectl("create", "-f", "-", given=json.dumps(definition("mores", "More", anything)))
    kubectl("wait", "--for=condition=Established", f"crd/{name}", "--timeout=120s")
    eventually_sync(lambda: api.get(path).code, lambda found: found == 200)
    eventually_sync(lambda: kubectl.attempt("create", "-f", "-", given=json.dumps(held)).code == 0)
    kubectl("delete", "crd", name, "--wait=false")

    eventually_sync(ending, lambda found: found == (["customresourcecleanup.apiextensions.k8s.io"], ["True"]))
    another = more | {"metadata": {"name": "another"}}
    eventually_sync(lambda: api.post(f"{path}?dryRun=All", another).code, lambda code: code in {403, 405})

    api.patch(f"{path}/held", {"metadata": {"finalizers": None}})
    kubectl("wait", "--for=delete", f"crd/{name}", "--timeout=120s")
    eventually_sync(lambda: api.get(path).code, lambda found: found == 404)


@check("C40")
def test_a_name_that_is_taken_is_not_accepted(api: Api, widget_kind: str) -> None:
    name = f"gadgets.{GROUP}"
    made = api.post(CRDS, definition("gadgets", "Widget", {"type": "object"}))
    assert made.code == 201, made.text

    def conditions() -> dict[str, str]:
        found = api.get(f"{CRDS}/{name}").json
        return {one["type"]: one["status"] for one in found.get("status", {}).get("conditions") or []}

    eventually_sync(conditions, lambda found: found == {"NamesAccepted": "False", "Established": "False"})
    assert api.delete(f"{CRDS}/{name}").code == 200
