"""Identities on a server with several clusters."""

from collections.abc import AsyncIterator

import orjson
import pytest
import pytest_asyncio

from lamina.app import App
from lamina.client.kubeconfig.read import read_kubeconfig
from lamina.settings import Settings
from tests.server.raw_http import CONFIG_MAPS, RawResponse, reach

pytestmark = pytest.mark.asyncio(loop_scope="module")

NAMESPACE = "/api/v1/namespaces/default"
REVIEWS = "/apis/authentication.k8s.io/v1/tokenreviews"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def app() -> AsyncIterator[App]:
    settings = Settings(ephemeral=True, port=0, simulate="off", clusters=("east", "west"))
    async with App(settings) as running:
        yield running


async def send_request(
    app: App, token: str | None, method: str, path: str, body: bytes | None = None
) -> RawResponse:
    async with await reach(app) as wire:
        if token is None:
            await wire.send(f"{method} {path} HTTP/1.1\r\nHost: here\r\n\r\n".encode())
            return await wire.read_response(method)
        wire.token = token
        return await wire.send_request(method, path, body=body)


@pytest.mark.parametrize("path", [NAMESPACE, f"{NAMESPACE}/configmaps", "/version", "/openapi/v3", "/"])
async def test_a_clusters_token_is_good_there_and_nowhere_else(app: App, path: str) -> None:
    token = app.clusters.tokens["east"]

    assert (await send_request(app, token, "GET", f"/clusters/east{path}")).status == 200
    for elsewhere in (f"/clusters/west{path}", path, f"/clusters/nobody{path}"):
        assert (await send_request(app, token, "GET", elsewhere)).status == 401


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/clusters"),
        ("GET", "/clusters/east"),
        ("GET", "/clusters/west"),
        ("PUT", "/clusters/new"),
        ("DELETE", "/clusters/west"),
        ("POST", "/lamina/backup"),
    ],
)
async def test_a_clusters_token_says_nothing_to_the_server_itself(app: App, method: str, path: str) -> None:
    assert (await send_request(app, app.clusters.tokens["east"], method, path)).status == 401
    assert "west" in app.clusters.tokens


@pytest.mark.parametrize("below", [NAMESPACE, f"{NAMESPACE}/configmaps", "/lamina/faults"])
async def test_who_is_let_into_a_cluster_is_not_led_on_from_there(app: App, below: str) -> None:
    """A path is resolved once: an identity of its first cluster is valid only there."""
    token = app.clusters.tokens["east"]

    for way in ("/clusters/east/clusters/west", "/clusters/east/clusters/lamina"):
        assert (await send_request(app, token, "GET", f"{way}{below}")).status == 404


async def test_the_administrator_of_the_server_reaches_every_cluster(app: App) -> None:
    for way in ("", "/clusters/east", "/clusters/west"):
        assert (await send_request(app, app.token, "GET", f"{way}{NAMESPACE}")).status == 200
    assert (await send_request(app, app.token, "GET", "/clusters")).status == 200
    assert (await send_request(app, app.token, "GET", f"/clusters/nobody{NAMESPACE}")).status == 404


async def test_anonymous_requests_read_of_a_cluster_what_they_read_of_any_server(app: App) -> None:
    assert (await send_request(app, None, "GET", "/clusters/east/healthz")).status == 200
    refused = await send_request(app, None, "GET", f"/clusters/east{CONFIG_MAPS}")
    assert refused.status == 403
    assert refused.message == (
        'configmaps is forbidden: User "system:anonymous" cannot list resource "configmaps" '
        'in API group "" in the namespace "default"'
    )
    for path in ("/clusters", "/clusters/east", "/clusters/nobody/api", "/clusters/nobody/healthz"):
        refused = await send_request(app, None, "GET", path)
        assert refused.status == 403
        assert refused.message == f'forbidden: User "system:anonymous" cannot get path "{path}"'


@pytest.mark.parametrize(("reviewed", "known"), [("east", True), ("west", False), ("", True)])
async def test_a_cluster_vouches_for_its_own_tokens(app: App, reviewed: str, known: bool) -> None:
    token = app.clusters.tokens.get(reviewed, app.token)
    review = {
        "apiVersion": "authentication.k8s.io/v1",
        "kind": "TokenReview",
        "metadata": {"name": "x"},
        "spec": {"token": token},
    }

    answer = await send_request(app, app.token, "POST", f"/clusters/east{REVIEWS}", orjson.dumps(review))

    assert answer.json["status"].get("authenticated", False) is known


async def test_the_kubeconfig_has_a_context_for_each_cluster(app: App) -> None:
    first, east = read_kubeconfig(app.kubeconfig), read_kubeconfig(app.kubeconfig, "east")

    assert (first.server, first.token) == (app.url, app.token)
    assert (east.server, east.token) == (f"{app.url}/clusters/east", app.clusters.tokens["east"])
    assert not east.certificate
