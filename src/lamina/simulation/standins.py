"""Who stands in for whoever makes objects ready that nobody here runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta

from msgspec import Struct
from msgspec.structs import replace

from lamina.core.controller import AnyController, Controller, Watch, itself, only
from lamina.core.plan import NOTHING, Plan, one_stage, set_status
from lamina.core.questions import Answers
from lamina.core.world import World, whole
from lamina.objects import conditions, meta
from lamina.objects.kinds import Kind
from lamina.objects.times import moment
from lamina.objects.types import Condition, Obj, Ref


class Readiness(Struct, frozen=True):
    """Objects of a kind report these conditions, True, so long after they were made or changed."""

    kind: Kind
    conditions: tuple[str, ...]
    after: timedelta


def ready(what: Readiness, holds: Callable[[Ref], bool]) -> Controller[Obj]:
    """Return the controller that makes objects ready, but for those that are held."""

    def gather(world: World, ref: Ref) -> Obj | None:
        return None if holds(ref) else world.get(ref)

    def plan(obj: Obj, answers: Answers, now: datetime) -> Plan:
        status = obj.get("status") or {}
        said: Sequence[Condition] = status.get("conditions") or ()
        stale = [name for name in what.conditions if not _is_said(said, name, meta.generation(obj))]
        if not stale or meta.is_deleting(obj):
            return NOTHING
        # It takes as long after a change as after the beginning; who has not begun yet begins now.
        began = moment(status.get("simulatedSince") or "")
        if status.get("simulatedGeneration") != meta.generation(obj) or began is None:
            begun = {**status, "simulatedGeneration": meta.generation(obj), "simulatedSince": now.isoformat()}
            patch = set_status(obj, begun)
            return one_stage("begin", [patch] if patch else [], because="somebody works on it")
        if now < began + what.after:
            return Plan(look_again=began + what.after - now, because="it takes a while")
        made = said
        for name in stale:
            made = conditions.with_condition(
                made, name, "True", now=now, reason="Simulated", message="it is so on paper"
            )
        observed = [{**one, "observedGeneration": meta.generation(obj)} for one in made]
        done = {**status, "conditions": observed, "observedGeneration": meta.generation(obj)}
        patch = set_status(obj, done)
        return one_stage("say so", [patch] if patch else [], because="it is ready")

    return Controller(
        name=f"readiness of {what.kind.plural}",
        watches=(Watch(selects=only(*what.kind.group_kind), concerns=itself, keep=whole),),
        gather=gather,
        plan=plan,
        manager="simulation",
    )


def _is_said(said: Sequence[Condition], name: str, generation: int) -> bool:
    found = conditions.find(said, name)
    return (
        found is not None
        and found["status"] == "True"
        and found.get("observedGeneration", generation) >= generation
    )


def but(controller: AnyController, holds: Callable[[Ref], bool]) -> AnyController:
    """Return a controller that leaves some objects alone."""
    return replace(
        controller, gather=lambda world, ref: None if holds(ref) else controller.gather(world, ref)
    )
