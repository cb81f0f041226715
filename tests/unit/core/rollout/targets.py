"""Targets for tests: waiting, settled, moving, reporting a failure."""

from datetime import UTC, datetime, timedelta

from lamina.core.health.probe import unhealthy, unknown
from lamina.core.rollout.step import Target

NOW = datetime(2026, 1, 1, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
NOT_READY, BROKEN = unknown("not ready"), unhealthy("broken")


def waiting(key: str, group: int = 0) -> Target:
    return Target(key=key, on_goal=False, group=group)


def healthy(key: str, group: int = 0, since: datetime = NOW) -> Target:
    return Target(key=key, on_goal=True, group=group, since=since)


def moving(key: str, group: int = 0, since: datetime = NOW) -> Target:
    return Target(key=key, on_goal=True, verdict=NOT_READY, since=since, group=group)


def failing(key: str, group: int = 0, since: datetime = NOW) -> Target:
    return Target(key=key, on_goal=True, verdict=BROKEN, since=since, group=group, failing=True)


def overdue(key: str, group: int = 0) -> Target:
    """Return a target that is past any deadline of less than an hour."""
    return moving(key, group, since=NOW - timedelta(hours=1))


def held(key: str, group: int = 0) -> Target:
    return Target(key=key, on_goal=False, held="pinned", group=group)


def by_key(*targets: Target) -> dict[str, Target]:
    return {one.key: one for one in targets}
