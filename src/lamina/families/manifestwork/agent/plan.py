"""
The next step of one ManifestWork on its cluster.

An object is in the record of its work, an AppliedManifestWork, before it is created.
Then all manifests are applied in the order of their kinds, whatever fails in between,
and objects that no manifest is about any more are removed. The result is read back: the
next pass finds the objects as they should be, and reports that to the hub.

A work that is deleted deletes its record, and that everything in it; the finalizer of the
work is removed once the record is gone.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta

from lamina.core.apply.apply_order import by_rank
from lamina.core.model.complaints import failures_about
from lamina.core.model.finalizers import hold, is_held, release
from lamina.core.model.plan import NOTHING, Action, Delete, Plan, Stage, one_stage, set_status
from lamina.core.model.queries import Answers, Query
from lamina.core.model.world import World
from lamina.errors import ApiError, LaminaError, PlanFailed, SpecError
from lamina.families.manifestwork.agent import record
from lamina.families.manifestwork.agent.labels import HUB, WORK_CLEANUP, Agent
from lamina.families.manifestwork.agent.manifest_step import ManifestOutcome
from lamina.families.manifestwork.agent.reported_status import condition
from lamina.families.manifestwork.agent.status import deleting, refused, status
from lamina.families.manifestwork.agent.view import View, fraction_of, gather
from lamina.families.manifestwork.agent.work_steps import WorkSteps, work_steps
from lamina.objects import conditions, meta
from lamina.objects.types import Obj, Ref

_SOON = timedelta(seconds=1)
"""When an object that is not watched is read again after it was written."""


def queries(view: View, answers: Answers) -> tuple[Query, ...]:
    """Return what has still to be asked: the live objects, dry runs of the writes, and access reviews."""
    used = _record_in_use(view)
    if used is None:
        return ()
    return tuple(dict.fromkeys(one for one in work_steps(view, used, answers).queries if one not in answers))


def plan(view: View, answers: Answers, now: datetime) -> Plan:
    """Return the next step of a work."""
    if meta.is_deleting(view.work):
        return _delete(view, now)
    if not is_held(view.work, WORK_CLEANUP):
        because = "its objects have to be removed before it is deleted"
        return hold(view.work, WORK_CLEANUP, because=because, cluster=HUB)
    if view.record is None:
        return one_stage("create the record", [record.create(view)], because="it has no record yet")
    used = _record_in_use(view)
    if used is None:
        return Plan(because="its record is being deleted, and is created anew once it is gone")
    return _apply(view, used, work_steps(view, used, answers), now)


def _record_in_use(view: View) -> Obj | None:
    if meta.is_deleting(view.work) or not is_held(view.work, WORK_CLEANUP):
        return None
    if view.record is None or meta.is_deleting(view.record):
        return None
    return view.record


def _apply(view: View, used: Obj, done: WorkSteps, now: datetime) -> Plan:
    recorded = tuple(record.changes(view, used, done))
    if record.comes_first(used, done):
        stages = [Stage("record what is about to be written", recorded)]
        return _planned(stages, "what is about to be written is recorded first", None)
    removals = tuple(one.release.action for one in done.stale if one.release.action is not None)
    stages = [
        *_writes(done),
        Stage("remove", removals, run_after_failure=True),
        Stage("record what exists", recorded, run_after_failure=True),
        Stage("report", tuple(_report(view, done, now)), run_after_failure=True),
    ]
    return _planned(stages, _because(done), _requeue_after(view, done))


def _planned(stages: list[Stage], because: str, again: timedelta | None) -> Plan:
    kept = tuple(stage for stage in stages if stage.actions)
    return Plan(stages=kept, requeue_after=again, because=because)


def _writes(done: WorkSteps) -> Iterator[Stage]:
    """Yield the writes by the rank of their kind, those of one rank in the order of the manifests."""
    for rank, steps in by_rank(done.steps, lambda step: step.manifest.group_kind):
        actions = tuple(step.action for step in steps if step.action is not None)
        yield Stage(f"apply, rank {rank}", actions, run_after_failure=True)


def _report(view: View, done: WorkSteps, now: datetime) -> Iterator[Action]:
    reported = status(view, done.steps, now)
    if reported is not None and (patch := set_status(view.work, reported, cluster=HUB)) is not None:
        yield patch


def _because(done: WorkSteps) -> str:
    written = [str(step.manifest) for step in done.steps if step.action is not None]
    removed = [str(one.entry.resource) for one in done.stale if one.release.action is not None]
    failed = [f"{one.manifest}: {one.message}" for one in done.steps if one.outcome is ManifestOutcome.FAILED]
    parts = [
        f"applying {', '.join(written)}" if written else "",
        f"removing {', '.join(removed)}" if removed else "",
        f"not applied: {'; '.join(failed)}" if failed else "",
    ]
    return "; ".join(filter(None, parts)) or "everything is as it should be"


def _requeue_after(view: View, done: WorkSteps) -> timedelta:
    """Return when to look again: sooner where objects are not watched, or a write was refused."""
    options = view.agent.options
    jitter = fraction_of(["again", meta.uid(view.work)])
    delays = [options.reapply * (1 + jitter / 2)]
    delays += [step.again for step in done.steps if step.again is not None]
    unwatched = [step for step in done.steps if not step.found.is_watched]
    if any(step.action is not None for step in unwatched):
        delays.append(_SOON)
    if unwatched or any(not one.is_watched and one.release.waits for one in done.stale):
        delays.append(options.poll * (1 + 0.9 * jitter))
    return min(delays)


def _delete(view: View, now: datetime) -> Plan:
    if not is_held(view.work, WORK_CLEANUP):
        return NOTHING
    if view.record is None:
        return release(view.work, WORK_CLEANUP, because="none of its objects are left here", cluster=HUB)
    patch = set_status(view.work, deleting(view, now), cluster=HUB)
    # Without a version: the record is deleted whatever is written to it meanwhile.
    ended = () if meta.is_deleting(view.record) else (_deletion(view.record),)
    stages = [Stage("report", (patch,) if patch is not None else ()), Stage("delete its record", ended)]
    return _planned(stages, "its objects are being deleted", None)


def _deletion(obj: Obj) -> Delete:
    return Delete(ref=meta.ref(obj), uid=meta.uid(obj))


# After a pass that failed


def complain(agent: Agent, world: World, ref: Ref, error: LaminaError, now: datetime) -> Plan:
    """Return the plan that reports on a work which of its manifests were refused."""
    work = world.get(ref)
    if isinstance(error, SpecError):
        return _failed(work, str(error), now) if work is not None and not meta.is_deleting(work) else NOTHING
    view = gather(agent, world, ref)
    if view is None or meta.is_deleting(view.work) or not isinstance(error, PlanFailed):
        return NOTHING
    refusals = failures_about(error, {manifest.ref for manifest in view.manifests})
    if refusals:
        status = refused(view, {ref: str(failure) for ref, failure in refusals.items()}, now)
        return _reported(view.work, status, str(error))
    if any(isinstance(one, ApiError) for one in failures_about(error, [agent.record_ref(ref.name)]).values()):
        # Without a record nothing is applied: its name may be too long, for example.
        return _failed(view.work, f"its record was refused: {error}", now)
    return NOTHING


def _failed(work: Obj, why: str, now: datetime) -> Plan:
    """Return the plan that reports of a work as a whole that it is not applied."""
    status: Obj = work.get("status") or {}
    before = status.get("conditions") or ()
    failed = condition(
        before,
        "Applied",
        "False",
        "AppliedManifestWorkFailed",
        why,
        now=now,
        generation=meta.generation(work),
    )
    rest = conditions.without_condition(before, "Applied")
    return _reported(work, {**status, "conditions": [failed, *rest]}, why)


def _reported(work: Obj, status: Obj, because: str) -> Plan:
    patch = set_status(work, status, cluster=HUB)
    return one_stage("report", [patch] if patch is not None else [], because=because)
