"""What is reported of a pass over a definition that failed."""

from __future__ import annotations

from datetime import datetime

from lamina.core.crd.kinds import DEFINITION as CRD
from lamina.core.model.complaints import summary, sync_error
from lamina.core.model.plan import NOTHING, Plan, Stage
from lamina.core.model.world import World
from lamina.errors import LaminaError, PlanFailed
from lamina.families.resourcegraph.definitions.findings import KIND, failed
from lamina.families.resourcegraph.definitions.status import status_patch, with_state
from lamina.families.resourcegraph.labels import MANAGER
from lamina.objects.types import Ref


def complain(world: World, ref: Ref, error: LaminaError, now: datetime) -> Plan:
    """Report the error of a pass as an event, and in KindReady where the CRD could not be written."""
    obj = world.get(ref)
    if obj is None:
        return NOTHING
    is_about_crd = isinstance(error, PlanFailed) and any(
        one is not None and one.kind == CRD.kind for one in error.about
    )
    status = with_state(obj, {KIND: failed(summary(error))}, now) if is_about_crd else obj.get("status") or {}
    patch = status_patch(obj, status)
    stages = (
        Stage("emit events", (sync_error(obj, error, by=MANAGER, now=now),)),
        Stage("report the error", (patch,) if patch is not None else ()),
    )
    return Plan(stages=tuple(one for one in stages if one.actions), because=str(error))
