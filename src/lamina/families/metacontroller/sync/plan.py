"""
The plan for one parent and its children.

The finalizer is written first, then children are adopted and released, then the
hook's response is carried out: each is written before the next is decided.
Within a response the order loses nothing: first the claims of a rollout, then
deletions, then creations and updates, then the status.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from lamina.core.model.finalizers import hold, release
from lamina.core.model.plan import NOTHING, Plan, Stage, delete, one_stage
from lamina.core.model.queries import Answers, Query
from lamina.core.ownership import controller_ref
from lamina.errors import LaminaError, PlanFailed
from lamina.families.metacontroller.hooks.queries import (
    Responses,
    endpoint_of,
    names_in_use,
    open_questions,
    responses,
)
from lamina.families.metacontroller.sync.apply_strategy import ApplyStrategy
from lamina.families.metacontroller.sync.children import ChildStages, child_stages
from lamina.families.metacontroller.sync.controller_status import answered
from lamina.families.metacontroller.sync.parent_status import (
    final_status,
    report,
    schema_query,
    stage,
    with_transition_times,
    without_finalizer,
)
from lamina.families.metacontroller.sync.rollout import Rollout, outcome, rollout_events, with_condition
from lamina.families.metacontroller.sync.view import View
from lamina.objects import meta
from lamina.objects.types import Obj

_COLLECTED = frozenset(("orphan", "foregroundDeletion"))
_SOON = timedelta(seconds=1)


def queries(view: View, answers: Answers) -> tuple[Query, ...]:
    """Return what has still to be asked before the plan."""
    if view.is_released:
        return ()
    if unread := view.setup.unread_credentials(view.kinds, answers):
        return unread
    if _add_finalizer(view) is not None or view.claim.releasable:
        return ()
    if view.claim.adoptable:
        return controller_ref.queries(answers, view.claim)
    return open_questions(view, answers)


def plan(view: View, answers: Answers, now: datetime) -> Plan:
    """Return the plan for a parent."""
    if view.is_released:
        return release(view.parent, view.setup.finalizer, because="there is no finalize hook any more")
    # A controller whose hooks cannot be called touches no parent.
    view.setup.check_credentials(view.kinds, answers)
    if (first := _add_finalizer(view)) is not None:
        return first
    if view.claim.adoptable or view.claim.releasable:
        return _adopt_and_release(view, answers)
    if endpoint_of(view) is None:
        # A controller without a sync hook does nothing to a parent that is not finalizing.
        return NOTHING
    return _follow(view, answers, responses(view, answers), now)


def _add_finalizer(view: View) -> Plan | None:
    """Return the plan that adds our finalizer, where it should be there and is not."""
    setup, parent = view.setup, view.parent
    if setup.finalize is not None and view.is_wanted and not view.is_deleting and not view.has_finalizer:
        return hold(parent, setup.finalizer, because="its finalize hook is called before it is deleted")
    return None


def _adopt_and_release(view: View, answers: Answers) -> Plan:
    actions = controller_ref.changes(view.claim, answers)
    released = len(view.claim.releasable)
    because = f"its selector does not match {released} of its children any more, and matches {len(actions) - released} orphans"
    return one_stage("adopt and release children", actions, because=because)


def _follow(view: View, answers: Answers, found: Responses, now: datetime) -> Plan:
    strategy, is_composite = ApplyStrategy(view=view, answers=answers), view.setup.is_composite
    try:
        result = outcome(strategy, found, now)
    except LaminaError as refused:
        # The hook is called again when it asked for it, whatever is wrong with its children.
        return Plan(appointment=found.resync_after, because=str(refused), failure=refused)
    rollout = result.rollout
    if rollout is not None and rollout.pending:
        return Plan(queries=rollout.pending, because=rollout.step.because)
    if rollout is not None and rollout.is_stale:
        return Plan(
            requeue_after=_SOON, appointment=found.resync_after, because="the cached revisions are stale"
        )
    stages: list[Stage] = []
    status, because = result.status, "its children are not managed while it is being deleted"
    own = [rollout.condition["type"]] if rollout is not None else []
    delays = [rollout.step.requeue_after if rollout is not None else None]
    ends = result.finalized and view.is_finalizing and view.has_finalizer
    if _manages_children(view) and not (ends and view.is_deleting and is_composite):
        if rollout is not None:
            stages += rollout.stages
        written = child_stages(strategy, result.children, names_in_use(view, answers), now)
        stages += written.stages
        because = _because(written, rollout)
        delays.append(written.requeue_after)
        if written.condition is not None and is_composite:
            # The status of a decorated object is its own.
            status = with_condition(status or {}, written.condition)
            own.append(written.condition["type"])
        if rollout is not None:
            stages += stage("emit events", list(rollout_events(view.parent, rollout, now)))
    if own and is_composite:
        unread = schema_query(view, own)
        if unread is not None and unread not in answers:
            return Plan(queries=(unread,), because=because)
        status = with_transition_times(view, status or {}, own, answers, now)
    if ends:
        return _finalized(view, found, status, stages)
    stages += report(view, found.newest, status)
    stages += stage("report that the hook answers", answered(view.controller, view.setup, now))
    return Plan(
        stages=tuple(stages),
        requeue_after=min((one for one in delays if one is not None), default=None),
        appointment=found.resync_after,
        because=because,
        failure=_failure(result.errors),
        progress=rollout.step.progress if rollout is not None else {},
    )


def _because(written: ChildStages, rollout: Rollout | None) -> str:
    """Return what is done about the children, and which of them are not as their hook desires them."""
    differing = written.differing
    if rollout is not None:
        return "; ".join(filter(None, (rollout.step.because, differing)))
    done = f"its hook desires other children: {written.written}" if written.written else ""
    return "; ".join(filter(None, (done, differing))) or "its children are as its hook desires them"


def _finalized(view: View, found: Responses, status: Obj | None, stages: Sequence[Stage]) -> Plan:
    """Return the plan that ends with the removal of the finalizer: the parent is not reconciled again."""
    ending: list[Stage] = []
    if view.is_deleting and _manages_children(view) and view.revisions:
        ending.append(Stage("delete its revisions", tuple(map(delete, view.revisions))))
    ending.append(Stage("remove the finalizer", (without_finalizer(view, found.newest, status),)))
    return Plan(
        stages=(*stages, *ending, *final_status(view, status)),
        because="its finalize hook says that it is finalized",
    )


def _manages_children(view: View) -> bool:
    """Say whether we write children: of a parent that is being deleted, only while our finalizer holds it."""
    if not view.is_deleting:
        return True
    collected = _COLLECTED & set(meta.finalizers(view.parent))
    return not collected and view.has_finalizer and view.setup.finalize is not None


def _failure(errors: Sequence[LaminaError]) -> LaminaError | None:
    if not errors:
        return None
    return errors[0] if len(errors) == 1 else PlanFailed(errors)
