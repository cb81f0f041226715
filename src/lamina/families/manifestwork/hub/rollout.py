"""
The rollout of one ManifestWorkReplicaSet: its goal, whether it is aborted, and its phase.

The core decides; this module translates a view into revisions, targets and
failure budgets, and the decision back into a phase and a message: the same one
in the condition, the event, the log and the terminal.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial

from msgspec import Struct

from lamina.core.model.plan import Plan
from lamina.core.model.queries import Answers
from lamina.core.rollout.abort import Breach, Decision, Rollout, decide_abort
from lamina.core.rollout.revision import Revision
from lamina.core.rollout.revision_object import revision_name
from lamina.core.rollout.step import Standing, listed
from lamina.families.manifestwork.hub.confirm_abort import confirm_overdue, with_live_works
from lamina.families.manifestwork.hub.history import Revisions, is_renamed
from lamina.families.manifestwork.hub.phase import NOT_FOUND, PROGRESSING, Findings, Phase, phase_of
from lamina.families.manifestwork.hub.placement_progress import Progress, progress
from lamina.families.manifestwork.hub.restored import NOT_RESTORED, restored
from lamina.families.manifestwork.hub.view import PlacementView, View
from lamina.objects import conditions, meta

SOON = timedelta(seconds=1)
"""When a pass that found the cache stale is repeated."""


class RolloutOutcome(Struct, frozen=True, kw_only=True):
    """What a pass decides about a rollout, before anything is written."""

    view: View
    revisions: Revisions
    goal: Revision
    progress: tuple[Progress, ...]
    decision: Decision
    findings: Findings
    phase: Phase
    message: str

    @property
    def requeue_after(self) -> timedelta | None:
        """Return when time alone changes the decision; an aborted rollout waits for no deadline."""
        if self.decision.is_aborted:
            return None
        waits = (one.step.requeue_after for one in self.progress)
        return min((wait for wait in waits if wait is not None), default=None)

    @property
    def standings(self) -> dict[str, int]:
        """Return how many clusters are in each state."""
        counts: dict[str, int] = {}
        for one in self.progress:
            for state, number in one.step.progress.items():
                counts[state] = counts.get(state, 0) + number
        return counts


def decide(view: View, revisions: Revisions, answers: Answers, now: datetime) -> RolloutOutcome | Plan:
    """Return the outcome of a pass, or a plan without writes while an abort is not confirmed."""
    view, wanted, stable = with_live_works(view, answers), revisions.wanted, revisions.stable
    # The same template under another hash keeps its abort.
    changed = wanted.hash != view.update and not is_renamed(view, revisions)
    rollout = Rollout(wanted=wanted, stable=stable, aborted_at=None if changed else view.aborted_at)
    is_aborted = rollout.aborted_at is not None
    goal = (stable or _lost(view, revisions.current)) if is_aborted else wanted
    placements = tuple(progress(one, goal, wanted, now, is_aborted=is_aborted) for one in view.placements)

    def standings(placement: PlacementView) -> Mapping[str, Standing]:
        return progress(placement, goal, wanted, now, is_aborted=False).step.standing

    breaches = [
        Breach(one.failures.overdue, partial(confirm_overdue, one, answers, standings))
        for one in (() if changed else _aborting(revisions, placements))
    ]
    decision = decide_abort(rollout, breaches, now)
    if decision.pending:
        return Plan(queries=decision.pending, requeue_after=SOON, because=decision.breach)
    if decision.is_stale:
        return Plan(requeue_after=SOON, because="the cached works of overdue clusters are stale")
    if decision.is_aborted and stable is not None:
        goal = stable
    findings = _findings(view, revisions, placements, decision, changed=changed)
    phase = phase_of(findings)
    return RolloutOutcome(
        view=view,
        revisions=revisions,
        goal=goal,
        progress=placements,
        decision=decision,
        findings=findings,
        phase=phase,
        message=_message(view, revisions, placements, phase, decision),
    )


def _lost(view: View, hash: str) -> Revision:
    """Return the revision to roll back to where its content is lost: works that have its hash count as restored."""
    return Revision(number=0, name=_named(view, hash), snapshot={}, hash=hash)


def _aborting(revisions: Revisions, placements: Sequence[Progress]) -> list[Progress]:
    """Return the placements whose strategy aborts the rollout now."""
    if not revisions.current or revisions.current == revisions.wanted.hash:
        return []
    return [one for one in placements if one.failures.overdue and _aborts(one)]


def _aborts(one: Progress) -> bool:
    """Say whether the strategy of a placement aborts the rollout once too many clusters are overdue."""
    strategy = one.placement.strategy
    # Without known groups, it is unknown how many failures each of them tolerates.
    return strategy.aborts and strategy.deadline is not None and not one.placement.frozen


def _findings(
    view: View, revisions: Revisions, placements: Sequence[Progress], decision: Decision, *, changed: bool
) -> Findings:
    progressing = conditions.find(view.status.get("conditions") or (), PROGRESSING)
    can_roll_back = revisions.stable is not None and not revisions.stable.equals(revisions.wanted)
    return Findings(
        is_aborted=decision.is_aborted,
        is_recorded=decision.is_recorded,
        changed=changed,
        is_new=revisions.is_new,
        reason=progressing.get("reason", "") if progressing is not None else "",
        is_current=revisions.current == revisions.wanted.hash,
        desired=sum(one.counts.desired for one in placements),
        updated=sum(one.counts.updated for one in placements),
        overdue=any(one.failures.overdue for one in placements),
        failing=any(one.failures.failing for one in placements),
        may_abort=can_roll_back and any(one.failures.failing and _aborts(one) for one in placements),
        unknown=any(one.placement.reason == NOT_FOUND for one in placements),
    )


# The message


def _message(
    view: View, revisions: Revisions, progress: Sequence[Progress], phase: Phase, decision: Decision
) -> str:
    """Return the message of a phase."""
    breach, aborted_at = decision.breach, decision.aborted_at
    match phase:
        case Phase.ABORTING:
            return f"{breach}; rolling back to {_named(view, revisions.current)}"
        case Phase.ABORTED:
            assert aborted_at is not None
            return _aborted(view, revisions, progress, aborted_at)
        case Phase.OVERDUE:
            overdue = "; ".join(one.failures.overdue for one in progress if one.failures.overdue)
            return f"{overdue}; {cannot_abort(view, revisions)}" if breach else overdue
        case Phase.HALTED | Phase.FAILING:
            return "; ".join(one.failures.failing for one in progress if one.failures.failing)
        case Phase.EMPTY:
            return "no cluster is selected"
        case Phase.COMPLETE:
            return f"New revision {revisions.wanted.name} is successfully progressed"
        case Phase.DISTURBED | Phase.CREATED | Phase.FOUND:
            return _in_progress(progress)


def _named(view: View, hash: str) -> str:
    """Return the name of the revision with a hash."""
    return revision_name(meta.name(view.obj), hash)


def cannot_abort(view: View, revisions: Revisions) -> str:
    """Return why a rollout that should be aborted is not."""
    return f"revision {_named(view, revisions.current)} not found, cannot abort"


def _aborted(view: View, revisions: Revisions, progress: Sequence[Progress], aborted_at: datetime) -> str:
    """Return how far the rollback is: only what agents confirm counts as restored."""
    stable = _named(view, revisions.current)
    back = restored(progress, revisions.stable or _lost(view, revisions.current), aborted_at)
    count = f"{len(back.confirmed)} of {back.total} clusters restored to {stable}"
    parts = [
        f"rollout of {revisions.wanted.name} aborted, "
        + (count if back.total else f"all clusters are on {stable}")
    ]
    if back.others:
        parts.append(f"{NOT_RESTORED}{listed(back.others)}")
    if revisions.stable is None:
        needing = [name for one in progress for name in one.clusters if name not in one.on_goal]
        if needing:
            parts.append(f"revision {stable} not found, it is needed by {listed(needing)}")
    unhealthy = [
        f"{name} ({status.message})"
        for one in progress
        for name, status in one.on_goal.items()
        if status.verdict.answer == "False"
    ]
    if unhealthy:
        parts.append(f"not healthy there: {listed(unhealthy)}")
    return "; ".join(parts)


def _in_progress(progress: Sequence[Progress]) -> str:
    several = len(progress) > 1
    parts: list[str] = []
    for one in progress:
        reason, failed = one.step.because, one.failures.failed
        if one.failures.overdue:
            reason = _not_healthy(one)
        elif (
            failed
            and not one.step.move
            and not {Standing.MOVING, Standing.WAITING} & set(one.step.standing.values())
        ):
            reason = f"finished, {failed} tolerated failures; {reason}"
        parts.append(f"{one.placement.name}: {reason}" if several else reason)
    return "; ".join(parts)


def _not_healthy(one: Progress) -> str:
    """Return which clusters are not healthy, after all have had the revision: more than are tolerated."""
    late = [name for name in one.on_goal if one.step.standing.get(name) is Standing.FAILED]
    named = [f"{name} ({message})" if (message := one.on_goal[name].message) else name for name in late]
    return f"{len(late)} of {len(one.clusters)} not healthy: {listed(named)}"
