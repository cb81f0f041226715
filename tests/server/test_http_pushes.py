"""Watches of many clients at once: in order, complete, and independent of slow ones."""

import asyncio

import orjson
import pytest

from lamina.server.storage.bucket_history import Window
from lamina.server.tls.certificates import Certificates
from tests.server.raw_http import CONFIG_MAPS, Wire
from tests.server.test_http_streams import WATCH, bare_server, write

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def names_from(wire: Wire, count: int) -> list[str]:
    """Read events of a number of objects."""
    names: list[str] = []
    async for chunk in wire.chunks():
        names += [orjson.loads(line)["object"]["metadata"]["name"] for line in chunk.splitlines()]
        if len(names) >= count:
            break
    return names


async def test_many_watchers_each_hear_everything_once_and_in_order(certificates: Certificates) -> None:
    async with bare_server(certificates, Window()) as (served, api):
        wires = [await served.connect() for _ in range(50)]
        for number, wire in enumerate(wires):
            # Some share an encoder, and some do not.
            await wire.send(
                wire.request_bytes("GET", f"{WATCH}&resourceVersion=1&timeoutSeconds={600 + number % 3}")
            )
            await wire.read_head()
        expected = [f"one-{number}" for number in range(40)]
        for number in range(0, 40, 4):
            await asyncio.gather(*(write(api, f"one-{one}") for one in range(number, number + 4)))
        heard = await asyncio.gather(*(names_from(wire, len(expected)) for wire in wires))
        for wire in wires:
            wire.abort()

    assert all(sorted(names) == sorted(expected) for names in heard)
    assert all(names == heard[0] for names in heard)


async def test_watchers_of_other_things_hear_other_things(certificates: Certificates) -> None:
    async with bare_server(certificates, Window()) as (served, api):
        requests = {
            "all": "",
            "one": "&fieldSelector=metadata.name=b",
            "none": "&labelSelector=never",
            "partial": "",
        }
        wires = {name: await served.connect() for name in requests}
        accept = "Accept: application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
        for name, query in requests.items():
            wire = wires[name]
            headers = (accept,) if name == "partial" else ()
            await wire.send(
                wire.request_bytes("GET", f"{WATCH}&resourceVersion=1&timeoutSeconds=1{query}", *headers)
            )
            await wire.read_head()
        for name in ("a", "b", "c"):
            await write(api, name)
        heard = {
            name: [orjson.loads(line) async for chunk in wire.chunks() for line in chunk.splitlines()]
            for name, wire in wires.items()
        }
        for wire in wires.values():
            wire.abort()

    told = {name: [one["object"]["metadata"]["name"] for one in events] for name, events in heard.items()}
    assert told == {"all": ["a", "b", "c"], "one": ["b"], "none": [], "partial": ["a", "b", "c"]}
    assert {one["object"]["kind"] for one in heard["partial"]} == {"PartialObjectMetadata"}
    assert {one["object"]["kind"] for one in heard["all"]} == {"ConfigMap"}


async def test_a_watcher_that_falls_asleep_and_wakes_up_misses_nothing(certificates: Certificates) -> None:
    """Events that it has not read stay in the log, and are not kept per watch."""
    async with (
        bare_server(certificates, Window()) as (served, api),
        await served.connect() as wire,
        await served.connect() as other,
    ):
        for one in (wire, other):
            await one.send(one.request_bytes("GET", f"{WATCH}&resourceVersion=1"))
            await one.read_head()
        await write(api, "before")
        assert await names_from(wire, 1) == ["before"]
        wire.pause()
        expected = [f"large-{number}" for number in range(120)]
        for name in expected:
            await write(api, name, 100_000)
        assert await names_from(other, 121) == ["before", *expected]
        wire.resume()
        heard = await names_from(wire, 120)
        await write(api, "after")

        assert heard == expected
        assert await names_from(wire, 1) == ["after"]


async def test_a_busy_watch_ends_at_its_time_with_a_last_chunk(certificates: Certificates) -> None:
    async with bare_server(certificates, Window()) as (served, api), await served.connect() as wire:
        await wire.send(
            wire.request_bytes("GET", f"{WATCH}&resourceVersion=1&timeoutSeconds=1&allowWatchBookmarks=true")
        )
        await wire.read_head()
        chunks = asyncio.ensure_future(_all(wire))
        number = 0
        while not chunks.done():
            await write(api, f"one-{number}")
            number += 1
        events = [orjson.loads(line) for chunk in chunks.result() for line in chunk.splitlines()]
        after = await wire.send_request("GET", "/version")

    names = [one["object"]["metadata"]["name"] for one in events if one["type"] == "ADDED"]
    assert names == [f"one-{one}" for one in range(len(names))]
    assert after.status == 200


async def _all(wire: Wire) -> list[bytes]:
    return [chunk async for chunk in wire.chunks()]


async def test_an_old_client_is_told_without_chunks(certificates: Certificates) -> None:
    async with bare_server(certificates, Window()) as (served, api), await served.connect() as wire:
        request = wire.request_bytes("GET", f"{WATCH}&resourceVersion=1").replace(b"HTTP/1.1", b"HTTP/1.0")
        await wire.send(request)
        head = await wire.read_head()
        await write(api, "a")
        await write(api, "b")
        lines = [orjson.loads(await wire.reader.readline()) for _ in range(2)]

    assert head.one("transfer-encoding") is None
    assert [one["object"]["metadata"]["name"] for one in lines] == ["a", "b"]


async def test_a_watch_in_the_old_way_of_saying_it_is_a_watch(certificates: Certificates) -> None:
    async with bare_server(certificates, Window()) as (served, api), await served.connect() as wire:
        await write(api, "a")
        await wire.send(wire.request_bytes("GET", CONFIG_MAPS.replace("/v1/", "/v1/watch/") + "/a"))
        head = await wire.read_head()

        assert head.one("transfer-encoding") == "chunked"
        assert await names_from(wire, 1) == ["a"]


async def test_the_columns_of_a_table_are_named_once(certificates: Certificates) -> None:
    accept = "Accept: application/json;as=Table;g=meta.k8s.io;v=v1"
    async with bare_server(certificates, Window()) as (served, api), await served.connect() as wire:
        await wire.send(wire.request_bytes("GET", f"{WATCH}&resourceVersion=1&timeoutSeconds=1", accept))
        await wire.read_head()
        for name in ("a", "b", "c"):
            await write(api, name)
        tables = [
            orjson.loads(line)["object"] async for chunk in wire.chunks() for line in chunk.splitlines()
        ]

    assert [table["rows"][0]["cells"][0] for table in tables] == ["a", "b", "c"]
    assert [bool(table.get("columnDefinitions")) for table in tables] == [True, False, False]
