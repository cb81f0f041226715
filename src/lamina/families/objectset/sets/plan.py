"""
The next step of one set.

The finalizer is set first, and the number of the revision next. Then the phases are gone
through in order: one phase is written in a pass, and the events of its objects lead to the
next pass. The status reports what was observed; a pass that gains control of objects leaves
it to the next one, which sees what has become of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from msgspec.structs import replace

from lamina.core.model.finalizers import hold, is_held, release
from lamina.core.model.plan import NOTHING, Action, Plan, Stage, change, change_metadata, in_stages, one_stage
from lamina.core.model.queries import Answers, Query
from lamina.core.phases.delegated_phase import confirmed
from lamina.core.phases.live_objects import live_objects, unfollowed
from lamina.core.phases.live_revisions import uncached
from lamina.core.phases.owner import PhaseOwner, superseded
from lamina.core.phases.phase_step import RETRY, PhaseStep, phase_step, writes
from lamina.families.objectset import lineage
from lamina.families.objectset.labels import METRICS, TEARDOWN
from lamina.families.objectset.reporting import report, set_gauges
from lamina.families.objectset.sets import teardown
from lamina.families.objectset.sets.class_phase import class_phase_step, delegated, is_taken_over
from lamina.families.objectset.sets.status import invalid, soak, status
from lamina.families.objectset.sets.view import View, observed, what_is_invalid
from lamina.families.objectset.sets.view import owner_of as set_owner
from lamina.objects import meta
from lamina.objects.types import Obj

_SETTLED = "all objects are as they should be"


def queries(view: View, answers: Answers) -> tuple[Query, ...]:
    """Return what has to be followed: the objects of all phases without a class."""
    if lineage.is_archived(view.obj) or not is_held(view.obj, TEARDOWN):
        return ()
    return unfollowed(view.in_process, answers)


def plan(view: View, answers: Answers, now: datetime) -> Plan:
    """Return the next step of a set, and its metrics."""
    gauges = set_gauges(view.obj, view.in_process, answers)
    return replace(_next(view, answers, now), gauges=gauges)


def _next(view: View, answers: Answers, now: datetime) -> Plan:
    obj = view.obj
    if lineage.is_archived(obj):
        return _tombstone(obj)
    if meta.is_deleting(obj) or view.is_archived:
        return teardown.plan(view, answers, now)
    if not is_held(obj, TEARDOWN):
        return hold(obj, TEARDOWN, because="its objects are to be deleted in order before it is")
    if wrong := what_is_invalid(view):
        return _refused(view, wrong, answers, now)
    if not lineage.number(obj) or "revision" not in (obj.get("spec") or {}):
        return _number(view)
    return _reconcile(view, answers, now)


def _refused(view: View, wrong: str, answers: Answers, now: datetime) -> Plan:
    """Report what is wrong with a set, and what it controls all the same."""
    if (waits := uncached(view.missing, answers)) is not None:
        return waits
    owner = set_owner(view)
    steps = tuple(
        confirmed(owner, delegated(view, phase), step, answers) if phase.class_ and owner.is_paused else step
        for phase, step in zip(view.phases, observed(view, answers), strict=True)
    )
    if asked := tuple(dict.fromkeys(query for one in steps for query in one.queries)):
        return Plan(queries=asked)
    if any(one.is_outdated for one in steps):
        return Plan(because=wrong, requeue_after=RETRY)
    refused = report(view.obj, invalid(view, wrong, steps, now), now)
    return one_stage("report", refused, because=wrong, again=RETRY)


def _tombstone(obj: Obj) -> Plan:
    """Remove our finalizers from a set that has been archived; it is never touched otherwise."""
    if not any(is_held(obj, one) for one in (TEARDOWN, METRICS)):
        return NOTHING
    return release(obj, TEARDOWN, METRICS, because="it has been archived")


def _number(view: View) -> Plan:
    number = lineage.number(view.obj) or lineage.derived_number(view.obj, view.lineage.others)
    if not number:
        return Plan(because="waiting for the revision numbers of its previous sets", requeue_after=RETRY)
    # A revision that is stated is immutable, even where it is no number.
    part = "status" if "revision" in (view.obj.get("spec") or {}) else "spec"
    return one_stage(
        "record the revision number",
        [change(view.obj, {part: {"revision": number}}, subresource="status" if part == "status" else "")],
        because=f"it is revision {number}",
    )


def owner_of(view: View, answers: Answers) -> PhaseOwner:
    """Return the set as the owner of its objects."""
    return superseded(
        set_owner(view),
        view.in_process,
        live_objects(view.in_process, answers),
        elsewhere=any(is_taken_over(view, one) for one in view.phases if one.class_),
        succeeded=lineage.has_succeeded(view.obj),
    )


def phase_steps(view: View, owner: PhaseOwner, answers: Answers, now: datetime) -> Iterator[PhaseStep]:
    """Yield the next step of each phase; after one that gates, what is known of the others."""
    lives = live_objects(view.in_process, answers)
    is_reached = True
    for phase in view.phases:
        if phase.class_:
            step = class_phase_step(view, owner, phase, answers, now, is_reached=is_reached)
        else:
            step = phase_step(owner, phase.name, phase.manifests, lives, answers, is_reached=is_reached)
        is_reached = is_reached and not step.gates
        yield step


def _reconcile(view: View, answers: Answers, now: datetime) -> Plan:
    assert view.spec is not None, "a set whose spec cannot be read is reported before"
    owner = owner_of(view, answers)
    steps = tuple(phase_steps(view, owner, answers, now))
    if asked := tuple(dict.fromkeys(query for one in steps for query in one.queries)):
        return Plan(queries=asked)
    stages = [Stage("own the slices", tuple(_own_slices(view)))]
    stages += [stage for one in steps for stage in writes(one)]
    reported: tuple[Action, ...] = ()
    refused = any(one.is_refused for one in steps)
    again = RETRY if refused or any(one.is_unreported for one in steps) else None
    if not any(one.is_outdated for one in steps) and (refused or not any(one.is_unsettled for one in steps)):
        made = status(view, steps, now)
        reported = report(view.obj, made, now)
        again = again or soak(view, made, now)
    stages.append(Stage("report", reported, run_after_failure=refused))
    return in_stages(stages, because=_because(owner, steps), again=again)


def _own_slices(view: View) -> Iterator[Action]:
    """Yield the owner references that slices lack; the set is one of their owners, and controls none."""
    assert view.spec is not None, "a set whose spec cannot be read is reported before"
    for name in dict.fromkeys(name for phase in view.spec.phases for name in phase.slices):
        slice_ = view.lineage.slices[name]
        refs = list(meta.owner_refs(slice_))
        if all(one["uid"] != meta.uid(view.obj) for one in refs):
            yield change_metadata(slice_, ownerReferences=[*refs, meta.owner_ref(view.obj)])


def _because(owner: PhaseOwner, steps: tuple[PhaseStep, ...]) -> str:
    failed = next((one.failure for one in steps if one.failure is not None), None)
    writing = next((one for one in steps if one.actions), None)
    if writing is not None and (failed is None or writing.failure is failed):
        return f'writing {len(writing.actions)} of {len(writing.steps)} objects of phase "{writing.name}"'
    if failed is not None:
        return failed.message
    return "it is paused: objects are probed, and not written" if owner.is_paused else _SETTLED
