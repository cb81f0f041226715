"""Makes objects ready whose own controllers do not run in the simulation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta

from msgspec import Struct
from msgspec.structs import replace

from lamina.core.model.controller import AnyController, Controller, Watch, itself, only
from lamina.core.model.plan import NOTHING, Plan, one_stage, set_status
from lamina.core.model.queries import Answers
from lamina.core.model.world import World, whole
from lamina.objects import conditions, meta
from lamina.objects.kinds import Kind
from lamina.objects.times import moment
from lamina.objects.types import Condition, Obj, Ref


class Readiness(Struct, frozen=True):
    """Objects of a kind report these conditions as True after a delay from each change."""

    kind: Kind
    conditions: tuple[str, ...]
    after: timedelta


def ready(what: Readiness, is_excluded: Callable[[Ref], bool]) -> Controller[Obj]:
    """Return the controller that makes objects ready, except those for which `is_excluded` is true."""

    def gather(world: World, ref: Ref) -> Obj | None:
        return None if is_excluded(ref) else world.get(ref)

    def plan(obj: Obj, answers: Answers, now: datetime) -> Plan:
        status = obj.get("status") or {}
        reported: Sequence[Condition] = status.get("conditions") or ()
        stale = [name for name in what.conditions if not _is_reported(reported, name, meta.generation(obj))]
        if not stale or meta.is_deleting(obj):
            return NOTHING
        # The delay is the same after a change as after the creation, and starts at the first reconcile.
        began = moment(status.get("simulatedSince") or "")
        if status.get("simulatedGeneration") != meta.generation(obj) or began is None:
            begun = {**status, "simulatedGeneration": meta.generation(obj), "simulatedSince": now.isoformat()}
            patch = set_status(obj, begun)
            return one_stage("begin", [patch] if patch else [], because="the delay has started")
        if now < began + what.after:
            return Plan(requeue_after=began + what.after - now, because="the delay has not passed")
        made = reported
        for name in stale:
            made = conditions.with_condition(
                made, name, "True", now=now, reason="Simulated", message="set by the simulation"
            )
        observed = [{**one, "observedGeneration": meta.generation(obj)} for one in made]
        done = {**status, "conditions": observed, "observedGeneration": meta.generation(obj)}
        patch = set_status(obj, done)
        return one_stage("write status", [patch] if patch else [], because="it is ready")

    return Controller(
        name=f"readiness of {what.kind.plural}",
        watches=(Watch(selects=only(*what.kind.group_kind), enqueue=itself, keep=whole),),
        gather=gather,
        plan=plan,
        manager="simulation",
    )


def _is_reported(reported: Sequence[Condition], name: str, generation: int) -> bool:
    found = conditions.find(reported, name)
    return (
        found is not None
        and found["status"] == "True"
        and found.get("observedGeneration", generation) >= generation
    )


def excluding(controller: AnyController, is_excluded: Callable[[Ref], bool]) -> AnyController:
    """Return a controller that ignores some objects."""
    return replace(
        controller, gather=lambda world, ref: None if is_excluded(ref) else controller.gather(world, ref)
    )
