"""
Fixtures of the HTTP tests.

They run on uvloop, which the server uses, and on asyncio's own loop, which an embedding
program may use.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Mapping

import pytest
import pytest_asyncio
import uvloop

from lamina.app import App
from lamina.logs import log
from lamina.server.tls.certificates import Certificates, ensure_certificates
from lamina.settings import Settings

_ON_THE_WIRE = ("test_http", "test_identity", "test_operation")


def pytest_asyncio_loop_factories(item: pytest.Item) -> Mapping[str, Callable[[], asyncio.AbstractEventLoop]]:
    if item.path.name.startswith(_ON_THE_WIRE):
        return {"uvloop": uvloop.new_event_loop, "asyncio": asyncio.new_event_loop}
    return {"asyncio": asyncio.new_event_loop}


@pytest.fixture(scope="session")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    """TLS files for servers of a test."""
    return ensure_certificates(
        tmp_path_factory.mktemp("pki"), ["127.0.0.1", "localhost"], "admin", ["system:masters"]
    )


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def app() -> AsyncIterator[App]:
    """An ephemeral control plane."""
    async with App(Settings(ephemeral=True, port=0, simulate="off")) as running:
        yield running


@pytest.fixture
def logged(capsys: pytest.CaptureFixture[str]) -> Iterator[Callable[[], str]]:
    """Returns what was logged since the last call."""
    log.configure("warning", "text")
    yield lambda: capsys.readouterr().err
    log.configure("warning", "text")
