"""The profiles and task dumps that the pprof endpoint serves."""

import asyncio
import gzip
import threading
from collections import Counter
from collections.abc import Iterator

import aiohttp
import pytest

from lamina.errors import SettingsError
from lamina.runtime.metrics.pprof import Location, as_pprof, folded, profiled, sampled

OUTER, INNER = Location("outer", "a.py", 1), Location("inner", "b.py", 22)


def fields(body: bytes) -> Iterator[tuple[int, bytes | int]]:
    """Yield the fields of a message of protocol buffers: a plain reader, to check the writer by."""
    at = 0

    def number() -> int:
        nonlocal at
        value = shift = 0
        while True:
            byte = body[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    while at < len(body):
        key = number()
        if key & 7 == 0:
            yield key >> 3, number()
        else:
            length = number()
            yield key >> 3, body[at : at + length]
            at += length


def every(body: bytes, field: int) -> list[bytes]:
    return [value for number, value in fields(body) if number == field and isinstance(value, bytes)]


def test_a_profile_is_written_as_pprof_reads_it() -> None:
    profile = gzip.decompress(as_pprof(Counter({(INNER, OUTER): 30_000_000, (OUTER,): 10_000_000}), 2.0))

    assert [word.decode() for word in every(profile, 6)] == [
        "", "samples", "count", "cpu", "nanoseconds", "inner", "b.py", "outer", "a.py",
    ]  # fmt: skip
    samples = [dict(fields(one)) for one in every(profile, 2)]
    assert [one[1] for one in samples] == [b"\x01\x02", b"\x02"]
    assert [one[2] for one in samples] == [b"\x03\x80\x87\xa7\x0e", b"\x01\x80\xad\xe2\x04"]
    locations = [dict(fields(one)) for one in every(profile, 4)]
    assert [one[1] for one in locations] == [1, 2]
    assert [dict(fields(bytes(one[4]))) for one in locations] == [{1: 1, 2: 22}, {1: 2, 2: 1}]
    functions = [dict(fields(one)) for one in every(profile, 5)]
    assert functions == [{1: 1, 2: 5, 3: 5, 4: 6}, {1: 2, 2: 7, 3: 7, 4: 8}]
    assert (10, 2_000_000_000) in fields(profile)


def test_a_profile_has_a_line_for_each_stack() -> None:
    assert folded({(OUTER,): 1_000, (INNER, OUTER): 5_000}) == "outer;inner 5\nouter 1\n"


def test_time_is_counted_where_it_is_spent() -> None:
    end = threading.Event()

    def busy() -> None:
        while not end.is_set():
            sum(range(1000))

    worker = threading.Thread(target=busy)
    worker.start()
    try:
        assert worker.ident is not None
        spent: Counter[tuple[Location, ...]] = Counter()
        while not spent:
            spent = sampled(worker.ident, 0.1)
    finally:
        end.set()
        worker.join()

    assert any(place.function.endswith("busy") for stack in spent for place in stack)


async def test_profiles_are_served_where_the_original_has_them() -> None:
    waiting = asyncio.create_task(asyncio.Event().wait(), name="a waiting task")
    async with profiled("127.0.0.1:0") as where, aiohttp.ClientSession(f"http://{where}") as session:
        async with session.get("/debug/pprof/profile?seconds=0.05") as answer:
            assert every(gzip.decompress(await answer.read()), 6)[:3] == [b"", b"samples", b"count"]
        async with session.get("/debug/pprof/goroutine?debug=2") as answer:
            said = await answer.text()
        async with session.get("/debug/pprof/") as answer:
            assert "profile?seconds=30" in await answer.text()
        async with session.get("/debug/pprof/heap") as answer:
            assert (answer.status, "no such profile" in await answer.text()) == (404, True)
        async with session.get("/debug/pprof/profile?seconds=many") as answer:
            assert answer.status == 400
    waiting.cancel()

    assert "task a waiting task\n    Event.wait " in said


async def test_nothing_is_served_at_nought_and_a_wrong_address_is_refused() -> None:
    async with profiled("0") as where:
        assert where == ""
    with pytest.raises(SettingsError, match="expected an address"):
        async with profiled("somewhere"):
            pass
