"""
The next step of one ObjectSetPhase: its objects are reconciled as those of a phase of its set.

They are on the same cluster, or on another one, where owners are recorded in an annotation.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from msgspec.structs import replace

from lamina.core.health.probe_spec import Probes, compile_probes
from lamina.core.live_check import LiveCheck, has_same_spec
from lamina.core.model.condition_list import ConditionList
from lamina.core.model.finalizers import hold, is_held, release
from lamina.core.model.plan import NOTHING, Plan, Stage, in_stages, one_stage
from lamina.core.model.queries import Answers, Query
from lamina.core.phases.condition_mapping import mapped, set_mapped
from lamina.core.phases.live_objects import live_objects, unfollowed
from lamina.core.phases.live_revisions import uncached_owner
from lamina.core.phases.manifest import ObjectKey
from lamina.core.phases.object_list import listed
from lamina.core.phases.owner import PhaseOwner, superseded
from lamina.core.phases.phase_step import RETRY, Failure, FailureReason, PhaseStep, phase_step
from lamina.core.phases.teardown import given_up, may_give_up, tear_down
from lamina.errors import SpecError
from lamina.families.objectset import lineage
from lamina.families.objectset.api import PROBES
from lamina.families.objectset.class_phases.view import View
from lamina.families.objectset.labels import CONVENTIONS, TEARDOWN
from lamina.families.objectset.manifests import forced_adoption
from lamina.families.objectset.reporting import phase_gauges, report, set_available
from lamina.families.objectset.siblings import protected, protected_from_phase
from lamina.objects import meta
from lamina.objects.types import Made, Obj

_ORPHAN = "orphan"
_NO_PROBES = Probes()


def queries(view: View, answers: Answers) -> tuple[Query, ...]:
    """Return what has to be followed: the objects of the phase."""
    if not is_held(view.obj, TEARDOWN):
        return ()
    return unfollowed(view.manifests, answers, view.phase_class.cluster)


def plan(view: View, answers: Answers, now: datetime) -> Plan:
    """Return the next step of an ObjectSetPhase, and its metrics."""
    gauges = phase_gauges(view.obj, view.manifests, answers, view.phase_class.cluster)
    return replace(_next(view, answers, now), gauges=gauges)


def _next(view: View, answers: Answers, now: datetime) -> Plan:
    if meta.is_deleting(view.obj) and not _is_kept(view):
        return _tear_down(view, answers) if is_held(view.obj, TEARDOWN) else NOTHING
    if not is_held(view.obj, TEARDOWN):
        return hold(view.obj, TEARDOWN, because="its objects are to be deleted before it is")
    if view.spec is None:
        return _invalid(view, view.error, now)
    try:
        probes = compile_probes(view.spec.availability_probes, PROBES)
    except SpecError as wrong:
        return _invalid(view, str(wrong), now)
    lives = live_objects(view.manifests, answers, view.phase_class.cluster)
    has_succeeded = view.parent is not None and lineage.has_succeeded(view.parent)
    owner = superseded(
        _owner(view, probes),
        view.manifests,
        lives,
        elsewhere=view.lineage.is_superseded,
        succeeded=has_succeeded,
    )
    step = phase_step(owner, view.name, view.manifests, lives, answers, is_reached=True)
    if step.queries:
        return Plan(queries=step.queries)
    refused = step.is_refused
    stages = [Stage("write", step.actions)]
    if not step.is_outdated and (refused or not step.is_unsettled):
        reported = report(view.obj, _status(view, step, now), now)
        stages.append(Stage("report", reported, run_after_failure=refused))
    because = step.failure.message if step.failure is not None else "all objects are as they should be"
    return in_stages(stages, because=because, again=RETRY if refused else None)


def _is_kept(view: View) -> bool:
    """
    Say whether a phase that is being deleted goes on, because its set is live.

    Its objects are those of the set, which would only create them again.
    """
    return (
        view.parent is not None and lineage.is_live(view.parent) and _ORPHAN not in meta.finalizers(view.obj)
    )


def _is_ending(view: View) -> bool:
    """Say whether the set of a phase is archived or being deleted, or gone."""
    if view.parent is None:
        return meta.controller_of(view.obj) is not None
    return not lineage.is_live(view.parent)


def _owner(view: View, probes: Probes = _NO_PROBES) -> PhaseOwner:
    return PhaseOwner(
        obj=view.obj,
        revision=view.spec.revision if view.spec is not None else 0,
        conventions=CONVENTIONS,
        adoption=forced_adoption(view.obj),
        siblings=view.lineage.siblings,
        checks=tuple(_checks(view)),
        probes=probes,
        # Its objects are about to be deleted where its set is archived or being deleted.
        is_paused=(view.spec is not None and view.spec.paused) or _is_ending(view),
        record=view.phase_class.record,
        cluster=view.phase_class.cluster,
        # On another cluster, the rights of the controller there decide.
        confines=not view.phase_class.cluster,
    )


def _checks(view: View) -> Iterator[LiveCheck]:
    """Yield what confirms that a phase is still to have objects; one that is deleted by hand is kept as long as its set is live."""
    if view.parent is None:
        yield LiveCheck(cached=view.obj)
    else:
        yield LiveCheck(cached=view.obj, holds=has_same_spec)
        yield LiveCheck(cached=view.parent, holds=_is_still_live, whole=True)


def _is_still_live(live: Obj, cached: Obj) -> bool:
    """Say whether a set is neither archived nor being deleted; its spec may have changed otherwise."""
    return meta.uid(live) == meta.uid(cached) and lineage.is_live(live)


def _invalid(view: View, message: str, now: datetime) -> Plan:
    made = ConditionList(view.obj, now)
    set_available(made, Failure(FailureReason.PREFLIGHT, message))
    status: Made = {**(view.obj.get("status") or {}), "conditions": made.found}
    return one_stage("report", report(view.obj, status, now), because=message)


def _status(view: View, step: PhaseStep, now: datetime) -> Made:
    made = ConditionList(view.obj, now)
    set_mapped(made, mapped(step.steps))
    set_available(made, step.failure)
    is_paused = view.spec is not None and view.spec.paused
    made.set_while(is_paused, "Paused", "spec.paused is true: objects are probed, and not written")
    return {
        **(view.obj.get("status") or {}),
        "conditions": made.found,
        "controllerOf": listed(step.controlled),
    }


def _tear_down(view: View, answers: Answers) -> Plan:
    owner, lives = _owner(view), live_objects(view.manifests, answers, view.phase_class.cluster)
    # A cache may lack the set, and what else there is of its lineage is not known without it.
    if view.parent is None and (waits := uncached_owner(view.obj, answers)) is not None:
        return waits
    kept: frozenset[ObjectKey] | Plan = frozenset()
    if any(may_give_up(owner, one) for one in lives.values()):
        kept = _protected(view, answers, given_up(owner, lives))
    if isinstance(kept, Plan):
        return kept
    wanted = view.manifests
    if view.parent is None:
        # It is no revision from which another one takes objects over.
        wanted = tuple(replace(one, is_orphaned=one.is_orphaned or one.key in kept) for one in wanted)
        kept = frozenset()
    orphans = _ORPHAN in meta.finalizers(view.obj)
    done = tear_down(owner, wanted, lives, answers, protected=kept, orphans=orphans)
    if done.queries:
        return Plan(queries=done.queries)
    if done.is_over:
        return release(view.obj, TEARDOWN, because="none of its objects are left")
    because = "; ".join(done.waiting) or "its objects are being deleted"
    return one_stage("delete", done.actions, because=because)


def _protected(view: View, answers: Answers, left: frozenset[ObjectKey]) -> frozenset[ObjectKey] | Plan:
    own = ((one.key, view.phase_class.place) for one in view.manifests)
    if view.parent is not None:
        return protected(view.parent, own, answers, view.lineage, view.kinds, view.target_kinds, left)
    slices, kinds = view.lineage.slices, view.kinds
    return protected_from_phase(view.set_kind, view.obj, own, answers, slices, kinds, view.target_kinds)
