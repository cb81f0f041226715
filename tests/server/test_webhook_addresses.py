"""The address of a webhook with a service reference, and reading its response."""

import asyncio
import base64
import gc
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast
from unittest.mock import Mock

import aiohttp
import pytest

from lamina.objects.types import Made
from lamina.server.admission.lister import AdmissionLister
from lamina.server.admission.webhooks.address import Address, Unresolved, resolve
from lamina.server.admission.webhooks.http import CallFailed, WebhookClient, read_body
from lamina.server.storage.memory_store import MemoryStore
from lamina.server.storage.store import Key
from lamina.server.tls.certificates import ensure_certificates

HOOK = {"service": {"namespace": "ops", "name": "hook", "path": "check"}}
PORTS = [{"name": "https", "port": 443}]


async def records(service: Made | None = None, endpoints: Made | None = None) -> AdmissionLister:
    store = MemoryStore()
    for bucket, obj in (("services", service), ("endpoints", endpoints)):
        if obj is not None:
            await store.append(Key(bucket, "ops", "hook"), {"metadata": {"name": "hook"}, **obj})
    return AdmissionLister(store)


def ready(*ips: str, port: int = 8443, name: str = "https") -> Made:
    return {"subsets": [{"addresses": [{"ip": ip} for ip in ips], "ports": [{"name": name, "port": port}]}]}


async def test_a_url_is_told_how_long_it_has() -> None:
    found = resolve({"url": "https://hook.example.com/check?a=1"}, await records(), 5)

    assert found.url == "https://hook.example.com/check?a=1&timeout=5s"


async def test_a_service_leads_to_one_of_its_endpoints_and_is_known_by_its_own_name() -> None:
    found = resolve(HOOK, await records({"spec": {"ports": PORTS}}, ready("10.1.2.3", "10.1.2.4")), 10)

    assert found.url == "https://10.1.2.3:8443/check?timeout=10s"
    assert found.server == "hook.ops.svc"
    assert found.shown == "https://hook.ops.svc:443/check?timeout=10s"


async def test_an_address_of_the_newer_kind_is_written_as_one() -> None:
    found = resolve(HOOK, await records({"spec": {"ports": PORTS}}, ready("fd00::1")), 10)

    assert found.url == "https://[fd00::1]:8443/check?timeout=10s"


@pytest.mark.parametrize(
    ("service", "endpoints", "why"),
    [
        (None, None, 'service "hook" not found'),
        ({"spec": {"ports": PORTS}}, None, 'no endpoints available for service "hook"'),
        ({"spec": {"ports": PORTS}}, ready(), 'no endpoints available for service "hook"'),
        (
            {"spec": {"ports": PORTS}},
            ready("10.1.2.3", name="other"),
            'no endpoints available for service "hook"',
        ),
        (
            {"spec": {"ports": [{"port": 80}]}},
            ready("10.1.2.3"),
            'no service port 443 found for service "hook"',
        ),
    ],
)
async def test_a_service_without_endpoints_is_reported(
    service: Made | None, endpoints: Made | None, why: str
) -> None:
    with pytest.raises(Unresolved, match=why):
        resolve(HOOK, await records(service, endpoints), 10)


async def test_an_answer_is_read_to_its_end_in_however_many_pieces_it_comes() -> None:
    loop = asyncio.get_running_loop()
    content = aiohttp.StreamReader(cast(Any, Mock(_reading_paused=False)), 2**16, loop=loop)
    reading = asyncio.create_task(read_body(cast(aiohttp.ClientResponse, SimpleNamespace(content=content))))
    for piece in (b"not ", b"all ", b"at once"):
        content.feed_data(piece)
        await asyncio.sleep(0)
        await asyncio.sleep(0)
    content.feed_eof()

    assert await reading == b"not all at once"


async def test_tls_contexts_of_ever_different_authorities_are_bounded(tmp_path: Path) -> None:
    def sessions() -> int:
        gc.collect()
        return sum(isinstance(one, aiohttp.ClientSession) for one in gc.get_objects())

    nowhere, before = Address("https://127.0.0.1:1", "", "https://127.0.0.1:1"), sessions()
    pem = ensure_certificates(tmp_path, ["localhost"], "a", ()).authority.certificate_pem
    caller = WebhookClient()
    try:
        for number in range(40):
            authority = base64.b64encode(pem + b"\n" * number).decode()
            with pytest.raises(CallFailed, match="connection refused"):
                await caller.post(nowhere, authority, b"{}", 5)
        assert sessions() - before <= 1
    finally:
        await caller.close()
