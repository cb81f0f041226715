"""The events of an instance: its propagation, its rollback and its pin."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime

from lamina.core.model.events import normal, on_change, warning
from lamina.core.model.plan import Emit
from lamina.families.resourcegraph.instances.built_in import ROLLED_BACK
from lamina.families.resourcegraph.instances.input_revisions import BLOCKED, COMPLETED
from lamina.families.resourcegraph.labels import MANAGER
from lamina.objects import conditions, meta
from lamina.objects.types import Obj


def transitions(obj: Obj, status: Obj, now: datetime) -> Iterator[Emit]:
    """Yield the events of an instance that gets this status."""
    yield from _propagation(obj, status, now)
    before = conditions.find(conditions.of(obj), ROLLED_BACK)
    after = conditions.find(status.get("conditions") or (), ROLLED_BACK)
    if after is None or after["status"] == "Unknown":
        return
    name = "RollbackSucceeded" if after["status"] == "True" else "RollbackFailed"
    for event in on_change(
        obj,
        before,
        after,
        by=MANAGER,
        now=now,
        warns=() if after["status"] == "True" else (after.get("reason") or "",),
        occasion=meta.resource_version(obj),
        names={after.get("reason") or "": name},
    ):
        yield Emit(event=event)


def _propagation(obj: Obj, status: Obj, now: datetime) -> Iterator[Emit]:
    before, after = (_part(one) for one in (obj.get("status") or {}, status))
    if after.get("status") == before.get("status"):
        return
    occasion, message = meta.resource_version(obj), after.get("message") or ""
    if after.get("status") == COMPLETED:
        message = f"input revision {after.get('targetInputRevision')}: all {after.get('totalResources')} resources are at it and ready"
        yield Emit(event=normal(obj, "PropagationCompleted", message, by=MANAGER, now=now, occasion=occasion))
    elif after.get("status") == BLOCKED:
        yield Emit(event=warning(obj, "PropagationBlocked", message, by=MANAGER, now=now, occasion=occasion))


def _part(status: Obj) -> Obj:
    found = status.get("propagation")
    return found if isinstance(found, Mapping) else {}


def pinned(obj: Obj, number: int, now: datetime) -> Emit:
    """Return the event of an instance that is pinned to a revision; it is the same each time."""
    message = f"pinned to RGD revision {number}: it does not follow newer ones"
    return Emit(event=normal(obj, "InstancePinned", message, by=MANAGER, now=now))
