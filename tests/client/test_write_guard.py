"""Leadership is checked again immediately before a write is sent."""

import pytest

from lamina.client.client import Client
from lamina.client.kubeconfig.read import Access
from lamina.client.transport.http import HttpTransport
from lamina.client.transport.ratelimited import RateLimitedTransport
from lamina.control_plane.cluster import EmbeddedCluster
from lamina.errors import NotFound, NotLeading
from lamina.objects.types import Ref
from lamina.ratelimit import TokenBucket
from lamina.settings import Settings
from tests.client.test_http_transport import OK, responding

LATER = (
    b"HTTP/1.1 429 Too Many Requests\r\nRetry-After: 0\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}"
)
LONG = b"{" + b" " * 600_000 + b"}"


async def test_a_write_is_not_retried_after_429_once_leadership_is_lost() -> None:
    async with responding(LATER, OK) as (url, heads):
        client = Client(HttpTransport(Access(server=url)))
        with pytest.raises(NotLeading):
            await client.request("POST", "/x", body=b"{}", guard=lambda: not heads)
        await client.close()

        assert len(heads) == 1


async def test_a_write_that_waited_for_the_rate_limiter_is_not_sent_once_leadership_is_lost() -> None:
    waited: list[float] = []
    async with responding(OK, OK) as (url, heads):
        limited = RateLimitedTransport(
            HttpTransport(Access(server=url)), TokenBucket(1000, 1), lambda _, seconds: waited.append(seconds)
        )
        client = Client(limited)
        await client.request("PUT", "/x", body=b"{}", guard=lambda: len(waited) < 2)
        with pytest.raises(NotLeading):
            await client.request("PUT", "/x", body=b"{}", guard=lambda: len(waited) < 2)
        await client.close()

        assert len(heads) == 1


@pytest.mark.parametrize("body", [b"{}", LONG], ids=["short", "long"])
async def test_a_write_that_waited_for_a_connection_is_not_sent_once_leadership_is_lost(body: bytes) -> None:
    checks: list[None] = []

    def leads_until_connected() -> bool:
        checks.append(None)
        return body is not LONG and len(checks) == 1

    async with responding(OK) as (url, heads):
        client = Client(HttpTransport(Access(server=url)))
        with pytest.raises(NotLeading):
            await client.request("POST", "/x", body=body, guard=leads_until_connected)
        await client.close()

        # A short write is checked before the connection is made, and again when it is established.
        assert len(checks) == (1 if body is LONG else 2)
        assert not heads


async def test_a_guard_applies_to_its_own_write_alone() -> None:
    async with responding(OK, OK) as (url, heads):
        client = Client(HttpTransport(Access(server=url)))
        with pytest.raises(NotLeading):
            await client.request("POST", "/x", body=b"{}", guard=lambda: False)
        await client.request("GET", "/x")
        await client.request("POST", "/x", body=b"{}")
        await client.close()

        assert len(heads) == 2


async def test_a_write_to_a_server_in_this_process_is_checked_too() -> None:
    name = Ref("v1", "Namespace", "", "x")
    async with EmbeddedCluster(Settings(simulate="off")) as cluster:
        client = cluster.client()
        with pytest.raises(NotLeading):
            await client.create(
                {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "x"}}, guard=lambda: False
            )
        with pytest.raises(NotFound):
            await client.get(name)
