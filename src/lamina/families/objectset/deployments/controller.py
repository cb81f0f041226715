"""The controller of deployments, as a value."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any

from msgspec.structs import replace

from lamina.core.model.complaints import reported_by
from lamina.core.model.controller import DEFAULT_OPTIONS, Controller, Options, Watch, one_of
from lamina.core.model.plan import Plan
from lamina.core.model.queries import Answers
from lamina.core.model.world import Change, World
from lamina.core.ownership.controller_ref import controllers_of
from lamina.families.objectset.api import parse_set
from lamina.families.objectset.deployments.plan import plan
from lamina.families.objectset.deployments.view import View, gather
from lamina.families.objectset.labels import API_VERSION, DEPLOYMENTS, MANAGER, SETS, SLICES
from lamina.families.objectset.owner_status import owner_state, progress
from lamina.families.objectset.watches import sets_of_slice
from lamina.objects import meta
from lamina.objects.types import Obj, Ref


def deployments(options: Options = DEFAULT_OPTIONS) -> Controller[View]:
    """Return the controller of deployments."""
    return Controller(
        name="objectdeployment",
        watches=(
            Watch(selects=one_of(DEPLOYMENTS), api_version=API_VERSION, enqueue=_deployment_changed),
            Watch(
                selects=one_of(SETS),
                api_version=API_VERSION,
                derive=parse_set,
                enqueue=_set_changed,
            ),
            Watch(selects=one_of(SLICES), api_version=API_VERSION, enqueue=_deployments_of_slice),
        ),
        gather=gather,
        plan=_with_progress,
        complain=reported_by(MANAGER),
        manager=MANAGER,
        at_once=options.workers,
        period=options.flush,
        owner_state=owner_state,
    )


def _with_progress(view: View, answers: Answers, now: datetime) -> Plan:
    return replace(plan(view, answers, now), progress=progress(view))


def _set_changed(world: World, change: Change) -> Iterator[Ref]:
    return controllers_of(DEPLOYMENTS, change)


def _deployment_changed(world: World, change: Change) -> Iterator[Ref]:
    if not change.preserves(_deployment_facts):
        yield change.ref


def _deployment_facts(obj: Obj) -> Any:
    """Return what of a deployment a plan for it depends on, besides the status that the last one wrote."""
    metadata = meta.metadata(obj)
    return (
        meta.uid(obj),
        meta.generation(obj),
        metadata.get("deletionTimestamp"),
        dict(meta.annotations(obj)),
        (obj.get("status") or {}).get("collisionCount"),
    )


def _deployments_of_slice(world: World, change: Change) -> Iterator[Ref]:
    for ref in sets_of_slice(world, change):
        yield from controllers_of(DEPLOYMENTS, Change(change.kind, None, world.get(ref)))
