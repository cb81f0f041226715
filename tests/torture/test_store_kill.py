"""Many kills of one log. Takes minutes, so it is not part of the default run."""

from __future__ import annotations

from pathlib import Path

from tests.torture.kill import kill_under_load


async def test_killed_fifty_times_the_log_has_every_write_it_acknowledged(tmp_path: Path) -> None:
    await kill_under_load(tmp_path, rounds=50)
