"""
The plan of one ManifestWorkReplicaSet.

Decisions are recorded before they are carried out: a revision before any work
has it, and an abort before any work is rolled back. Only the progress of a
rollback is reported afterwards. Before works are written or revisions pruned, a
live read confirms that the replica set is the one that was cached.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from lamina.core.live_check import Cached, confirm
from lamina.core.model.complaints import summary, sync_error
from lamina.core.model.finalizers import hold, is_held
from lamina.core.model.plan import NOTHING, Action, Plan, Stage, delete, remove_finalizer, set_status
from lamina.core.model.queries import Answers, Query
from lamina.core.model.world import World
from lamina.errors import LaminaError
from lamina.families.manifestwork.hub import history
from lamina.families.manifestwork.hub.history import Revisions, prunable
from lamina.families.manifestwork.hub.phase import APPLIED, NOT_AS_EXPECTED, PROGRESSING
from lamina.families.manifestwork.hub.rollout import SOON, decide
from lamina.families.manifestwork.hub.stages import (
    moving,
    remove_works,
    report_collision,
    report_invalid_name,
    stages,
    write_works,
)
from lamina.families.manifestwork.hub.status import REFUSED
from lamina.families.manifestwork.hub.view import View
from lamina.families.manifestwork.labels import CLEANUP, MANAGER
from lamina.objects import conditions, meta
from lamina.objects.types import Condition, Ref

_LONGEST_LABEL = 63
NOT_STARTED = "no rollout was started"


def queries(view: View, answers: Answers) -> tuple[Query, ...]:
    """Return the works that have still to be read, because they may have the content of a lost revision."""
    if meta.is_deleting(view.obj) or not is_held(view.obj, CLEANUP):
        return ()
    return tuple(one for one in history.queries(view) if one not in answers)


def plan(view: View, answers: Answers, now: datetime) -> Plan:
    """Return what happens next to a replica set."""
    if meta.is_deleting(view.obj):
        return _delete(view)
    if not is_held(view.obj, CLEANUP):
        return hold(view.obj, CLEANUP, because="its works are to be deleted before it is")
    if len(view.key) > _LONGEST_LABEL:
        return report_invalid_name(view, _LONGEST_LABEL, now)
    revisions = history.revisions(view, answers)
    if revisions.collides:
        return report_collision(view, revisions.wanted.name, now)
    return _roll_out(view, revisions, answers, now)


def _delete(view: View) -> Plan:
    """Delete the works, then the revisions, and remove the finalizer: at once, or after the last work is gone."""
    if not is_held(view.obj, CLEANUP):
        return Plan(because="it waits for the finalizers of other controllers")
    works: list[Action] = [delete(work.obj) for work in view.works if not work.is_deleting]
    ordered = [Stage("delete works", tuple(works))] if works else []
    if view.limits.cascade_deletion_policy == "Foreground" and view.works:
        return Plan(
            stages=tuple(ordered), because=f"waiting for the deletion of {len(view.works)} ManifestWorks"
        )
    if "orphan" not in meta.finalizers(view.obj):
        # Without a garbage collector in the cluster, revisions would remain.
        revisions = tuple(
            delete(one.obj)
            for one in view.history.revisions
            if one.obj is not None and meta.controller_of(one.obj) and not meta.is_deleting(one.obj)
        )
        ordered += [Stage("delete revisions", revisions)] if revisions else []
    ordered.append(Stage("remove finalizer", (remove_finalizer(view.obj, CLEANUP),)))
    return Plan(stages=tuple(ordered), because="it is deleted with its ManifestWorks")


def _roll_out(view: View, revisions: Revisions, answers: Answers, now: datetime) -> Plan:
    outcome = decide(view, revisions, answers, now)
    if isinstance(outcome, Plan):
        return outcome
    movers = moving(outcome)
    works, removals = list(write_works(outcome, movers, now)), list(remove_works(outcome))
    pruned = prunable(outcome.view, revisions)
    if works or pruned:
        # A creation and a deletion do not conflict with a newer version of the replica set.
        confirmation = confirm({view.key: Cached(view.obj)}, answers)
        if confirmation.pending:
            return Plan(queries=confirmation.pending, because=outcome.message)
        if confirmation.outdated:
            return Plan(requeue_after=SOON, because="the cached ManifestWorkReplicaSet is stale")
    return Plan(
        stages=stages(
            outcome, moves=sum(map(len, movers)), works=works, removals=removals, pruned=pruned, now=now
        ),
        requeue_after=outcome.requeue_after,
        because=outcome.message,
        progress=outcome.standings,
    )


def complain(world: World, ref: Ref, error: LaminaError, now: datetime) -> Plan:
    """
    Report the error of a pass on its replica set.

    It is appended to the message of Progressing while a rollout is aborted, and
    to that of ManifestworkApplied otherwise. Before the first pass has reported
    anything, there is no condition, and ManifestworkApplied is set with the error.
    """
    obj = world.get(ref)
    if obj is None or meta.is_deleting(obj):
        return NOTHING
    status = obj.get("status") or {}
    made: Sequence[Condition] = status.get("conditions") or ()
    old = conditions.find(made, PROGRESSING) if status.get("abortedTime") else None
    old = old or conditions.find(made, APPLIED)
    emit = Stage("emit events", (sync_error(obj, error, by=MANAGER, now=now),))
    if old is None:
        changed = conditions.with_condition(
            made,
            APPLIED,
            "False",
            now=now,
            reason=NOT_AS_EXPECTED,
            message=NOT_STARTED + REFUSED + summary(error),
            generation=meta.generation(obj),
        )
    else:
        message = old.get("message", "").partition(REFUSED)[0] + REFUSED + summary(error)
        changed = [{**old, "message": message} if one is old else one for one in made]
    patch = set_status(obj, {**status, "conditions": list(changed)})
    stages = [Stage("update status", (patch,))] if patch is not None else []
    return Plan(stages=(*stages, emit), because=str(error))
