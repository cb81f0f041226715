"""
The next step of one instance.

    it is being deleted            its children are deleted, wave by wave, and then its finalizer
    a rollback is asked for        its spec is restored
    it is suspended                that is reported
    its revision is unusable       that is reported, and its children stay
    anything else                  a pass over its nodes

A finalizer and labels come first, in the stage before all others.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from lamina.core.model.plan import NOTHING, Action, Plan, Stage, one_stage
from lamina.core.model.queries import Answers
from lamina.families.resourcegraph.instances import restore, status, teardown
from lamina.families.resourcegraph.instances.goal import choose
from lamina.families.resourcegraph.instances.node_pass import managing, node_pass
from lamina.families.resourcegraph.instances.resolve import consume
from lamina.families.resourcegraph.instances.view import View
from lamina.objects import meta

_MANAGED = "setting its finalizer, its labels and its inventory"
_SOON, _LATER = timedelta(seconds=1), timedelta(seconds=10)


def plan(view: View, answers: Answers, now: datetime) -> Plan:
    """Return the next step of an instance."""
    if meta.is_deleting(view.obj):
        return teardown.plan(view, answers, now)
    if view.definition is None:
        return NOTHING
    managed = managing(view)
    if managed and view.is_suspended:
        return Plan(stages=managed, because=_MANAGED)
    restored = restore.plan(view, answers, now)
    if restored is not None:
        return restored
    if view.is_suspended:
        return _reported(status.suspended(view, now), "reconciliation is suspended")
    choice = choose(view, answers, now)
    effective = choice.resolved.effective
    if choice.queries:
        return Plan(queries=choice.queries)
    if choice.waits:
        return Plan(because=choice.waits, requeue_after=_SOON)
    if choice.newest is None:
        if managed:
            return Plan(stages=managed, because=_MANAGED)
        if meta.is_deleting(view.definition):
            return NOTHING
        # A kind may be served later than its CRD is cached.
        again = _LATER if effective.is_uncompiled else None
        return _reported(status.unusable(view, effective, now), effective.message, again)
    if effective.is_consumed:
        because = f"RGD revision {effective.number} is accepted"
        return one_stage("remove the annotation", [consume(view.obj)], because=because)
    return node_pass(view, choice, answers, now)


def _reported(actions: tuple[Action, ...], because: str, again: timedelta | None = None) -> Plan:
    return Plan(stages=(Stage("report", actions),) if actions else (), because=because, requeue_after=again)
