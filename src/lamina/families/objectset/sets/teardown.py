"""
The teardown of a set that is archived or deleted: its phases in reverse order.

The next phase starts once every object of this one is gone. Before objects are deleted, the
other revisions are read live: what the latest one contains, or the newest one that is
available or has succeeded, is left for them to take over.
"""

from __future__ import annotations

from datetime import datetime

from lamina.core.model.finalizers import is_held, release
from lamina.core.model.plan import NOTHING, Plan, Stage, in_stages, one_stage
from lamina.core.model.queries import Answers
from lamina.core.phases.delegated_phase import tear_down_delegate
from lamina.core.phases.live_objects import live_objects
from lamina.core.phases.live_revisions import uncached
from lamina.core.phases.manifest import ObjectKey
from lamina.core.phases.owner import PhaseOwner
from lamina.core.phases.teardown import Teardown, given_up, may_give_up, tear_down
from lamina.families.objectset.contents import place_of
from lamina.families.objectset.labels import METRICS, PHASE_CLASS, TEARDOWN
from lamina.families.objectset.reporting import report
from lamina.families.objectset.sets import status
from lamina.families.objectset.sets.view import PhaseView, View, observed, owner_of, phase_ref
from lamina.families.objectset.siblings import protected
from lamina.objects import meta
from lamina.objects.types import Obj

_ORPHAN = "orphan"
"""The finalizer of a deletion with --cascade=orphan."""


def plan(view: View, answers: Answers, now: datetime) -> Plan:
    """Return the next step of a set that is archived or deleted."""
    obj = view.obj
    if not is_held(obj, TEARDOWN):
        if meta.is_deleting(obj):
            return _released(view) if is_held(obj, METRICS) else NOTHING
        return one_stage(
            "report", report(obj, status.archived(view, now), now), because="it has nothing to delete"
        )
    owner = owner_of(view)
    lives = live_objects(view.in_process, answers)
    if (waits := uncached(view.missing, answers)) is not None:
        # What its slices contain is to be deleted, too.
        return waits
    own = ((one.key, place_of(phase.class_)) for phase in view.phases for one in phase.manifests)
    kept: frozenset[ObjectKey] | Plan = frozenset()
    if any(may_give_up(owner, one) for one in lives.values()) or view.owned_phases:
        kept = protected(obj, own, answers, view.lineage, view.kinds, view.kinds, given_up(owner, lives))
    if isinstance(kept, Plan):
        return kept
    orphans = _ORPHAN in meta.finalizers(obj)
    parts = [_phase(view, owner, one, lives, answers, kept, orphans) for one in reversed(view.phases)]
    # The objects of a deletion that orphans have no order.
    current = [one for one in parts if not one.is_over][: None if orphans else 1]
    if queries := tuple(query for one in current for query in one.queries):
        return Plan(queries=queries)
    if not current:
        return _over(view, now)
    waiting = tuple(one for part in current for one in part.waiting)
    stages = [Stage("delete", tuple(action for part in current for action in part.actions))]
    if not meta.is_deleting(obj):
        steps = observed(view, answers)
        stages.insert(0, Stage("report", report(obj, status.archiving(view, waiting, steps, now), now)))
    because = "; ".join(waiting) or "its objects are being deleted"
    return in_stages(stages, because=because)


def _over(view: View, now: datetime) -> Plan:
    """Finish a teardown: an archived set reports it first, and then is released like a deleted one."""
    if meta.is_deleting(view.obj):
        return _released(view)
    reported = report(view.obj, status.archived(view, now), now)
    return one_stage("report", reported, because="none of its objects are left")


def _released(view: View) -> Plan:
    return release(view.obj, TEARDOWN, METRICS, because="none of its objects are left")


def _phase(
    view: View,
    owner: PhaseOwner,
    phase: PhaseView,
    lives: dict[ObjectKey, Obj],
    answers: Answers,
    kept: frozenset[ObjectKey],
    orphans: bool,
) -> Teardown:
    if not phase.class_:
        return tear_down(owner, phase.manifests, lives, answers, protected=kept, orphans=orphans)
    return tear_down_delegate(
        owner,
        phase_ref(view.obj, phase.name),
        phase.live,
        answers,
        is_marked=lambda found: meta.labels(found).get(PHASE_CLASS) == phase.class_,
        orphans=orphans,
    )
