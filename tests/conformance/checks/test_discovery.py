"""Discovery, version and health: C01 to C09."""

import json
import re

from tests.bed.kubectl import Kubectl
from tests.bed.scenarios import check
from tests.bed.wire import Api
from tests.conformance.checks.objects import GROUP, NAMESPACES, config_map

AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"


@check("C01")
def test_it_tells_its_version_and_its_health(api: Api, kubectl: Kubectl) -> None:
    told = json.loads(kubectl("version", "-o", "json"))["serverVersion"]

    assert told["major"] == "1"
    assert re.match(r"v1\.\d+\.\d+", told["gitVersion"])
    assert kubectl("get", "--raw", "/readyz") == "ok"
    assert kubectl("get", "--raw", "/livez?verbose").startswith("[+]ping ok")
    assert api.get("/healthz").code == 200


@check("C02")
def test_plain_discovery_answers_with_and_without_a_trailing_slash(api: Api) -> None:
    core = api.get("/api").json
    groups = api.get("/apis/").json
    apps = api.get("/apis/apps/v1").json

    assert (core["kind"], core["versions"]) == ("APIVersions", ["v1"])
    assert groups["kind"] == "APIGroupList"
    assert "apps" in [group["name"] for group in groups["groups"]]
    [deployments] = [one for one in apps["resources"] if one["name"] == "deployments"]
    assert {"create", "get", "list", "patch", "update", "delete", "watch"} <= set(deployments["verbs"])
    assert api.get("/api/").code == 200
    assert api.get("/version/").code == 200


@check("C03")
def test_aggregated_discovery_tells_all_groups_at_once(api: Api) -> None:
    answer = api.get("/apis", headers={"Accept": f"{AGGREGATED},application/json"})

    assert answer.media_type.lower() == AGGREGATED.lower()
    assert answer.json["kind"] == "APIGroupDiscoveryList"
    assert answer.json["apiVersion"] == "apidiscovery.k8s.io/v2"
    [apps] = [one for one in answer.json["items"] if one["metadata"]["name"] == "apps"]
    scopes = [one["scope"] for one in apps["versions"][0]["resources"] if one["resource"] == "deployments"]
    assert scopes == ["Namespaced"]


@check("C04")
def test_kubectl_lists_resources_and_versions(kubectl: Kubectl) -> None:
    resources = [line.split() for line in kubectl("api-resources", "--no-headers").splitlines()]
    versions = kubectl("api-versions").splitlines()

    assert ["configmaps", "cm", "v1", "true", "ConfigMap"] in resources
    assert ["deployments", "deploy", "apps/v1", "true", "Deployment"] in resources
    assert ["leases", "coordination.k8s.io/v1", "true", "Lease"] in resources
    crds = ["customresourcedefinitions", "crd,crds", "apiextensions.k8s.io/v1", "false"]
    assert crds in [line[:4] for line in resources]
    assert {"apps/v1", "v1"} <= set(versions)


@check("C05")
def test_unknown_paths_and_methods_get_a_status(api: Api, namespace: str, configmaps: str) -> None:
    no_kind = api.get(f"{NAMESPACES}/{namespace}/nopes").json
    no_object = api.get(f"{configmaps}/absent").json
    no_method = api.delete(NAMESPACES).json

    assert (no_kind["kind"], no_kind["status"], no_kind["reason"], no_kind["code"]) == (
        "Status",
        "Failure",
        "NotFound",
        404,
    )
    assert no_kind["message"] == "the server could not find the requested resource"
    assert no_object["reason"] == "NotFound"
    assert no_object["details"] == {"name": "absent", "kind": "configmaps"}
    assert no_object["message"] == 'configmaps "absent" not found'
    assert api.get("/apis/no.such.group/v1").code == 404
    assert (no_method["reason"], no_method["code"]) == ("MethodNotAllowed", 405)


@check("C06")
def test_errors_and_lists_are_exactly_application_json(api: Api, configmaps: str) -> None:
    assert api.get(f"{configmaps}/absent").media_type == "application/json"
    assert api.get(configmaps).media_type == "application/json"
    assert api.post(configmaps, config_map("NOT VALID")).media_type == "application/json"


@check("C07")
def test_a_definition_becomes_established_and_can_be_discovered(
    api: Api, kubectl: Kubectl, widget_kind: str, widgets: str
) -> None:
    status = json.loads(kubectl("get", "crd", f"widgets.{GROUP}", "-o", "json"))["status"]
    accepted = [one["reason"] for one in status["conditions"] if one["type"] == "NamesAccepted"]
    resources = kubectl("api-resources", f"--api-group={GROUP}", "--no-headers").splitlines()

    assert "condition met" in widget_kind
    assert status["acceptedNames"]["kind"] == "Widget"
    assert status["storedVersions"] == ["v1"]
    assert accepted == ["NoConflicts"]
    assert ["widgets", "wd", f"{GROUP}/v1", "true", "Widget"] in [line.split() for line in resources]
    assert api.get(widgets).code == 200


@check("C08")
def test_explain_works_for_custom_and_built_in_kinds(kubectl: Kubectl, widget_kind: str) -> None:
    custom = kubectl("explain", "widget.spec.size")
    built_in = kubectl("explain", "deployment.spec.strategy")

    assert "FIELD: size <integer>" in custom
    assert "from small to large" in custom
    assert re.search(r"KIND: +Deployment\nVERSION: +v1", built_in)


@check("C09")
def test_openapi_says_that_patches_can_validate_fields(api: Api, widget_kind: str) -> None:
    where = api.get("/openapi/v3").json["paths"][f"apis/{GROUP}/v1"]["serverRelativeURL"]
    paths = api.get(where).json["paths"]
    [patch] = [one["patch"] for path, one in paths.items() if path.endswith("/widgets/{name}")]

    assert where.startswith(f"/openapi/v3/apis/{GROUP}/v1?hash=")
    assert patch["x-kubernetes-group-version-kind"]["kind"] == "Widget"
    assert "fieldValidation" in [one.get("name") for one in patch["parameters"]]
