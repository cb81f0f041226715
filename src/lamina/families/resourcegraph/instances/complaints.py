"""Reports a pass over an instance that failed: what the server refused, on the instance and its input revision."""

from __future__ import annotations

from datetime import datetime

from msgspec.structs import replace

from lamina.core.model.complaints import sync_error
from lamina.core.model.plan import NOTHING, Action, Plan, one_stage
from lamina.core.model.world import World
from lamina.core.texts import joined
from lamina.errors import LaminaError, PlanFailed
from lamina.families.resourcegraph.api import UpdatePolicy
from lamina.families.resourcegraph.instances import input_revisions, status
from lamina.families.resourcegraph.instances.children import input_stamp
from lamina.families.resourcegraph.instances.gather import gather
from lamina.families.resourcegraph.instances.view import (
    CURRENT_INPUT,
    CURRENT_RGD,
    HISTORY,
    OBSERVED_INPUT,
    Setup,
    View,
)
from lamina.families.resourcegraph.labels import MANAGER, UPDATE_POLICY
from lamina.objects import meta
from lamina.objects.types import Made, Ref

_SHOWN = 3


def complain(setup: Setup, world: World, ref: Ref, error: LaminaError, now: datetime) -> Plan:
    """Report an error; the next pass that succeeds reports something else."""
    view = gather(setup, world, ref)
    if view is None:
        return NOTHING
    message = _message(error)
    event = sync_error(view.obj, error, by=MANAGER, now=now)
    if meta.is_deleting(view.obj):
        reported = status.deleting(view, f"deletion blocked: {message}", now)
    else:
        reported = (*status.failed(view, message, _started(view, message, now), now), *_failed_input(view))
    return one_stage("report", [*reported, event], because=message)


def _message(error: LaminaError) -> str:
    """Return an error in one line, with the objects that the first failures are about."""
    if not isinstance(error, PlanFailed):
        return str(error)
    failures = zip(error.failures, error.about, strict=True)
    texts = [f"{about}: {one}" if about is not None else str(one) for one, about in failures]
    return joined(texts, most=_SHOWN)


def _started(view: View, message: str, now: datetime) -> Made:
    """Return the fields of the status about the newest input revision, which the pass has started on."""
    newest = view.inputs[-1] if view.inputs else None
    is_paused = meta.annotations(view.obj).get(UPDATE_POLICY) == UpdatePolicy.PAUSED
    if newest is None or view.is_suspended or is_paused:
        return {}
    failed = replace(newest, status=input_revisions.FAILED)
    made: Made = {
        CURRENT_INPUT: newest.number,
        CURRENT_RGD: newest.revision,
        HISTORY: input_revisions.history(view.inputs, {newest.number: failed}, inline=view.is_inline),
    }
    # What was complete once stays so.
    if newest.status != input_revisions.COMPLETED and view.number(OBSERVED_INPUT) != newest.number:
        known = status.known_propagation(view)
        pending = known.get("pendingRGDRevision") or 0
        made["propagation"] = status.propagation(
            view,
            input_revisions.IN_PROGRESS,
            now,
            targetInputRevision=newest.number,
            resourcesAtTarget=sum(
                input_stamp(one, meta.uid(view.obj)) == newest.number for one in view.children
            ),
            totalResources=max(known.get("totalResources") or 0, len(view.children)),
            pendingRGDRevision=0 if pending == newest.revision else pending,
            message=message,
        )
    return {name: value for name, value in made.items() if name not in view.authored}


def _failed_input(view: View) -> tuple[Action, ...]:
    """Return the write that marks the newest input revision as failed, until a report of a later pass."""
    newest = view.inputs[-1] if view.inputs else None
    if newest is None or newest.obj is None or view.is_suspended:
        return ()
    old = newest.obj.get("status") or {}
    patch = input_revisions.report(
        newest,
        status=input_revisions.FAILED,
        hash=newest.hash,
        at=old.get("resourcesAtRevision") or 0,
        total=old.get("totalResources") or 0,
    )
    return () if patch is None else (patch,)
