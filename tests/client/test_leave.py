"""Leave to write, asked for once more at the last moment."""

import pytest

from lamina.client.client import Client
from lamina.client.http import HttpTransport
from lamina.client.kubeconfig import Access
from lamina.client.leave import only_while
from lamina.client.limited import LimitedTransport
from lamina.errors import NotLeading
from lamina.rates import Bucket
from tests.client.test_http_transport import OK, saying

LATER = (
    b"HTTP/1.1 429 Too Many Requests\r\nRetry-After: 0\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}"
)


async def test_a_write_that_was_to_come_back_later_does_not_once_it_is_not_allowed() -> None:
    async with saying(LATER, OK) as (url, heads):
        client = Client(HttpTransport(Access(server=url)))
        with only_while(lambda: not heads), pytest.raises(NotLeading):
            await client.request("POST", "/x", body=b"{}")
        await client.close()

        assert len(heads) == 1


async def test_a_write_that_waited_for_its_turn_is_not_sent_once_it_is_not_allowed() -> None:
    waited: list[float] = []
    async with saying(OK, OK) as (url, heads):
        limited = LimitedTransport(
            HttpTransport(Access(server=url)), Bucket(1000, 1), lambda _, seconds: waited.append(seconds)
        )
        client = Client(limited)
        with only_while(lambda: len(waited) < 2):
            await client.request("PUT", "/x", body=b"{}")
            with pytest.raises(NotLeading):
                await client.request("PUT", "/x", body=b"{}")
        await client.close()

        assert len(heads) == 1


async def test_reading_needs_no_leave_and_leave_ends_with_its_block() -> None:
    async with saying(OK, OK) as (url, heads):
        client = Client(HttpTransport(Access(server=url)))
        with only_while(lambda: False):
            await client.request("GET", "/x")
        await client.request("POST", "/x", body=b"{}")
        await client.close()

        assert len(heads) == 2
