"""The server's clock never goes back on a persistent store."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import orjson
import pytest

from lamina.app import App
from lamina.clock import PacedClock
from lamina.control_plane.clock_offset import ClockOffset
from lamina.errors import StoreError
from lamina.objects.times import moment
from lamina.server.storage.memory_store import MemoryStore
from lamina.settings import Settings

DAY = timedelta(days=1)
NAMESPACES = "/api/v1/namespaces"


def keeping(folder: Path, speed: float = 1.0) -> Settings:
    return Settings(data=folder, port=0, families="none", simulate="off", speed=speed)


async def made(app: App, name: str) -> datetime:
    """Create a namespace, and return its creation time."""
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


async def test_how_far_it_was_wound_is_known_after_a_kill(tmp_path: Path) -> None:
    async with App(keeping(tmp_path)) as app:
        await wind(app, 3 * DAY)
        clock = PacedClock()

        ClockOffset(app.store, clock).restore()

        assert clock.now() > datetime.now(UTC) + 2 * DAY


async def test_a_server_that_goes_faster_is_as_far_ahead_as_it_got(tmp_path: Path) -> None:
    async with App(keeping(tmp_path, speed=1_000_000)) as app:
        before = await made(app, "before")

    async with App(keeping(tmp_path)) as app:
        assert await made(app, "after") >= before


async def test_a_clock_that_stood_still_starts_with_the_wall() -> None:
    log, clock = MemoryStore(), PacedClock(0)
    clock.wind(-DAY)

    await ClockOffset(log, clock).store()
    again = PacedClock()
    ClockOffset(log, again).restore()
    await log.close()

    assert again.now() > clock.now() + DAY / 2


async def test_a_server_whose_clock_is_the_wall_writes_nothing_of_it(tmp_path: Path) -> None:
    async with App(keeping(tmp_path)) as app:
        before = app.store.version

        await ClockOffset(app.store, PacedClock()).store()

        assert app.store.version == before


async def test_what_could_not_be_noted_is_noted_later(monkeypatch: pytest.MonkeyPatch) -> None:
    log, clock = MemoryStore(), PacedClock()
    keeper = ClockOffset(log, clock)
    clock.wind(DAY)
    with monkeypatch.context() as broken:
        broken.setattr(log, "append", _refuse)
        with pytest.raises(StoreError):
            await keeper.store()

    await keeper.store()
    again = PacedClock()
    ClockOffset(log, again).restore()
    await log.close()

    assert again.now() > datetime.now(UTC) + DAY / 2


async def _refuse(*_: object) -> None:
    raise StoreError("the disk is full")


async def test_of_a_fast_clock_it_is_noted_how_far_it_will_have_got_by_the_next_time() -> None:
    log, clock = MemoryStore(), PacedClock(DAY.total_seconds())

    await ClockOffset(log, clock).store()
    again = PacedClock()
    ClockOffset(log, again).restore()
    await log.close()

    assert again.now() > datetime.now(UTC) + 4 * DAY
