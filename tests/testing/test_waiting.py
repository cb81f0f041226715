"""`eventually` and `idle`: what every test that waits stands on."""

from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from lamina.testing.waiting import eventually, eventually_sync, idle


async def test_the_first_value_that_meets_the_condition_is_returned() -> None:
    values = iter(range(10))

    assert await eventually(lambda: next(values), lambda value: value > 3, interval=0) == 4
    assert next(values) == 5, "it reads no further"


async def test_a_coroutine_is_awaited_each_time() -> None:
    values = iter(["", "", "ready"])

    async def read() -> str:
        return next(values)

    assert await eventually(read, interval=0) == "ready"


async def test_the_failure_shows_the_last_value() -> None:
    with pytest.raises(AssertionError, match=r"not met within 0s; the last value is <pending>"):
        await eventually(
            lambda: "pending", lambda value: False, seconds=0, describe=lambda value: f"<{value}>"
        )


async def test_an_error_of_the_reader_is_raised_at_once() -> None:
    def read() -> bool:
        raise LookupError("no such object")

    with pytest.raises(LookupError):
        await eventually(read)


def test_a_test_without_an_event_loop_waits_in_the_same_way() -> None:
    values = iter(range(10))

    assert eventually_sync(lambda: next(values), lambda value: value > 3, interval=0) == 4
    with pytest.raises(AssertionError, match="not met within 0s; the last value is 5"):
        eventually_sync(lambda: next(values), lambda value: False, seconds=0)


@dataclass
class Busy:
    """Idle as a script says."""

    script: Iterator[bool]

    @property
    def is_idle(self) -> bool:
        return next(self.script)


async def test_idle_means_idle_in_consecutive_rounds() -> None:
    manager = Busy(iter([True, True, False, True, True, True]))

    await idle(manager, rounds=3, interval=0)

    assert list(manager.script) == [], (
        "the interruption starts the count again, and the first round compares nothing"
    )


async def test_a_change_in_between_starts_the_count_again() -> None:
    versions = iter(["1", "1", "2", "2", "2"])

    await idle(unchanged=lambda: next(versions), rounds=2, interval=0)

    assert next(versions, "none left") == "none left"
