"""Client-side rate limiting."""

import asyncio

from lamina.client.client import Client
from lamina.client.transport.ratelimited import RateLimitedTransport
from lamina.ratelimit import TokenBucket
from tests.runtime.scripted import Script, groups


async def test_requests_beyond_the_limit_wait_and_the_wait_is_told() -> None:
    script = Script()
    script.reply("GET", "/version", groups())
    waits: list[tuple[str, float]] = []
    bucket = TokenBucket(1000, 2)
    client = Client(
        RateLimitedTransport(script, bucket, lambda method, seconds: waits.append((method, seconds)))
    )

    await asyncio.gather(*(client.request("GET", "/version") for _ in range(4)))

    assert [method for method, _ in waits] == ["GET"] * 4
    assert sum(seconds == 0 for _, seconds in waits) == 2
    assert max(seconds for _, seconds in waits) > 0
