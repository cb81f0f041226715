"""The children that are rolled out, as targets of a rollout: on the latest revision or not, and whether they are healthy."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import timedelta
from typing import TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from lamina.core.apply.children import Method
from lamina.core.health.probe import ProbeResult, has_observed_its_spec, unhealthy, unknown
from lamina.core.model.object_map import differing
from lamina.core.rollout.claims import Claims
from lamina.core.rollout.pace import Pace, Rounding, amount
from lamina.core.rollout.step import Target
from lamina.families.metacontroller.sync.desired import Desired, DesiredIndex, Name
from lamina.families.metacontroller.sync.revisions import ClaimingRevision
from lamina.families.metacontroller.sync.view import View
from lamina.objects.types import Obj

Row: TypeAlias = tuple[int, Name, str, Desired]
"""A child that is rolled out: position, name, label in messages, and what is desired."""

_ELSEWHERE = unknown("")


def targets(
    view: View,
    latest: ClaimingRevision,
    goal: DesiredIndex,
    found: Sequence[Obj | None],
    claims: Claims[Name],
    is_as_desired: Callable[[int], bool],
) -> tuple[Target, ...]:
    """
    Return the children as targets; only those that moved, or of which another object was found, are looked at again.

    `is_as_desired` says of the child at a position whether there is nothing to write to it.
    """
    held = held_back(view, goal.by_name)

    def target(row: Row) -> Target:
        position, name, label, child = row
        if claims.held.get(name) == latest.name:
            result = _health(view, label, child, found[position], is_as_desired(position))
            return Target(key=label, on_goal=True, verdict=result, since=latest.moved_at)
        return Target(
            key=label, on_goal=False, verdict=_ELSEWHERE, since=latest.moved_at, held=held.get(name, "")
        )

    if view.setup.applies:
        # With server-side apply the answers count too.
        return tuple(map(target, goal.rolling))
    return view.memo.update(_targets, "targets", goal, claims, latest, found, target).targets


class _Targets(Struct, frozen=True):
    """Targets, and what they were computed from."""

    goal: DesiredIndex
    claims: Claims[Name]
    latest: ClaimingRevision
    found: Sequence[Obj | None]
    targets: tuple[Target, ...]


def _targets(
    last: _Targets | None,
    goal: DesiredIndex,
    claims: Claims[Name],
    latest: ClaimingRevision,
    found: Sequence[Obj | None],
    target: Callable[[Row], Target],
) -> _Targets:
    name, since = latest.name, latest.moved_at
    if last is None or last.goal is not goal or last.latest.name != name:
        return _Targets(goal, claims, latest, found, tuple(map(target, goal.rolling)))
    changed = set(differing(found, last.found))
    if last.claims is not claims:
        now, before = claims.held, last.claims.held
        changed |= {
            row[0] for row in goal.rolling if (now.get(row[1]) == name) is not (before.get(row[1]) == name)
        }
    if not changed and last.latest.moved_at == since:
        return last
    made = [
        target(row) if row[0] in changed else one if one.since == since else replace(one, since=since)
        for row, one in zip(goal.rolling, last.targets, strict=True)
    ]
    return _Targets(goal, claims, latest, found, tuple(made))


def _health(view: View, label: str, child: Desired, there: Obj | None, is_as_desired: bool) -> ProbeResult:
    if there is None:
        return unknown(f"missing child {label}")
    if not is_as_desired:
        return unknown(f"child {label} is not updated yet")
    return view.memo.call(_checked, label, child, there)


def _checked(label: str, child: Desired, there: Obj) -> ProbeResult:
    """Return whether a child that is as desired is healthy by its status."""
    if child.rule.method is Method.IN_PLACE and not (seen := has_observed_its_spec(there)).is_healthy:
        return unknown(f"child {label} {seen.because}")
    checked = child.rule.check(there)
    if not checked.is_healthy:
        return unhealthy(f"child {label} failed status check: {checked.because}")
    return checked


def held_back(view: View, children: Collection[Name]) -> Mapping[Name, str]:
    """Return which children do not move, and why: the last ones of a kind, or all of them."""
    held: dict[Name, str] = {}
    for kind, rule in view.setup.children.items():
        if not rule.rolling or not (rule.pace.paused or rule.pace.partition):
            continue
        names = [name for name in children if name[0] == kind]
        if rule.pace.paused:
            held |= dict.fromkeys(names, "the roll is paused")
        else:
            kept = names[-rule.pace.partition :]
            held |= dict.fromkeys(kept, f"the last {rule.pace.partition} are kept back by partition")
    return held


def pace(view: View, count: int) -> Pace:
    """Return the pace over all kinds that are rolled out: the slowest of them."""
    rules = [rule for rule in view.setup.children.values() if rule.rolling]
    counts = [
        max(1, amount(rule.pace.max_unavailable, count, Rounding.DOWN, field=f"{rule.kind.plural}: maxUnavailable"))
        if rule.pace.max_unavailable is not None
        else 1
        for rule in rules
    ]  # fmt: skip
    deadlines = [
        timedelta(seconds=rule.pace.progress_deadline_seconds)
        for rule in rules
        if rule.pace.progress_deadline_seconds is not None
    ]
    return Pace(at_once=min(counts, default=1), deadline=min(deadlines, default=None))
