"""OpenAPI v3, as kubectl uses it for explain, validation and patches."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import orjson
import pytest

from lamina.server.kinds.builtin.definitions import references
from lamina.server.kinds.kind import Kind
from lamina.server.openapi.v3 import OpenApi, address, caching
from tests.unit.server.served import crd, custom, every_built_in

META = "io.k8s.apimachinery.pkg.apis.meta.v1"
WIDGETS = "/apis/ex.example.com/v1/namespaces/{namespace}/widgets"
SIZED = {
    "type": "object",
    "properties": {"spec": {"type": "object", "properties": {"size": {"type": "integer"}}}},
}
NOW = datetime(2026, 1, 1, tzinfo=UTC)


def widgets(schema: Any = SIZED) -> list[Kind]:
    return custom(crd("ex.example.com", "Widget", {"v1": schema}))


@pytest.fixture(scope="module")
def kinds() -> tuple[Kind, ...]:
    return (*every_built_in(), *widgets())


@pytest.fixture(scope="module")
def openapi() -> OpenApi:
    return OpenApi()


def read(openapi: OpenApi, kinds: tuple[Kind, ...], name: str) -> Any:
    document = openapi.document(kinds, name)
    assert document is not None
    return orjson.loads(document.body)


def names(parameters: list[dict[str, Any]]) -> list[str]:
    return [parameter["name"] for parameter in parameters]


def test_the_index_names_every_group_version_with_its_digest(
    openapi: OpenApi, kinds: tuple[Kind, ...]
) -> None:
    paths = orjson.loads(openapi.index(kinds))["paths"]

    assert {f"apis/{kind.api_version}" if kind.group else "api/v1" for kind in kinds} <= paths.keys()
    assert {"api", "apis", "apis/apps", "version"} <= paths.keys()
    assert "apis/ex.example.com" not in paths
    for name, entry in paths.items():
        document = openapi.document(kinds, name)
        assert document is not None
        assert entry == {"serverRelativeURL": f"/openapi/v3/{name}?hash={document.digest}"}


def test_every_document_holds_the_schemas_it_mentions_and_no_others(
    openapi: OpenApi, kinds: tuple[Kind, ...]
) -> None:
    for name in orjson.loads(openapi.index(kinds))["paths"]:
        document = read(openapi, kinds, name)
        assert document["openapi"] == "3.0.0"
        assert set(references(document)) == document["components"]["schemas"].keys()


def test_operations_have_names_of_their_own(openapi: OpenApi, kinds: tuple[Kind, ...]) -> None:
    seen: list[str] = []
    for name in orjson.loads(openapi.index(kinds))["paths"]:
        for path in read(openapi, kinds, name)["paths"].values():
            seen += [one["operationId"] for method, one in path.items() if method != "parameters"]

    assert len(seen) == len(set(seen))
    assert {"listCoreV1ConfigMapForAllNamespaces", "patchRbacAuthorizationV1ClusterRole"} <= set(seen)
    assert {"deleteAppsV1CollectionNamespacedDeployment", "replaceCoreV1NamespaceFinalize"} <= set(seen)
    assert {"createExExampleComV1NamespacedWidget", "createCoreV1NamespacedPodEviction"} <= set(seen)


@pytest.mark.parametrize(
    ("name", "path", "kind", "strategic"),
    [
        ("api/v1", "/api/v1/namespaces/{namespace}/configmaps/{name}", "ConfigMap", True),
        ("apis/apps/v1", "/apis/apps/v1/namespaces/{namespace}/deployments/{name}", "Deployment", True),
        ("apis/ex.example.com/v1", f"{WIDGETS}/{{name}}", "Widget", False),
    ],
)
def test_kubectl_finds_out_how_a_kind_may_be_patched(
    openapi: OpenApi, kinds: tuple[Kind, ...], name: str, path: str, kind: str, strategic: bool
) -> None:
    found = read(openapi, kinds, name)["paths"][path]
    patch = found["patch"]

    assert patch["x-kubernetes-group-version-kind"]["kind"] == kind
    assert patch["x-kubernetes-action"] == "patch"
    assert names(patch["parameters"]) == ["dryRun", "fieldManager", "fieldValidation", "force"]
    assert names(found["parameters"]) == ["name", "namespace", "pretty"]
    offered = patch["requestBody"]["content"].keys()
    assert offered >= {
        "application/apply-patch+yaml",
        "application/merge-patch+json",
        "application/json-patch+json",
    }
    assert ("application/strategic-merge-patch+json" in offered) is strategic


def test_what_can_be_done_where(openapi: OpenApi, kinds: tuple[Kind, ...]) -> None:
    core = read(openapi, kinds, "api/v1")["paths"]

    assert core["/api/v1/namespaces"].keys() == {"get", "post", "parameters"}
    assert core["/api/v1/nodes"].keys() == {"get", "post", "delete", "parameters"}
    assert core["/api/v1/configmaps"].keys() == {"get", "parameters"}
    assert core["/api/v1/namespaces/{name}/finalize"].keys() == {"put", "parameters"}
    reviews = read(openapi, kinds, "apis/authorization.k8s.io/v1")["paths"]
    assert reviews["/apis/authorization.k8s.io/v1/subjectaccessreviews"].keys() == {"post", "parameters"}
    assert "/apis/authorization.k8s.io/v1/subjectaccessreviews/{name}" not in reviews


def test_the_scale_of_a_built_in_kind_is_found_as_scale(openapi: OpenApi, kinds: tuple[Kind, ...]) -> None:
    apps = read(openapi, kinds, "apis/apps/v1")
    scale = apps["paths"]["/apis/apps/v1/namespaces/{namespace}/deployments/{name}/scale"]["put"]

    assert scale["x-kubernetes-group-version-kind"] == {
        "group": "autoscaling",
        "version": "v1",
        "kind": "Scale",
    }
    assert "io.k8s.api.autoscaling.v1.Scale" in apps["components"]["schemas"]


def test_logs_are_text(openapi: OpenApi, kinds: tuple[Kind, ...]) -> None:
    core = read(openapi, kinds, "api/v1")["paths"]
    log = core["/api/v1/namespaces/{namespace}/pods/{name}/log"]

    assert log["get"]["responses"]["200"]["content"]["text/plain"] == {"schema": {"type": "string"}}
    assert "tailLines" in names(log["parameters"])


@pytest.mark.parametrize(
    ("kind", "says"),
    [
        ("Ingress", "create an Ingress"),
        ("Endpoints", "create Endpoints"),
        ("StorageClass", "create a StorageClass"),
    ],
)
def test_articles_are_right(openapi: OpenApi, kinds: tuple[Kind, ...], kind: str, says: str) -> None:
    found = {
        "Ingress": "apis/networking.k8s.io/v1",
        "Endpoints": "api/v1",
        "StorageClass": "apis/storage.k8s.io/v1",
    }
    sentences = [
        path["post"]["description"]
        for path in read(openapi, kinds, found[kind])["paths"].values()
        if "post" in path and path["post"]["x-kubernetes-group-version-kind"]["kind"] == kind
    ]

    assert sentences == [says]


def test_a_custom_kind_comes_with_its_list_and_what_every_object_has(
    openapi: OpenApi, kinds: tuple[Kind, ...]
) -> None:
    schemas = read(openapi, kinds, "apis/ex.example.com/v1")["components"]["schemas"]
    widget = schemas["com.example.ex.v1.Widget"]

    assert widget["properties"].keys() == {"apiVersion", "kind", "metadata", "spec"}
    assert widget["properties"]["metadata"]["allOf"] == [{"$ref": f"#/components/schemas/{META}.ObjectMeta"}]
    assert widget["x-kubernetes-group-version-kind"] == [
        {"group": "ex.example.com", "kind": "Widget", "version": "v1"}
    ]
    assert schemas["com.example.ex.v1.WidgetList"]["properties"]["items"]["items"] == {
        "$ref": "#/components/schemas/com.example.ex.v1.Widget"
    }


def test_a_document_is_made_once_for_as_long_as_its_kinds_are_served() -> None:
    openapi = OpenApi()
    builtin, first = every_built_in(), widgets()
    before = openapi.document((*builtin, *first), "apis/ex.example.com/v1")
    core = openapi.document((*builtin, *first), "api/v1")
    changed = widgets({"type": "object"})

    assert openapi.document((*builtin, *first), "apis/ex.example.com/v1") is before
    after = openapi.document((*builtin, *changed), "apis/ex.example.com/v1")
    assert before is not None
    assert after is not None
    assert after.digest != before.digest
    assert openapi.document((*builtin, *changed), "api/v1") is core
    assert openapi.document(tuple(builtin), "apis/ex.example.com/v1") is None


def test_equal_kinds_have_equal_digests() -> None:
    one, other = OpenApi(), OpenApi()

    assert one.index((*every_built_in(), *widgets())) == other.index((*every_built_in(), *widgets()))


def test_the_right_digest_may_be_cached_for_ever_and_a_wrong_one_leads_to_it(
    openapi: OpenApi, kinds: tuple[Kind, ...]
) -> None:
    document = openapi.document(kinds, "apis/apps/v1")
    assert document is not None

    assert caching("apis/apps/v1", document, "", NOW)[0] == 200
    status, headers = caching("apis/apps/v1", document, document.digest, NOW)
    assert status == 200
    assert headers["Cache-Control"] == "public, immutable"
    assert headers["Expires"] == "Fri, 01 Jan 2027 00:00:00 GMT"
    status, headers = caching("apis/apps/v1", document, "OLD", NOW)
    assert status == 301
    assert headers["Location"] == address("apis/apps/v1", document)
    assert headers["Etag"] == f'"{document.digest}"'
