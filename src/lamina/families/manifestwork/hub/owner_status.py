"""The status of a ManifestWorkReplicaSet: its revisions, its clusters, and the state of each."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime

from lamina.core.model.queries import Answers
from lamina.core.model.state import State, decide, deciding
from lamina.core.rollout.history import History
from lamina.core.rollout.owner_status import OwnerStatus, TargetStatus
from lamina.core.rollout.revision import Revision
from lamina.families.manifestwork.hub.history import Revisions, revisions
from lamina.families.manifestwork.hub.restored import had_left, is_confirmed
from lamina.families.manifestwork.hub.revision import reports_progress
from lamina.families.manifestwork.hub.states import (
    OWNER_STATES,
    TARGET_STATES,
    ReportedCluster,
    depends_on_works,
    message,
    reported,
)
from lamina.families.manifestwork.hub.view import View
from lamina.families.manifestwork.hub.work import Work
from lamina.families.manifestwork.hub.work_status import RolloutState, rollout_status

_LATEST = datetime.max.replace(tzinfo=UTC)
"""A status has no clock: no reported time counts as being in the future."""


def owner_status(view: View) -> OwnerStatus:
    """Return the status of a replica set: its revisions, and the one that each of its clusters has."""
    known = revisions(view, Answers())
    history, wanted = known.found.with_wanted, known.wanted
    aborted = wanted.hash == view.update and view.aborted_at is not None
    last = history.hashed(view.current)
    stable = last if aborted else None
    goal = stable.number if stable is not None else wanted.number
    targets = dict(_targets(view, known, history, goal, stable))
    facts = reported(
        view.obj,
        is_aborted=view.aborted_at is not None,
        has_degraded=any(one.state is State.DEGRADED for one in targets.values()),
        is_back=stable is not None and _is_back(targets.values(), stable),
    )
    rule = deciding(OWNER_STATES, facts)
    return OwnerStatus(
        owner=view.obj,
        history=history,
        goal=goal,
        state=rule.state,
        message=message(facts, rule.state),
        targets=targets,
        wanted=wanted.number,
        stable=last.number if last is not None else 0,
        has_ended=rule.ends,
        by_targets=depends_on_works(facts),
    )


def _is_back(targets: Iterable[TargetStatus], stable: Revision) -> bool:
    """Say whether all clusters are on the stable revision, as far as their works and their agents tell."""
    return all(
        one.revision == stable.number and one.state is not State.ABORTING
        for one in targets
        if one.state is not State.DELETING
    )


def _is_unconfirmed(view: View, work: Work, stable: Revision) -> bool:
    """Say whether an abort moves the cluster of a work back, and its agent has not confirmed that."""
    at = view.aborted_at
    return at is not None and had_left(work, stable, at) and not is_confirmed(work, stable)


def _targets(
    view: View, known: Revisions, history: History, goal: int, stable: Revision | None
) -> Iterator[tuple[str, TargetStatus]]:
    several = len(view.placements) > 1
    numbers = {one.digest: one.number for one in view.history.revisions if one.digest}
    numbers[known.wanted.digest] = known.wanted.number
    for placement in view.placements:
        selected = {cluster for group in placement.groups for cluster in group.clusters}
        for cluster in sorted(selected | set(placement.works)):
            work = placement.works.get(cluster)
            number = numbers.get(work.digest, 0) if work is not None else 0
            revision = history.numbered(number)
            progress = revision is not None and reports_progress(revision.snapshot)
            facts = ReportedCluster(
                work=work,
                is_selected=cluster in selected,
                on_goal=number == goal,
                is_aborted=stable is not None,
                is_unconfirmed=work is not None
                and stable is not None
                and _is_unconfirmed(view, work, stable),
                status=rollout_status(work, reports_progress=progress, now=_LATEST)
                if work is not None
                else None,
            )
            yield f"{placement.name}/{cluster}" if several else cluster, _target(facts, number, goal)


def _target(facts: ReportedCluster, number: int, goal: int) -> TargetStatus:
    state, work, status = decide(TARGET_STATES, facts), facts.work, facts.status
    if work is None or status is None:
        return TargetStatus(revision=0, state=state, message="it has no ManifestWork yet", kind=Work.kind)
    available = status.state is RolloutState.SUCCEEDED
    if state is State.DELETING:
        message = "its ManifestWork is being deleted" if work.is_deleting else "it is no longer selected"
        return TargetStatus(
            revision=number, state=state, message=message, available=available, kind=Work.kind
        )
    message = status.message
    if not facts.on_goal:
        message = message or f"waits to be moved to revision {goal}"
    return TargetStatus(
        revision=number,
        state=state,
        since=status.since or work.dispatched,
        message=message,
        available=available,
        kind=Work.kind,
    )
