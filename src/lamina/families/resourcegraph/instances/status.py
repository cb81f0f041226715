"""
The status of an instance where nothing is known of its resources, and the write of any status.

It reports and decides nothing: what an instance is on is recorded by its input revisions and
on its children. A status is written only where it differs.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from msgspec.structs import replace

from lamina.core.model.plan import Action, Counter, set_status
from lamina.families.resourcegraph import counters
from lamina.families.resourcegraph.definitions.findings import Finding
from lamina.families.resourcegraph.instances.built_in import (
    GRAPH_RESOLVED,
    INSTANCE_MANAGED,
    MANAGED,
    RESOURCES_READY,
    REVISION_RESOLVED,
    ROLLED_BACK,
    SUSPENDED,
    authored,
    built_in,
    graph_resolved,
    not_ready,
    revision_resolved,
)
from lamina.families.resourcegraph.instances.effective_revision import Effective
from lamina.families.resourcegraph.instances.events import pinned, transitions
from lamina.families.resourcegraph.instances.input_revisions import BLOCKED
from lamina.families.resourcegraph.instances.view import View
from lamina.objects.times import stamp
from lamina.objects.types import Made, Obj


def deleting(view: View, message: str, now: datetime) -> tuple[Action, ...]:
    """Report that an instance is being deleted, and what it waits for."""
    findings = {RESOURCES_READY: Finding("Unknown", "UnderDeletion", message)}
    return _kept(view, "DELETING", findings, now)


def suspended(view: View, now: datetime) -> tuple[Action, ...]:
    """Report that nothing is written to the resources of an instance; what was reported of them stays."""
    findings = {INSTANCE_MANAGED: MANAGED, RESOURCES_READY: SUSPENDED}
    return _kept(view, view.status.get("state") or "IN_PROGRESS", findings, now)


def unusable(view: View, effective: Effective, now: datetime) -> tuple[Action, ...]:
    """Report that the revision of an instance cannot be used; its resources stay as they are."""
    findings = {
        INSTANCE_MANAGED: MANAGED,
        GRAPH_RESOLVED: graph_resolved(effective),
        REVISION_RESOLVED: revision_resolved(effective),
    }
    counts = {
        name: value
        for name, value in known_propagation(view).items()
        if name in ("targetInputRevision", "resourcesAtTarget", "totalResources")
    }
    found = propagation(
        view, BLOCKED, now, **counts, pendingRGDRevision=effective.pending, message=effective.message
    )
    fields = {} if "propagation" in view.authored else {"propagation": found}
    return _kept(view, "ERROR", findings, now, fields)


def rolled_back(view: View, finding: Finding, now: datetime) -> tuple[Action, ...]:
    """Report how a rollback stands; nothing where that is reported."""
    return _kept(view, view.status.get("state") or "IN_PROGRESS", {ROLLED_BACK: finding}, now)


def failed(view: View, message: str, fields: Obj, now: datetime) -> tuple[Action, ...]:
    """Report a pass that failed, what the server refused for example, with the fields of what it has started on."""
    return _kept(view, "ERROR", {RESOURCES_READY: not_ready(f"resource error: {message}")}, now, fields)


def _kept(
    view: View,
    state: str,
    findings: Mapping[str, Finding | None],
    now: datetime,
    fields: Mapping[str, Any] | None = None,
) -> tuple[Action, ...]:
    """Return the write of a status that keeps what was reported before."""
    own = built_in(view.obj, findings, now)
    shown = own
    if view.hides_conditions:
        shown = authored(view.obj, (), own, now, is_partial=True, overlays=(RESOURCES_READY,))
    return write(view.obj, {**view.status, **(fields or {}), "state": state, "conditions": shown}, now)


def known_propagation(view: View) -> Obj:
    """Return the propagation that is reported."""
    found = view.status.get("propagation")
    return found if isinstance(found, Mapping) and "propagation" not in view.authored else {}


def propagation(view: View, status: str, now: datetime, **fields: Any) -> Made:
    """Return the state of a propagation; its transition time changes with its status only."""
    known = known_propagation(view)
    since = known.get("lastTransitionTime") if known.get("status") == status else None
    made = {"status": status, **fields, "lastTransitionTime": since or stamp(now)}
    # A count of 0 is stated, a revision of 0 is none.
    return {
        name: value
        for name, value in made.items()
        if value or name in ("resourcesAtTarget", "totalResources")
    }


def rollback_counter(result: str = counters.RESTORED) -> Counter:
    """Return what the end of a rollback of an instance is counted as."""
    return counters.rolled_back(counters.INSTANCE, result)


def write(obj: Obj, status: Obj, now: datetime, *, pin: int = 0) -> tuple[Action, ...]:
    """Return the write of a status, with its events; nothing where the instance has it."""
    patch = set_status(obj, status)
    if patch is None:
        return ()
    patch = replace(patch, counters=tuple(counters.of_instance(obj, status)))
    return (patch, *transitions(obj, status, now), *((pinned(obj, pin, now),) if pin else ()))
