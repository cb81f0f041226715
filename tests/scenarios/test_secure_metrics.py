"""Metrics behind TLS, for users whom the API server lets get /metrics."""

import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from http import HTTPStatus
from pathlib import Path
from typing import Any
from uuid import uuid4

import aiohttp
import pytest

from lamina.cli.options.metrics_flags import ProcessMetrics, check_secure
from lamina.client.client import Client
from lamina.client.kubeconfig.read import read_kubeconfig
from lamina.client.transport.base import Query, Response
from lamina.client.write_guard import WriteGuard
from lamina.errors import SettingsError
from lamina.objects import meta
from lamina.objects.types import Made
from lamina.server.tls.certificates import ensure_certificates
from lamina.testing.waiting import eventually
from tests.bed.fixtures import chosen_server
from tests.scenarios.story import free_port

pytestmark = pytest.mark.asyncio(loop_scope="session")

RBAC = "rbac.authorization.k8s.io"
REVIEWS = "/apis/authentication.k8s.io/v1/tokenreviews"
ACCESS = "/apis/authorization.k8s.io/v1/subjectaccessreviews"


class Time:
    seconds = 0.0

    def __call__(self) -> float:
        return self.seconds


class Recorded:
    """A transport that records the requests, and may refuse access as a server with RBAC does."""

    def __init__(self, client: Client) -> None:
        self._inner = client._transport
        self.asked: list[str] = []
        self.refuses = False

    async def request(
        self,
        method: str,
        path: str,
        *,
        query: Query = (),
        headers: Mapping[str, str],
        body: bytes | None = None,
        streams: bool = False,
        guard: WriteGuard | None = None,
    ) -> Response:
        self.asked.append(path)
        answer = await self._inner.request(
            method, path, query=query, headers=headers, body=body, streams=streams, guard=guard
        )
        return Refused() if self.refuses and path == ACCESS else answer

    async def close(self) -> None:
        pass


class Refused:
    """A SubjectAccessReview that is not allowed."""

    status, headers = 201, {"content-type": "application/json"}

    async def read(self) -> bytes:
        return b'{"apiVersion":"authorization.k8s.io/v1","kind":"SubjectAccessReview","status":{"allowed":false}}'

    async def stream(self) -> AsyncIterator[bytes]:
        yield await self.read()

    async def close(self) -> None:
        pass


class Scraper:
    """Reads /metrics."""

    def __init__(self, address: str, http: aiohttp.ClientSession) -> None:
        self._url, self._http = f"https://{address}/metrics", http

    async def __call__(self, token: str = "", **more: Any) -> tuple[int, str]:
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        async with self._http.get(self._url, headers=headers, **{"ssl": False, **more}) as answer:
            return answer.status, await answer.text()


@asynccontextmanager
async def scraped(
    client: Client, time: Time | None = None, certificates: Path | None = None
) -> AsyncIterator[Scraper]:
    """Serve metrics securely, and yield what reads them."""
    address = f"127.0.0.1:{free_port()}"
    flags = {
        "metrics_address": address, "health_probe_bind_address": "0", "pprof_address": "0", "metrics_secure": True,
        "metrics_cert_path": certificates, "metrics_cert_name": "tls.crt", "metrics_cert_key": "tls.key",
    }  # fmt: skip
    metrics = ProcessMetrics(flags, "https://server", time or Time())
    # Each request has a connection of its own, and so a handshake.
    connector = aiohttp.TCPConnector(force_close=True)
    async with metrics.serving(client), aiohttp.ClientSession(connector=connector) as http:
        yield Scraper(address, http)


async def token_of(reached: tuple[Client, Path], name: str) -> str:
    """Return a token of a new service account, or the administrator's where the server issues none."""
    client, kubeconfig = reached
    if chosen_server() == "embedded":
        return read_kubeconfig(kubeconfig).token
    account = {
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": {"name": name, "namespace": "default"},
    }
    made = await client.create(account)
    body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
    posted = await client.post(meta.ref(made), body, subresource="token")
    return str(posted["status"]["token"])


async def allow(client: Client, name: str) -> None:
    """Allow a service account to get /metrics."""
    rule = {"nonResourceURLs": ["/metrics"], "verbs": ["get"]}
    role: Made = {
        "apiVersion": f"{RBAC}/v1",
        "kind": "ClusterRole",
        "metadata": {"name": name},
        "rules": [rule],
    }
    await client.create(role)
    await client.create(
        {
            "apiVersion": f"{RBAC}/v1", "kind": "ClusterRoleBinding", "metadata": {"name": name},
            "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": name},
            "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": "default"}],
        }
    )  # fmt: skip


