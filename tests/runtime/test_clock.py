"""The clock that tests wind."""

import asyncio
from datetime import UTC, datetime, timedelta

from lamina.clock import ManualClock, PacedClock, WallClock, pass_time

MINUTE = timedelta(minutes=1)


async def test_time_stands_still_until_it_is_wound() -> None:
    clock = ManualClock(datetime(2026, 1, 1, tzinfo=UTC))
    sleeper = asyncio.ensure_future(clock.sleep(MINUTE))
    await asyncio.sleep(0)
    assert not sleeper.done()

    clock.wind(MINUTE)
    await sleeper

    assert clock.now() == datetime(2026, 1, 1, 0, 1, tzinfo=UTC)


async def test_whatever_falls_due_rings_at_its_own_moment_and_in_order() -> None:
    clock = ManualClock()
    start, heard = clock.now(), []
    for minutes in (3, 1, 2):
        clock.call_at(start + minutes * MINUTE, lambda: heard.append(clock.now() - start))

    clock.wind(10 * MINUTE)

    assert heard == [MINUTE, 2 * MINUTE, 3 * MINUTE]


async def test_what_is_called_off_does_not_ring() -> None:
    clock, heard = ManualClock(), []
    cancel = clock.call_at(clock.now() + MINUTE, lambda: heard.append("rung"))

    cancel()
    clock.wind(10 * MINUTE)

    assert heard == []
    assert clock.next_alarm is None


async def test_an_alarm_that_sets_another_is_followed() -> None:
    clock, heard = ManualClock(), []

    def again() -> None:
        heard.append(clock.now())
        if len(heard) < 3:
            clock.call_at(clock.now() + MINUTE, again)

    clock.call_at(clock.now() + MINUTE, again)
    clock.wind(10 * MINUTE)

    assert len(heard) == 3


async def test_a_moment_that_has_passed_rings_soon_and_never_inside_the_call() -> None:
    clock, heard = ManualClock(), []

    clock.call_at(clock.now() - MINUTE, lambda: heard.append("rung"))
    assert heard == []
    await asyncio.sleep(0)

    assert heard == ["rung"]


async def test_wall_time_can_be_moved() -> None:
    ahead = WallClock(timedelta(hours=5)).now() - WallClock().now()

    assert timedelta(hours=4, minutes=59) < ahead < timedelta(hours=5, minutes=1)


async def test_wall_time_rings() -> None:
    clock, rung = WallClock(), asyncio.Event()

    clock.call_at(clock.now(), rung.set)

    async with asyncio.timeout(60):
        await rung.wait()
        await clock.sleep_until(clock.now())


async def test_a_clock_that_runs_fast_rings_early() -> None:
    clock, rung = PacedClock(3600.0), asyncio.Event()
    start = clock.now()

    clock.call_at(start + MINUTE, rung.set)
    async with asyncio.timeout(5):
        await rung.wait()
        await clock.sleep(MINUTE)

    assert clock.now() >= start + 2 * MINUTE


async def test_a_clock_that_stands_still_rings_what_it_is_wound_to() -> None:
    clock, heard = PacedClock(0.0), []
    start = clock.now()
    clock.call_at(start + MINUTE, lambda: heard.append("rung"))
    await asyncio.sleep(0)
    assert clock.now() == start

    clock.wind(MINUTE)

    assert heard == ["rung"]
    assert clock.now() == start + MINUTE


async def test_a_clock_goes_on_from_the_present_at_another_pace() -> None:
    clock, rung = PacedClock(0.0), asyncio.Event()
    start = clock.now()
    clock.wind(MINUTE)
    clock.call_at(clock.now() + MINUTE, rung.set)

    clock.run_at(3600.0)
    async with asyncio.timeout(5):
        await rung.wait()

    assert clock.speed == 3600.0
    clock.run_at(0.0)
    assert clock.now() >= start + 2 * MINUTE


async def test_a_change_of_pace_does_not_count_again_what_has_passed() -> None:
    clock = PacedClock()
    clock._since -= MINUTE
    before = clock.now()

    clock.run_at(1000.0)

    assert timedelta(0) <= clock.now() - before < 1000 * MINUTE


async def test_time_passes_alarm_by_alarm_and_each_is_seen_to_before_the_next() -> None:
    clock, heard = ManualClock(), list[str]()
    start = clock.now()

    async def settled() -> None:
        for _ in range(3):
            await asyncio.sleep(0)

    async def work() -> None:
        for number in range(3):
            await clock.sleep(MINUTE)
            heard.append(f"{number} at {(clock.now() - start) // MINUTE}")

    working = asyncio.ensure_future(work())
    await pass_time(clock, 5 * MINUTE, settled)
    await working

    assert heard == ["0 at 1", "1 at 2", "2 at 3"]
    assert clock.now() == start + 5 * MINUTE
