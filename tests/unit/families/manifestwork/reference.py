"""
The planner as the behaviour is written down, step by step: slow, literal, and the judge of the real one.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from lamina.families.manifestwork.hub.strategy import Group, Strategy
from lamina.families.manifestwork.hub.work_status import RolloutState

Known = Mapping[str, tuple[RolloutState, datetime | None]]
TIME_OUT = "TimeOut"


@dataclass
class Result:
    """The clusters to roll out to, in flight or new, and those past their deadline."""

    to_rollout: dict[str, str] = field(default_factory=dict)
    timed_out: list[str] = field(default_factory=list)
    breach: bool = False


def classify(
    state: RolloutState, since: datetime | None, now: datetime, how: Strategy, soak: timedelta
) -> str:
    """Return in flight, done, or TimeOut."""
    start = since if since is not None else now
    start = min(start, now)
    if state is RolloutState.TO_APPLY:
        return "in flight"
    if state is RolloutState.SUCCEEDED:
        return "in flight" if now < start + soak else "done"
    if how.deadline is None or now < start + how.deadline:
        return "in flight"
    return TIME_OUT


def per_cluster(
    groups: Sequence[Group],
    known: Known,
    now: datetime,
    how: Strategy,
    size: int,
    limit: int,
    soak: timedelta,
) -> Result:
    result, failures = Result(), 0
    members = {name for group in groups for name in group.clusters}
    for name in sorted(name for name in known if name in members):
        state, since = known[name]
        if result.breach and state is RolloutState.TO_APPLY:
            continue
        found = classify(state, since, now, how, soak)
        if found == "in flight":
            result.to_rollout[name] = state.value
        elif found == TIME_OUT:
            result.timed_out.append(name)
        if found == TIME_OUT or state is RolloutState.FAILED:
            failures += 1
            result.breach = failures > limit
        if len(result.to_rollout) >= size:
            return result
    if result.breach:
        return result
    for name in sorted(members - set(known)):
        if len(result.to_rollout) >= size:
            break
        result.to_rollout[name] = "new"
    return result


def per_group(
    groups: Sequence[Group],
    known: Known,
    now: datetime,
    how: Strategy,
    tolerated: Mapping[int, int],
    soak: timedelta,
) -> Result:
    result = Result()
    members = {name for group in groups for name in group.clusters}
    judged: dict[str, str] = {}
    for name in sorted(name for name in known if name in members):
        state, since = known[name]
        if state is RolloutState.TO_APPLY:
            continue
        found = classify(state, since, now, how, soak)
        judged[name] = found if found == TIME_OUT else state.value
        if found == "in flight":
            result.to_rollout[name] = state.value
        elif found == TIME_OUT:
            result.timed_out.append(name)
    for group in sorted(groups, key=lambda one: one.index):
        failures = 0
        for name in sorted(group.clusters):
            if name in judged:
                failures += judged[name] in (TIME_OUT, RolloutState.FAILED.value)
                result.breach = result.breach or failures > tolerated.get(group.index, 0)
            else:
                result.to_rollout[name] = "new"
        if result.breach or any(state != RolloutState.FAILED.value for state in result.to_rollout.values()):
            return result
    return result


def reference(how: Strategy, groups: Sequence[Group], known: Known, now: datetime) -> Result:
    """Return what is rolled out to, by the letter."""
    first = [group for group in groups if how.is_mandatory(group)]
    others = [group for group in groups if not how.is_mandatory(group)]
    total = sum(len(group.clusters) for group in groups)
    rest = sum(len(group.clusters) for group in others)
    if how.type == "All":
        return per_cluster(groups, known, now, how, total, total, timedelta(0))
    if first:
        ahead = per_group(first, known, now, how, {}, how.soak)
        if ahead.to_rollout or ahead.timed_out:
            return ahead
    if how.type == "Progressive":
        return per_cluster(others, known, now, how, how.at_once(rest), how.tolerated(total), how.soak)
    limits = {group.index: how.tolerated(len(group.clusters)) for group in others}
    return per_group(others, known, now, how, limits, how.soak)
