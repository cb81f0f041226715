"""Parsing of API paths."""

import pytest

from lamina.objects.api_paths import Path, parse_resource_path


@pytest.mark.parametrize(
    ("path", "parts"),
    [
        ("/api/v1/configmaps", Path("", "v1", "", "configmaps", "", "")),
        ("/api/v1/configmaps/", Path("", "v1", "", "configmaps", "", "")),
        ("/api/v1/namespaces", Path("", "v1", "", "namespaces", "", "")),
        ("/api/v1/namespaces/a", Path("", "v1", "", "namespaces", "a", "")),
        ("/api/v1/namespaces/a/status", Path("", "v1", "", "namespaces", "a", "status")),
        ("/api/v1/namespaces/a/finalize", Path("", "v1", "", "namespaces", "a", "finalize")),
        ("/api/v1/namespaces/a/pods", Path("", "v1", "a", "pods", "", "")),
        ("/api/v1/namespaces/a/pods/p/log", Path("", "v1", "a", "pods", "p", "log")),
        ("/apis/apps/v1/namespaces/a/deployments/d", Path("apps", "v1", "a", "deployments", "d", "")),
        (
            "/apis/apps/v1/namespaces/a/deployments/d/scale",
            Path("apps", "v1", "a", "deployments", "d", "scale"),
        ),
        ("/apis/ex.example.com/v1/namespaces/a/status", Path("ex.example.com", "v1", "a", "status", "", "")),
        ("/api/v1/watch/namespaces/a/pods", Path("", "v1", "a", "pods", "", "", watch=True)),
        (
            "/apis/rbac.authorization.k8s.io/v1/clusterroles/system%3Anode",
            Path("rbac.authorization.k8s.io", "v1", "", "clusterroles", "system:node", ""),
        ),
    ],
)
def test_a_resource_path_is_taken_apart(path: str, parts: Path) -> None:
    assert parse_resource_path(path) == parts


@pytest.mark.parametrize(
    "path",
    ["/", "/api", "/api/", "/api/v1", "/api/v1/", "/apis", "/apis/apps", "/apis/apps/v1", "/apis/apps/v1/", "/version",
     "/healthz/ping", "/openapi/v3/apis/apps/v1", "/api/v1//configmaps"],
)  # fmt: skip
def test_any_other_path_is_none(path: str) -> None:
    assert parse_resource_path(path) is None
