"""
Anonymous requests: what they may read, and the errors for everything else.

The messages were recorded from kube-apiserver 1.35.4 without credentials.
"""

import pytest

from lamina.app import App
from tests.server.raw_http import RawResponse, reach

pytestmark = pytest.mark.asyncio(loop_scope="module")

HERE = "/api/v1/namespaces/default/configmaps"


async def ask_anonymously(app: App, method: str, path: str) -> RawResponse:
    async with await reach(app) as wire:
        await wire.send(f"{method} {path} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        return await wire.read_response(method)


@pytest.mark.parametrize(
    "path", ["/healthz", "/livez", "/readyz", "/readyz?verbose", "/version", "/version/"]
)
async def test_anonymous_requests_read_health_and_version(app: App, path: str) -> None:
    assert (await ask_anonymously(app, "GET", path)).status == 200


@pytest.mark.parametrize(
    ("method", "path", "what", "may_not", "details"),
    [
        ("GET", HERE, "configmaps", 'list resource "configmaps" in API group "" in the namespace "default"', {"kind": "configmaps"}),
        ("GET", f"{HERE}?watch=1", "configmaps", 'watch resource "configmaps" in API group "" in the namespace "default"', {"kind": "configmaps"}),
        ("GET", f"{HERE}?watch=false", "configmaps", 'list resource "configmaps" in API group "" in the namespace "default"', {"kind": "configmaps"}),
        ("GET", f"{HERE}/a", 'configmaps "a"', 'get resource "configmaps" in API group "" in the namespace "default"', {"name": "a", "kind": "configmaps"}),
        ("GET", f"{HERE}/a?watch=true", 'configmaps "a"', 'get resource "configmaps" in API group "" in the namespace "default"', {"name": "a", "kind": "configmaps"}),
        ("GET", f"{HERE}/a%20%C3%BCb", 'configmaps "a üb"', 'get resource "configmaps" in API group "" in the namespace "default"', {"name": "a üb", "kind": "configmaps"}),
        ("POST", HERE, "configmaps", 'create resource "configmaps" in API group "" in the namespace "default"', {"kind": "configmaps"}),
        ("PUT", f"{HERE}/a", 'configmaps "a"', 'update resource "configmaps" in API group "" in the namespace "default"', {"name": "a", "kind": "configmaps"}),
        ("PATCH", f"{HERE}/a", 'configmaps "a"', 'patch resource "configmaps" in API group "" in the namespace "default"', {"name": "a", "kind": "configmaps"}),
        ("DELETE", f"{HERE}/a", 'configmaps "a"', 'delete resource "configmaps" in API group "" in the namespace "default"', {"name": "a", "kind": "configmaps"}),
        ("DELETE", HERE, "configmaps", 'deletecollection resource "configmaps" in API group "" in the namespace "default"', {"kind": "configmaps"}),
        ("OPTIONS", HERE, "configmaps", 'cannot  resource "configmaps" in API group "" in the namespace "default"', {"kind": "configmaps"}),
        ("GET", f"{HERE}?fieldSelector=metadata.name%3Dabc", 'configmaps "abc"', 'list resource "configmaps" in API group "" in the namespace "default"', {"name": "abc", "kind": "configmaps"}),
        ("GET", f"{HERE}?watch=1&fieldSelector=metadata.name%3Dabc", 'configmaps "abc"', 'watch resource "configmaps" in API group "" in the namespace "default"', {"name": "abc", "kind": "configmaps"}),
        ("DELETE", f"{HERE}?fieldSelector=metadata.name%3Dabc", "configmaps", 'deletecollection resource "configmaps" in API group "" in the namespace "default"', {"kind": "configmaps"}),
        ("GET", "/api/v1/configmaps", "configmaps", 'list resource "configmaps" in API group "" at the cluster scope', {"kind": "configmaps"}),
        ("GET", "/api/v1/configmaps?watch=banana", "configmaps", 'watch resource "configmaps" in API group "" at the cluster scope', {"kind": "configmaps"}),
        ("GET", "/api/v1/configmaps?fieldSelector=garbage", "configmaps", 'list resource "configmaps" in API group "" at the cluster scope', {"kind": "configmaps"}),
        ("GET", "/api/v1/watch/configmaps", "configmaps", 'watch resource "configmaps" in API group "" at the cluster scope', {"kind": "configmaps"}),
        ("GET", "/api/v1/watch/namespaces/default/configmaps/a", 'configmaps "a"', 'watch resource "configmaps" in API group "" in the namespace "default"', {"name": "a", "kind": "configmaps"}),
        ("GET", "/api/v1/namespaces", "namespaces", 'list resource "namespaces" in API group "" at the cluster scope', {"kind": "namespaces"}),
        ("GET", "/api/v1/namespaces/default", 'namespaces "default"', 'get resource "namespaces" in API group "" in the namespace "default"', {"name": "default", "kind": "namespaces"}),
        ("PUT", "/api/v1/namespaces/default/finalize", 'namespaces "default"', 'update resource "namespaces/finalize" in API group "" in the namespace "default"', {"name": "default", "kind": "namespaces"}),
        ("GET", "/api/v1/nodes/n", 'nodes "n"', 'get resource "nodes" in API group "" at the cluster scope', {"name": "n", "kind": "nodes"}),
        ("GET", "/api/v1/nodes/n/proxy/a/b", 'nodes "n"', 'get resource "nodes/proxy" in API group "" at the cluster scope', {"name": "n", "kind": "nodes"}),
        ("GET", "/api/v1/namespaces/default/pods/x/log", 'pods "x"', 'get resource "pods/log" in API group "" in the namespace "default"', {"name": "x", "kind": "pods"}),
        ("POST", "/api/v1/namespaces/default/pods/x/exec", 'pods "x"', 'create resource "pods/exec" in API group "" in the namespace "default"', {"name": "x", "kind": "pods"}),
        ("GET", "/apis/apps/v1/deployments", "deployments.apps", 'list resource "deployments" in API group "apps" at the cluster scope', {"group": "apps", "kind": "deployments"}),
        ("GET", "/apis/apps/v1/namespaces/n/deployments/d/scale", 'deployments.apps "d"', 'get resource "deployments/scale" in API group "apps" in the namespace "n"', {"name": "d", "group": "apps", "kind": "deployments"}),
        ("GET", "/apis/nope.example.com/v1/foos", "foos.nope.example.com", 'list resource "foos" in API group "nope.example.com" at the cluster scope', {"group": "nope.example.com", "kind": "foos"}),
        ("GET", "/apis/nope.example.com/v1/namespaces/x/foos/y/", 'foos.nope.example.com "y"', 'get resource "foos" in API group "nope.example.com" in the namespace "x"', {"name": "y", "group": "nope.example.com", "kind": "foos"}),
    ],
)  # fmt: skip
async def test_anonymous_requests_are_refused_with_the_resource(
    app: App, method: str, path: str, what: str, may_not: str, details: dict[str, str]
) -> None:
    answer = await ask_anonymously(app, method, path)

    assert (answer.status, answer.json["reason"]) == (403, "Forbidden")
    sentence = may_not if may_not.startswith("cannot") else f"cannot {may_not}"
    assert answer.message == f'{what} is forbidden: User "system:anonymous" {sentence}'
    assert answer.json["details"] == details


@pytest.mark.parametrize(
    ("method", "path", "may_not"),
    [
        ("GET", "/", 'get path "/"'),
        ("GET", "/metrics", 'get path "/metrics"'),
        ("POST", "/metrics", 'post path "/metrics"'),
        ("POST", "/version", 'post path "/version"'),
        ("DELETE", "/readyz", 'delete path "/readyz"'),
        ("GET", "/healthz/", 'get path "/healthz/"'),
        ("GET", "/readyz/ping", 'get path "/readyz/ping"'),
        ("GET", "/readyzz", 'get path "/readyzz"'),
        ("GET", "/api", 'get path "/api"'),
        ("GET", "/api/v1/", 'get path "/api/v1/"'),
        ("GET", "/apis/apps/v1", 'get path "/apis/apps/v1"'),
        ("GET", "/openapi/v2", 'get path "/openapi/v2"'),
        ("GET", "/nope", 'get path "/nope"'),
        ("GET", "/a%20%22b", r'get path "/a \"b"'),
        ("POST", "/lamina/backup", 'post path "/lamina/backup"'),
    ],
)
async def test_anonymous_requests_are_refused_with_the_path(
    app: App, method: str, path: str, may_not: str
) -> None:
    answer = await ask_anonymously(app, method, path)

    assert (answer.status, answer.json["reason"]) == (403, "Forbidden")
    assert answer.message == f'forbidden: User "system:anonymous" cannot {may_not}'
    assert answer.json["details"] == {}


async def test_anonymous_head_requests_are_refused_too(app: App) -> None:
    for path in (HERE, "/metrics", "/version"):
        assert (await ask_anonymously(app, "HEAD", path)).status == 403
