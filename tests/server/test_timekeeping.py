"""Time does not go back on what is kept."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import orjson
import pytest

from lamina.app import App
from lamina.clock import PacedClock
from lamina.errors import StoreError
from lamina.objects.times import moment
from lamina.server.memory import MemoryStore
from lamina.settings import Settings
from lamina.timekeeping import Timekeeper

DAY = timedelta(days=1)
NAMESPACES = "/api/v1/namespaces"


def keeping(folder: Path, speed: float = 1.0) -> Settings:
    return Settings(data=folder, port=0, families="none", simulate="off", speed=speed)


async def made(app: App, name: str) -> datetime:
    """Have a namespace made, and return when that was."""
    answer = await app.request("POST", NAMESPACES, body=orjson.dumps({"metadata": {"name": name}}))
    assert isinstance(answer.body, bytes)
    at = moment(orjson.loads(answer.body)["metadata"]["creationTimestamp"])
    assert at is not None
    return at


async def wind(app: App, by: timedelta) -> None:
    answer = await app.request("POST", "/lamina/clock", body=orjson.dumps({"wind": by.total_seconds()}))
    assert answer.status == 200


async def test_a_server_that_starts_again_is_as_far_ahead_as_it_was(tmp_path: Path) -> None:
    async with App(keeping(tmp_path)) as app:
        await wind(app, 3 * DAY)
        before = await made(app, "before")

    async with App(keeping(tmp_path)) as app:
        after = await made(app, "after")

    assert after >= before > datetime.now(UTC) + 2 * DAY


async def test_how_far_it_was_wound_is_known_to_whoever_comes_after_a_death(tmp_path: Path) -> None:
    async with App(keeping(tmp_path)) as app:
        await wind(app, 3 * DAY)
        clock = PacedClock()

        Timekeeper(app.store, clock).resume()

        assert clock.now() > datetime.now(UTC) + 2 * DAY


async def test_a_server_that_goes_faster_is_as_far_ahead_as_it_got(tmp_path: Path) -> None:
    async with App(keeping(tmp_path, speed=1_000_000)) as app:
        before = await made(app, "before")

    async with App(keeping(tmp_path)) as app:
        assert await made(app, "after") >= before


async def test_a_clock_that_stood_still_starts_with_the_wall() -> None:
    log, clock = MemoryStore(), PacedClock(0)
    clock.wind(-DAY)

    await Timekeeper(log, clock).note()
    again = PacedClock()
    Timekeeper(log, again).resume()
    await log.close()

    assert again.now() > clock.now() + DAY / 2


async def test_a_server_whose_clock_is_the_wall_writes_nothing_of_it(tmp_path: Path) -> None:
    async with App(keeping(tmp_path)) as app:
        before = app.store.version

        await Timekeeper(app.store, PacedClock()).note()

        assert app.store.version == before


async def test_what_could_not_be_noted_is_noted_later(monkeypatch: pytest.MonkeyPatch) -> None:
    log, clock = MemoryStore(), PacedClock()
    keeper = Timekeeper(log, clock)
    clock.wind(DAY)
    with monkeypatch.context() as broken:
        broken.setattr(log, "append", _refuse)
        with pytest.raises(StoreError):
            await keeper.note()

    await keeper.note()
    again = PacedClock()
    Timekeeper(log, again).resume()
    await log.close()

    assert again.now() > datetime.now(UTC) + DAY / 2


async def _refuse(*_: object) -> None:
    raise StoreError("the disk is full")


async def test_of_a_fast_clock_it_is_noted_how_far_it_will_have_got_by_the_next_time() -> None:
    log, clock = MemoryStore(), PacedClock(DAY.total_seconds())

    await Timekeeper(log, clock).note()
    again = PacedClock()
    Timekeeper(log, again).resume()
    await log.close()

    assert again.now() > datetime.now(UTC) + 4 * DAY
