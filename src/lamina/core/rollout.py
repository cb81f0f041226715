"""
Who may move now.

A rollout takes targets to a goal, a few at a time. A target that is on the goal
and not yet settled is on the way; the pace says how many may be. Nothing moves
while more have failed than the pace tolerates, and nothing in a group moves
while an earlier group has somebody on the way.

A target stands somewhere:

    held      pinned where it is; it neither moves nor holds anybody up
    waiting   on another revision than the goal
    moving    on the goal, and not known to be well yet
    settled   on the goal, and well for as long as the pace asks
    failed    on the goal, and not well when the time was up

Somebody who is moving may say already that it goes wrong. It has until its time
is up to get well, and keeps its place among those on the way; until then it
counts as a failure like those whose time is up.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from enum import StrEnum

from msgspec import Struct, field

from lamina.core.pace import Pace
from lamina.core.probe import WELL, Verdict

_SHOWN = 5


class Standing(StrEnum):
    """Where a target is on its way."""

    HELD = "held"
    WAITING = "waiting"
    MOVING = "moving"
    SETTLED = "settled"
    FAILED = "failed"


_HELD, _WAITING, _MOVING = Standing.HELD, Standing.WAITING, Standing.MOVING
_SETTLED, _FAILED = Standing.SETTLED, Standing.FAILED
"""Said of every target in every step: a global is found sooner than a member."""


class Target(Struct, frozen=True, kw_only=True):
    """
    Something that is moved.

    `key` is what people call it. `verdict` and `since` say how it does on the
    goal and from when the time it is given counts; they matter for nobody who
    is elsewhere. `held` says why it stays where it is, if it does. One that is
    `failing` says itself that it goes wrong; one that is not `timed` may take
    as long as it likes.
    """

    key: str
    on_goal: bool
    verdict: Verdict = WELL
    since: datetime | None = None
    group: int = 0
    held: str = ""
    failing: bool = False
    timed: bool = True


class Step(Struct, frozen=True, kw_only=True):
    """
    Who moves now, or why nobody does.

    `done` when everybody who may be is settled on the goal; `breached` when
    more failed than the pace tolerates. `look_again` is when time alone would
    change the answer.
    """

    because: str
    move: tuple[str, ...] = ()
    done: bool = False
    breached: bool = False
    look_again: timedelta | None = None
    standing: Mapping[str, Standing] = field(default_factory=dict)

    @property
    def progress(self) -> Mapping[str, int]:
        """Return how many targets stand where."""
        return {str(one): count for one, count in Counter(self.standing.values()).items()}


def assess(target: Target, pace: Pace, now: datetime) -> tuple[Standing, datetime | None]:
    """Return where a target stands, and when time alone would change that."""
    if target.held:
        return _HELD, None
    if not target.on_goal:
        return _WAITING, None
    well = target.verdict.is_well
    if well and not pace.soak:
        return _SETTLED, None
    if not well and (pace.deadline is None or not target.timed):
        return _MOVING, None
    since = min(target.since, now) if target.since is not None else now
    if well:
        soaked = since + pace.soak
        return (_SETTLED, None) if now >= soaked else (_MOVING, soaked)
    assert pace.deadline is not None, "it is given some time"
    end = since + pace.deadline
    return (_FAILED, None) if now >= end else (_MOVING, end)


class _Scene(Struct, frozen=True):
    """Everybody, by where they stand."""

    standing: Mapping[str, Standing]
    failed: list[Target]
    """Those whose time is up, and those that say themselves that it goes wrong."""
    moving: list[Target]
    waiting: list[Target]
    wake: timedelta | None

    def held(self, targets: Sequence[Target]) -> list[Target]:
        return [target for target in targets if self.standing[target.key] is Standing.HELD]


def _scene(targets: Sequence[Target], pace: Pace, now: datetime) -> _Scene:
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
            moving.append(target)
            if target.failing:
                failed.append(target)
        elif where is _FAILED:
            failed.append(target)
    return _Scene(standing, failed, moving, waiting, first - now if first is not None else None)


def advance(goal: str, targets: Sequence[Target], pace: Pace, now: datetime) -> Step:
    """
    Return the next step of a rollout towards the revision people call `goal`.

    Groups go in order: nothing in a group moves while an earlier group still
    has somebody on the way. Within a group, targets move in the order given.
    """
    scene = _scene(targets, pace, now)
    failed, moving, waiting, standing = scene.failed, scene.moving, scene.waiting, scene.standing

    if pace.failures is not None and len(failed) > pace.failures:
        because = f"{len(failed)} failed, {pace.failures} tolerated: {named_with_reasons(failed)}"
        return Step(because=because, breached=True, look_again=scene.wake, standing=standing)
    if not waiting and not moving:
        return Step(because=_end(goal, targets, failed, standing), done=not failed, standing=standing)

    front = min(target.group for target in [*moving, *waiting])
    room = len(waiting) if pace.at_once is None else max(0, pace.at_once - len(moving))
    move = tuple(target.key for target in waiting if target.group == front)[:room]
    if move:
        because = f"moving {listed(move)} to {goal}"
        return Step(because=because, move=move, look_again=scene.wake, standing=standing)
    return Step(because=f"waiting for {named_with_reasons(moving)}", look_again=scene.wake, standing=standing)


def advance_by_group(
    goal: str, targets: Sequence[Target], pace: Pace, tolerated: Mapping[int, int], now: datetime
) -> Step:
    """
    Return the next step of a rollout that takes one group after another.

    A group goes as a whole, and whoever joins it later goes with it, however it
    does. The next one goes when no more of it failed than is `tolerated` there,
    and nobody anywhere is on the way but those that say it goes wrong. How many
    go at once, and how many may fail in all, is not asked. Whoever is held up holds
    up the groups behind it.
    """
    scene = _scene(targets, pace, now)
    busy = [target for target in scene.moving if not target.failing]
    waiting, failures, held = (
        _by_group(scene.waiting),
        _by_group(scene.failed),
        _by_group(scene.held(targets)),
    )
    for group in sorted({target.group for target in targets}):
        move = tuple(target.key for target in waiting.get(group, ()))
        failed = failures.get(group, [])
        breached = len(failed) > tolerated.get(group, 0)
        if not (breached or move or busy or group in held):
            continue
        said = [f"moving {listed(move)} to {goal}"] if move else []
        if breached:
            limit = tolerated.get(group, 0)
            said.append(
                f"{len(failed)} failed in group {group}, {limit} tolerated: {named_with_reasons(failed)}"
            )
        because = "; ".join(said) or f"waiting for {named_with_reasons(busy or held[group])}"
        return Step(
            because=because, move=move, breached=breached, look_again=scene.wake, standing=scene.standing
        )
    if scene.moving:
        because = f"waiting for {named_with_reasons(scene.moving)}"
        return Step(because=because, look_again=scene.wake, standing=scene.standing)
    because = _end(goal, targets, scene.failed, scene.standing)
    return Step(because=because, done=not scene.failed, standing=scene.standing)


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
    """Return the first few targets as people call them, each with what is known of it."""
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