async def test_only_a_user_who_may_get_metrics_gets_them(reached: tuple[Client, Path]) -> None:
    client, name = reached[0], f"scraper-{uuid4().hex[:8]}"
    time, token = Time(), await token_of(reached, name)
    recorded = Recorded(client)
    # The embedded server enforces no rights.
    recorded.refuses = chosen_server() == "embedded"
    async with scraped(Client(recorded), time) as scrape:
        assert await scrape() == (HTTPStatus.UNAUTHORIZED, "Unauthorized\n")
        assert await scrape("x.y.z") == (HTTPStatus.UNAUTHORIZED, "Unauthorized\n")
        assert ACCESS not in recorded.asked
        assert await scrape(token) == (HTTPStatus.FORBIDDEN, "Forbidden\n")

        await allow(client, name)
        recorded.refuses = False

        async def scraped_later() -> tuple[int, str]:
            time.seconds += 11
            return await scrape(token)

        code, text = await eventually(scraped_later, lambda found: found[0] == HTTPStatus.OK)
        assert "process_cpu_seconds_total" in text and code == HTTPStatus.OK


async def test_a_result_is_kept_for_a_while(reached: tuple[Client, Path]) -> None:
    client = reached[0]
    time, token = Time(), await token_of(reached, f"scraper-{uuid4().hex[:8]}")
    recorded = Recorded(client)
    recorded.refuses = True
    async with scraped(Client(recorded), time) as scrape:
        for _ in range(3):
            await scrape(token)
        assert [path for path in recorded.asked if path in (REVIEWS, ACCESS)] == [REVIEWS, ACCESS]
        time.seconds = 11
        await scrape(token)
        assert recorded.asked.count(ACCESS) == 2


async def test_a_certificate_is_read_from_files_and_read_again_when_they_change(
    reached: tuple[Client, Path], tmp_path: Path
) -> None:
    folder = tmp_path / "served"
    folder.mkdir()
    first, second = (made(tmp_path / name, folder) for name in ("first", "second"))
    first()
    async with scraped(reached[0], certificates=folder) as scrape:
        assert (await scrape(ssl=trusting(tmp_path / "first")))[0] == HTTPStatus.UNAUTHORIZED
        second()
        with pytest.raises(aiohttp.ClientConnectorCertificateError):
            await scrape(ssl=trusting(tmp_path / "first"))
        assert (await scrape(ssl=trusting(tmp_path / "second")))[0] == HTTPStatus.UNAUTHORIZED


def made(folder: Path, served: Path) -> Any:
    """Make a certificate, and return what moves it to where it is served."""
    pair = ensure_certificates(folder, ["127.0.0.1"], "test", ()).server

    def serve() -> None:
        for source, name in ((pair.certificate, "tls.crt"), (pair.key, "tls.key")):
            new = served / f"{name}.new"
            new.write_bytes(source.read_bytes())
            new.replace(served / name)

    return serve


def trusting(folder: Path) -> ssl.SSLContext:
    authority = ensure_certificates(folder, ["127.0.0.1"], "test", ()).authority.certificate
    return ssl.create_default_context(cafile=str(authority))


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        ({"metrics_secure": True}, "--metrics-secure needs --metrics-address"),
        ({"metrics_cert_path": Path("x")}, "--metrics-cert-path has no effect without --metrics-secure"),
        (
            {"metrics_secure": True, "metrics_address": ":1", "health_probe_bind_address": ":1"},
            "--metrics-secure and --health-probe-bind-address have the same address",
        ),
    ],
)
async def test_settings_that_cancel_each_other_are_refused(flags: dict[str, Any], said: str) -> None:
    usual = {
        "metrics_secure": False,
        "metrics_cert_path": None,
        "metrics_address": "0",
        "health_probe_bind_address": "0",
    }

    with pytest.raises(SettingsError, match=said):
        check_secure({**usual, **flags})


async def test_a_certificate_that_cannot_be_loaded_is_named(
    reached: tuple[Client, Path], tmp_path: Path
) -> None:
    with pytest.raises(SettingsError, match="cannot load the certificate of the metrics from"):
        async with scraped(reached[0], certificates=tmp_path):
            pass
