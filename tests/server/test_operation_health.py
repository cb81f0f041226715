"""Health and version."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime

import pytest

from lamina import __version__
from lamina.app import App
from lamina.server.api.assembly import assemble
from lamina.server.api.authn import Authenticator
from lamina.server.identity import ADMIN
from lamina.server.storage.memory_store import MemoryStore
from lamina.server.tls.certificates import Certificates
from tests.server.raw_http import TOKEN, Wire, reach, serving

pytestmark = pytest.mark.asyncio(loop_scope="module")

PAGES = ("healthz", "livez", "readyz")


@asynccontextmanager
async def checking(certificates: Certificates, **checks: Callable[[], bool]) -> AsyncIterator[Wire]:
    """A connection to a server with the test's health checks."""
    store = MemoryStore()
    api = assemble(store, lambda: datetime.now(UTC), Authenticator({TOKEN: ADMIN}), checks)
    async with serving(api, certificates) as served, await served.connect() as wire:
        yield wire
    await store.close()


@pytest.mark.parametrize("page", PAGES)
async def test_a_server_that_is_well_says_ok(app: App, page: str) -> None:
    async with await reach(app) as wire:
        plain = await wire.send_request("GET", f"/{page}")
        verbose = await wire.send_request("GET", f"/{page}?verbose")

    assert (plain.status, plain.body) == (200, b"ok")
    lines = verbose.body.decode().splitlines()
    assert lines[0] == "[+]ping ok"
    assert lines[-1] == f"{page} check passed"
    assert all(line.startswith("[+]") and line.endswith(" ok") for line in lines[:-1])


@pytest.mark.parametrize("page", PAGES)
async def test_a_check_that_fails_is_named_without_its_reason(certificates: Certificates, page: str) -> None:
    async with checking(certificates, ping=lambda: True, log=lambda: False) as wire:
        failing = await wire.send_request("GET", f"/{page}")
        verbose = await wire.send_request("GET", f"/{page}?verbose=true")

    expected = f"[+]ping ok\n[-]log failed: reason withheld\n{page} check failed\n"
    assert (failing.status, failing.body.decode()) == (500, expected)
    assert (verbose.status, verbose.body.decode()) == (500, expected)
    assert failing.one("content-type") == "text/plain; charset=utf-8"


async def test_a_check_may_be_left_out(certificates: Certificates) -> None:
    async with checking(certificates, ping=lambda: True, log=lambda: False) as wire:
        short = await wire.send_request("GET", "/readyz?exclude=log")
        long = await wire.send_request("GET", "/readyz?verbose&exclude=log&exclude=nope")

    assert (short.status, short.body) == (200, b"ok")
    assert long.status == 200
    assert long.body.decode().splitlines() == [
        "[+]ping ok",
        "[+]log excluded: ok",
        'warn: some health checks cannot be excluded: no matches for "nope"',
        "readyz check passed",
    ]


async def test_a_single_check_can_be_asked_for(certificates: Certificates) -> None:
    async with checking(certificates, ping=lambda: True, log=lambda: False) as wire:
        well = await wire.send_request("GET", "/livez/ping")
        ill = await wire.send_request("GET", "/livez/log")
        unknown = await wire.send_request("GET", "/livez/nope")

    assert (well.status, well.body) == (200, b"ok")
    assert ill.status == 500 and b"log" in ill.body
    assert (unknown.status, unknown.body) == (404, b"404 page not found\n")


async def test_health_follows_what_it_asks(certificates: Certificates) -> None:
    ready = False
    async with checking(certificates, actors=lambda: ready) as wire:
        before = await wire.send_request("GET", "/readyz")
        ready = True
        after = await wire.send_request("GET", "/readyz")

    assert (before.status, after.status) == (500, 200)


@pytest.mark.parametrize("path", ["/version", "/version/"])
async def test_the_version_is_a_kubernetes_version_with_our_mark(app: App, path: str) -> None:
    async with await reach(app) as wire:
        response = (await wire.send_request("GET", path)).json

    assert response["gitVersion"].startswith(f"v{response['major']}.{response['minor']}.")
    assert response["gitVersion"].endswith(f"+lamina.{__version__}")
    assert set(response) >= {"gitCommit", "gitTreeState", "buildDate", "goVersion", "compiler", "platform"}


async def test_paths_outside_the_api_are_plain_404s(app: App) -> None:
    async with await reach(app) as wire:
        for path in ("/nope", "/logs", "/debug/pprof", "//version", "/lamina/backup", "/apis/nope"):
            answer = await wire.send_request("GET", path)
            assert (answer.status, answer.body) == (404, b"404 page not found\n"), path
            assert answer.one("content-type") == "text/plain; charset=utf-8"
