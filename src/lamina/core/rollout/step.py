"""
The next step of a rollout: which targets move now.

A rollout moves targets to a goal revision, a few at a time. A target that is on
the goal and not yet settled is moving; the pace limits how many may be. Nothing
moves while more targets have failed than the pace tolerates, and nothing in a
group moves while a target of an earlier group is moving.

The standing of a target:

    held      pinned to its revision; it does not move, and no other target waits for it
    waiting   on another revision than the goal
    moving    on the goal, and not known to be healthy yet
    settled   on the goal, and healthy for as long as the pace asks
    failed    on the goal, and not healthy before its deadline

A moving target may report a failure before its deadline. It still has until then
to become healthy and counts as moving, and it counts as a failure at once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from enum import StrEnum

from msgspec import Struct, field
from msgspec.structs import replace

from lamina.core.health.probe import HEALTHY, ProbeResult
from lamina.core.model.state import State
from lamina.core.rollout.pace import Pace
from lamina.objects.times import stamp

_SHOWN = 5


class Standing(StrEnum):
    """The standing of a target in a rollout."""

    HELD = "held"
    WAITING = "waiting"
    MOVING = "moving"
    SETTLED = "settled"
    FAILED = "failed"


STATES: Mapping[Standing, State] = {
    Standing.HELD: State.PAUSED,
    Standing.WAITING: State.PENDING,
    Standing.MOVING: State.PROGRESSING,
    Standing.SETTLED: State.HEALTHY,
    Standing.FAILED: State.DEGRADED,
}
"""The state that a standing is to users, in metrics as in commands."""

_HELD, _WAITING, _MOVING = Standing.HELD, Standing.WAITING, Standing.MOVING
_SETTLED, _FAILED = Standing.SETTLED, Standing.FAILED
"""Compared for every target in every step: a global is found sooner than a member."""


class Target(Struct, frozen=True, kw_only=True):
    """
    Something that a rollout moves.

    `key` names it in messages. `verdict` is its health on the goal, and `since`
    from when its deadline and soak time count; both matter only on the goal.
    `held` says why it does not move, if it does not. One that is `failing`
    reports a failure itself; one that is not `timed` has no deadline.
    """

    key: str
    on_goal: bool
    verdict: ProbeResult = HEALTHY
    since: datetime | None = None
    group: int = 0
    held: str = ""
    failing: bool = False
    timed: bool = True


class Step(Struct, frozen=True, kw_only=True):
    """
    Which targets move now, or why none does.

    `done` when every target that is not held is settled; `breached` when more
    failed than are tolerated. `requeue_after` is when time alone changes the
    result.
    """

    because: str
    move: tuple[str, ...] = ()
    done: bool = False
    breached: bool = False
    requeue_after: timedelta | None = None
    standing: Mapping[str, Standing] = field(default_factory=dict)

    @property
    def progress(self) -> Mapping[str, int]:
        """Return how many targets are in each state."""
        return {str(STATES[one]): count for one, count in Counter(self.standing.values()).items()}


def assess(target: Target, pace: Pace, now: datetime) -> tuple[Standing, datetime | None]:
    """Return the standing of a target, and when time alone changes it."""
    if target.held:
        return _HELD, None
    if not target.on_goal:
        return _WAITING, None
    is_healthy = target.verdict.is_healthy
    if is_healthy and not pace.soak:
        return _SETTLED, None
    if not is_healthy and (pace.deadline is None or not target.timed):
        return _MOVING, None
    since = min(target.since, now) if target.since is not None else now
    if is_healthy:
        soaked = since + pace.soak
        return (_SETTLED, None) if now >= soaked else (_MOVING, soaked)
    assert pace.deadline is not None, "the target has a deadline"
    end = since + pace.deadline
    return (_FAILED, None) if now >= end else (_MOVING, end)


class _Standings(Struct, frozen=True):
    """All targets by their standing."""

    standing: Mapping[str, Standing]
    failed: list[Target]
    """Those past their deadline, and those that report a failure."""
    moving: list[Target]
    waiting: list[Target]
    wake: timedelta | None

    def held(self, targets: Sequence[Target]) -> list[Target]:
        return [target for target in targets if self.standing[target.key] is Standing.HELD]


def _standings(targets: Sequence[Target], pace: Pace, now: datetime) -> _Standings:
    standing: dict[str, Standing] = {}
    failed, moving, waiting = list[Target](), list[Target](), list[Target]()
    first: datetime | None = None
    for target in targets:
        where, moment = assess(target, pace, now)
        standing[target.key] = where
        if moment is not None and (first is None or moment < first):
            first = moment
        if where is _WAITING:
            waiting.append(target)
        elif where is _MOVING:
            moving.append(_soaking(target, pace) if target.verdict.is_healthy else target)
            if target.failing:
                failed.append(target)
        elif where is _FAILED:
            failed.append(target)
    return _Standings(standing, failed, moving, waiting, first - now if first is not None else None)


def _soaking(target: Target, pace: Pace) -> Target:
    """Return a healthy target that is not settled yet, with the reason."""
    because = f"healthy; soak time of {pace.soak.total_seconds():g}s"
    if target.since is not None:
        because += f" ends at {stamp(target.since + pace.soak)}"
    return replace(target, verdict=ProbeResult(target.verdict.answer, because))


def advance(goal: str, targets: Sequence[Target], pace: Pace, now: datetime) -> Step:
    """
    Return the next step of a rollout; `goal` is the name of its revision.

    Nothing in a group moves while a target of an earlier group is moving.
    Within a group, targets move in the order given.
    """
    found = _standings(targets, pace, now)
    failed, moving, waiting, standing = found.failed, found.moving, found.waiting, found.standing

    if pace.failures is not None and len(failed) > pace.failures:
        because = f"{len(failed)} failed, {pace.failures} tolerated: {named_with_reasons(failed)}"
        return Step(because=because, breached=True, requeue_after=found.wake, standing=standing)
    if not waiting and not moving:
        return Step(because=_end(goal, targets, failed, standing), done=not failed, standing=standing)

    front = min(target.group for target in [*moving, *waiting])
    room = len(waiting) if pace.at_once is None else max(0, pace.at_once - len(moving))
    move = tuple(target.key for target in waiting if target.group == front)[:room]
    if move:
        because = f"moving {listed(move)} to {goal}"
        return Step(because=because, move=move, requeue_after=found.wake, standing=standing)
    return Step(
        because=f"waiting for {named_with_reasons(moving)}", requeue_after=found.wake, standing=standing
    )


def advance_by_group(
    goal: str, targets: Sequence[Target], pace: Pace, tolerated: Mapping[int, int], now: datetime
) -> Step:
    """
    Return the next step of a rollout that moves one group after another.

    A group moves as a whole, and a target that joins it later moves at once,
    whatever the standing of the others. The next group moves when no more
    targets of this one failed than are `tolerated`, and no target of any group
    is moving but those that report a failure. The numbers of the pace do not
    apply. A held target holds back the groups after its own.
    """
    found = _standings(targets, pace, now)
    busy = [target for target in found.moving if not target.failing]
    waiting, failures, held = (
        _by_group(found.waiting),
        _by_group(found.failed),
        _by_group(found.held(targets)),
    )
    for group in sorted({target.group for target in targets}):
        move = tuple(target.key for target in waiting.get(group, ()))
        failed = failures.get(group, [])
        breached = len(failed) > tolerated.get(group, 0)
        if not (breached or move or busy or group in held):
            continue
        parts = [f"moving {listed(move)} to {goal}"] if move else []
        if breached:
            limit = tolerated.get(group, 0)
            parts.append(
                f"{len(failed)} failed in group {group}, {limit} tolerated: {named_with_reasons(failed)}"
            )
        because = "; ".join(parts) or f"waiting for {named_with_reasons(busy or held[group])}"
        return Step(
            because=because, move=move, breached=breached, requeue_after=found.wake, standing=found.standing
        )
    if found.moving:
        because = f"waiting for {named_with_reasons(found.moving)}"
        return Step(because=because, requeue_after=found.wake, standing=found.standing)
    because = _end(goal, targets, found.failed, found.standing)
    return Step(because=because, done=not found.failed, standing=found.standing)


def _by_group(targets: Sequence[Target]) -> dict[int, list[Target]]:
    found: dict[int, list[Target]] = {}
    for target in targets:
        found.setdefault(target.group, []).append(target)
    return found


def _end(
    goal: str, targets: Sequence[Target], failed: Sequence[Target], standing: Mapping[str, Standing]
) -> str:
    held = [target for target in targets if standing[target.key] is Standing.HELD]
    asides = [f"{len(failed)} failed and tolerated: {named_with_reasons(failed)}"] if failed else []
    asides += [f"{target.key} held: {target.held}" for target in held[:_SHOWN]]
    return "; ".join([f"all on {goal}", *asides])


def named_with_reasons(targets: Sequence[Target]) -> str:
    """Return the first few targets by key, each with the reason of its verdict."""
    shown = [
        f"{target.key} ({target.verdict.because})" if target.verdict.because else target.key
        for target in targets[:_SHOWN]
    ]
    return listed(shown, more=len(targets) - len(shown))


def listed(keys: Sequence[str], more: int = 0) -> str:
    """Return the first few of some names, and how many more there are."""
    shown, rest = keys[:_SHOWN], len(keys) - _SHOWN
    hidden = max(more, rest)
    return ", ".join(shown) + (f" and {hidden} more" if hidden > 0 else "")
