"""Changing objects, by PUT and by patches: C17 to C23."""

import json

from tests.bed.kubectl import Kubectl
from tests.bed.scenarios import check
from tests.bed.wire import JSON, JSON_PATCH, MERGE, STRATEGIC, Api
from tests.conformance.checks.objects import config_map, widget


@check("C17")
def test_an_update_is_refused_when_it_was_made_from_an_old_version(api: Api, configmaps: str) -> None:
    def put(name: str, version: str | None = None, **data: str) -> tuple[int, str | None]:
        body = config_map(name, **data)
        if version:
            body["metadata"]["resourceVersion"] = version
        answer = api.put(f"{configmaps}/oc", body)
        return answer.code, answer.json.get("message")

    first = api.post(configmaps, config_map("oc", a="1")).json["metadata"]["resourceVersion"]

    assert put("oc", first, a="2") == (200, None)
    assert put("oc", first, a="3") == (
        409,
        'Operation cannot be fulfilled on configmaps "oc": the object has been modified; '
        "please apply your changes to the latest version and try again",
    )
    assert put("oc", a="4") == (200, None)
    assert put("other")[0] == 400
    assert api.put(f"{configmaps}/absent", config_map("absent")).code == 404


@check("C18")
def test_an_update_of_a_custom_object_must_name_a_version(api: Api, widgets: str) -> None:
    api.post(widgets, widget("put", size=1))
    refused = api.put(f"{widgets}/put", widget("put", size=2)).json

    assert refused["code"] == 422
    assert refused["details"]["causes"][0]["field"] == "metadata.resourceVersion"


@check("C19")
def test_a_write_that_changes_nothing_keeps_the_version(api: Api, configmaps: str) -> None:
    made = api.post(configmaps, config_map("still", a="1")).json
    patched = api.patch(f"{configmaps}/still", {"data": {"a": "1"}}).json
    put = api.put(f"{configmaps}/still", config_map("still", a="1")).json

    assert patched["metadata"]["resourceVersion"] == made["metadata"]["resourceVersion"]
    assert put["metadata"]["resourceVersion"] == made["metadata"]["resourceVersion"]


@check("C20")
def test_a_merge_patch_removes_with_null_and_checks_a_version_in_it(api: Api, configmaps: str) -> None:
    api.post(configmaps, config_map("mp", a="1", b="2"))
    path = f"{configmaps}/mp"

    assert api.patch(path, {"data": {"a": None, "c": "3"}}).json["data"] == {"b": "2", "c": "3"}
    assert api.patch(path, {"metadata": {"resourceVersion": "1"}, "data": {"c": "9"}}).code == 409
    assert api.patch(path, {}, JSON).code == 415
    assert api.patch(f"{configmaps}/absent", {}, MERGE).code == 404


@check("C21")
def test_a_json_patch_is_carried_out_in_order_or_not_at_all(api: Api, configmaps: str) -> None:
    api.post(configmaps, config_map("jp", a="1"))
    path = f"{configmaps}/jp"
    steps = [
        {"op": "test", "path": "/data/a", "value": "1"},
        {"op": "copy", "from": "/data/a", "path": "/data/b"},
        {"op": "replace", "path": "/data/a", "value": "2"},
        {"op": "add", "path": "/metadata/labels", "value": {"x~y": "z"}},
        {"op": "remove", "path": "/metadata/labels"},
    ]

    assert api.patch(path, steps, JSON_PATCH).json["data"] == {"a": "2", "b": "1"}
    assert api.patch(path, [{"op": "test", "path": "/data/a", "value": "no"}], JSON_PATCH).code == 422
    assert api.patch(path, [{"op": "remove", "path": "/data/absent"}], JSON_PATCH).code == 422
    assert api.patch(path, {}, JSON_PATCH).code == 400
    assert api.get(path).json["data"] == {"a": "2", "b": "1"}


@check("C22")
def test_a_strategic_patch_merges_containers_by_name(kubectl: Kubectl) -> None:
    def patch(*containers: object) -> list[dict[str, object]]:
        body = {"spec": {"template": {"spec": {"containers": containers}}}}
        return list(
            json.loads(kubectl("patch", "deploy", "smp", "-o", "json", "-p", json.dumps(body)))["spec"][
                "template"
            ]["spec"]["containers"]
        )

    containers = [
        {"name": "a", "image": "i1", "env": [{"name": "X", "value": "1"}]},
        {"name": "b", "image": "i2"},
    ]
    template = {"metadata": {"labels": {"a": "smp"}}, "spec": {"containers": containers}}
    spec = {"replicas": 0, "selector": {"matchLabels": {"a": "smp"}}, "template": template}
    deployment = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "smp"}, "spec": spec}
    kubectl("create", "-f", "-", given=json.dumps(deployment))

    merged = patch({"name": "a", "image": "i9", "env": [{"name": "Y", "value": "2"}]})
    assert [(one["name"], one["image"]) for one in merged] == [("a", "i9"), ("b", "i2")]
    variables = json.loads(json.dumps(merged[0]["env"]))
    assert {one["name"] for one in variables} == {"X", "Y"}

    left = patch({"name": "b", "$patch": "delete"})
    assert [one["name"] for one in left] == ["a"]


@check("C23")
def test_a_custom_object_takes_no_strategic_patch(api: Api, widgets: str) -> None:
    api.post(widgets, widget("sm", size=1))
    refused = api.patch(f"{widgets}/sm", {"spec": {"size": 2}}, STRATEGIC).json

    assert (refused["code"], refused["reason"]) == (415, "UnsupportedMediaType")
