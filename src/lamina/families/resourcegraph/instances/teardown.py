"""
Deletes an instance: its children wave by wave, the last dependents first, and then its finalizer.

It needs neither the definition nor a graph: the inventory says where children are, and their
annotations say in which order they go. A wave begins once the one before it is gone by live
lists; what a stale cache does not have would never be deleted. A kind that is gone with its CRD
has no objects; one that is not served for another reason is waited for. An inventory that was
edited blocks the deletion.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from lamina.core.model.finalizers import is_held
from lamina.core.model.plan import NOTHING, Plan, Stage, remove_finalizer
from lamina.core.model.queries import Answers, Found, Query, Read
from lamina.core.texts import joined
from lamina.families.resourcegraph.instances.applyset import recorded, what_is_wrong
from lamina.families.resourcegraph.instances.children import order_of
from lamina.families.resourcegraph.instances.prune import deletion, listed, lists_of, unlisted
from lamina.families.resourcegraph.instances.status import deleting
from lamina.families.resourcegraph.instances.view import View
from lamina.families.resourcegraph.labels import (
    ADDITIONAL_NAMESPACES,
    FINALIZER,
    GROUP_KINDS,
    INVENTORY_HASH,
)
from lamina.objects import meta
from lamina.objects.types import Obj

_AT_ONCE = timedelta(0)
_POLL = timedelta(seconds=3)
"""How often children of kinds that are not watched are listed."""
_DELETING = "deleting resources"
_REMEDY = (
    f"set {GROUP_KINDS} and {ADDITIONAL_NAMESPACES} to the kinds and the other namespaces of its resources, and "
    f"remove {INVENTORY_HASH}; or delete its resources, and then its finalizer {FINALIZER}"
)
"""What ends a deletion that an edited inventory blocks: one without a hash is accepted."""


def plan(view: View, answers: Answers, now: datetime) -> Plan:
    """Return the next step of the deletion of an instance."""
    if not is_held(view.obj, FINALIZER):
        return NOTHING
    if wrong := what_is_wrong(view.obj):
        blocked = f"deletion blocked: validate deletion inventory: {wrong}; {_REMEDY}"
        return _reported(view, blocked, now)
    kinds = recorded(view.obj).kinds
    again = None if kinds <= view.setup.child_kinds else _POLL
    first = _first_wave(view.children)
    if first and all(map(meta.is_deleting, first)):
        return _reported(view, _waiting(first), now, again)
    itself, lists = Read(meta.ref(view.obj)), lists_of(view, kinds)
    asked: tuple[Query, ...] = (itself, *lists)
    if queries := tuple(one for one in asked if one not in answers):
        return Plan(queries=queries)
    instance = answers.get(itself)
    if not isinstance(instance, Found) or meta.uid(instance.obj) != meta.uid(view.obj):
        # Another instance of its name has these children now.
        return Plan(because="it is gone", requeue_after=_POLL)
    if unknown := unlisted(view, kinds, answers):
        # What order they are to go in is not known either.
        names = ", ".join(f"{kind}.{group}" if group else kind for group, kind in sorted(unknown))
        because = f"{_DELETING}: cannot list {names}, which the server does not serve"
        return _reported(view, because, now, _POLL)
    wave = _first_wave(listed(view, lists, answers))
    if not wave:
        because = "all of its resources are gone"
        return Plan(
            stages=(Stage("remove the finalizer", (remove_finalizer(view.obj, FINALIZER),)),), because=because
        )
    doomed = tuple(deletion(one) for one in wave if not meta.is_deleting(one))
    if not doomed:
        return _reported(view, _waiting(wave), now, again)
    # Reported first: what is deleted may be gone before the next pass.
    reported = _reported(view, _DELETING, now)
    because = f"deleting {len(doomed)} resources of wave {order_of(wave[0])}"
    stages = (*reported.stages, Stage("delete a wave", doomed, run_after_failure=True))
    # Most children are gone at once, and of those that are not watched no event says so.
    return Plan(stages=stages, because=because, requeue_after=None if again is None else _AT_ONCE)


def _first_wave(members: Sequence[Obj]) -> list[Obj]:
    """Return the members with the highest order that is left."""
    highest = max(map(order_of, members), default=0)
    return [one for one in members if order_of(one) == highest]


def _waiting(wave: Sequence[Obj]) -> str:
    """Return what the deletion waits for: the objects that finalizers hold, by name."""
    held = [one for one in wave if meta.finalizers(one)]
    if not held:
        return _DELETING
    named = [f"{meta.ref(one)} waits for finalizers: {', '.join(meta.finalizers(one))}" for one in held]
    return f"{_DELETING}: {joined(named)}"


def _reported(view: View, message: str, now: datetime, again: timedelta | None = None) -> Plan:
    stages = (Stage("report", deleting(view, message, now)),)
    return Plan(stages=tuple(one for one in stages if one.actions), because=message, requeue_after=again)
